"""Labels for some of the rows, hard or soft, from a file beside the features or a dataset inside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.label_files import label_column, parse, read_cells, read_label_file, table_rows
from cceclust.io.reading import by_ending, refuse_bomb, refuse_what_is_no_file
from cceclust.io.stored import ARRAY_FILES, StoredArray, contents, load_column, stored_file
from cceclust.scoring import as_labels, is_missing, name_extra_clusters

__all__ = ["PartialLabels", "read_partial_labels", "read_soft_labels"]

# The one array of a .npy file has the empty name.
SOFT_DATASETS = ("", "soft_labels", "probabilities")
SOFT_FILES = {".csv": "table", **dict.fromkeys(ARRAY_FILES, "array")}


@dataclass(frozen=True)
class PartialLabels:
    """The known classes of some rows.

    Attributes
    ----------
    values : ndarray of shape (n_rows,) or (n_rows, n_classes)
        The number of each row's class, −1 where it is unknown; or each row's distribution, NaN where it is unknown.
    classes : ndarray of shape (n_classes,)
        Names of the classes, integers or strings.
    source : str or Path, optional
        The file, or the dataset in the feature file, that they were read from.
    """

    values: NDArray[Any]
    classes: NDArray[Any]
    source: str | Path | None = None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a label."""
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
        """Return the names of all clusters: those of the classes, then the next numbers or "extra 1", "extra 2", …

        Raises
        ------
        InputError
            If there are more classes than clusters.
        """
        n_classes = len(self.classes)
        if n_classes > n_clusters:
            raise InputError(
                f"the labels name {n_classes} classes, more than the {n_clusters} clusters asked for; ask for "
                f"{n_classes}, or more if there are classes without a label"
            )
        return [*self.classes.tolist(), *name_extra_clusters(self.classes, n_clusters - n_classes).tolist()]


def read_partial_labels(
    source: str | Path,
    n_rows: int,
    *,
    paths: NDArray[Any] | None = None,
    names: NDArray[Any] | None = None,
    features: str | Path | None = None,
) -> PartialLabels:
    """Read labels of some rows.

    Parameters
    ----------
    source : str or Path
        A table (.csv) with a column ``label`` and a column ``row`` (numbers from 0), ``name`` or ``path``; any file of
        a label for each row that :func:`cceclust.io.label_files.read_label_file` reads, with −1 or empty for
        unknown; or the name of such a dataset inside the file of features.
    n_rows : int
        Number of rows.
    paths, names : ndarray of shape (n_rows,), optional
        The source and the name of each row, for tables that tell rows by path or name.
    features : str or Path, optional
        The file of features.

    Returns
    -------
    PartialLabels

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "partial.csv")
    ...     _ = file.write_text("row,label\\n2,dog\\n0,cat\\n")
    ...     labels = read_partial_labels(file, 4)
    >>> labels.values, labels.classes
    (array([ 0, -1,  1, -1]), array(['cat', 'dog'], dtype='<U3'))
    """
    path = Path(source)
    if features is not None and not path.exists():
        with stored_file(Path(features)) as file:
            name = find_dataset(path, file.arrays, features)
            labels = as_labels(np.asarray(load_column(Path(features), file.arrays, name)), f"labels in {source}")
    elif path.suffix.lower() == ".csv" and has_row_column(path, tells := columns_that_tell_rows(names, paths)):
        labels = read_table(path, n_rows, tells)
    else:
        labels = as_labels(read_label_file(path), f"labels in {path}")
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
    source: str | Path,
    n_rows: int,
    *,
    paths: NDArray[Any] | None = None,
    names: NDArray[Any] | None = None,
    features: str | Path | None = None,
) -> PartialLabels:
    """Read distributions over classes of some rows.

    Parameters
    ----------
    source : str or Path
        A table (.csv) with a column for each class, and ``row``, ``name`` or ``path`` if not every row has a line; a
        file of arrays (.npy, .h5, …) with one called ``soft_labels`` or ``probabilities``; or the name of such a
        dataset inside the file of features.
    n_rows, paths, names, features
        As in :func:`read_partial_labels`.

    Returns
    -------
    PartialLabels
    """
    path = Path(source)
    classes: NDArray[Any] | None = None
    if features is not None and not path.exists():
        with stored_file(Path(features)) as file:
            matrix = load_numbers(Path(features), file.arrays, find_dataset(path, file.arrays, features))
    elif by_ending(path, SOFT_FILES, "read soft labels from", FileContentError) == "table":
        refuse_what_is_no_file(path)
        matrix, classes = read_soft_table(path, n_rows, columns_that_tell_rows(names, paths))
    else:
        matrix = read_soft_array(path)
    if matrix.ndim != 2 or matrix.shape[1] < 2 or matrix.dtype.kind not in "fiub":
        raise FileContentError(
            f"{source} holds {matrix.dtype} values of shape {matrix.shape}; expected a number for each row and class"
        )
    if len(matrix) != n_rows:
        raise FileContentError(f"{source} holds soft labels of {len(matrix):,} rows, but there are {n_rows:,}")
    return PartialLabels(matrix.astype(np.float64), np.arange(matrix.shape[1]) if classes is None else classes, source)


