"""Cluster files: the result of a fit or a prediction, with everything needed to judge it.

The contract of the format is in ``docs/files.md``.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.atomic import replacing
from cceclust.io.hdf5 import write_hdf5
from cceclust.io.provenance import check_classes, check_stamp, from_json, stamp, to_json
from cceclust.io.reading import by_ending
from cceclust.io.stored import load_array, stored_file
from cceclust.io.tables import write_parquet
from cceclust.text import as_cell

__all__ = ["STDOUT", "Clusters", "clusters_writer", "read_clusters", "write_clusters"]

# A table on standard output.
STDOUT = Path("-")
KEPT = "kept/"
# The arrays of a file, with the number of their dimensions and the kinds of types that they may have.
ANY = "iubfU"
ARRAYS = {
    "labels": (1, "iuU"),
    "probabilities": (2, "f"),
    "true_labels": (1, ANY),
    "paths": (1, "U"),
    "names": (1, "U"),
    "outlier_scores": (1, "f"),
    "levels": (2, "f"),
}
MAPPINGS = ("parameters", "diagnostics", "provenance")


@dataclass
class Clusters:
    """A clustering and how it was made.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The cluster of each row, −1 for none; or a name, as those of another tool.
    probabilities : ndarray of shape (n_samples, n_clusters), optional
        The head's softmax.
    true_labels : ndarray of shape (n_samples,), optional
        The labels that came with the features; −1 or empty for rows whose label was used in the fit.
    paths : ndarray of shape (n_samples,), optional
        The source of each row, such as an image file.
    names : ndarray of shape (n_samples,), optional
        The name of each row.
    outlier_scores : ndarray of shape (n_samples,), optional
        How much farther each row is from its nearest neighbours than they are from theirs; about 1 for most rows.
    levels : ndarray of shape (n_levels, 2), optional
        Numbers of clusters worth considering, each with how reproducible it is, from 0 to 1.
    parameters : dict
        All parameters of the method.
    diagnostics : dict
        Observations of the fit: its warnings, the scores of the candidates, …
    provenance : dict
        Where the features came from: file, dataset, backbone, …
    model_id : str, optional
        The :attr:`cceclust.io.Model.id` of the model that made the clusters.
    kept : dict of str to ndarray of shape (n_samples,)
        Columns of the features' file that were to be kept.
    """

    labels: NDArray[Any]
    probabilities: NDArray[Any] | None = None
    true_labels: NDArray[Any] | None = None
    paths: NDArray[Any] | None = None
    names: NDArray[Any] | None = None
    outlier_scores: NDArray[Any] | None = None
    levels: NDArray[Any] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    model_id: str | None = None
    kept: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.labels.ndim != 1:
            raise InputError(f"labels have shape {self.labels.shape}; expected one for each row")
        for name, values in self.arrays.items():
            if name != "levels" and values.shape[:1] != self.labels.shape:
                raise InputError(
                    f"{name} have shape {values.shape}, but there are {len(self.labels)} labels; expected one for each"
                )

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that there are, under the names of their datasets: slashes would make groups."""
        own = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        return own | {KEPT + name.replace("%", "%25").replace("/", "%2F"): self.kept[name] for name in self.kept}

    @property
    def named_labels(self) -> NDArray[Any]:
        """The class of each row, if given labels named the clusters, and otherwise the number of its cluster."""
        classes = self.parameters.get("classes")
        if not isinstance(classes, list) or len(classes) <= self.labels.max(initial=-1):
            return self.labels
        # A label of -1, for no cluster, picks the last.
        none = "" if any(isinstance(name, str) for name in classes) else -1
        return np.asarray(np.array([*classes, none])[self.labels])


