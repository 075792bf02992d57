"""Which columns of a table are features, and which are names, labels, paths or columns to keep."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.label_files import LABEL_HEADERS, label_column, load_labels
from cceclust.io.reading import StoredArray, listed
from cceclust.io.tables import MISSING, is_number

__all__ = ["choose_columns"]

# The empty name is that of a first column of row names, as pandas and R write it; pandas has another one in Parquet.
NAME_HEADERS = ("", "__index_level_0__", "id", "name", "names", "index")
PATH_HEADERS = ("path", "paths")
# A feature of fewer rows may well be in rising order by chance.
FEWEST_NUMBERED_ROWS = 10


def choose_columns(
    path: Path,
    stored: Mapping[str, StoredArray],
    *,
    dataset: str | None,
    labels_dataset: str | None,
    names_dataset: str | None,
    keep: Sequence[str],
) -> dict[str, Any]:
    """Choose among the columns of a table, and return what a :class:`cceclust.io.FeatureFile` is made from."""
    wanted = None if dataset is None else [dataset] if dataset in stored else dataset.split(",")
    given = {"--labels-dataset": [labels_dataset], "--id": [names_dataset], "--keep": keep, "--dataset": wanted or []}
    for option, asked in given.items():
        for name in asked:
            if name is not None and name not in stored:
                raise FileContentError(f"{path} has no column {name!r} ({option}); it has {listed(stored)}")
    free = [name for name in stored if name not in {labels_dataset, names_dataset, *keep, *(wanted or [])}]
    names = label_column(free, NAME_HEADERS) if names_dataset is None else names_dataset
    labels = label_column(free, LABEL_HEADERS) if labels_dataset is None else labels_dataset
    paths = label_column(free, PATH_HEADERS)
    for name in (names, labels, paths, *keep):
        if name is not None and stored[name].spelled is None:
            raise FileContentError(f"{path}: column {name!r} holds neither numbers nor text for each row")
    features, notes = wanted or [name for name in stored if name not in {names, labels, paths, *keep}], []
    numbered: list[str] = []
    if wanted is None:
        features, numbered = split_features(path, {name: stored[name] for name in features})
    refuse_words(path, {name: stored[name] for name in features}, has_names=names is not None)
    if numbered and names is None:
        names, *numbered = numbered
        notes.append(f"{names} numbers the rows, so it is used as the row id, not as a feature")
    notes += [f"{name} numbers the rows, so it is no feature; --dataset can make it one" for name in numbered]
    is_list = len(stored[features[0]].shape) == 2
    return {
        "matrix": as_matrix([stored[name].load() for name in features]),
        "names": None if names is None else as_text(stored[names]),
        "labels": None if labels is None else load_labels(path, stored, labels),
        "paths": None if paths is None else as_text(stored[paths]),
        "kept": {name: as_written(stored[name]) for name in keep},
        "columns": None if is_list else features,
        "notes": notes,
    }


def split_features(path: Path, columns: Mapping[str, StoredArray]) -> tuple[list[str], list[str]]:
    """Return the columns that are features, only the one of lists if there is one, and those that number the rows."""
    if not columns:
        raise FileContentError(f"{path} has no column of features: all its columns have another use")
    lists = [name for name, column in columns.items() if len(column.shape) == 2]
    if len(lists) > 1:
        raise FileContentError(f"{path} has several columns of lists; choose one with --dataset: {listed(lists)}")
    numbered = [name for name, column in columns.items() if numbers_rows(column)]
    features = [name for name in columns if name not in numbered]
    return lists or features or list(columns), numbered if features else []


def numbers_rows(column: StoredArray) -> bool:
    """Tell whether a column looks like numbers of rows, customers or the like: whole numbers that only rise."""
    if column.kind != "numbers" or len(column.shape) > 1 or column.shape[0] < FEWEST_NUMBERED_ROWS:
        return False
    values = column.load()
    return values.dtype.kind in "iu" and bool((values[1:] > values[:-1]).all())


def as_matrix(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Put columns of numbers side by side."""
    # Whole numbers in one file may be fractions in the next.
    is_narrow = all(column.dtype in (np.float16, np.float32) for column in columns)
    parts = [column[:, None] if column.ndim == 1 else column for column in columns]
    return np.concatenate(parts, axis=1, dtype=np.float32 if is_narrow else np.float64)


def refuse_words(path: Path, columns: Mapping[str, StoredArray], *, has_names: bool) -> None:
    """Raise if features are no numbers, and say which options make something else of such columns."""
    words = [name for name, column in columns.items() if column.kind != "numbers"]
    cells = {name: as_text(columns[name]).tolist() for name in words}
    for name in words:
        bad = [row for row, cell in enumerate(cells[name]) if cell not in MISSING and not is_number(cell)]
        if len(bad) < len(cells[name]) / 2:
            raise FileContentError(
                f"{path}: column {name!r} holds {cells[name][bad[0]][:30]!r} in row {bad[0]} (the first is 0); make "
                f"it a number, or leave the column out with --keep {shlex.quote(name)}"
            )
    if words:
        unique = [name for name in words if len(set(cells[name])) == len(cells[name]) > 0]
        identity = unique[0] if unique and not has_names else None
        options = [f"{'--id' if name == identity else '--keep'} {shlex.quote(name)}" for name in words]
        which = f"column {words[0]!r} holds" if len(words) == 1 else f"columns {listed(map(repr, words))} hold"
        raise FileContentError(
            f"{path}: {which} text, and features are numbers; leave {'it' if len(words) == 1 else 'them'} out with "
            f"{' '.join(options)}, or choose the features with --dataset"
        )


def as_text(column: StoredArray) -> NDArray[Any]:
    """Return a column as it is spelled."""
    return np.array([] if column.spelled is None else column.spelled(), str)


def as_written(column: StoredArray) -> NDArray[Any]:
    """Return a column to keep: as numbers if these are spelled the same."""
    text = as_text(column)
    for values in (np.asarray(column.load()), text):
        if column.kind == "numbers" and np.array_equal(values.astype(str), text):
            return values
    return text
