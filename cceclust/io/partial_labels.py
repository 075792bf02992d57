"""Labels of all rows or of some, hard or soft, from a file beside the features or a dataset inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.reading import StoredArray, listed, naming, reading
from cceclust.io.stored import contents, load_array, load_column, stored_file
from cceclust.io.tables import TABLE_FILES, is_number
from cceclust.scoring import as_labels, is_missing, name_extra_clusters

__all__ = ["PartialLabels", "read_label_file", "read_partial_labels", "read_soft_labels"]

# If a table has several of these columns, the first in this list is used.
LABEL_HEADERS = ("label", "labels", "class")
HEADERS = (*LABEL_HEADERS, "cluster", "target", "y")
# The one array of a .npy file has the empty name.
SOFT_DATASETS = ("", "soft_labels", "probabilities")
Column = NDArray[Any] | None


@dataclass(frozen=True)
class PartialLabels:
    """The known classes of some rows, and the file, or the dataset in the feature file, that they were read from.

    The values are the number of each row's class, −1 where it is unknown; or its distribution over the classes, NaN
    where it is unknown. Classes have names, integers or strings.
    """

    values: NDArray[Any]
    classes: NDArray[Any]
    source: str | Path | None = None

    @property
    def known(self) -> NDArray[np.bool_]:
        return np.asarray(self.values >= 0 if self.values.ndim == 1 else ~np.isnan(self.values).all(axis=1))

    def unseen(self, true_labels: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return the true labels for scoring a fit, with −1 or empty for the rows whose label was used in the fit."""
        if true_labels is None or (self.known | is_missing(true_labels)).all():
            return None
        if true_labels.dtype.kind == "U":
            return np.where(self.known, "", true_labels)
        signed = true_labels.astype(np.int64) if true_labels.dtype.kind in "bu" else true_labels
        return np.where(self.known, -1, signed)

    def names(self, n_clusters: int) -> list[Any]:
        """Return the names of all clusters: those of the classes, then the next numbers or "extra 1", "extra 2", …"""
        n_classes = len(self.classes)
        if n_classes > n_clusters:
            raise InputError(
                f"the labels name {n_classes} classes, more than the {n_clusters} clusters asked for; ask for "
                f"{n_classes}, or more if there are classes without a label"
            )
        return [*self.classes.tolist(), *name_extra_clusters(self.classes, n_clusters - n_classes).tolist()]


def read_partial_labels(
    source: str | Path, n_rows: int, *, paths: Column = None, names: Column = None, features: str | Path | None = None
) -> PartialLabels:
    """Read labels of some rows.

    The source is a table with a column ``label`` and a column ``row`` (numbers from 0), ``name`` or ``path``, any file
    of a label for each row (−1 or empty for unknown), or the name of such a dataset inside the file of features.
    """
    path = Path(source)
    if features is not None and not path.exists():
        labels = read_dataset(path, Path(features))
    elif path.suffix.lower() in TABLE_FILES:
        labels = read_table(path, n_rows, names, paths)
    else:
        labels = read_label_file(path)
    labels = as_labels(labels, f"labels in {source}")
    if len(labels) != n_rows:
        raise FileContentError(
            f"{source} labels {len(labels):,} rows, but there are {n_rows:,}; give a label for each (−1 for unknown), "
            "or a table with the columns row and label"
        )
    known = ~is_missing(labels)
    if not known.any():
        raise FileContentError(f"{source} holds no label, only unknown ones; leave it out to cluster without labels")
    classes, codes = np.unique(labels[known], return_inverse=True)
    values = np.full(n_rows, -1, np.int64)
    values[known] = codes
    return PartialLabels(values, classes, source)


def read_soft_labels(
    source: str | Path, n_rows: int, *, paths: Column = None, names: Column = None, features: str | Path | None = None
) -> PartialLabels:
    """Read distributions over classes of some rows.

    The source is a table with a column for each class, and ``row``, ``name`` or ``path`` if not every row has a line; a
    file of arrays with one called ``soft_labels`` or ``probabilities``; or the name of such a dataset inside the file
    of features. The rest is as in :func:`read_partial_labels`.
    """
    path, classes = Path(source), None
    if features is not None and not path.exists():
        matrix = read_dataset(path, Path(features))
    elif path.suffix.lower() in TABLE_FILES:
        matrix, classes = read_soft_table(path, n_rows, names, paths)
    else:
        with stored_file(path) as file:
            name = next((known for known in SOFT_DATASETS if known in file.arrays), None)
            if name is None:
                raise FileContentError(f"{path} has no dataset 'soft_labels'; it has {contents(file.arrays)}")
            matrix = np.asarray(load_array(path, file.arrays, name))
    if matrix.ndim != 2 or len(matrix) != n_rows or matrix.shape[1] < 2 or matrix.dtype.kind not in "fiub":
        raise FileContentError(
            f"{source} holds {matrix.dtype} values of shape {matrix.shape}; expected a number for each class in each "
            f"of {n_rows:,} rows"
        )
    return PartialLabels(matrix.astype(np.float64), np.arange(matrix.shape[1]) if classes is None else classes, source)


