"""Which columns of a table are features, and which are names, labels, paths or columns to keep."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.partial_labels import LABEL_HEADERS, label_column, load_labels
from cceclust.io.reading import StoredArray, listed
from cceclust.io.tables import MISSING, is_number

__all__ = ["choose_columns"]

# The empty name is that of a first column of row names, as pandas and R write it; pandas has another one in Parquet.
NAME_HEADERS = ("", "__index_level_0__", "id", "name", "names", "index")
PATH_HEADERS = ("path", "paths")
# A feature of fewer rows may well be in rising order by chance.
FEWEST_NUMBERED_ROWS = 10


def choose_columns(path: Path, stored: Mapping[str, StoredArray], **roles: Any) -> dict[str, Any]:
    """Choose among the columns of a table, and return what a :class:`cceclust.io.FeatureFile` is made from."""
    dataset, labels_dataset = roles["dataset"], roles["labels_dataset"]
    names_dataset, keep = roles["names_dataset"], roles["keep"]
    wanted = [] if dataset is None else [dataset] if dataset in stored else dataset.split(",")
    asked = [name for name in (labels_dataset, names_dataset, *keep, *wanted) if name is not None]
    absent = [name for name in asked if name not in stored]
    if absent:
        raise FileContentError(f"{path} has no column {absent[0]!r}; it has {listed(stored)}")
    free = [name for name in stored if name not in asked]
    names = label_column(free, NAME_HEADERS) if names_dataset is None else names_dataset
    labels = label_column(free, LABEL_HEADERS) if labels_dataset is None else labels_dataset
    paths = label_column(free, PATH_HEADERS)
    unread = [name for name in (names, labels, paths, *keep) if name is not None and stored[name].spelled is None]
    if unread:
        raise FileContentError(f"{path}: column {unread[0]!r} holds neither numbers nor text for each row")
    features, notes = wanted, []
    if not wanted:
        others = {name: stored[name] for name in free if name not in {names, labels, paths}}
        features, numbered = split_features(path, others)
        if numbered and names is None:
            names, *numbered = numbered
            notes.append(f"{names} numbers the rows, so it is used as the row id, not as a feature")
        notes += [f"{name} numbers the rows, so it is no feature; --dataset can make it one" for name in numbered]
    return {
        "matrix": as_matrix(path, {name: stored[name] for name in features}),
        "names": None if names is None else as_text(stored[names]),
        "labels": None if labels is None else load_labels(path, stored, labels),
        "paths": None if paths is None else as_text(stored[paths]),
        "kept": {name: as_written(stored[name]) for name in keep},
        "columns": None if len(stored[features[0]].shape) == 2 else features,
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


def as_matrix(path: Path, columns: Mapping[str, StoredArray]) -> NDArray[Any]:
    """Put columns of numbers side by side; say which options make something else of those that hold none."""
    words = [name for name, column in columns.items() if column.kind != "numbers"]
    if words:
        cells = as_text(columns[words[0]]).tolist()
        row = next((row for row, cell in enumerate(cells) if cell not in MISSING and not is_number(cell)), 0)
        shown = f" ({cells[row][:30]!r} in row {row})" if cells else ""
        keep = " ".join(f"--keep {shlex.quote(name)}" for name in words)
        raise FileContentError(
            f"{path}: column {words[0]!r} holds text{shown}, and features are numbers; leave it out with {keep}, name "
            "the rows by it with --id, or choose the features with --dataset"
        )
    arrays = [column.load() for column in columns.values()]
    # Whole numbers in one file may be fractions in the next.
    is_narrow = all(array.dtype in (np.float16, np.float32) for array in arrays)
    parts = [array[:, None] if array.ndim == 1 else array for array in arrays]
    return np.concatenate(parts, axis=1, dtype=np.float32 if is_narrow else np.float64)


def as_text(column: StoredArray) -> NDArray[Any]:
    return np.array([] if column.spelled is None else column.spelled(), str)


def as_written(column: StoredArray) -> NDArray[Any]:
    """Return a column to keep: as numbers if these are spelled the same."""
    text = as_text(column)
    values = np.asarray(column.load()) if column.kind == "numbers" else text
    return values if np.array_equal(values.astype(str), text) else text
