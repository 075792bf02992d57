"""Cluster files: the result of a fit or a prediction, with everything needed to judge it.

The contract of the format is in ``docs/files.md``.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.arrow_tables import import_pyarrow, write_parquet_columns
from cceclust.io.atomic import replacing
from cceclust.io.hdf5 import write_column, writing_hdf5
from cceclust.io.provenance import check_classes, check_stamp, from_json, stamp, to_json
from cceclust.io.reading import by_ending
from cceclust.io.stored import load_column, stored_file
from cceclust.text import as_cell, without_folders

__all__ = ["STDOUT", "Clusters", "KTable", "clusters_writer", "read_clusters", "write_clusters"]

# A table on standard output.
STDOUT = Path("-")
KEPT = "kept/"


@dataclass(frozen=True)
class KTable:
    """The numbers of clusters that were tried, and their scores.

    Attributes
    ----------
    ks : ndarray of shape (n_candidates,)
        The numbers of clusters.
    scores : ndarray of shape (n_candidates,)
        The scores that decided.
    saved : ndarray of shape (n_candidates,)
        How much smaller the share of cut pairs of neighbours is than in a cloud without clusters.
    levels : ndarray of shape (n_levels,)
        Numbers worth considering, including the chosen one.
    level_labels : ndarray of shape (n_levels, n_rows)
        The cluster of some rows for each of `levels`.
    level_rows : ndarray of shape (n_rows,)
        The numbers of these rows.
    """

    ks: NDArray[Any]
    scores: NDArray[Any]
    saved: NDArray[Any]
    levels: NDArray[Any]
    level_labels: NDArray[Any]
    level_rows: NDArray[Any]

    def __post_init__(self) -> None:
        n_candidates, shape = len(self.ks), (len(self.levels), len(self.level_rows))
        same = all(column.shape == (n_candidates,) for column in (self.ks, self.scores, self.saved))
        if not same or self.level_labels.shape != shape:
            raise InputError("the arrays on the number of clusters differ in length")

    def relation(self, labels: NDArray[Any], level: int) -> NDArray[np.intp]:
        """Count the rows of each part of a level in each cluster.

        Parameters
        ----------
        labels : ndarray of shape (n_samples,)
            The cluster of every row, numbered from 0.
        level : int
            One of `levels`.

        Returns
        -------
        ndarray of shape (level, n_clusters)
        """
        parts = self.level_labels[int(np.flatnonzero(self.levels == level)[0])]
        counts = np.zeros((level, int(labels.max(initial=-1)) + 1), np.intp)
        np.add.at(counts, (parts, labels[self.level_rows]), 1)
        return counts


@dataclass
class Clusters:
    """A clustering and how it was made.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The cluster of each row.
    probabilities : ndarray of shape (n_samples, n_clusters), optional
        The head's softmax.
    true_labels : ndarray of shape (n_samples,), optional
        The labels that came with the features; −1 or empty for rows whose label was used in the fit.
    paths : ndarray of shape (n_samples,), optional
        The source of each row, such as an image file.
    names : ndarray of shape (n_samples,), optional
        The name of each row.
    kept : dict of str to ndarray of shape (n_samples,)
        Columns of the features' file that were to be kept.
    outlier_scores : ndarray of shape (n_samples,), optional
        How much farther each row is from its nearest neighbours than they are from theirs; about 1 for most rows.
    loss_curves : ndarray of shape (n_restarts, n_epochs), optional
        The mean training loss of each restart in each epoch.
    losses : ndarray of shape (n_restarts,), optional
        The final loss of each restart on all the data, each with its own fairness.
    k_search : KTable, optional
        How the number of clusters was chosen, if it was not given.
    parameters : dict
        All parameters of the method.
    diagnostics : dict
        Observations of the fit: number of epochs, agreement of the restarts, warnings, …
    provenance : dict
        Where the features came from: file, dataset, backbone, …
    model_id : str, optional
        The :attr:`cceclust.io.Model.id` of the model that made the clusters.
    """

    labels: NDArray[Any]
    probabilities: NDArray[Any] | None = None
    true_labels: NDArray[Any] | None = None
    paths: NDArray[Any] | None = None
    names: NDArray[Any] | None = None
    outlier_scores: NDArray[Any] | None = None
    levels: NDArray[Any] | None = None
    loss_curves: NDArray[Any] | None = None
    losses: NDArray[Any] | None = None
    k_search: KTable | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    model_id: str | None = None
    kept: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.labels.ndim != 1:
            raise InputError(f"labels have shape {self.labels.shape}; expected one for each row")
        with_rows = ("probabilities", "true_labels", "paths", "names", "outlier_scores")
        for name, column in [*((name, getattr(self, name)) for name in with_rows), *self.kept.items()]:
            if column is not None and column.shape[:1] != self.labels.shape:
                n_values = column.shape[0] if column.ndim else "no column of"
                raise InputError(f"{n_values} {name} for {len(self.labels)} labels; expected one for each row")

    @property
    def named_labels(self) -> NDArray[Any]:
        """The class of each row, if given labels named the clusters, and otherwise the number of its cluster."""
        classes = self.parameters.get("classes")
        if not isinstance(classes, list) or len(classes) <= self.labels.max(initial=-1):
            return self.labels
        # A label of -1, for no cluster, picks the last.
        none = "" if any(isinstance(name, str) for name in classes) else -1
        return np.asarray(np.array([*classes, none])[self.labels])

    @property
    def chosen_restart(self) -> int | None:
        """The restart that the kept head comes from; the one with the lowest loss, if nothing else is known."""
        if self.losses is None:
            return None
        stated = self.diagnostics.get("best_restart")
        is_known = isinstance(stated, int) and 0 <= stated < len(self.losses)
        return stated if is_known else int(np.nanargmin(self.losses))


ARRAYS = ("labels", "levels", "probabilities", "true_labels", "paths", "names", "outlier_scores", "loss_curves", "losses")
K_ARRAYS = tuple(f"k_{field.name}" for field in fields(KTable))
MAPPINGS = ("parameters", "diagnostics", "provenance")


def write_clusters(path: str | Path, clusters: Clusters, *, force: bool = False, full_paths: bool = False) -> None:
    """Write a clustering as ``.h5`` (everything), ``.csv`` or ``.parquet`` (a line for each row) or ``.npy`` (labels).

    Parameters
    ----------
    path : str or Path
        The file to write; its ending chooses the format. ``-`` writes comma-separated values to standard output.
    clusters : Clusters
        What to write.
    force : bool
        Overwrite an existing file.
    full_paths : bool
        Keep absolute paths in the provenance, instead of file names only.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cceclust.io import Clusters, read_clusters, write_clusters
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_clusters(f"{folder}/tiny.h5", Clusters(np.array([0, 1, 1]), parameters={"n_clusters": 2}))
    ...     read_clusters(f"{folder}/tiny.h5").labels.tolist()
    [0, 1, 1]
    """
    write = clusters_writer(path)
    check_numbers(clusters)
    # The running time is not part of the result: equal fits make equal files.
    diagnostics = {name: value for name, value in clusters.diagnostics.items() if name != "seconds"}
    clusters = replace(clusters, diagnostics=diagnostics)
    if not full_paths:
        clusters = replace(clusters, **{name: without_folders(getattr(clusters, name)) for name in MAPPINGS})
    if Path(path) == STDOUT:
        write_lines(sys.stdout, clusters)
        sys.stdout.flush()
        return
    with replacing(path, force=force) as part:
        write(part, clusters)


def clusters_writer(path: str | Path) -> Callable[[Path, Clusters], None]:
    """Return the function that writes a file of this name; call this before long work, to fail early."""
    if Path(path) == STDOUT:
        return write_csv
    writer = by_ending(path, WRITERS, "write clusters to", InputError)
    if writer is write_parquet:
        import_pyarrow("writing .parquet files")
    return writer


def check_numbers(clusters: Clusters) -> None:
    """Raise InputError unless shapes, types and ranges follow the contract."""
    if not len(clusters.labels):
        raise InputError("there are no labels; expected at least one row")
    if clusters.labels.dtype.kind == "i" and clusters.labels.min() < -1:
        lowest, highest = clusters.labels.min(), clusters.labels.max()
        raise InputError(f"labels go from {lowest} to {highest}; expected 0 or more, or -1 for no cluster")
    if clusters.probabilities is not None:
        check_probabilities(clusters.probabilities, clusters.labels)
        check_classes(clusters.parameters, clusters.probabilities.shape[1])
    texts = (("paths", clusters.paths, "U"), ("names", clusters.names, "U"))
    kept = ((name, column, "iubfU") for name, column in clusters.kept.items())
    for name, column, kinds in (("true_labels", clusters.true_labels, "iubfU"), *texts, *kept):
        if column is not None and (column.ndim != 1 or column.dtype.kind not in kinds):
            raise InputError(f"{name} are {described(column)}; expected a column")
    scores = clusters.outlier_scores
    if scores is not None and not (scores.ndim == 1 and scores.dtype.kind == "f" and np.isfinite(scores).all()):
        raise InputError(f"outlier_scores are {described(scores)}; expected finite numbers")
    # NaN is allowed: a restart that failed has no loss, and a curve that ended early is filled up with NaN.
    for name, losses, n_axes in (("losses", clusters.losses, 1), ("loss_curves", clusters.loss_curves, 2)):
        if losses is not None and not (losses.ndim == n_axes and losses.dtype.kind == "f" and has_numbers(losses)):
            raise InputError(f"{name} are {described(losses)}; expected finite numbers, or NaN where there is none")


def check_probabilities(probabilities: NDArray[Any], labels: NDArray[Any]) -> None:
    """Raise InputError unless every row is a distribution over clusters that include those of the labels."""
    if probabilities.ndim != 2 or probabilities.dtype.kind != "f" or not probabilities.shape[1]:
        raise InputError(f"probabilities are {described(probabilities)}; expected fractions ({len(labels)}, K)")
    # Written so that NaN fails as well.
    if not (probabilities.min() >= 0 and abs(probabilities.sum(axis=1, dtype=np.float64) - 1).max() <= 0.01):
        raise InputError("the probabilities of a row are negative, not finite or do not sum to 1")
    n_clusters = probabilities.shape[1]
    if labels.dtype.kind in "iu" and not -1 <= labels.min() <= labels.max() < n_clusters:
        raise InputError(f"labels go from {labels.min()} to {labels.max()}; expected 0 to {n_clusters - 1}")


def has_numbers(values: NDArray[Any]) -> bool:
    """Tell whether some values are numbers and none is infinite."""
    return bool(np.isfinite(values).any() and not np.isinf(values).any())


def described(array: NDArray[Any]) -> str:
    """Describe an array for an error message."""
    return f"{array.dtype} of shape {array.shape}"


def write_hdf5(path: Path, clusters: Clusters) -> None:
    """Write everything."""
    with writing_hdf5(path) as (file, _):
        for name in ARRAYS:
            values = getattr(clusters, name)
            if values is not None:
                write_column(file, name, values)
        for name, column in clusters.kept.items():
            write_column(file, KEPT + as_one_part(name), column)
        if clusters.k_search is not None:
            for name in K_ARRAYS:
                write_column(file, name, getattr(clusters.k_search, name.removeprefix("k_")))
        file.attrs.update(stamp("clusters"))
        file.attrs.update({name: to_json(getattr(clusters, name)) for name in MAPPINGS})
        if clusters.model_id is not None:
            file.attrs["model_id"] = clusters.model_id


def as_one_part(name: str) -> str:
    """Return a column's name as that of one dataset: slashes would make groups of it."""
    escaped = name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    return {"": "%", ".": "%2E"}.get(escaped, escaped)


