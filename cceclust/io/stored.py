"""The arrays in a file by name, before any of them is read: the one place that knows the array formats."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from cceclust.errors import FileContentError, InputError
from cceclust.io.hdf5 import as_plain_value, is_text, lies_elsewhere, open_hdf5, plain_attributes, read_column
from cceclust.io.reading import by_ending, listed, naming, refuse_bomb, refuse_what_is_no_file
from cceclust.io.sparse_arrays import PARTS, as_csr
from cceclust.io.tables import TABLE_FILES, open_table

__all__ = [
    "ARRAY_FILES",
    "NUMBERS",
    "NUMBER_KINDS",
    "StoredArray",
    "StoredFile",
    "choose_matrix",
    "contents",
    "load_column",
    "load_neighbors",
    "load_row_names",
    "refuse_names_in_npy",
    "stored_file",
]

NUMBER_KINDS = "fiub"
NUMBERS = "numbers (float16, float32, float64 or integers)"
# With a single column, these are still matrices: one cluster, one epoch, one neighbour, one feature.
MATRICES = (
    "neighbors",
    "probabilities",
    "loss_curves",
    "k_level_labels",
    "coef",
    "cluster_centers",
    "curve_axes",
    "curve_weights",
)
# Parts of AnnData files that do not have a row for each observation and a column for each feature.
NO_FEATURES = ("obsp/", "varm/", "varp/", "uns/")
# The names of the observations in an AnnData file.
OBSERVATIONS = "obs/_index"
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
    item_bytes: int = 0
    is_sparse: bool = False

    @property
    def n_bytes(self) -> int:
        """Number of bytes of all items; 0 for text, which has no fixed size."""
        return math.prod(self.shape) * self.item_bytes

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
        return cls(shape, type_name, load, dtype.kind in NUMBER_KINDS, attributes or {}, dtype.itemsize)


@dataclass(frozen=True)
class StoredFile:
    """The arrays of an open file, and its attributes."""

    arrays: dict[str, StoredArray]
    attributes: dict[str, Any] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None


@contextmanager
def stored_file(path: Path) -> Iterator[StoredFile]:
    """Open a file of arrays, which can be loaded while it is open; every error names the file."""
    refuse_what_is_no_file(path)
    readable = ARRAY_FILES | {ending: (what, open_columns) for ending, (what, _) in TABLE_FILES.items()}
    what, open_file = by_ending(path, readable, "read", FileContentError)
    with naming(str(path), what):
        file = open_file(path)
        try:
            yield file
        finally:
            file.close()


def refuse_names_in_npy(path: Path, *names: str | None) -> None:
    """Raise if a name is given for a format without names."""
    if path.suffix.lower() == ".npy" and any(name is not None for name in names):
        raise InputError(
            f"{path}: a .npy file holds one unnamed array; leave out --dataset, --labels-dataset, --id and --keep"
        )


def contents(stored: Mapping[str, StoredArray]) -> str:
    """List arrays with their shapes and types, for an error message."""
    return listed(f"{name} {array.shape} {array.type_name}".strip() for name, array in stored.items())


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
    if not (stored[name].is_numeric or stored[name].is_sparse):
        where = f"{path}: dataset {name!r}" if name else str(path)
        raise FileContentError(f"{where} holds {stored[name].type_name}; expected {NUMBERS} in a matrix")
    return name


def default_matrix(stored: Mapping[str, StoredArray]) -> str | None:
    """Return the name of the default matrix: ``features``, the only dense one, or else the only sparse one."""
    for name in ("features", ""):
        if name in stored:
            return name
    matrices = matrices_in(stored)
    dense = [name for name, array in matrices.items() if array.is_numeric]
    choice = dense or list(matrices)
    return choice[0] if len(choice) == 1 else None


def matrices_in(stored: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """Return the arrays that may be features."""
    return {
        name: array
        for name, array in stored.items()
        if (array.is_numeric or array.is_sparse)
        and len(array.shape) == 2
        and name not in ("neighbors", "probabilities")
        and not name.startswith(NO_FEATURES)
    }


def load_neighbors(path: Path, stored: Mapping[str, StoredArray], matrix: str) -> NDArray[Any] | None:
    """Read the graph of nearest neighbours into memory, if it exists and was computed for this matrix."""
    if "neighbors" not in stored:
        return None
    # Graphs of other tools, and those written before the attribute existed, do not name their matrix.
    owner = plain_attributes(stored["neighbors"].attributes).get("dataset", default_matrix(stored))
    return load_column(path, stored, "neighbors") if owner == matrix else None


def load_row_names(
    path: Path, stored: Mapping[str, StoredArray], wanted: str | None, *, matrix: str
) -> NDArray[Any] | None:
    """Read the names of rows as text: the wanted ones, ``names``, or the index of AnnData's observations."""
    name = "names" if wanted is None else wanted.strip("/")
    if name in stored:
        names = np.asarray(load_column(path, stored, name))
        return names if names.dtype.kind == "U" else names.astype(str)
    # Other matrices of an AnnData file, as those of its variables, have other rows.
    is_index = name != OBSERVATIONS and OBSERVATIONS in stored
    if not is_index or stored[OBSERVATIONS].shape != stored[matrix].shape[:1]:
        return None
    return load_row_names(path, stored, OBSERVATIONS, matrix=matrix)


