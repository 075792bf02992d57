"""Tables in Parquet and Arrow files, read and written with pyarrow, which is an optional package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, MissingExtraError
from cceclust.io.guarded_reading import let_a_child_read_first
from cceclust.io.reading import refuse_bomb

__all__ = ["import_pyarrow", "read_arrow_columns", "read_arrow_header", "write_parquet_columns"]

BATCH_BYTES = 1 << 24
ARROW_MAGIC = b"ARROW1"
PARQUET = ".parquet"


def import_pyarrow(what: str) -> Any:
    """Return pyarrow, or say how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError.of(what, "pyarrow", "tables") from None
    return pyarrow


@contextmanager
def arrow_batches(path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open a file of Parquet's or Arrow's format; yield its schema and its rows in batches."""
    import pyarrow as pa

    if path.suffix.lower() == PARQUET:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            rows = max(1, BATCH_BYTES // (8 * max(1, len(file.schema_arrow))))
            yield file.schema_arrow, file.iter_batches(batch_size=rows, use_threads=False)
        return
    with pa.OSFile(str(path)) as source:
        # The same ending is used for both forms: files that can be read in any order, and streams.
        is_file = source.read(len(ARROW_MAGIC)) == ARROW_MAGIC
        source.seek(0)
        if is_file:
            reader = pa.ipc.open_file(source)
            yield reader.schema, map(reader.get_batch, range(reader.num_record_batches))
        else:
            stream = pa.ipc.open_stream(source)
            yield stream.schema, iter(stream)


def walk(path: Path) -> None:
    """Read all of a file, as a child process does before its parent."""
    import pyarrow as pa

    # Its own allocator reserves more than the child may have.
    pa.set_memory_pool(pa.system_memory_pool())
    with arrow_batches(path) as (_, batches):
        for batch in batches:
            batch.validate(full=True)


def read_arrow_header(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet or Arrow file."""
    import_pyarrow(f"reading {path.suffix} files")
    let_a_child_read_first(path, walk)
    with arrow_batches(path) as (schema, _):
        return [str(name) for name in schema.names]


def read_arrow_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Read all columns of a Parquet or Arrow file, as :class:`cceclust.io.tables.Table` has them."""
    import pyarrow as pa

    with arrow_batches(path) as (schema, batches):
        whole, n_bytes = [], 0
        for batch in batches:
            batch.validate(full=True)
            n_bytes += batch.nbytes
            refuse_bomb(path, "its table", n_bytes)
            whole.append(batch)
        table = pa.Table.from_batches(whole, schema)
    return {name: as_numpy(path, name, table.column(number)) for number, name in enumerate(table.column_names)}


def as_numpy(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column as an array of numbers or text; a column of another type has no values."""
    import pyarrow as pa

    kind, n_rows = column.type, len(column)
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
    if pa.types.is_null(kind):
        return np.full(n_rows, np.nan)
    if pa.types.is_dictionary(kind):
        return decode_dictionary(path, name, column)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if is_number(column.type):
        # Missing values become NaN.
        return np.asarray(column.to_numpy())
    if is_list(kind) and is_number(kind.value_type):
        return lists_as_matrix(path, name, column)
    if is_text(kind) or pa.types.is_temporal(kind):
        texts = [text or "" for text in column.cast(pa.large_string()).to_pylist()]
        longest = max(map(len, texts), default=0)
        refuse_bomb(path, f"column {name!r}", 4 * longest * n_rows)
        return np.array(texts, np.str_)
    return np.empty(n_rows, object)


def is_number(kind: Any) -> bool:
    """Tell whether a type of Arrow is one of whole or floating-point numbers."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_list(kind: Any) -> bool:
    """Tell whether a type of Arrow has several values in each row."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text(kind: Any) -> bool:
    """Tell whether a type of Arrow is text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def decode_dictionary(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return the text of a categorical column; a missing value is empty."""
    pieces = []
    for chunk in column.chunks:
        categories = as_numpy(path, name, import_pyarrow("").chunked_array([chunk.dictionary])).astype(str)
        refuse_bomb(path, f"column {name!r}", len(column) * categories.itemsize)
        pieces.append(np.append(categories, "")[chunk.indices.fill_null(-1).to_numpy()])
    return np.concatenate(pieces) if pieces else np.empty(0, np.str_)


def lists_as_matrix(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column of equally long lists as a matrix."""
    import pyarrow.compute as pc

    lengths = np.unique(np.asarray(pc.list_value_length(column).to_numpy()))
    if len(lengths) != 1 or column.null_count:
        raise FileContentError(
            f"{path}: the lists in column {name!r} differ in length; expected as many numbers in each"
        )
    pieces = [np.asarray(chunk.flatten().to_numpy(zero_copy_only=False)) for chunk in column.chunks]
    return np.concatenate(pieces).reshape(len(column), int(lengths[0]))


def write_parquet_columns(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of numbers or text; equal columns make equal files."""
    pa = import_pyarrow("writing .parquet files")
    import pyarrow.parquet as pq

    arrays = {
        name: pa.array([str(text).encode("utf-8", "replace").decode() for text in values])
        if values.dtype.kind == "U"
        else pa.array(values)
        for name, values in columns.items()
    }
    pq.write_table(pa.table(arrays), path)
