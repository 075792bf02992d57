"""Tables, read with pyarrow: columns of numbers or text by name."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
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
from cceclust.io.reading import by_ending, listed, naming, refuse_what_is_no_file
from cceclust.text import from_cell

__all__ = ["MISSING", "STDIN", "TABLE_FILES", "Table", "is_number", "open_table", "write_parquet"]

STDIN = Path("-")
SEPARATED = "UTF-8 text of comma-separated values"
# Long enough for a line of tens of thousands of cells.
BLOCK_BYTES = 1 << 24
# Cells without a number, as spreadsheets, pandas and R write them.
MISSING = ["", "NA", "na", "N/A", "n/a", "#N/A", "NULL", "null", "None", "none", "NaN", "nan", "-nan"]
ARROW_MAGIC = b"ARROW1"


@dataclass(frozen=True)
class Table:
    """A table whose columns are not yet read.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    load : callable
        ``load(names, as_text)`` reads the columns of these names. Columns of numbers have NaN for missing values; a
        column of lists of numbers has two dimensions; text has type ``str``; a column of anything else has type
        ``object`` and no values. Columns in `as_text` are returned as they are spelled, where the format has only text.
    """

    header: list[str]
    load: Callable[[Collection[str], Collection[str]], dict[str, NDArray[Any]]]


def open_table(path: Path) -> Table:
    """Open a table; the path ``-`` stands for separated values on standard input."""
    open_file: Callable[[Path], Table]
    if path == STDIN:
        path, what, open_file = Path("stdin"), SEPARATED, open_stdin
    else:
        refuse_what_is_no_file(path)
        what, open_file = by_ending(path, TABLE_FILES, "read", FileContentError)
    with naming(str(path), what):
        table = open_file(path)
    check_names(path, table.header)

    def load(names: Collection[str], as_text: Collection[str]) -> dict[str, NDArray[Any]]:
        with naming(str(path), what):
            return table.load(names, as_text)

    return Table(table.header, load)


def check_names(path: Path, header: Sequence[str]) -> None:
    """Raise unless every column has a name of its own; programs that write row names leave the first one empty."""
    unnamed = [number for number, name in enumerate(header, 1) if not name and number > 1]
    if not header:
        raise FileContentError(f"{path} has no columns")
    if unnamed:
        raise FileContentError(f"{path}: column {unnamed[0]} has no name in the header")
    if len(set(header)) < len(header):
        repeated = listed(dict.fromkeys(repr(name) for name in header if header.count(name) > 1))
        raise FileContentError(f"{path} has several columns of the name {repeated}; give each its own")


def open_stdin(path: Path) -> Table:
    """Open separated values on standard input, which are held in memory since they are read more than once."""
    content = sys.stdin.buffer.read()
    if not content:
        raise FileContentError("standard input is empty; expected a table of comma-separated values")
    return open_csv(path, pa.py_buffer(content))


def open_csv_file(path: Path) -> Table:
    """Open a file of values that are separated by commas, semicolons or tabs."""
    return open_csv(path, pa.memory_map(str(path)).read_buffer())


def open_csv(path: Path, content: Any) -> Table:
    """Open separated values, whose first line names the columns."""
    first_line = io.TextIOWrapper(pa.BufferReader(content), "utf-8-sig").readline()
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first_line.count)
    text = io.TextIOWrapper(pa.BufferReader(content), "utf-8-sig", newline="")
    spelled = next(filter(None, csv.reader(text, delimiter=delimiter)), [])
    header = [name.strip() for name in spelled]
    refuse_data_as_header(path, header)
    return Table(header, partial(read_csv, content, delimiter, dict(zip(header, spelled, strict=True))))


def refuse_data_as_header(path: Path, header: Sequence[str]) -> None:
    """Raise if the first line looks like a row, and would be lost as a header."""
    numbers = [name for name in header if is_number(name)]
    # pandas numbers columns that have no names.
    is_counting = any(numbers == [str(first + i) for i in range(len(numbers))] for first in (0, 1))
    if len(numbers) > len(header) / 2 and not is_counting:
        raise FileContentError(
            f"{path}: its first line looks like a row of data ({listed(header[:3])}, …); add a line with a name for "
            "each column"
        )


def is_number(text: str) -> bool:
    """Tell whether a text is a number; Python takes 1_000 for one."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def read_csv(
    content: Any, delimiter: str, spelled: Mapping[str, str], names: Collection[str], as_text: Collection[str]
) -> dict[str, NDArray[Any]]:
    """Read columns of separated values."""
    parsing = pyarrow.csv.ParseOptions(
        delimiter=delimiter,
        newlines_in_values=True,
        # A line of a single column is empty where its value is missing.
        ignore_empty_lines=len(spelled) > 1,
    )
    converting = pyarrow.csv.ConvertOptions(
        null_values=MISSING,
        include_columns=[spelled[name] for name in names],
        column_types={spelled[name]: pa.string() for name in as_text},
    )

    def read(*, use_threads: bool) -> Any:
        reading = pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=use_threads)
        return pyarrow.csv.read_csv(pa.BufferReader(content), reading, parsing, converting)

    try:
        table = read(use_threads=True)
    except pa.ArrowInvalid:
        # A single thread can say which line is wrong.
        table = read(use_threads=False)
    columns = {}
    for name, column in zip(names, table.columns, strict=True):
        if pa.types.is_binary(column.type):
            raise ValueError(f"column {name!r} has another encoding")
        values = as_numpy(name, column)
        is_text = values.dtype.kind == "U"
        columns[name] = np.array([from_cell(text.strip()) for text in values.tolist()], str) if is_text else values
    return columns


