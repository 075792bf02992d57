"""Sparse matrices in files of arrays, as SciPy's ``save_npz`` and AnnData store them; all are read as CSR."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.reading import refuse_bomb
from cceclust.fit.source import computing_dtype

__all__ = ["PARTS", "as_csr", "is_sparse"]

# The arrays that make up a matrix in each format.
PARTS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}


def is_sparse(matrix: Any) -> bool:
    """Tell whether a matrix is one of SciPy's sparse ones, without loading SciPy, which takes long."""
    return hasattr(matrix, "tocsr")


def as_csr(path: Path, name: str, kind: str, shape: tuple[int, ...], parts: Mapping[str, NDArray[Any]]) -> Any:
    """Put a sparse matrix together from its parts, after a check of all indices.

    Parameters
    ----------
    path : Path
        The file, for errors.
    name : str
        What to call the matrix in errors.
    kind : {"csr", "csc", "coo"}
        The format of the parts.
    shape : tuple of int
        (n_samples, n_features).
    parts : mapping of str to ndarray
        The arrays that :data:`PARTS` names.

    Returns
    -------
    scipy.sparse.csr_matrix
        Of float32 or float64, without duplicate entries.
    """
    from scipy import sparse

    if len(shape) != 2 or min(shape) < 1:
        raise FileContentError(f"{path}: {name} has shape {shape}; expected a matrix (n_samples, n_features)")
    values = parts["data"]
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise FileContentError(f"{path}: {name} holds {values.dtype} of shape {values.shape}; expected numbers")
    first, second = (as_indices(path, f"{part} of {name}", parts[part]) for part in PARTS[kind][1:])
    # Single rows are made dense, and the index of empty rows needs no space in some formats.
    refuse_bomb(path, f"a row of {name}", 8 * shape[1])
    refuse_bomb(path, f"the index of {name}", 8 * shape[0])
    values = values.astype(computing_dtype(values.dtype), copy=False)
    if kind == "coo":
        matrix = sparse.coo_matrix((values, (first, second)), shape)
    else:
        matrix = (sparse.csr_matrix if kind == "csr" else sparse.csc_matrix)((values, first, second), shape)
        # Compiled code uses indices without a check, and would read outside its arrays.
        matrix.check_format(full_check=True)
    rows = matrix.tocsr()
    rows.sum_duplicates()
    return rows


def as_indices(path: Path, name: str, indices: NDArray[Any]) -> NDArray[np.int64]:
    """Check positions in a matrix; whether they lie inside is checked with its shape."""
    if indices.ndim == 1 and indices.dtype.kind in "iu":
        numbers = indices.astype(np.int64, copy=False)
        if not numbers.size or numbers.min() >= 0:
            return numbers
    raise FileContentError(f"{path}: {name} are not all whole numbers of at least 0")
