"""Files of arrays in any format: which there are, which is the matrix, and reading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from cceclust.errors import FileContentError
from cceclust.io.hdf5 import checked_csr, open_hdf5
from cceclust.io.reading import StoredArray, StoredFile, by_ending, listed, naming, refuse_what_is_no_file
from cceclust.io.tables import STDIN, TABLE_FILES

__all__ = ["ARRAY_FILES", "choose_matrix", "contents", "load_array", "load_column", "stored_file"]

# Parts of AnnData files that do not have a row for each observation and a column for each feature. Files of version 0.2
# may have neighbours beside their features.
NO_FEATURES = ("obsp/", "varm/", "varp/", "uns/", "neighbors", "probabilities")
# NumPy has no other types of safetensors.
TENSOR_TYPES = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1",
    "U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def open_npy(path: Path) -> StoredFile:
    array = np.lib.format.open_memmap(path, mode="r")
    return StoredFile({"": StoredArray.of_dtype(array.shape, array.dtype, lambda: array)})


def open_npz(path: Path) -> StoredFile:
    """List the arrays of an archive, or the one matrix without a name that SciPy's ``save_npz`` wrote."""
    with ExitStack() as stack:
        archive = np.lib.npyio.NpzFile(stack.enter_context(path.open("rb")), own_fid=False, allow_pickle=False)
        if {"format", "shape", "data"} <= set(archive.files):
            from scipy import sparse

            matrix = checked_csr(sparse.load_npz(path))
            return StoredFile({"": StoredArray(matrix.shape, "sparse", "a sparse matrix", lambda: matrix)})
        stack.callback(archive.close)
        members: Any = archive.zip
        stored = {}
        for name in archive.files:
            with members.open(f"{name}.npy") as member:
                is_first = np.lib.format.read_magic(member) == (1, 0)
                read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(member)
            stored[name] = StoredArray.of_dtype(shape, dtype, partial(archive.__getitem__, name))
        return StoredFile(stored, close=stack.pop_all().close)


class Tensor:
    """A tensor of which runs of rows can be read."""

    def __init__(self, stored: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._stored, self.shape, self.dtype = stored, shape, dtype

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        # The library cannot slice what is empty.
        return np.empty(self.shape, self.dtype) if 0 in self.shape else np.asarray(self._stored[rows])


def open_safetensors(path: Path) -> StoredFile:
    """List the tensors of a file; those that NumPy has no type for are only named."""
    file: Any = safe_open(path, framework="numpy")
    stored = {}
    for name in file.keys():  # noqa: SIM118, this is no dict
        tensor = file.get_slice(name)
        shape, type_name = tuple(tensor.get_shape()), tensor.get_dtype()
        if type_name in TENSOR_TYPES:
            dtype = np.dtype(TENSOR_TYPES[type_name])
            stored[name] = StoredArray.of_dtype(shape, dtype, partial(Tensor, tensor, shape, dtype))
        else:
            stored[name] = StoredArray(shape, "other", type_name, lambda: None)
    return StoredFile(stored, dict(file.metadata() or {}))


ARRAY_FILES: dict[str, tuple[str, Callable[[Path], StoredFile]]] = {
    **dict.fromkeys((".h5", ".hdf5", ".h5ad"), ("an HDF5 file", open_hdf5)),
    ".npy": ("an array of numbers or text", open_npy),
    ".npz": ("an archive of arrays", open_npz),
    ".safetensors": ("a safetensors file", open_safetensors),
}


@contextmanager
def stored_file(path: Path) -> Iterator[StoredFile]:
    """Open a file of arrays or a table, or separated values on standard input; every error names the file."""
    if path != STDIN:
        refuse_what_is_no_file(path)
    known = ARRAY_FILES | TABLE_FILES
    what, open_file = TABLE_FILES[".csv"] if path == STDIN else by_ending(path, known, "read", FileContentError)
    with naming("standard input" if path == STDIN else str(path), what):
        file = open_file(path)
        try:
            yield file
        finally:
            file.close()


def contents(stored: Mapping[str, StoredArray]) -> str:
    return listed(f"{name} {array.shape} {array.type_name}".strip() for name, array in stored.items())


def load_array(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any] | None:
    """Read an array of numbers or text into memory, if it exists."""
    if name not in stored:
        return None
    if stored[name].kind not in ("numbers", "text"):
        raise FileContentError(f"{path}: {name or 'it'} holds {stored[name].type_name}; expected numbers or text")
    with naming(f"{path}, dataset {name!r},", "what it says it is"):
        array = np.asarray(stored[name].load()[...])
        return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def load_column(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any] | None:
    """Read a value for each row into memory, if it exists; (n, 1) counts as (n,)."""
    array = load_array(path, stored, name)
    return array[:, 0] if array is not None and array.ndim == 2 and array.shape[1] == 1 else array


def choose_matrix(path: Path, stored: Mapping[str, StoredArray], wanted: str | None) -> str:
    """Return the name of the wanted matrix, or else of ``features``, the only dense one or the only sparse one."""
    named = [name for name in (("features", "") if wanted is None else (wanted.strip("/"),)) if name in stored]
    if wanted is not None and not named:
        raise FileContentError(f"{path} has no dataset {wanted!r}; it has {contents(stored)}")
    for name in named:
        if stored[name].kind not in ("numbers", "sparse"):
            raise FileContentError(f"{path}: {name or 'it'} holds {stored[name].type_name}; expected numbers")
        return name
    matrices = {
        name: array
        for name, array in stored.items()
        if array.kind in ("numbers", "sparse") and len(array.shape) == 2 and not name.startswith(NO_FEATURES)
    }
    choice = [name for name, array in matrices.items() if array.kind == "numbers"] or list(matrices)
    if len(choice) == 1:
        return choice[0]
    if matrices:
        raise FileContentError(f"{path} has several matrices; choose one with --dataset: {contents(matrices)}")
    raise FileContentError(f"{path} has no matrix of numbers (n_samples, n_features); it has {contents(stored)}")
