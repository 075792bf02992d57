"""Cluster files: what a fit or a prediction found, with all that is needed to judge it.

The contract of the format is in ``docs/files.md``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.files.atomic import replacing
from cceclust.files.hdf5 import plain_attributes, read_column, write_column, writing_hdf5
from cceclust.files.provenance import check_stamp, from_json, stamp, to_json
from cceclust.files.reading import reading

__all__ = ["Clusters", "clusters_writer", "read_clusters", "write_clusters"]


@dataclass
class Clusters:
    """A clustering and how it came about.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The cluster of each row.
    probabilities : ndarray of shape (n_samples, n_clusters), optional
        The head's softmax.
    true_labels : ndarray of shape (n_samples,), optional
        The labels that came with the features; those of rows that taught the fit are left out, as −1 or empty.
    paths : ndarray of shape (n_samples,), optional
        Where each row came from.
    loss_curves : ndarray of shape (n_restarts, n_epochs), optional
        The mean training loss of each restart in each epoch.
    losses : ndarray of shape (n_restarts,), optional
        The final loss of each restart on all the data; the lowest was chosen.
    parameters : dict
        All parameters of the method.
    diagnostics : dict
        What was noticed: number of epochs, agreement of the restarts, warnings, …
    provenance : dict
        Where the features came from: file, dataset, backbone, …
    """

    labels: NDArray[Any]
    probabilities: NDArray[Any] | None = None
    true_labels: NDArray[Any] | None = None
    paths: NDArray[Any] | None = None
    loss_curves: NDArray[Any] | None = None
    losses: NDArray[Any] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.labels.ndim != 1:
            raise InputError(f"labels have shape {self.labels.shape}; expected one a row")
        for name in ("probabilities", "true_labels", "paths"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.labels):
                raise InputError(f"{len(column)} {name} for {len(self.labels)} labels; expected one a row")

    @property
    def named_labels(self) -> NDArray[Any]:
        """The class of each row, if given labels named the clusters, and otherwise the number of its cluster."""
        classes = self.parameters.get("classes")
        if not isinstance(classes, list) or len(classes) <= self.labels.max(initial=-1):
            return self.labels
        return np.asarray(np.array(classes)[self.labels])

    @property
    def chosen_restart(self) -> int | None:
        """The restart that was kept: the one with the lowest loss."""
        return None if self.losses is None else int(np.argmin(self.losses))


ARRAYS = ("labels", "probabilities", "true_labels", "paths", "loss_curves", "losses")
MAPPINGS = ("parameters", "diagnostics", "provenance")


def write_clusters(path: str | Path, clusters: Clusters, *, force: bool = False) -> None:
    """Write a clustering as ``.h5`` (everything), ``.csv`` (row, path, label, class, confidence) or ``.npy`` (labels).

    Parameters
    ----------
    path : str or Path
        The file to write; its ending chooses the format.
    clusters : Clusters
        What to write.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cceclust.files import Clusters, read_clusters, write_clusters
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_clusters(f"{folder}/tiny.h5", Clusters(np.array([0, 1, 1]), parameters={"n_clusters": 2}))
    ...     read_clusters(f"{folder}/tiny.h5").labels.tolist()
    [0, 1, 1]
    """
    write = clusters_writer(path)
    with replacing(path, force=force) as part:
        write(part, clusters)


def clusters_writer(path: str | Path) -> Callable[[Path, Clusters], None]:
    """Return the function that writes a file of this name: worth asking before long work, not only after it."""
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        raise InputError(f"cannot write clusters to {path}: it ends in {ending!r}; expected {', '.join(WRITERS)}")
    return WRITERS[ending]


def write_hdf5(path: Path, clusters: Clusters) -> None:
    """Write everything."""
    with writing_hdf5(path) as (file, _):
        for name in ARRAYS:
            values = getattr(clusters, name)
            if values is not None:
                write_column(file, name, values)
        file.attrs.update(stamp("clusters"))
        file.attrs.update({name: to_json(getattr(clusters, name)) for name in MAPPINGS})


def write_csv(path: Path, clusters: Clusters) -> None:
    """Write a line a row, for spreadsheets."""
    columns: dict[str, NDArray[Any]] = {"row": np.arange(len(clusters.labels))}
    if clusters.paths is not None:
        columns["path"] = clusters.paths
    columns["label"] = clusters.labels
    if "classes" in clusters.parameters:
        columns["class"] = clusters.named_labels
    if clusters.probabilities is not None:
        columns["confidence"] = np.char.mod("%.6g", clusters.probabilities.max(axis=1))
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_npy(path: Path, clusters: Clusters) -> None:
    """Write the labels alone."""
    # Through memory, because NumPy's own writing to a full disk does not say that the disk is full.
    buffer = io.BytesIO()
    np.save(buffer, clusters.labels, allow_pickle=False)
    path.write_bytes(buffer.getvalue())


WRITERS = {".h5": write_hdf5, ".hdf5": write_hdf5, ".csv": write_csv, ".npy": write_npy}


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
    with reading(path, "an HDF5 file"), h5py.File(path, "r") as file:
        attributes = plain_attributes(file.attrs)
        check_stamp(attributes, "clusters", path)
        fields: dict[str, Any] = {name: read_column(file[name]) for name in ARRAYS if name in file}
    if "labels" not in fields or fields["labels"].dtype.kind not in "iu":
        raise FileContentError(f"{path} is damaged: it has no dataset 'labels' of integers")
    fields.update({name: from_json(attributes.get(name), path) for name in MAPPINGS})
    try:
        return Clusters(**fields)
    except InputError as error:
        raise FileContentError(f"{path} is damaged: {error}") from error
