"""Which columns of a table are features, and which are names, labels, paths or columns to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.label_files import LABEL_HEADERS, label_column, parse
from cceclust.io.reading import listed
from cceclust.io.tables import STDIN, as_numbers, open_table

__all__ = ["choose_columns"]

# The empty name is that of a first column of row names, as pandas and R write it; pandas has another one in Parquet.
NAME_HEADERS = ("", "__index_level_0__", "id", "name", "names", "index")
PATH_HEADERS = ("path", "paths")


def choose_columns(
    path: Path,
    *,
    dataset: str | None,
    labels_dataset: str | None,
    names_dataset: str | None,
    keep: Sequence[str],
) -> dict[str, Any]:
    """Read a table, and return what a :class:`cceclust.io.FeatureFile` is made from.

    Parameters
    ----------
    path : Path
        The table; ``-`` for standard input.
    dataset, labels_dataset, names_dataset, keep
        As in :func:`cceclust.io.open_features`.
    """
    table = open_table(path)
    shown = Path("stdin") if path == STDIN else path
    wanted = None if dataset is None else [dataset] if dataset in table.header else dataset.split(",")
    given = {"--labels-dataset": [labels_dataset], "--id": [names_dataset], "--keep": keep, "--dataset": wanted or []}
    for option, asked in given.items():
        for name in asked:
            if name is not None and name not in table.header:
                raise FileContentError(f"{shown} has no column {name!r} ({option}); it has {listed(table.header)}")
    free = [name for name in table.header if name not in {labels_dataset, names_dataset, *keep, *(wanted or [])}]
    names = usual_column(free, NAME_HEADERS) if names_dataset is None else names_dataset
    labels = usual_column(free, LABEL_HEADERS) if labels_dataset is None else labels_dataset
    paths = usual_column(free, PATH_HEADERS)
    aside = {name for name in (names, labels, paths, *keep) if name is not None}
    columns = table.load(aside)
    for name in (names, labels, paths):
        if name is not None and columns[name].ndim != 1:
            raise FileContentError(
                f"{shown}: column {name!r} holds lists; expected one name, label or path for each row"
            )
    features = wanted or feature_columns(shown, columns, aside)
    matrix = as_matrix(shown, {name: columns[name] for name in features})
    return {
        "matrix": matrix,
        "names": None if names is None else columns[names].astype(str),
        "labels": None if labels is None else as_labels(columns[labels]),
        "paths": None if paths is None else columns[paths].astype(str),
        "kept": {name: as_written(shown, name, columns[name]) for name in keep},
        "columns": features if columns[features[0]].ndim == 1 else None,
    }


def usual_column(header: Sequence[str], usual: Sequence[str]) -> str | None:
    """Return the column that has the first of these names, if there is one."""
    place = label_column(header, usual)
    return None if place is None else header[place]


def feature_columns(path: Path, columns: Mapping[str, NDArray[Any]], aside: set[str]) -> list[str]:
    """Return the columns that have no other use; only the one that holds lists, if there is one."""
    rest = [name for name in columns if name not in aside]
    lists = [name for name in rest if columns[name].ndim == 2]
    if len(lists) > 1:
        raise FileContentError(f"{path} has several columns of lists; choose one with --dataset: {listed(lists)}")
    if not rest:
        raise FileContentError(f"{path} has no column of features; it has {listed(columns)}")
    return lists or rest


def as_matrix(path: Path, columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Put columns of numbers side by side, or return the one that is a matrix already."""
    refuse_words(path, columns)
    first = next(iter(columns.values()))
    if len(columns) == 1 and first.ndim == 2:
        return first
    if any(column.ndim != 1 for column in columns.values()):
        raise FileContentError(f"{path}: a column of lists cannot be joined with others; choose it alone")
    # Whole numbers in one file may be fractions in the next.
    is_narrow = all(column.dtype in (np.float16, np.float32) for column in columns.values())
    matrix = np.empty((len(first), len(columns)), np.float32 if is_narrow else np.float64)
    for position, column in enumerate(columns.values()):
        matrix[:, position] = column
    return matrix


def refuse_words(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Raise if features are no numbers, and say what else a column can be."""
    words = [name for name, column in columns.items() if column.dtype.kind not in "fiub"]
    if not words:
        return
    cells = columns[words[0]]
    text = None
    if cells.dtype.kind == "U":
        text = next((cell[:30] for cell in cells.tolist() if as_numbers([cell]) is None), None)
    came = "values that are no numbers" if text is None else f"text, such as {text!r}"
    which = f"column {words[0]!r} holds" if len(words) == 1 else f"columns {listed(map(repr, words))} hold"
    raise FileContentError(
        f"{path}: {which} {came}; features are numbers: give row names with --id, labels with --labels-dataset, and "
        "other columns that are no features with --keep"
    )


def as_labels(column: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers, −1 where one is missing, or text."""
    return column if column.dtype.kind in "iub" else parse(column.astype(str).tolist())


def as_written(path: Path, name: str, column: NDArray[Any]) -> NDArray[Any]:
    """Return a column to keep: text that is the very spelling of numbers becomes numbers."""
    if column.dtype.kind == "O" or column.ndim != 1:
        raise FileContentError(f"{path}: column {name!r} holds neither numbers nor text and cannot be kept")
    if column.dtype.kind != "U":
        return column
    for kind in (np.int64, np.float64):
        try:
            numbers = column.astype(kind)
        except (ValueError, OverflowError):
            continue
        if np.array_equal(numbers.astype(str), column):
            return numbers
    return column
