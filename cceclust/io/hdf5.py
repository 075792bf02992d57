"""HDF5 files: datasets by name, AnnData's columns and sparse matrices among them, and how cceclust writes its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError
from cceclust.io.provenance import as_plain_value
from cceclust.io.reading import StoredArray, StoredFile

__all__ = ["OBSERVATIONS", "checked_csr", "open_hdf5", "write_hdf5", "write_text"]

# The names of the observations in an AnnData file.
OBSERVATIONS = "obs/_index"
SPARSE_PARTS = ("data", "indices", "indptr")
# Rows are read in successive blocks: a chunk that reaches into the next block should not be unpacked twice.
CACHE_BYTES = 8 << 20
# The size of the chunks that are written: large enough to read fast, small enough for a few rows of random places.
CHUNK_BYTES = 1 << 20


def open_hdf5(path: Path) -> StoredFile:
    """List the datasets of a file, which stays open for reading them."""
    file = h5py.File(path, "r", rdcc_nbytes=CACHE_BYTES)
    stored: dict[str, StoredArray] = {}
    with ExitStack() as stack:
        stack.callback(file.close)
        # This does not follow links to other places, nor to other files.
        file.visititems(lambda name, item: add_item(stored, name, item))
        if isinstance(file.get("obs", getlink=True), h5py.HardLink):
            # A column of any name can be the index of AnnData's observations; its group says which.
            index = f"obs/{as_plain_value(file['obs'].attrs.get('_index', 'index'))}"
            if index in stored:
                stored[OBSERVATIONS] = stored[index]
        attributes = {str(name): as_plain_value(value) for name, value in file.attrs.items()}
        return StoredFile(stored, attributes, stack.pop_all().close)


def add_item(stored: dict[str, StoredArray], name: str, item: h5py.Dataset | h5py.Group) -> None:
    """Describe a dataset, or a group of AnnData's that stands for a column or a sparse matrix."""
    if isinstance(item, h5py.Group):
        if has_datasets(item, "codes", "categories"):
            stored[name] = StoredArray(item["codes"].shape, "text", "text", partial(read_categories, item))
        elif has_datasets(item, *SPARSE_PARTS):
            stored[name] = sparse_group(item)
    elif not is_own(item):
        stored[name] = StoredArray(item.shape or (), "other", "values in other files", lambda: item)
    elif h5py.check_string_dtype(item.dtype) is not None:
        stored[name] = StoredArray(item.shape or (), "text", "text", partial(read_dataset, item))
    else:
        stored[name] = StoredArray.of_dtype(item.shape or (), item.dtype, lambda: item)


def is_own(dataset: h5py.Dataset) -> bool:
    """Tell whether a dataset has its values in the same file, and not in others that nobody asked us to read."""
    return not (dataset.external or dataset.is_virtual)


def has_datasets(group: h5py.Group, *names: str) -> bool:
    """Tell whether a group has its own datasets of these names, not links to other files."""
    are_there = all(isinstance(group.get(name, getlink=True), h5py.HardLink) for name in names)
    return are_there and all(isinstance(group[name], h5py.Dataset) and is_own(group[name]) for name in names)


def read_dataset(dataset: h5py.Dataset) -> NDArray[Any]:
    """Read numbers, or text as ``str``; file names that are not UTF-8 keep their bytes, as in :func:`os.fsdecode`."""
    if h5py.check_string_dtype(dataset.dtype) is None:
        return np.asarray(dataset[...])
    return np.asarray(dataset.asstr(errors="surrogateescape")[...], dtype=str)


def read_categories(group: h5py.Group) -> NDArray[Any]:
    """Read a categorical column of an AnnData file; a missing value, of code -1, becomes the empty text."""
    categories = np.append(read_dataset(group["categories"]).astype(str), "")
    return np.asarray(categories[read_dataset(group["codes"])])


def sparse_group(group: h5py.Group) -> StoredArray:
    attributes = {name: as_plain_value(value) for name, value in group.attrs.items()}
    kind = str(attributes.get("encoding-type")).removesuffix("_matrix")
    shape = tuple(int(length) for length in attributes.get("shape", ()))

    def load() -> Any:
        from scipy import sparse

        parts = tuple(read_dataset(group[part]) for part in SPARSE_PARTS)
        return checked_csr((sparse.csr_matrix if kind == "csr" else sparse.csc_matrix)(parts, shape))

    return StoredArray(shape, "sparse" if kind in ("csr", "csc") else "other", f"a sparse matrix ({kind})", load)


def checked_csr(matrix: Any) -> Any:
    """Return a sparse matrix as CSR, after a check: compiled code would read outside its arrays at a wrong index."""
    if matrix.data.ndim != 1 or matrix.dtype.kind not in "fiub":
        raise ValueError(f"a sparse matrix of {matrix.dtype} and not of numbers")
    if matrix.format != "coo":
        matrix.check_format(full_check=True)
    rows = matrix.tocsr()
    rows.sum_duplicates()
    return rows


def write_hdf5(path: Path, arrays: Mapping[str, ArrayLike], attributes: Mapping[str, Any]) -> None:
    """Write arrays of numbers or text, matrices in chunks of whole rows."""
    columns = {name: np.asarray(values) for name, values in arrays.items()}
    n_bytes = CHUNK_BYTES + sum(values.nbytes for values in columns.values())
    with path.open("wb") as file:
        # HDF5 cannot stop cleanly on a full disk: have the system set the space aside before.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            if values.dtype.kind == "U":
                write_text(file, name, values)
            elif values.dtype.kind not in "fiub":
                raise InputError(f"{name} are of type {values.dtype}; expected numbers or text")
            elif values.ndim == 2 and len(values):
                rows = min(len(values), max(1, CHUNK_BYTES // (values.shape[1] * values.itemsize)))
                file.create_dataset(name, data=values, chunks=(rows, values.shape[1]))
            else:
                file.create_dataset(name, data=values)
        file.attrs.update(attributes)


def write_text(group: h5py.Group, name: str, texts: NDArray[Any]) -> h5py.Dataset:
    """Write text as UTF-8, file names that are not UTF-8 by their bytes."""
    encoded = np.char.encode(texts, "utf-8", "surrogateescape").astype(object)
    return group.create_dataset(name, data=encoded, dtype=h5py.string_dtype())