def read_dataset(source: Path, features: Path) -> NDArray[Any]:
    """Read labels inside the file of features, for a source that is not a file."""
    # A dot does not mean a file: scanpy has columns such as leiden_0.5.
    name = source.as_posix().strip("/")
    with stored_file(features) as file:
        if name not in file.arrays:
            raise FileContentError(
                f"there is no file {source}, and {features} has no dataset of that name; it has {contents(file.arrays)}"
            )
        return load_labels(features, file.arrays, name)


def read_table(path: Path, n_rows: int, names: Column, paths: Column) -> NDArray[Any]:
    """Read the labels of the rows that a table names, the others being unknown, or else a label for each row."""
    with stored_file(path) as file:
        columns, rows = rows_of_lines(path, file.arrays, n_rows, names, paths)
        if rows is None:
            return read_label_file(path)
        column = label_column(list(columns))
        if column is None:
            raise FileContentError(f"{path} has no column 'label'; it has {listed(columns)}")
        given = load_labels(path, columns, column)
    return spread(path, n_rows, rows, given, ~is_missing(given))


def read_soft_table(path: Path, n_rows: int, names: Column, paths: Column) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read the distributions of the rows that a table names, NaN for the others, and the names of its columns."""
    with stored_file(path) as file:
        columns, rows = rows_of_lines(path, file.arrays, n_rows, names, paths)
        words = [name for name, column in columns.items() if column.kind != "numbers"]
        if words or not columns:
            raise FileContentError(f"{path}: {listed(words)} holds no numbers; expected them for each class")
        given = np.column_stack([np.asarray(column.load(), np.float64) for column in columns.values()])
    if rows is not None:
        given = spread(path, n_rows, rows, given, ~np.isnan(given).all(axis=1))
    return given, parse(list(columns))


def rows_of_lines(
    path: Path, stored: Mapping[str, StoredArray], n_rows: int, names: Column, paths: Column
) -> tuple[dict[str, StoredArray], NDArray[np.intp] | None]:
    """Return the columns of a table that do not tell rows, and the row of each of its lines; None if it tells none."""
    # Without names in the features, a column of that name says nothing of them.
    usual = ("row", "path") if names is None else ("row", "name", "path")
    telling = {known: column for known in usual if (column := label_column(list(stored), [known])) is not None}
    columns = {name: column for name, column in stored.items() if name not in telling.values()}
    if not telling:
        return columns, None
    known, column = next(iter(telling.items()))
    theirs, rows = (stored[column].spelled or list)(), range(n_rows)
    if known == "row":
        found = [row if row in rows else None for row in parse(theirs).tolist()]
        there = f"rows go from 0 to {n_rows - 1}"
    else:
        ours = names if known == "name" else paths
        places = {} if ours is None else dict(zip(ours.tolist(), rows, strict=True))
        if ours is None or len(places) < n_rows:
            problem = f"the features have no {known}s" if ours is None else "several rows have the same one"
            raise FileContentError(f"{path} names rows by {known}, but {problem}; name them by row")
        found = [places.get(name) for name in theirs]
        there = f"the features have no such {known}; theirs look like {ours[0]!s}"
    bad = [text for text, row in zip(theirs, found, strict=True) if row is None]
    if bad:
        raise FileContentError(f"{path} labels {known} {bad[0] or '(empty)'}, but {there}")
    return columns, np.array(found, np.intp)


def spread(path: Path, n_rows: int, rows: NDArray[np.intp], given: NDArray[Any], is_known: Any) -> NDArray[Any]:
    """Return a value for each row: the given one, or what stands for an unknown one."""
    rows, given = rows[is_known], given[is_known]
    unknown: Any = {"U": "", "i": -1, "f": np.nan}[given.dtype.kind]
    values = np.full((n_rows, *given.shape[1:]), unknown, given.dtype)
    values[rows] = given
    differ = (values[rows] != given).any(axis=tuple(range(1, given.ndim)))
    if differ.any():
        raise FileContentError(f"{path} gives row {rows[int(np.argmax(differ))]} two labels that differ; expected one")
    return values


def read_label_file(path: str | Path, *, column: str | None = None) -> NDArray[Any]:
    """Read a label for each row: integers where all are whole numbers, otherwise strings, −1 or empty where one misses.

    By default true labels, labels, or the only column there is; a ``.txt`` has a label on each line.
    """
    path = Path(path)
    if path.suffix.lower() == ".txt":
        if column is not None:
            raise InputError(f"{path}: a .txt file holds one column without a name; leave out --labels-dataset")
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
    columns = [name for name, array in stored.items() if len(array.shape) == 1]
    if name is None and (wanted is not None or len(columns) != 1):
        absent = "labels; name them with --labels-dataset" if wanted is None else repr(wanted)
        raise FileContentError(f"{path} has no {absent}; it has {contents(stored)}")
    name = columns[0] if name is None else name
    labels = load_labels(path, stored, name)
    is_alone = wanted is None and len(stored) == 1 and path.suffix.lower() in (".csv", ".tsv")
    if is_alone and name.lower() not in HEADERS and (labels.dtype.kind != "i" or is_number(name)):
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
