"""HDF5 files: datasets by name, AnnData's columns and sparse matrices among them, and how cceclust writes its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError
from cceclust.io.arrays import StoredArray, StoredFile
from cceclust.io.numpy_files import as_csr

__all__ = ["OBSERVATIONS", "as_plain_value", "open_hdf5", "write_hdf5"]

# The names of the observations in an AnnData file.
OBSERVATIONS = "obs/_index"
SPARSE_PARTS = ("data", "indices", "indptr")
# Rows are read in successive blocks: a chunk that reaches into the next block should not be unpacked twice.
CACHE_BYTES = 1 << 26
# The size of the chunks that are written: large enough to read fast, small enough for a few rows of random places.
CHUNK_BYTES = 1 << 20


def open_hdf5(path: Path) -> StoredFile:
    """List the datasets of a file, which stays open for reading them."""
    file = h5py.File(path, "r", rdcc_nbytes=CACHE_BYTES)
    try:
        stored: dict[str, StoredArray] = {}
        # This does not follow links to other places, nor to other files.
        file.visititems(lambda name, item: add_item(stored, name, item))
        if is_own(file, "obs", h5py.Group):
            # A column of any name can be the index of AnnData's observations; its group says which.
            index = f"obs/{as_plain_value(file['obs'].attrs.get('_index', 'index'))}"
            if index in stored:
                stored[OBSERVATIONS] = stored[index]
        attributes = {str(name): as_plain_value(value) for name, value in file.attrs.items()}
    except BaseException:
        file.close()
        raise
    return StoredFile(stored, attributes, file.close)


def add_item(stored: dict[str, StoredArray], name: str, item: h5py.Dataset | h5py.Group) -> None:
    """Describe a dataset, or a group of AnnData's that stands for a column or a sparse matrix."""
    if isinstance(item, h5py.Dataset):
        if item.external or item.is_virtual:
            stored[name] = StoredArray(item.shape or (), "other", "values in other files", lambda: item)
        elif h5py.check_string_dtype(item.dtype) is not None:
            stored[name] = StoredArray(item.shape or (), "text", "text", partial(read_dataset, item))
        else:
            stored[name] = StoredArray.of_dtype(item.shape or (), item.dtype, lambda: item)
    elif all(is_own(item, part, h5py.Dataset) for part in ("codes", "categories")):
        stored[name] = StoredArray(item["codes"].shape, "text", "text", partial(read_categories, item))
    elif all(is_own(item, part, h5py.Dataset) for part in SPARSE_PARTS):
        stored[name] = sparse_group(item)


def is_own(group: h5py.Group, name: str, kind: type) -> bool:
    """Tell whether a group has an item of this name and kind in the same file, with its values in it."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        return False
    item = group[name]
    return isinstance(item, kind) and not (isinstance(item, h5py.Dataset) and (item.external or item.is_virtual))


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
    """Describe a sparse matrix of an AnnData file."""
    attributes = {name: as_plain_value(value) for name, value in group.attrs.items()}
    # AnnData before version 0.7 used other names.
    kind = str(attributes.get("encoding-type", attributes.get("h5sparse_format"))).removesuffix("_matrix")
    shape = tuple(int(length) for length in attributes.get("shape", attributes.get("h5sparse_shape", ())))
    if kind not in ("csr", "csc"):
        return StoredArray(shape, "other", f"a sparse matrix of type {kind!r}", lambda: group)

    def load() -> Any:
        return as_csr(group.name.strip("/"), kind, shape, *(read_dataset(group[part]) for part in SPARSE_PARTS))

    return StoredArray(shape, "sparse", f"a sparse matrix of {group['data'].dtype}", load)


def as_plain_value(value: Any) -> Any:
    """Convert what h5py returns for an attribute to a plain Python value."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [as_plain_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str | int | float | bool) else str(value)


def write_hdf5(
    path: Path, arrays: Mapping[str, ArrayLike], attributes: Mapping[str, Any], *, compress: bool = False
) -> None:
    """Write arrays of numbers or text, matrices in chunks of whole rows."""
    columns = {name: np.asarray(values) for name, values in arrays.items()}
    if not compress:
        # HDF5 cannot stop cleanly on a full disk: have the system set the space aside before.
        reserve(path, sum(values.nbytes for values in columns.values() if values.dtype.kind != "U"))
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            if values.dtype.kind == "U":
                encoded = np.char.encode(values, "utf-8", "surrogateescape")
                file.create_dataset(name, data=encoded.astype(object), dtype=h5py.string_dtype())
            elif values.dtype.kind not in "fiub":
                raise InputError(f"{name} are of type {values.dtype}; expected numbers or text")
            elif values.ndim == 2:
                rows = min(len(values), max(1, CHUNK_BYTES // (values.shape[1] * values.itemsize)))
                packed: dict[str, Any] = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
                file.create_dataset(name, data=values, chunks=(rows, values.shape[1]), **(packed if compress else {}))
            else:
                file.create_dataset(name, data=values)
        file.attrs.update(attributes)


def reserve(path: Path, n_bytes: int) -> None:
    """Raise OSError unless there is room for a file of this size."""
    with path.open("wb") as file:
        if n_bytes and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
