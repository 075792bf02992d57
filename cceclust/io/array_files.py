"""Files of NumPy (``.npy``, ``.npz``, also with SciPy's sparse matrices) and of safetensors."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from cceclust.io.reading import StoredArray, StoredFile

__all__ = ["checked_csr", "open_npy", "open_npz", "open_safetensors"]

# NumPy has no other types of safetensors.
TENSOR_TYPES = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1",
    "U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def open_npy(path: Path) -> StoredFile:
    """Map the only array of a file into memory; its name is empty."""
    with path.open("rb") as file:
        shape, dtype = read_header(file)
    # An empty array has no bytes to map.
    load = partial(np.load, path, mmap_mode=None if 0 in shape else "r", allow_pickle=False)
    return StoredFile({"": StoredArray.of_dtype(shape, dtype, load)})


def read_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return (shape, dtype) from the start of NumPy's format, in any of its versions."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


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
                stored[name] = StoredArray.of_dtype(*read_header(member), partial(archive.__getitem__, name))
        return StoredFile(stored, close=stack.pop_all().close)


def checked_csr(matrix: Any) -> Any:
    """Return a sparse matrix as CSR, after a check: compiled code would read outside its arrays at a wrong index."""
    if matrix.data.ndim != 1 or matrix.dtype.kind not in "fiub":
        raise ValueError(f"a sparse matrix of {matrix.dtype} and not of numbers")
    if matrix.format != "coo":
        matrix.check_format(full_check=True)
    rows = matrix.tocsr()
    rows.sum_duplicates()
    return rows


class Tensor:
    """A tensor of which runs of rows can be read."""

    def __init__(self, stored: Any) -> None:
        self._stored = stored
        self.shape = tuple(stored.get_shape())
        self.dtype = np.dtype(TENSOR_TYPES[stored.get_dtype()])

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        # The library cannot slice what is empty.
        return np.empty(self.shape, self.dtype) if 0 in self.shape else np.asarray(self._stored[rows])


def open_safetensors(path: Path) -> StoredFile:
    """List the tensors of a file."""
    file: Any = safe_open(path, framework="numpy")
    stored = {}
    for name in file.keys():  # noqa: SIM118, this is no dict
        tensor = file.get_slice(name)
        shape, type_name = tuple(tensor.get_shape()), tensor.get_dtype()
        kind = "numbers" if type_name in TENSOR_TYPES else "other"
        shown = str(np.dtype(TENSOR_TYPES[type_name])) if kind == "numbers" else type_name
        stored[name] = StoredArray(shape, kind, shown, partial(Tensor, tensor))
    return StoredFile(stored, dict(file.metadata() or {}))