def write_clusters(path: str | Path, clusters: Clusters, *, force: bool = False) -> None:
    """Write a clustering as ``.h5`` (everything), ``.csv`` or ``.parquet`` (a line for each row) or ``.npy`` (labels).

    The ending of the path chooses the format, and ``-`` writes comma-separated values to standard output. Of absolute
    paths in the mappings only the names of the files are kept. ``force`` overwrites an existing file.

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
    if Path(path) == STDOUT:
        write_csv(STDOUT, clusters)
    else:
        with replacing(path, force=force) as part:
            write(part, clusters)


def clusters_writer(path: str | Path) -> Callable[[Path, Clusters], None]:
    """Return the function that writes a file of this name; call this before long work, to fail early."""
    return write_csv if Path(path) == STDOUT else by_ending(path, WRITERS, "write clusters to", InputError)


def check_numbers(clusters: Clusters) -> None:
    """Raise InputError unless shapes, types and ranges follow the contract."""
    labels, probabilities = clusters.labels, clusters.probabilities
    for name, values in clusters.arrays.items():
        n_axes, kinds = ARRAYS.get(name, (1, ANY))
        if values.ndim != n_axes or values.dtype.kind not in kinds:
            raise InputError(f"{name} are {values.dtype} of shape {values.shape}; expected another type or shape")
    if not len(labels):
        raise InputError("there are no labels; expected at least one row")
    most = np.inf if probabilities is None else probabilities.shape[1] - 1
    if labels.dtype.kind in "iu" and not -1 <= labels.min() <= labels.max() <= most:
        raise InputError(f"labels go from {labels.min()} to {labels.max()}; expected 0 to {most}, or −1 for no cluster")
    if probabilities is not None:
        # Written so that NaN fails as well.
        if not (probabilities.min() >= 0 and abs(probabilities.sum(axis=1, dtype=np.float64) - 1).max() <= 0.01):
            raise InputError("the probabilities of a row are negative, not finite or do not sum to 1")
        check_classes(clusters.parameters, probabilities.shape[1])
    for name in ("outlier_scores", "levels"):
        if not np.isfinite(clusters.arrays.get(name, 0)).all():
            raise InputError(f"{name} contain NaN or infinity; expected finite numbers")


def write_everything(path: Path, clusters: Clusters) -> None:
    mappings = {name: to_json(getattr(clusters, name)) for name in MAPPINGS}
    model = {} if clusters.model_id is None else {"model_id": clusters.model_id}
    write_hdf5(path, clusters.arrays, {**stamp("clusters"), **mappings, **model})


def write_csv(path: Path, clusters: Clusters) -> None:
    """Write a header and a line for each row, for spreadsheets."""
    columns = table_columns(clusters)
    for name in ("confidence", "outlier_score"):
        if name in columns:
            columns[name] = np.char.mod("%.6g", columns[name])
    how: dict[str, Any] = {"newline": "", "encoding": "utf-8", "errors": "surrogateescape"}
    with nullcontext(sys.stdout) if path == STDOUT else path.open("w", **how) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(as_cell, columns))
        writer.writerows(map(as_cell, line) for line in zip(*columns.values(), strict=True))
        file.flush()


def table_columns(clusters: Clusters) -> dict[str, NDArray[Any]]:
    chances = clusters.probabilities
    columns = {
        "row": np.arange(len(clusters.labels)),
        "name": clusters.names,
        "path": clusters.paths,
        "label": clusters.labels,
        "class": clusters.named_labels if "classes" in clusters.parameters else None,
        "confidence": None if chances is None else chances.max(axis=1),
        "outlier_score": clusters.outlier_scores,
    }
    known = {name: column for name, column in columns.items() if column is not None}
    return known | {f"kept_{name}" if name in known else name: column for name, column in clusters.kept.items()}


def write_npy(path: Path, clusters: Clusters) -> None:
    """Write the labels alone, by way of memory: NumPy itself does not report that the disk is full."""
    buffer = io.BytesIO()
    np.save(buffer, clusters.labels, allow_pickle=False)
    path.write_bytes(buffer.getvalue())


WRITERS: dict[str, Callable[[Path, Clusters], None]] = {
    ".h5": write_everything,
    ".hdf5": write_everything,
    ".csv": write_csv,
    ".parquet": lambda path, clusters: write_parquet(path, table_columns(clusters)),
    ".npy": write_npy,
}


def read_clusters(path: str | Path) -> Clusters:
    """Read a cluster file that :func:`write_clusters` wrote as ``.h5``."""
    path = Path(path)
    with stored_file(path) as file:
        check_stamp(file.attributes, "clusters", path)
        # Others, such as those of version 0.2, are ignored.
        names = [name for name in file.arrays if name in ARRAYS or name.startswith(KEPT)]
        found: dict[str, Any] = {name: load_array(path, file.arrays, name) for name in names}
    if "labels" not in found or found["labels"].dtype.kind not in "iu":
        raise FileContentError(f"{path} is damaged: it has no dataset 'labels' of integers")
    found["kept"] = {unquote(name.removeprefix(KEPT)): found.pop(name) for name in names if name.startswith(KEPT)}
    found |= {name: from_json(file.attributes.get(name), name, path) for name in MAPPINGS}
    try:
        clusters = Clusters(**found, model_id=file.attributes.get("model_id"))
        check_numbers(clusters)
    except InputError as error:
        raise FileContentError(f"{path} is damaged: {error}") from error
    return clusters
