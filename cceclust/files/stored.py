"""The arrays that a file holds, by name, before any of them is read: HDF5, NumPy archives, safetensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from cceclust.errors import FileContentError
from cceclust.files.hdf5 import plain_attributes, read_column
from cceclust.files.reading import listed, reading

__all__ = [
    "HDF5_ENDINGS",
    "NUMBERS",
    "NUMBER_KINDS",
    "StoredArray",
    "choose_matrix",
    "contents",
    "hdf5_arrays",
    "load_column",
    "load_neighbors",
    "named_arrays",
    "npz_arrays",
    "read_npy",
    "read_npy_header",
    "safetensors_arrays",
]

HDF5_ENDINGS = (".h5", ".hdf5", ".h5ad")
NUMBER_KINDS = "fiub"
NUMBERS = "numbers (float16, float32, float64 or integers)"
SAFETENSORS_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, as its header describes it; ``load`` reads or opens it."""

    shape: tuple[int, ...]
    type_name: str
    load: Callable[[], Any]
    is_numeric: bool
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_dtype(
        cls,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        load: Callable[[], Any],
        attributes: Mapping[str, Any] | None = None,
    ) -> StoredArray:
        """Describe an array of a NumPy type."""
        type_name = "objects" if dtype.kind == "O" else "text" if dtype.kind in "US" else str(dtype)
        return cls(shape, type_name, load, dtype.kind in NUMBER_KINDS, attributes or {})


def contents(stored: Mapping[str, StoredArray]) -> str:
    """List arrays with their shapes and types, for an error message."""
    return listed(f"{name} {array.shape} {array.type_name}" for name, array in stored.items())


def choose_matrix(path: Path, stored: Mapping[str, StoredArray], wanted: str | None) -> str:
    """Return the name of the matrix to read: the wanted one, or the default."""
    if wanted is not None and wanted.strip("/") not in stored:
        raise FileContentError(f"{path} has no dataset {wanted!r}; it has {contents(stored)}")
    name = default_matrix(stored) if wanted is None else wanted.strip("/")
    if name is None:
        matrices = matrices_in(stored)
        if matrices:
            raise FileContentError(f"{path} has several matrices; choose one with --dataset: {contents(matrices)}")
        raise FileContentError(f"{path} has no matrix of numbers (n_samples, n_features); it has {contents(stored)}")
    if not stored[name].is_numeric:
        raise FileContentError(
            f"{path}: dataset {name!r} holds {stored[name].type_name}; expected {NUMBERS} in a dense matrix"
        )
    return name


def default_matrix(stored: Mapping[str, StoredArray]) -> str | None:
    """Return the name of the matrix that is read unless another is asked for: ``features``, or the only one."""
    if "features" in stored:
        return "features"
    matrices = matrices_in(stored)
    return next(iter(matrices)) if len(matrices) == 1 else None


def matrices_in(stored: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """Return the arrays that may be features."""
    return {
        name: array
        for name, array in stored.items()
        if array.is_numeric and len(array.shape) == 2 and name not in ("neighbors", "probabilities")
    }


def load_neighbors(path: Path, stored: Mapping[str, StoredArray], matrix: str) -> NDArray[Any] | None:
    """Read the graph of nearest neighbours into memory, if it is there and was found for this matrix."""
    if "neighbors" not in stored:
        return None
    # Graphs of other tools, and those from before the attribute, do not say what they were found for.
    owner = plain_attributes(stored["neighbors"].attributes).get("dataset", default_matrix(stored))
    return load_column(path, stored, "neighbors") if owner == matrix else None


def load_column(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any] | None:
    """Read an array of numbers or text into memory, if it is there; (n, 1) counts as (n,)."""
    if name not in stored:
        return None
    if not (stored[name].is_numeric or stored[name].type_name == "text"):
        raise FileContentError(f"{path}: {name!r} holds {stored[name].type_name}; expected numbers or text")
    column = np.asarray(stored[name].load())
    if column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8")
    return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 and name != "neighbors" else column


@contextmanager
def named_arrays(path: Path) -> Iterator[dict[str, StoredArray]]:
    """List the arrays of a file, which can be loaded while it is open; of a format without names, none."""
    ending = path.suffix.lower()
    if ending in HDF5_ENDINGS:
        with reading(path, "an HDF5 file"), h5py.File(path, "r") as file:
            yield hdf5_arrays(file)
    elif ending == ".npz":
        with reading(path, "an archive of arrays"), np.load(path, allow_pickle=False) as archive:
            yield npz_arrays(archive)
    elif ending == ".safetensors":
        # Opening it with the library checks the header.
        with reading(path, "a safetensors file"), safe_open(path, framework="numpy"):
            yield safetensors_arrays(path)
    else:
        yield {}


def hdf5_arrays(file: h5py.File) -> dict[str, StoredArray]:
    """List the datasets of a file, and AnnData's groups that stand for a column or a sparse matrix."""
    stored: dict[str, StoredArray] = {}

    def visit(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset):
            if h5py.check_string_dtype(item.dtype) is not None:
                stored[name] = StoredArray(item.shape or (), "text", partial(read_column, item), is_numeric=False)
            else:
                stored[name] = StoredArray.of_dtype(item.shape or (), item.dtype, lambda: item, item.attrs)
        elif "codes" in item and "categories" in item:
            load = partial(read_categories, item)
            stored[name] = StoredArray(item["codes"].shape, "text", load, is_numeric=False)
        elif "indptr" in item:
            shape = tuple(int(length) for length in item.attrs.get("shape", ()))
            stored[name] = StoredArray(shape, "a sparse matrix", lambda: item, is_numeric=False)

    file.visititems(visit)
    return stored


def read_categories(group: h5py.Group) -> NDArray[Any]:
    """Read a categorical column of an AnnData file; a missing value becomes the empty string."""
    # AnnData marks missing values with code -1, which picks the last: the empty string appended here.
    categories = np.append(read_column(group["categories"]).astype(str), "")
    return np.asarray(categories[group["codes"][...]])


def read_npy(path: Path) -> NDArray[Any]:
    """Read the array of a NumPy file into memory."""
    with reading(path, "an array of numbers or text"), path.open("rb") as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return (shape, is Fortran-ordered, dtype) from the start of NumPy's format, in any of its versions."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
    return header


def npz_arrays(archive: Any) -> dict[str, StoredArray]:
    """List the arrays of an open archive."""
    stored = {}
    for name in archive.files:
        with archive.zip.open(f"{name}.npy") as member:
            shape, _, dtype = read_npy_header(member)
        stored[name] = StoredArray.of_dtype(shape, dtype, partial(archive.__getitem__, name))
    return stored


def safetensors_arrays(path: Path) -> dict[str, StoredArray]:
    """List the tensors of a file whose header is known to be valid."""
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(header_bytes))
    header.pop("__metadata__", None)
    stored = {}
    for name, entry in header.items():
        shape, type_name = tuple(entry["shape"]), entry["dtype"]
        dtype = np.dtype(SAFETENSORS_TYPES.get(type_name, "V1"))
        offset = 8 + header_bytes + entry["data_offsets"][0]
        # An empty tensor has no bytes to map.
        load = partial(np.empty, shape, dtype) if 0 in shape else partial(np.memmap, path, dtype, "r", offset, shape)
        is_numeric = type_name in SAFETENSORS_TYPES
        stored[name] = StoredArray(shape, dtype.name if is_numeric else type_name, load, is_numeric)
    return stored