def from_one_part(name: str) -> str:
    """Undo :func:`as_one_part`."""
    return "" if name == "%" else unquote(name)


def write_csv(path: Path, clusters: Clusters) -> None:
    """Write a line for each row, for spreadsheets."""
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        write_lines(file, clusters)


def write_lines(file: TextIO, clusters: Clusters) -> None:
    """Write a header and a line for each row."""
    columns = table_columns(clusters)
    for name in ("confidence", "outlier_score"):
        if name in columns:
            columns[name] = np.char.mod("%.6g", columns[name])
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(as_cell, columns))
    writer.writerows(map(as_cell, line) for line in zip(*columns.values(), strict=True))


def table_columns(clusters: Clusters) -> dict[str, NDArray[Any]]:
    """Return what is known of each row as the columns of a table."""
    columns: dict[str, NDArray[Any]] = {"row": np.arange(len(clusters.labels))}
    if clusters.names is not None:
        columns["name"] = clusters.names
    if clusters.paths is not None:
        columns["path"] = clusters.paths
    columns["label"] = clusters.labels
    if "classes" in clusters.parameters:
        columns["class"] = clusters.named_labels
    if clusters.probabilities is not None:
        columns["confidence"] = clusters.probabilities.max(axis=1)
    if clusters.outlier_scores is not None:
        columns["outlier_score"] = clusters.outlier_scores
    return columns | {f"kept_{name}" if name in columns else name: column for name, column in clusters.kept.items()}


