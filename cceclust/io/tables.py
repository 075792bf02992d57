"""Tables, read with pyarrow into memory: columns of numbers or text by name."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.reading import StoredArray, StoredFile, listed
from cceclust.text import from_cell

__all__ = ["MISSING", "STDIN", "TABLE_FILES", "is_number", "write_parquet"]

STDIN = Path("-")
# Long enough for a line of tens of thousands of cells.
BLOCK_BYTES = 1 << 24
# Cells without a number, as spreadsheets, pandas and R write them.
MISSING = ["", "NA", "na", "N/A", "n/a", "#N/A", "NULL", "null", "None", "none", "NaN", "nan", "-nan"]
ARROW_MAGIC = b"ARROW1"


def open_csv(path: Path) -> StoredFile:
    """Open values that are separated by commas, semicolons or tabs, below a line with the names of the columns."""
    content = pa.py_buffer(sys.stdin.buffer.read()) if path == STDIN else pa.memory_map(str(path)).read_buffer()
    if not len(content):
        raise FileContentError("standard input is empty; expected a table of comma-separated values")
    text = io.TextIOWrapper(pa.BufferReader(content), "utf-8-sig", newline="")
    first_line = text.readline()
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first_line.count)
    text.seek(0)
    header = next(filter(None, csv.reader(text, delimiter=delimiter)), [])
    check_names(path, [name.strip() for name in header])
    # A line of a single column is empty where its value is missing.
    is_wide = len(header) > 1
    parsing = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=is_wide)

    def read(**options: Any) -> Any:
        how = parsing, pyarrow.csv.ConvertOptions(**options)
        try:
            return pyarrow.csv.read_csv(pa.BufferReader(content), pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES), *how)
        except pa.ArrowInvalid:
            # A single thread can say which line is wrong.
            reading = pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False)
            return pyarrow.csv.read_csv(pa.BufferReader(content), reading, *how)

    def spelled(name: str) -> list[str]:
        (column,) = read(include_columns=[name], column_types={name: pa.string()}).columns
        return [from_cell(cell.strip()) for cell in column.to_pylist()]

    stored = {}
    for name, column in zip(header, read(null_values=MISSING).columns, strict=True):
        if pa.types.is_binary(column.type):
            raise ValueError(f"column {name!r} has another encoding")
        stored[name.strip()] = described(name, column, partial(spelled, name))
    return StoredFile(stored)


def check_names(path: Path, header: Sequence[str]) -> None:
    """Raise unless every column has a name of its own, and the first line is one of names rather than a row."""
    # Programs that write row names leave the name of the first column empty.
    if not header or "" in header[1:]:
        raise FileContentError(f"{path}: column {list(header).index('', 1) + 1 if header else 1} has no name")
    repeated = [name for name in header if header.count(name) > 1]
    if repeated:
        raise FileContentError(f"{path} has several columns of the name {repeated[0]!r}; give each its own")
    numbers = [name for name in header if is_number(name)]
    # pandas numbers columns that have no names, and a single column may hold labels without a header.
    is_counting = any(numbers == [str(first + i) for i in range(len(numbers))] for first in (0, 1))
    if len(numbers) > len(header) / 2 and not is_counting and len(header) > 1:
        raise FileContentError(
            f"{path}: its first line looks like a row of data ({listed(header[:3])}, …); add a line with a name for "
            "each column"
        )


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    # Python takes 1_000 for one.
    return "_" not in text


def open_parquet(path: Path) -> StoredFile:
    with pq.ParquetFile(path) as file:
        return of_table(path, file.read())


def open_arrow(path: Path) -> StoredFile:
    """Open a file of Arrow's own format, which Feather uses as well."""
    source = pa.memory_map(str(path))
    # The same ending is used for both forms: files that can be read in any order, and streams.
    is_file = source.read(len(ARROW_MAGIC)) == ARROW_MAGIC
    source.seek(0)
    return of_table(path, (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source).read_all())


def open_json_lines(path: Path) -> StoredFile:
    reading = pyarrow.json.ReadOptions(block_size=BLOCK_BYTES)
    table = pyarrow.json.read_json(str(path), reading)
    dates = [field.with_type(pa.string()) for field in table.schema if pa.types.is_temporal(field.type)]
    if dates:
        # Text that looks like a date stays as it is spelled.
        table = pyarrow.json.read_json(str(path), reading, pyarrow.json.ParseOptions(pa.schema(dates)))
    return of_table(path, table)


def of_table(path: Path, table: Any) -> StoredFile:
    """Describe the columns of an Arrow table, after a check that its offsets lie inside its data."""
    check_names(path, table.column_names)
    table.validate(full=True)
    return StoredFile({name: described(name, table[name]) for name in table.column_names})


def described(name: str, column: Any, spelled: Callable[[], list[str]] | None = None) -> StoredArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_null(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    kind = column.type

    def text() -> list[str]:
        texts: list[str] = pc.fill_null(column.cast(pa.large_string()), "").to_pylist()
        return texts

    spelled = spelled or text
    if is_numeric(kind):
        # Missing values become NaN.
        return StoredArray((len(column),), "numbers", str(kind), column.to_numpy, spelled)
    if kind in (pa.string(), pa.large_string(), pa.string_view()) or pa.types.is_temporal(kind):
        return StoredArray((len(column),), "text", "text", lambda: np.array(spelled(), str), spelled)
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if is_list and is_numeric(kind.value_type):
        length = len(column[0].as_py() or []) if len(column) else 0
        return StoredArray((len(column), length), "numbers", str(kind), partial(lists_as_matrix, name, column))
    return StoredArray((len(column),), "other", str(kind), lambda: column)


def is_numeric(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def lists_as_matrix(name: str, column: Any) -> NDArray[Any]:
    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) != 1 or lengths[0] is None:
        raise ValueError(f"the lists in column {name!r} differ in length")
    pieces = [np.asarray(chunk.flatten().to_numpy(zero_copy_only=False)) for chunk in column.chunks]
    return np.concatenate(pieces).reshape(len(column), lengths[0])


def write_parquet(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of numbers or text; equal columns make equal files."""
    arrays = {
        name: pa.array([str(text).encode("utf-8", "replace").decode() for text in values])
        if values.dtype.kind == "U"
        else pa.array(values)
        for name, values in columns.items()
    }
    pq.write_table(pa.table(arrays), path)


TABLE_FILES: dict[str, tuple[str, Callable[[Path], StoredFile]]] = {
    **dict.fromkeys((".csv", ".tsv"), ("UTF-8 text of comma-separated values", open_csv)),
    ".parquet": ("a Parquet file", open_parquet),
    **dict.fromkeys((".arrow", ".feather"), ("an Arrow file", open_arrow)),
    ".jsonl": ("a file of JSON objects, one on each line", open_json_lines),
}