def open_parquet(path: Path) -> Table:
    """Open a Parquet file."""

    def load(names: Collection[str], as_text: Collection[str]) -> dict[str, NDArray[Any]]:
        with pq.ParquetFile(path) as file:
            return as_columns(file.read(columns=list(names)), names)

    return Table([str(name) for name in pq.read_schema(path).names], load)


def open_arrow(path: Path) -> Table:
    """Open a file of Arrow's own format, which Feather uses as well."""
    source = pa.memory_map(str(path))
    # The same ending is used for both forms: files that can be read in any order, and streams.
    is_file = source.read(len(ARROW_MAGIC)) == ARROW_MAGIC
    source.seek(0)
    table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source).read_all()
    return Table(table.column_names, lambda names, as_text: as_columns(table, names))


def open_json_lines(path: Path) -> Table:
    """Open a file with a JSON object on each line."""
    reading = pyarrow.json.ReadOptions(block_size=BLOCK_BYTES)
    table = pyarrow.json.read_json(str(path), reading)
    dates = [field.with_type(pa.string()) for field in table.schema if pa.types.is_temporal(field.type)]
    if dates:
        # Text that looks like a date stays as it is spelled.
        table = pyarrow.json.read_json(str(path), reading, pyarrow.json.ParseOptions(pa.schema(dates)))
    return Table(table.column_names, lambda names, as_text: as_columns(table, names))


def as_columns(table: Any, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return columns of an Arrow table, after a check that its offsets lie inside its data."""
    chosen = table.select(list(names))
    chosen.validate(full=True)
    return {name: as_numpy(name, chosen.column(name)) for name in names}


def as_numpy(name: str, column: Any) -> NDArray[Any]:
    """Return a column as an array of numbers or text; a column of another type has no values."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return as_numpy(name, pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_dictionary(kind):
        return as_numpy(name, column.cast(kind.value_type))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if is_numeric(column.type):
        # Missing values become NaN.
        return np.asarray(column.to_numpy())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return lists_as_matrix(name, column) if is_numeric(kind.value_type) else np.empty(len(column), object)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if is_text or pa.types.is_temporal(kind):
        return np.array(pc.fill_null(column.cast(pa.large_string()), "").to_pylist(), str)
    return np.empty(len(column), object)


def is_numeric(kind: Any) -> bool:
    """Tell whether a type of Arrow is one of whole or floating-point numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def lists_as_matrix(name: str, column: Any) -> NDArray[Any]:
    """Return a column of equally long lists as a matrix."""
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


TABLE_FILES: dict[str, tuple[str, Callable[[Path], Table]]] = {
    ".csv": (SEPARATED, open_csv_file),
    ".tsv": (SEPARATED, open_csv_file),
    ".parquet": ("a Parquet file", open_parquet),
    ".arrow": ("an Arrow file", open_arrow),
    ".feather": ("an Arrow file", open_arrow),
    ".jsonl": ("a file of JSON objects, one on each line", open_json_lines),
}
