"""A graph of nearest neighbours inside a feature file, so that it is computed once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from cceclust.errors import InputError, TargetExistsError
from cceclust.io.atomic import replacing
from cceclust.io.hdf5 import open_hdf5
from cceclust.io.reading import reading

__all__ = ["refuse_second_graph", "write_neighbors"]


def refuse_second_graph(path: Path, *, force: bool) -> None:
    """Raise unless a graph can be written into this file; call this before the search for neighbours."""
    if not h5py.is_hdf5(path):
        raise InputError(f"{path} is not an HDF5 file, and only those can hold neighbours beside the features")
    with reading(path, "an HDF5 file"), open_hdf5(path) as file:
        if "neighbors" in file and not force:
            raise TargetExistsError(f"{path} has neighbours already; use --force (force=True) to replace them")


def write_neighbors(
    path: str | Path, neighbors: NDArray[Any], *, dataset: str | None = None, force: bool = False
) -> None:
    """Add the dataset ``neighbors`` to a feature file.

    The file is copied, changed and renamed, so that it is complete at any moment.

    Parameters
    ----------
    path : str or Path
        An HDF5 file of features.
    neighbors : ndarray of shape (n_samples, n_neighbors)
        Row numbers, from :func:`cceclust.nearest_neighbors`.
    dataset : str, optional
        Name of the matrix in which they are neighbours; by default the matrix that is read by default.
    force : bool
        Replace existing neighbours.
    """
    refuse_second_graph(Path(path), force=force)
    # Through a symbolic link, its target is replaced and not the link.
    target = Path(path).resolve()
    with replacing(target, force=True) as part:
        shutil.copyfile(target, part)
        with h5py.File(part, "r+") as file:
            earlier = file.get("neighbors")
            if isinstance(earlier, h5py.Dataset) and (earlier.shape, earlier.dtype) == (
                neighbors.shape,
                neighbors.dtype,
            ):
                # Overwritten in place, so that writing the same graph again gives the same file.
                graph = earlier
                graph[...] = neighbors
            else:
                file.pop("neighbors", None)
                graph = file.create_dataset("neighbors", data=neighbors, track_times=False)
            name = None if dataset is None else dataset.strip("/")
            if name is not None and graph.attrs.get("dataset") != name:
                graph.attrs["dataset"] = name
