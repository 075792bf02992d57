"""Tables: columns of numbers or text by name, from separated values, Parquet and Arrow files."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.arrow_tables import read_arrow_columns, read_arrow_header
from cceclust.io.reading import by_ending, listed, naming, refuse_bomb, refuse_what_is_no_file
from cceclust.text import from_cell

__all__ = ["STDIN", "TABLE_FILES", "Table", "open_table"]

STDIN = Path("-")
SEPARATED = "UTF-8 text of comma-separated values"
# Enough to convert columns quickly, few enough to take little memory as text.
LINES_AT_ONCE = 2000
# Cells without a number, as spreadsheets, pandas and R write them; "nan" is a number to Python.
MISSING = frozenset({"", "na", "n/a", "null", "none"})


@dataclass(frozen=True)
class Table:
    """A table whose columns are not yet read.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    load : callable
        Reads all columns into memory. Columns of numbers have NaN for missing values; a column of lists of numbers has
        two dimensions; text has type ``str``; a column of anything else has type ``object`` and no values. If the
        format has only text, columns whose names are given to this function are returned as text.
    """

    header: list[str]
    load: Callable[[Collection[str]], dict[str, NDArray[Any]]]


def open_table(path: Path) -> Table:
    """Open a table; the path ``-`` stands for separated values on standard input."""
    if path == STDIN:
        path, (what, open_file) = Path("stdin"), STDIN_TABLE
    else:
        refuse_what_is_no_file(path)
        what, open_file = by_ending(path, TABLE_FILES, "read", FileContentError)
    with naming(str(path), what):
        table = open_file(path)
    check_names(path, table.header)

    def load(as_text: Collection[str]) -> dict[str, NDArray[Any]]:
        with naming(str(path), what):
            return table.load(as_text)

    return Table(table.header, load)


def check_names(path: Path, header: Sequence[str]) -> None:
    """Raise unless every column has a name of its own."""
    # Programs that write row names leave the name of their column empty.
    unnamed = [number for number, name in enumerate(header, 1) if not name and number > 1]
    if not header:
        raise FileContentError(f"{path} has no columns")
    if unnamed:
        raise FileContentError(f"{path}: column {unnamed[0]} has no name in the header")
    if len(set(header)) < len(header):
        repeated = listed(dict.fromkeys(repr(name) for name in header if header.count(name) > 1))
        raise FileContentError(f"{path} has several columns of the name {repeated}; give each its own")


def open_stdin(path: Path) -> Table:
    """Open separated values on standard input, which are held in memory since they may have to be read twice."""
    content = sys.stdin.buffer.read()
    if not content:
        raise FileContentError("standard input is empty; expected a table of comma-separated values")
    return open_csv(path, lambda: io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline=""), len(content))


def open_csv_file(path: Path) -> Table:
    """Open a file of values that are separated by commas, semicolons or tabs."""
    return open_csv(path, partial(path.open, encoding="utf-8-sig", newline=""), path.stat().st_size)


def open_csv(path: Path, open_text: Callable[[], TextIO], n_bytes: int) -> Table:
    """Open separated values, whose first line names the columns."""
    with open_text() as text:
        first_line = text.readline()
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first_line.count)
    lines = partial(csv_lines, path, open_text, delimiter)
    header = [cell.strip() for cell in next(lines())]
    refuse_data_as_header(path, header)

    def load(as_text: Collection[str]) -> dict[str, NDArray[Any]]:
        columns = number_columns(lines(), [i for i, name in enumerate(header) if name not in as_text])
        rest = [i for i in range(len(header)) if i not in columns]
        columns.update(text_columns(path, lines(), rest, n_bytes))
        return {name: columns[i] for i, name in enumerate(header)}

    return Table(header, load)


def csv_lines(path: Path, open_text: Callable[[], TextIO], delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of each line that is not empty; all lines have as many."""
    with open_text() as text:
        n_cells = None
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        for line in reader:
            if not line:
                continue
            n_cells = n_cells or len(line)
            if len(line) != n_cells:
                raise FileContentError(
                    f"{path}: line {reader.line_num} has {len(line)} cells, its header {n_cells}; expected as many"
                )
            yield line
    if n_cells is None:
        raise FileContentError(f"{path} has no lines; expected a header and rows")


def refuse_data_as_header(path: Path, header: Sequence[str]) -> None:
    """Raise if the first line looks like a row, and would be lost as a header."""
    numbers = [cell for cell in header if as_numbers([cell or "?"]) is not None]
    # pandas numbers columns that have no names.
    is_counting = any(numbers == [str(first + i) for i in range(len(numbers))] for first in (0, 1))
    if len(numbers) > len(header) / 2 and not is_counting:
        raise FileContentError(
            f"{path}: its first line looks like a row of data ({listed(header[:3])}, …); add a line with a name for "
            "each column"
        )


def columns_at_once(lines: Iterator[list[str]]) -> Iterator[list[tuple[str, ...]]]:
    """Yield the columns of some lines at a time, without the header."""
    next(lines)
    while some := list(islice(lines, LINES_AT_ONCE)):
        yield list(zip(*some, strict=True))


def number_columns(lines: Iterator[list[str]], wanted: Collection[int]) -> dict[int, NDArray[Any]]:
    """Read those of the wanted columns that hold only numbers."""
    pieces: dict[int, list[NDArray[np.float64]]] = {position: [np.empty(0)] for position in wanted}
    for columns in columns_at_once(lines):
        for position in list(pieces):
            numbers = as_numbers(columns[position])
            if numbers is None:
                del pieces[position]
            else:
                pieces[position].append(numbers)
    return {position: np.concatenate(piece) for position, piece in pieces.items()}


def as_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return cells as numbers, NaN for missing ones; None if any cell is something else."""
    # Python takes 1_000 for a number.
    if "_" in "".join(cells):
        return None
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        pass
    try:
        return np.array([math.nan if cell.strip().lower() in MISSING else float(cell) for cell in cells], np.float64)
    except ValueError:
        return None


def text_columns(
    path: Path, lines: Iterator[list[str]], wanted: Collection[int], n_bytes: int
) -> dict[int, NDArray[Any]]:
    """Read the wanted columns as text."""
    cells: dict[int, list[str]] = {position: [] for position in wanted}
    if cells:
        for columns in columns_at_once(lines):
            for position, so_far in cells.items():
                so_far.extend(from_cell(cell.strip()) for cell in columns[position])
    return {position: as_text_array(path, column, n_bytes) for position, column in cells.items()}


def as_text_array(path: Path, cells: list[str], n_bytes: int) -> NDArray[np.str_]:
    """Return text as an array, whose items all take the space of the longest."""
    longest = max(map(len, cells), default=0)
    refuse_bomb(path, "a column of text", 4 * longest * len(cells), file_bytes=n_bytes)
    return np.array(cells, np.str_)


def open_arrow(path: Path) -> Table:
    """Open a file of Parquet or of Arrow's own format, which Feather uses as well."""
    return Table(read_arrow_header(path), lambda _: read_arrow_columns(path))


STDIN_TABLE: tuple[str, Callable[[Path], Table]] = (SEPARATED, open_stdin)
TABLE_FILES: dict[str, tuple[str, Callable[[Path], Table]]] = {
    ".csv": (SEPARATED, open_csv_file),
    ".tsv": (SEPARATED, open_csv_file),
    ".parquet": ("a Parquet file", open_arrow),
    ".arrow": ("an Arrow file", open_arrow),
    ".feather": ("an Arrow file", open_arrow),
}