def write_parquet(path: Path, clusters: Clusters) -> None:
    """Write a row for each row, with its type for each column."""
    write_parquet_columns(path, table_columns(clusters))


def write_npy(path: Path, clusters: Clusters) -> None:
    """Write the labels alone."""
    # Written to memory first: NumPy itself does not report that the disk is full.
    buffer = io.BytesIO()
    np.save(buffer, clusters.labels, allow_pickle=False)
    path.write_bytes(buffer.getvalue())


WRITERS = {
    ".h5": write_hdf5,
    ".hdf5": write_hdf5,
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".npy": write_npy,
}


def k_table(columns: dict[str, NDArray[Any] | None], n_samples: int) -> KTable | None:
    """Return the table of numbers of clusters, if a file has it; raise InputError if it is not valid."""
    if all(column is None for column in columns.values()):
        return None
    complete = {name: column for name, column in columns.items() if column is not None}
    if len(complete) < len(columns):
        raise InputError("it has some of the arrays on the number of clusters, but not all")
    if any(complete[name].dtype.kind not in "iu" for name in ("ks", "levels", "level_labels", "level_rows")):
        raise InputError("its numbers of clusters are no whole numbers")
    table = KTable(**complete)
    below = [(table.level_rows, n_samples), *zip(table.level_labels, table.levels, strict=True)]
    if any(numbers.size and (numbers.min() < 0 or numbers.max() >= limit) for numbers, limit in below):
        raise InputError("its arrays on the number of clusters name rows or parts that do not exist")
    return table


