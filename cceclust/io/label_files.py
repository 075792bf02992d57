"""Label files: one label per row, integers or strings, in any of several formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.reading import StoredArray, naming, reading
from cceclust.io.stored import contents, load_column, stored_file
from cceclust.io.tables import is_number

__all__ = ["LABEL_HEADERS", "label_column", "load_labels", "parse", "read_label_file"]

# If a table has several of these columns, the first in this list is used.
LABEL_HEADERS = ("label", "labels", "class")
HEADERS = (*LABEL_HEADERS, "cluster", "target", "y")


def read_label_file(path: str | Path, *, column: str | None = None) -> NDArray[Any]:
    """Read a label for each row: integers where all are whole numbers, otherwise strings, −1 or empty where one misses.

    By default true labels, labels, or the only column there is; a ``.txt`` has a label on each line.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if column is not None and ending == ".txt":
        raise InputError(f"{path}: a .txt file holds one column without a name; leave out --labels-dataset")
    if ending == ".txt":
        with reading(path, "UTF-8 text"):
            # Only ends of lines end a label: Python's own splitlines knows more.
            labels = parse([line.strip() for line in path.read_text("utf-8-sig").removesuffix("\n").split("\n")])
    else:
        with stored_file(path) as file:
            labels = choose_labels(path, file.arrays, column)
    if labels.ndim != 1 or not len(labels):
        raise FileContentError(f"{path} holds labels of shape {labels.shape}; expected one for each row")
    return labels


def choose_labels(path: Path, stored: Mapping[str, StoredArray], wanted: str | None) -> NDArray[Any]:
    """Read the wanted labels, or true labels, labels, or the only column there is."""
    # The one array of a .npy file has the empty name.
    usual = ("true_labels", "", *LABEL_HEADERS) if wanted is None else (wanted.strip("/"),)
    name = label_column(list(stored), usual)
    if name is None and wanted is not None:
        raise FileContentError(f"{path} has no {wanted!r}; it has {contents(stored)}")
    columns = [name for name, array in stored.items() if len(array.shape) == 1]
    if name is None and len(columns) != 1:
        raise FileContentError(f"{path} has no labels; name them with --labels-dataset, one of {contents(stored)}")
    name = columns[0] if name is None else name
    labels = load_labels(path, stored, name)
    if wanted is None and len(stored) == 1 and path.suffix.lower() in (".csv", ".tsv"):
        is_word = labels.dtype.kind == "i" and not is_number(name)
        if not is_word and name.lower() not in HEADERS:
            # Without a header, the first line is a label as well.
            labels = parse([name, *(stored[name].spelled or list)()])
    if "row" in stored and name != "row":
        rows = load_labels(path, stored, "row")
        if np.array_equal(np.sort(rows), np.arange(len(labels))):
            # Somebody may have sorted the table in a spreadsheet.
            return np.asarray(labels[np.argsort(rows)])
    return labels


def load_labels(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any]:
    """Read a column of labels; those of a table are whole numbers if they are spelled like that."""
    spelled = stored[name].spelled
    if spelled is None:
        return np.asarray(load_column(path, stored, name))
    with naming(str(path), "a table"):
        return parse(spelled())


def label_column(header: Sequence[str], names: Sequence[str] = LABEL_HEADERS) -> str | None:
    """Return the column that has the first of these names; upper and lower case are the same."""
    columns = {name.lower(): name for name in reversed(header)}
    return next((columns[name.lower()] for name in names if name.lower() in columns), None)


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
