"""NumPy's files: a ``.npy`` array, and ``.npz`` archives of arrays or of SciPy's sparse matrices."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.arrays import StoredArray, StoredFile

__all__ = ["as_csr", "open_npy", "open_npz"]

# The arrays that make up a matrix in each of SciPy's formats.
SPARSE_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
}


def open_npy(path: Path) -> StoredFile:
    """Map the only array of a file into memory; its name is empty."""
    with path.open("rb") as file:
        shape, dtype = read_header(file)
    # An empty array has no bytes to map.
    load = partial(np.load, path, mmap_mode=None if 0 in shape or dtype.hasobject else "r", allow_pickle=False)
    return StoredFile({"": StoredArray.of_dtype(shape, dtype, load)})


def read_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return (shape, dtype) from the start of NumPy's format, in any of its versions."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def open_npz(path: Path) -> StoredFile:
    """List the arrays of an archive; loading one reads it into memory."""
    with ExitStack() as stack:
        # NumPy does not close a file that it cannot read.
        archive = np.load(stack.enter_context(path.open("rb")), allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise FileContentError(f"{path} is one array, not an archive of them; expected a name that ends in .npy")
        stack.callback(archive.close)
        stored = {}
        members: Any = archive.zip
        for name in archive.files:
            with members.open(f"{name}.npy") as member:
                stored[name] = StoredArray.of_dtype(*read_header(member), partial(archive.__getitem__, name))
        if {"format", "shape", "data"} <= set(stored):
            stored = {"": sparse_npz(stored)}
        return StoredFile(stored, close=stack.pop_all().close)


def sparse_npz(parts: Mapping[str, StoredArray]) -> StoredArray:
    """Describe the one matrix in a file that SciPy's ``save_npz`` wrote; it has no name."""
    kind = np.asarray(parts["format"].load()).astype(str).item()
    shape = tuple(int(length) for length in np.ravel(parts["shape"].load()))
    needed = SPARSE_PARTS.get(kind)
    if needed is None or not set(needed) <= set(parts):
        raise ValueError(f"its sparse matrix has the format {kind!r}; expected one of {', '.join(SPARSE_PARTS)}")

    def load() -> Any:
        return as_csr("its matrix", kind, shape, *(np.asarray(parts[part].load()) for part in needed))

    return StoredArray(shape, "sparse", f"a sparse matrix of {parts['data'].type_name}", load)


def as_csr(
    name: str,
    kind: str,
    shape: tuple[int, ...],
    values: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
) -> Any:
    """Put a sparse matrix of either of three formats together as CSR, after a check of all indices."""
    from scipy import sparse

    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {values.dtype} of shape {values.shape}, not numbers")
    if any(indices.dtype.kind not in "iu" for indices in (first, second)):
        raise ValueError(f"the indices of {name} are not whole numbers")
    if kind == "coo":
        matrix = sparse.coo_matrix((values, (first, second)), shape)
    else:
        matrix = (sparse.csr_matrix if kind == "csr" else sparse.csc_matrix)((values, first, second), shape)
        # Compiled code uses indices without a check, and would read outside its arrays.
        matrix.check_format(full_check=True)
    rows = matrix.tocsr()
    rows.sum_duplicates()
    return rows