def load_column(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any] | None:
    """Read an array of numbers or text into memory, if it exists; (n, 1) counts as (n,), unless it is a matrix."""
    if name not in stored:
        return None
    if not (stored[name].is_numeric or stored[name].type_name == "text"):
        raise FileContentError(f"{path}: {name!r} holds {stored[name].type_name}; expected numbers or text")
    refuse_bomb(path, name, stored[name].n_bytes)
    with naming(f"{path}, dataset {name!r},", "what it says it is"):
        column = np.asarray(stored[name].load())
        if column.dtype.kind == "S":
            column = np.char.decode(column, "utf-8")
    return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 and name not in MATRICES else column


def open_hdf5_arrays(path: Path) -> StoredFile:
    """List the datasets of an HDF5 file."""
    file = open_hdf5(path)
    try:
        # In the order of the child process: what it did not reach must not be read before the item that stopped it.
        attributes = plain_attributes(file.attrs)
        return StoredFile(hdf5_arrays(file), attributes, file.close)
    except BaseException:
        file.close()
        raise


def hdf5_arrays(file: h5py.File) -> dict[str, StoredArray]:
    """List the datasets of a file, and AnnData's groups that stand for a column or a sparse matrix."""
    stored: dict[str, StoredArray] = {}

    def visit(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset):
            if lies_elsewhere(item):
                stored[name] = StoredArray(item.shape or (), "values in other files", lambda: item, is_numeric=False)
            elif is_text(item):
                stored[name] = StoredArray(item.shape or (), "text", partial(read_column, item), is_numeric=False)
            else:
                stored[name] = StoredArray.of_dtype(item.shape or (), item.dtype, lambda: item, item.attrs)
        elif is_own_dataset(item, "codes") and is_own_dataset(item, "categories"):
            load = partial(read_categories, item)
            stored[name] = StoredArray(item["codes"].shape, "text", load, is_numeric=False)
        elif all(is_own_dataset(item, part) for part in PARTS["csr"]):
            stored[name] = sparse_group(item)

    file.visititems(visit)
    if isinstance(file.get("obs", getlink=True), h5py.HardLink):
        # A column of any name can be the index; its group says which.
        index = f"obs/{as_plain_value(file['obs'].attrs.get('_index', 'index'))}"
        if index in stored:
            stored[OBSERVATIONS] = stored[index]
    return stored


