"""Label files: one label per row, integers or strings, in any of several formats."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.reading import listed, reading
from cceclust.io.stored import ARRAY_FILES, contents, load_column, stored_file
from cceclust.io.tables import TABLE_FILES, open_table

__all__ = ["LABEL_HEADERS", "as_labels", "label_column", "parse", "read_label_file"]

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
    ending = path.suffix.lower()
    if column is not None and ending in (".txt", ".npy"):
        raise InputError(f"{path}: a {ending} file holds one unnamed column; leave out --labels-dataset")
    if ending == ".txt":
        with reading(path, "UTF-8 text"):
            # Only ends of lines end a label: Python's own splitlines knows more.
            labels = parse([line.strip() for line in path.read_text("utf-8-sig").removesuffix("\n").split("\n")])
    elif ending in TABLE_FILES:
        labels = read_table(path, column)
    elif ending in ARRAY_FILES:
        labels = read_array(path, column)
    else:
        known = ", ".join([".txt", *TABLE_FILES, *ARRAY_FILES])
        raise FileContentError(f"{path}: cannot read labels from files that end in {ending!r}; expected one of {known}")
    if labels.ndim != 1:
        raise FileContentError(f"{path} holds an array of shape {labels.shape}; expected one label for each row")
    if not len(labels):
        raise FileContentError(f"{path} holds no labels")
    return labels


def read_array(path: Path, wanted: str | None) -> NDArray[Any]:
    """Read an array: the wanted one, true labels, labels, or the only column there is."""
    with stored_file(path) as file:
        name = None if wanted is None else wanted.strip("/")
        if name is None:
            # The one array of a .npy file has the empty name.
            name = next(
                (usual for usual in ("true_labels", "labels", "", "label", "class") if usual in file.arrays), None
            )
        if name is None:
            columns = [name for name, array in file.arrays.items() if len(array.shape) == 1]
            name = only(path, columns, columns or file.arrays)
        labels = load_column(path, file.arrays, name)
    if labels is None:
        raise FileContentError(f"{path} has no dataset {wanted!r}; it has {contents(file.arrays)}")
    return labels


def read_table(path: Path, wanted: str | None) -> NDArray[Any]:
    """Read a column of a table, in the order of its column ``row`` if it has one."""
    table = open_table(path)
    name = label_column(table.header, LABEL_HEADERS if wanted is None else (wanted,))
    if name is None and wanted is not None:
        raise FileContentError(f"{path} has no column {wanted!r}; it has {listed(table.header)}")
    if name is None:
        name = only(path, table.header, table.header)
    has_rows = "row" in table.header and name != "row"
    columns = table.load([name, "row"] if has_rows else [name], [name])
    labels = as_labels(columns[name])
    # A label may stand in the first line of a file without a header.
    headers = (*LABEL_HEADERS, *OTHER_HEADERS)
    if wanted is None and len(table.header) == 1 and path.suffix.lower() in (".csv", ".tsv"):
        is_header = name.lower() in headers or (labels.dtype.kind == "i" and parse([name]).dtype.kind == "U")
        labels = labels if is_header else parse([name, *columns[name].tolist()])
    if has_rows and np.array_equal(np.sort(columns["row"]), np.arange(len(labels))):
        # Somebody may have sorted the table in a spreadsheet.
        labels = labels[np.argsort(columns["row"])]
    return labels


def only(path: Path, columns: Sequence[str], shown: Collection[str]) -> str:
    """Return the only column there is; raise if there are none or several."""
    if len(columns) == 1:
        return columns[0]
    raise FileContentError(f"{path} has no labels; name them with --labels-dataset, one of {listed(shown)}")


def label_column(header: Sequence[str], names: Sequence[str] = LABEL_HEADERS) -> str | None:
    """Return the column that has the first of these names; upper and lower case are the same."""
    columns = {name.lower(): name for name in reversed(header)}
    return next((columns[name.lower()] for name in names if name.lower() in columns), None)


def as_labels(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of a table as whole numbers, −1 where one is missing, or as text."""
    return column if column.dtype.kind in "iub" or column.ndim > 1 else parse(column.astype(str).tolist())


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
