"""Which columns of a table are features, and which are names, labels, paths or columns to keep."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.label_files import LABEL_HEADERS, as_labels, label_column
from cceclust.io.reading import listed
from cceclust.io.tables import MISSING, STDIN, is_number, open_table

__all__ = ["choose_columns"]

# The empty name is that of a first column of row names, as pandas and R write it; pandas has another one in Parquet.
NAME_HEADERS = ("", "__index_level_0__", "id", "name", "names", "index")
PATH_HEADERS = ("path", "paths")
# A feature of fewer rows may well be in rising order by chance.
FEWEST_NUMBERED_ROWS = 10


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
    names = label_column(free, NAME_HEADERS) if names_dataset is None else names_dataset
    labels = label_column(free, LABEL_HEADERS) if labels_dataset is None else labels_dataset
    paths = label_column(free, PATH_HEADERS)
    aside = list(dict.fromkeys(name for name in (names, labels, paths, *keep) if name is not None))
    features = wanted or [name for name in table.header if name not in aside]
    columns = table.load([*aside, *(name for name in features if name not in aside)], aside)
    notes = []
    if wanted is None:
        features, numbered = split_features(shown, {name: columns[name] for name in features})
        if numbered and names is None:
            names, *numbered = numbered
            columns[names] = table.load([names], [names])[names]
            notes.append(f"{names} numbers the rows, so it is used as the row id, not as a feature")
        notes += [
            f"{name} numbers the rows, so it is not used as a feature; --dataset can choose it" for name in numbered
        ]
    for name in (names, labels, paths):
        if name is not None and columns[name].ndim != 1:
            raise FileContentError(
                f"{shown}: column {name!r} holds lists; expected one name, label or path for each row"
            )
    return {
        "matrix": as_matrix(shown, {name: columns[name] for name in features}, has_names=names is not None),
        "names": None if names is None else columns[names].astype(str),
        "labels": None if labels is None else as_labels(columns[labels]),
        "paths": None if paths is None else columns[paths].astype(str),
        "kept": {name: as_written(shown, name, columns[name]) for name in keep},
        "columns": features if columns[features[0]].ndim == 1 else None,
        "notes": notes,
    }


def split_features(path: Path, columns: Mapping[str, NDArray[Any]]) -> tuple[list[str], list[str]]:
    """Return the columns that are features, only the one of lists if there is one, and those that number the rows."""
    if not columns:
        raise FileContentError(f"{path} has no column of features: all its columns have another use")
    lists = [name for name, column in columns.items() if column.ndim == 2]
    if len(lists) > 1:
        raise FileContentError(f"{path} has several columns of lists; choose one with --dataset: {listed(lists)}")
    if lists:
        return lists, []
    numbered = [
        name
        for name, column in columns.items()
        if column.dtype.kind in "iu" and len(column) >= FEWEST_NUMBERED_ROWS and (column[1:] > column[:-1]).all()
    ]
    features = [name for name in columns if name not in numbered]
    return (features, numbered) if features else (list(columns), [])


def as_matrix(path: Path, columns: Mapping[str, NDArray[Any]], *, has_names: bool) -> NDArray[Any]:
    """Put columns of numbers side by side, or return the one that is a matrix already."""
    refuse_words(path, columns, has_names=has_names)
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


def refuse_words(path: Path, columns: Mapping[str, NDArray[Any]], *, has_names: bool) -> None:
    """Raise if features are no numbers, and say which options make something else of such columns."""
    words = [name for name, column in columns.items() if column.dtype.kind not in "fiub"]
    if not words:
        return
    for name in words:
        cells = columns[name].tolist() if columns[name].dtype.kind == "U" else []
        bad = [row for row, cell in enumerate(cells) if cell not in MISSING and not is_number(cell)]
        if len(bad) < len(cells) / 2:
            raise FileContentError(
                f"{path}: column {name!r} holds {cells[bad[0]][:30]!r} in row {bad[0]} (the first row is 0); make it a "
                f"number, or leave the column out with --keep {shlex.quote(name)}"
            )
    ids = [name for name in words if columns[name].dtype.kind == "U" and len(set(columns[name])) == len(columns[name])]
    identity = ids[0] if ids and not has_names else None
    options = [f"{'--id' if name == identity else '--keep'} {shlex.quote(name)}" for name in words]
    which = f"column {words[0]!r} holds" if len(words) == 1 else f"columns {listed(map(repr, words))} hold"
    raise FileContentError(
        f"{path}: {which} text, and features are numbers; leave {'it' if len(words) == 1 else 'them'} out with "
        f"{' '.join(options)}, or choose the features with --dataset"
    )


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
