"""Clusters as a column of the observations inside an AnnData file, in AnnData's own encoding."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError, TargetExistsError
from cceclust.io.atomic import replacing
from cceclust.io.clusters import Clusters
from cceclust.io.hdf5 import write_text
from cceclust.io.provenance import as_plain_value
from cceclust.io.reading import naming, reading

__all__ = ["check_observations", "write_observations"]

COLUMNS = ("cce", "cce_confidence")
ARRAY = {"encoding-type": "array", "encoding-version": "0.2.0"}


def check_observations(path: Path, *, force: bool) -> None:
    """Raise unless clusters can be written into this file; call this before long work."""
    if path.suffix.lower() != ".h5ad":
        raise InputError(f"{path} is not an AnnData file (.h5ad), and only those have observations to write to")
    with reading(path, "an HDF5 file"), h5py.File(path, "r") as file:
        if not isinstance(file.get("obs"), h5py.Group):
            raise FileContentError(f"{path} has no group of observations (obs); save it again with a newer AnnData")
        taken = [f"obs/{name}" for name in COLUMNS if name in file["obs"]]
    if taken and not force:
        raise TargetExistsError(f"{path} has {' and '.join(taken)} already; use --force (force=True) to replace them")


def write_observations(path: str | Path, clusters: Clusters, *, force: bool = False) -> None:
    """Write clusters as ``obs/cce`` and ``obs/cce_confidence``; the file is copied, changed and renamed."""
    check_observations(Path(path), force=force)
    # Through a symbolic link, its target is replaced and not the link.
    target = Path(path).resolve()
    with replacing(target, force=True) as part:
        shutil.copyfile(target, part)
        with naming(str(path), "an AnnData file"), h5py.File(part, "r+") as file:
            rows = file["obs"]
            n_rows = len(rows[as_plain_value(rows.attrs.get("_index", "_index"))])
            if n_rows != len(clusters.labels):
                raise InputError(f"{path} has {n_rows:,} observations, but there are {len(clusters.labels):,} clusters")
            others = as_plain_value(np.asarray(rows.attrs.get("column-order", [])))
            for name in COLUMNS:
                rows.pop(name, None)
            write_categories(rows.create_group(COLUMNS[0]), clusters.named_labels)
            if clusters.probabilities is not None:
                rows[COLUMNS[1]] = clusters.probabilities.max(axis=1)
                rows[COLUMNS[1]].attrs.update(ARRAY)
            order = [name for name in dict.fromkeys([*others, *COLUMNS]) if name in rows]
            rows.attrs["column-order"] = np.array(order, h5py.string_dtype())


def write_categories(group: h5py.Group, labels: NDArray[Any]) -> None:
    """Write a categorical column; AnnData wants its categories as text."""
    # Sorted as numbers: cluster 10 comes after cluster 9. A row without a cluster, -1, has no category.
    values, codes = np.unique(labels, return_inverse=True)
    has_none = values.dtype.kind in "iu" and values[0] == -1
    group.attrs.update({"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False})
    group["codes"] = (codes - has_none).astype(np.min_scalar_type(-len(values)))
    group["codes"].attrs.update(ARRAY)
    categories = write_text(group, "categories", values[int(has_none) :].astype(str))
    categories.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