def read_clusters(path: str | Path) -> Clusters:
    """Read a cluster file that :func:`write_clusters` wrote as ``.h5``.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Clusters
    """
    path = Path(path)
    with stored_file(path) as file:
        check_stamp(file.attributes, "clusters", path)
        found: dict[str, Any] = {name: load_column(path, file.arrays, name) for name in ARRAYS}
        of_search = {name.removeprefix("k_"): load_column(path, file.arrays, name) for name in K_ARRAYS}
        kept = {name: load_column(path, file.arrays, name) for name in file.arrays if name.startswith(KEPT)}
    if found["labels"] is None or found["labels"].dtype.kind not in "iu":
        raise FileContentError(f"{path} is damaged: it has no dataset 'labels' of integers")
    found["kept"] = {from_one_part(name.removeprefix(KEPT)): column for name, column in kept.items()}
    found.update({name: from_json(file.attributes.get(name), name, path) for name in MAPPINGS})
    model_id = file.attributes.get("model_id")
    try:
        clusters = Clusters(
            **found,
            k_search=k_table(of_search, found["labels"].size),
            model_id=None if model_id is None else str(model_id),
        )
        check_numbers(clusters)
    except InputError as error:
        raise FileContentError(f"{path} is damaged: {error}") from error
    return clusters
