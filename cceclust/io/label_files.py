"""Label files: one label per row, integers or strings, in any of several formats."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.reading import by_ending, listed, reading, refuse_what_is_no_file
from cceclust.io.stored import ARRAY_FILES, StoredArray, contents, load_column, stored_file
from cceclust.io.tables import TABLE_FILES
from cceclust.text import from_cell

__all__ = ["LABEL_HEADERS", "label_column", "parse", "read_cells", "read_label_file", "table_rows"]

# If a table has several of these columns, the first in this list is used.
LABEL_HEADERS = ("label", "labels", "class")
OTHER_HEADERS = ("cluster", "target", "y")


def read_label_file(path: str | Path, *, column: str | None = None) -> NDArray[Any]:
    """Read a label for each row.

    Parameters
    ----------
    path : str or Path
        ``.h5`` (a feature file's labels, a cluster file's true labels or else its clusters, an AnnData column),
        ``.npy``, a table such as ``.csv`` or ``.parquet`` (the column ``label``, ``labels`` or ``class``, or the only
        one) or ``.txt`` (a label on each line).
    column : str, optional
        Name of the dataset or of the column to read instead.

    Returns
    -------
    ndarray of shape (n_samples,)
        Integers where all labels are whole numbers, otherwise strings. Missing labels are −1 or empty.

    Examples
    --------
    >>> from cceclust.io.label_files import read_label_file
    >>> read_label_file("sample_data/digits.h5")[:5]
    array([0, 1, 2, 3, 4])
    """
    path = Path(path)
    refuse_what_is_no_file(path)
    read = by_ending(path, READERS, "read labels from", FileContentError)
    with reading(path, "a file of labels"):
        labels = read(path, column)
    if not len(labels):
        raise FileContentError(f"{path} holds no labels")
    return labels


def read_arrays(path: Path, column: str | None) -> NDArray[Any]:
    """Read an array: the wanted one, true labels, labels, or the only column there is."""
    if path.suffix.lower() == ".npy":
        refuse_column(path, column)
    with stored_file(path) as file:
        name = column.strip("/") if column is not None else choose_column(file.arrays, path)
        labels = load_column(path, file.arrays, name)
    if labels is None:
        raise FileContentError(f"{path} has no dataset {name!r}; it has {contents(file.arrays)}")
    if labels.ndim != 1:
        raise FileContentError(f"{path} holds an array of shape {labels.shape}; expected one label for each row")
    return labels


def choose_column(stored: Mapping[str, StoredArray], path: Path) -> str:
    """Return the name of the labels in a file that may have several columns."""
    # The one array of a .npy file has the empty name; tables have the other headers.
    for name in ("true_labels", "labels", "", *LABEL_HEADERS):
        if name in stored:
            return name
    columns = [name for name, array in stored.items() if len(array.shape) == 1]
    if len(columns) == 1:
        return columns[0]
    raise FileContentError(f"{path} has no labels; name them with --labels-dataset, one of {listed(columns or stored)}")


def read_text(path: Path, column: str | None) -> NDArray[Any]:
    """Read a label from each line; an empty line is a missing label."""
    refuse_column(path, column)
    return parse([line.strip() for line in decode(path).splitlines()])


def refuse_column(path: Path, column: str | None) -> None:
    """Raise if a column is given for a format without column names."""
    if column is not None:
        raise InputError(f"{path}: a {path.suffix} file holds one unnamed column; leave out --labels-dataset")


def read_csv(path: Path, column: str | None) -> NDArray[Any]:
    """Read a column of a table, in the order of its column ``row`` if it has one."""
    lines = read_cells(path)
    header = [cell.strip() for cell in lines[0]]
    if column is None and len(header) == 1:
        values = [line[0].strip() if line else "" for line in lines]
        return parse(values[1:] if is_header(values) else values)
    position = find_column(header, column, path)
    rows = table_rows(lines, path)
    labels = parse([line[position] for line in rows])
    return in_row_order(labels, [line[header.index("row")] for line in rows]) if "row" in header else labels


def read_cells(path: Path) -> list[list[str]]:
    """Read the cells of a table, separated by commas, semicolons or tabs, line by line."""
    text = decode(path)
    first_line = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(",;\t", key=first_line.count)
    try:
        lines = list(csv.reader(text.splitlines(), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise FileContentError(f"{path} is damaged or not a table of comma-separated values ({error})") from None
    if not lines:
        raise FileContentError(f"{path} is empty")
    return lines


def table_rows(lines: list[list[str]], path: Path) -> list[list[str]]:
    """Return the lines below the header that are not empty, if each has a cell for every column."""
    rows = [[from_cell(cell.strip()) for cell in line] for line in lines[1:] if line]
    for number, line in enumerate(rows, 2):
        if len(line) != len(lines[0]):
            raise FileContentError(f"{path}: line {number} has {len(line)} cells, its header {len(lines[0])}")
    return rows


def is_header(values: list[str]) -> bool:
    """Tell whether the first cell of the only column names it: a usual name, or words above numbers."""
    name, rest = values[0], values[1:]
    if name.lower() in LABEL_HEADERS + OTHER_HEADERS:
        return True
    return bool(rest) and parse(rest).dtype.kind == "i" and parse([name]).dtype.kind == "U"


def find_column(header: list[str], wanted: str | None, path: Path) -> int:
    """Return the position of the column of labels."""
    position = label_column(header, LABEL_HEADERS if wanted is None else (wanted,))
    if position is not None:
        return position
    expected = "'label'; choose one with --labels-dataset" if wanted is None else repr(wanted)
    raise FileContentError(f"{path} has no column {expected}; it has {listed(header)}")


def label_column(header: Sequence[str], names: Sequence[str] = LABEL_HEADERS) -> int | None:
    """Return the position of the first of these names that the header has; upper and lower case are the same."""
    lowered = [name.strip().lower() for name in header]
    return next((lowered.index(name.lower()) for name in names if name.lower() in lowered), None)


def in_row_order(labels: NDArray[Any], row_numbers: list[str]) -> NDArray[Any]:
    """Restore the row order after sorting in a spreadsheet, if all row numbers are still there."""
    rows = parse(row_numbers)
    is_whole = np.array_equal(np.sort(rows), np.arange(len(labels)))
    return labels[np.argsort(rows)] if is_whole else labels


def decode(path: Path) -> str:
    """Read a text file, with or without a byte order mark."""
    with reading(path, "UTF-8 text"):
        return path.read_text(encoding="utf-8-sig")


def parse(values: list[str]) -> NDArray[Any]:
    """Return whole numbers as integers, with −1 for empty values and NaN; return anything else as strings."""
    try:
        return np.array([int(value) if value else -1 for value in values], np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        # numpy.savetxt writes integers as 1.000000000000000000e+00, pandas writes those of a column with gaps as 1.0.
        numbers = np.nan_to_num(np.array([value or "nan" for value in values], np.float64), nan=-1.0)
    except ValueError:
        return np.array(values, str)
    whole = np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
    return numbers.astype(np.int64) if whole else np.array(values, str)


READERS: dict[str, Callable[[Path, str | None], NDArray[Any]]] = {
    **dict.fromkeys([*ARRAY_FILES, *TABLE_FILES], read_arrays),
    ".csv": read_csv,
    ".tsv": read_csv,
    ".txt": read_text,
}