def is_own_dataset(group: h5py.Group, name: str) -> bool:
    """Tell whether a group has a dataset of this name in the same file, not through a link to another file."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        return False
    item = group[name]
    return isinstance(item, h5py.Dataset) and not lies_elsewhere(item)


def read_categories(group: h5py.Group) -> NDArray[Any]:
    """Read a categorical column of an AnnData file; a missing value becomes the empty string."""
    # AnnData marks missing values with code -1, which picks the last: the empty string appended here.
    categories, codes = np.append(read_column(group["categories"]).astype(str), ""), read_column(group["codes"])
    refuse_bomb(Path(group.file.filename), group.name, codes.size * categories.itemsize)
    return np.asarray(categories[codes])


def sparse_group(group: h5py.Group) -> StoredArray:
    """Describe a sparse matrix of an AnnData file."""
    attributes = plain_attributes(group.attrs)
    # AnnData before version 0.7 used other names.
    kind = str(attributes.get("encoding-type", attributes.get("h5sparse_format", ""))).removesuffix("_matrix")
    stated = attributes.get("shape", attributes.get("h5sparse_shape", ()))
    shape = tuple(int(length) for length in stated)
    if kind not in ("csr", "csc"):
        return StoredArray(shape, f"a sparse matrix of type {kind!r}", lambda: group, is_numeric=False)

    def load() -> Any:
        parts = {part: read_column(group[part]) for part in PARTS[kind]}
        return as_csr(Path(group.file.filename), group.name.strip("/"), kind, shape, parts)

    return StoredArray(shape, f"a sparse matrix of {group['data'].dtype}", load, is_numeric=False, is_sparse=True)


def open_npy(path: Path) -> StoredFile:
    """Map the only array of a NumPy file into memory; its name is empty."""
    with path.open("rb") as file:
        shape, _, dtype = read_npy_header(file)
    # An empty array has no bytes to map.
    load = partial(np.empty, shape, dtype) if 0 in shape else partial(np.lib.format.open_memmap, path, mode="r")
    return StoredFile({"": StoredArray.of_dtype(shape, dtype, load)})


def read_npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return (shape, is Fortran-ordered, dtype) from the start of NumPy's format, in any of its versions."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
    return header


def open_npz(path: Path) -> StoredFile:
    """List the arrays of an archive; loading one reads it into memory."""
    with ExitStack() as stack:
        # NumPy does not close a file that it cannot read.
        archive = np.load(stack.enter_context(path.open("rb")), allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise FileContentError(f"{path} is one array, not an archive of them; expected a name that ends in .npy")
        stack.callback(archive.close)
        arrays = npz_arrays(path, archive)
        if {"format", "shape", "data"} <= set(arrays):
            arrays = sparse_npz(path, arrays)
        return StoredFile(arrays, close=stack.pop_all().close)


def npz_arrays(path: Path, archive: Any) -> dict[str, StoredArray]:
    """List the arrays of an open archive."""
    stored = {}
    for name in archive.files:
        if f"{name}.npy" not in archive.zip.namelist():
            continue
        with archive.zip.open(f"{name}.npy") as member:
            shape, _, dtype = read_npy_header(member)
        stored[name] = StoredArray.of_dtype(shape, dtype, partial(archive.__getitem__, name))
        # A header that claims more than the archive holds would otherwise fill the memory.
        refuse_bomb(path, name, max(stored[name].n_bytes, archive.zip.getinfo(f"{name}.npy").file_size))
    return stored


def sparse_npz(path: Path, parts: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """Describe the one matrix, without a name, in a file that SciPy's ``save_npz`` wrote."""
    kind = np.asarray(parts["format"].load()).astype(str).item()
    shape = tuple(int(length) for length in np.ravel(parts["shape"].load()))
    if not set(PARTS.get(kind, ("?",))) <= set(parts):
        raise FileContentError(f"{path} holds a sparse matrix of format {kind!r}; expected one of {', '.join(PARTS)}")

    def load() -> Any:
        return as_csr(path, "its matrix", kind, shape, {part: np.asarray(parts[part].load()) for part in PARTS[kind]})

    type_name = f"a sparse matrix of {parts['data'].type_name}"
    return {"": StoredArray(shape, type_name, load, is_numeric=False, is_sparse=True)}


def open_safetensors(path: Path) -> StoredFile:
    """Map the tensors of a file into memory."""
    # The library checks the header, sizes and offsets included, but cannot map tensors; NumPy can.
    with safe_open(path, framework="numpy") as file:
        attributes = dict(file.metadata() or {})
    return StoredFile(safetensors_arrays(path), attributes)


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
        load = partial(np.empty, shape, dtype) if 0 in shape else partial(np.memmap, path, dtype, "r", offset, shape)
        is_numeric = type_name in SAFETENSORS_TYPES
        stored[name] = StoredArray(shape, dtype.name if is_numeric else type_name, load, is_numeric)
    return stored


def open_columns(path: Path) -> StoredFile:
    """Read the columns of a table."""
    columns = open_table(path).load(())
    return StoredFile(
        {
            name: StoredArray.of_dtype(column.shape, column.dtype, partial(np.asarray, column))
            for name, column in columns.items()
        }
    )


ARRAY_FILES: dict[str, tuple[str, Callable[[Path], StoredFile]]] = {
    ".h5": ("an HDF5 file", open_hdf5_arrays),
    ".hdf5": ("an HDF5 file", open_hdf5_arrays),
    ".h5ad": ("an HDF5 file", open_hdf5_arrays),
    ".npy": ("an array of numbers or text", open_npy),
    ".npz": ("an archive of arrays", open_npz),
    ".safetensors": ("a safetensors file", open_safetensors),
}