def find_dataset(source: Path, stored: Mapping[str, StoredArray], features: str | Path) -> str:
    """Return the name of the labels inside the feature file, for a source that is not a file."""
    # A dot does not mean a file: scanpy has columns such as leiden_0.5.
    name = source.as_posix().strip("/")
    if name not in stored:
        raise FileContentError(
            f"there is no file {source}, and {features} has no dataset of that name; it has {contents(stored)}"
        )
    return name


def columns_that_tell_rows(names: NDArray[Any] | None, paths: NDArray[Any] | None) -> dict[str, NDArray[Any] | None]:
    """Return the columns by which a table can tell its rows, besides ``row``, with their values in the features."""
    # Without names in the features, a column of that name says nothing of them.
    return {"path": paths} if names is None else {"name": names, "path": paths}


def has_row_column(path: Path, known: Mapping[str, NDArray[Any] | None]) -> bool:
    """Tell whether a table names the row of each line."""
    refuse_what_is_no_file(path)
    return any(cell.strip().lower() in ("row", *known) for cell in read_cells(path)[0])


def read_table(path: Path, n_rows: int, known: Mapping[str, NDArray[Any] | None]) -> NDArray[Any]:
    """Read the labels of the rows that a table names; the others are unknown."""
    lines = read_cells(path)
    header = [cell.strip().lower() for cell in lines[0]]
    column = label_column(header)
    if column is None:
        raise FileContentError(f"{path} has no column 'label'; it has {', '.join(lines[0])}")
    rows = table_rows(lines, path)
    given = parse([line[column] for line in rows])
    positions = find_rows(header, rows, n_rows, known, path)
    labels = np.full(n_rows, -1, np.int64) if given.dtype.kind == "i" else np.full(n_rows, "", given.dtype)
    for position, label in zip(positions, given, strict=True):
        if not is_missing(labels[position : position + 1])[0] and labels[position] != label:
            raise FileContentError(f"{path} gives row {position} two labels, {labels[position]} and {label}")
        labels[position] = label
    return labels


def read_soft_table(
    path: Path, n_rows: int, known: Mapping[str, NDArray[Any] | None]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read the distributions of the rows that a table names, NaN for the others, and the names of its columns."""
    lines = read_cells(path)
    header = [cell.strip() for cell in lines[0]]
    lowered = [name.lower() for name in header]
    rows = table_rows(lines, path)
    columns = [position for position, name in enumerate(lowered) if name not in ("row", *known)]
    try:
        given = np.array([[float(line[column] or "nan") for column in columns] for line in rows], np.float64)
    except ValueError as error:
        raise FileContentError(
            f"{path} holds what is no number ({error}); expected a column of them for each class"
        ) from None
    classes = parse([header[column] for column in columns])
    if len(columns) == len(header):
        return given.reshape(len(rows), -1), classes
    matrix = np.full((n_rows, len(columns)), np.nan)
    for position, distribution in zip(find_rows(lowered, rows, n_rows, known, path), given, strict=True):
        before = matrix[position]
        if not np.isnan(before).all() and not np.array_equal(before, distribution, equal_nan=True):
            raise FileContentError(f"{path} gives row {position} two distributions that differ; expected one")
        matrix[position] = distribution
    return matrix, classes


def find_rows(
    header: list[str], lines: list[list[str]], n_rows: int, known: Mapping[str, NDArray[Any] | None], path: Path
) -> NDArray[np.intp]:
    """Return the row of each line of a table, by number, name or path."""
    if "row" in header:
        texts = [line[header.index("row")] for line in lines]
        numbers = parse(texts)
        if numbers.dtype.kind != "i":
            raise FileContentError(f"{path}: the column 'row' holds what is no whole number; expected numbers from 0")
        outside = (numbers < 0) | (numbers >= n_rows)
        if outside.any():
            raise FileContentError(
                f"{path} labels row {texts[int(np.argmax(outside))] or '(empty)'}, but rows go from 0 to {n_rows - 1}"
            )
        return numbers.astype(np.intp)
    column = next(column for column in known if column in header)
    ours = known[column]
    if ours is None:
        raise FileContentError(f"{path} names rows by {column}, but the features have no {column}s; name them by row")
    places = {str(name): position for position, name in enumerate(ours)}
    if len(places) < len(ours):
        raise FileContentError(f"{path} names rows by {column}, but several have the same one; name them by row")
    theirs = [line[header.index(column)] for line in lines]
    unknown = [name for name in theirs if name not in places]
    if unknown:
        raise FileContentError(
            f"{path} labels {len(unknown)} {column}s that the features do not have, first {unknown[0]!r}; theirs look "
            f"like {str(ours[0])!r}"
        )
    return np.array([places[name] for name in theirs], np.intp)


def read_soft_array(path: Path) -> NDArray[Any]:
    """Read the soft labels or probabilities of a file of arrays."""
    with stored_file(path) as file:
        name = next((known for known in SOFT_DATASETS if known in file.arrays), None)
        if name is None:
            expected = " or ".join(map(repr, SOFT_DATASETS[1:]))
            raise FileContentError(f"{path} has no dataset {expected}; it has {contents(file.arrays)}")
        return load_numbers(path, file.arrays, name)


def load_numbers(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any]:
    """Read an array of numbers into memory."""
    if not stored[name].is_numeric:
        raise FileContentError(f"{path}: {name!r} holds {stored[name].type_name}; expected numbers")
    refuse_bomb(path, name, stored[name].n_bytes)
    return np.asarray(stored[name].load()[...])
