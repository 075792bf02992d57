"""Where rows come from. Nothing else in the package knows whether that is an array, a file or a cluster of machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust.errors import InputError

__all__ = ["ArraySource", "Source", "as_source", "block_slices", "computing_dtype"]

# Rows are read and predicted in blocks of about this size: large enough to hide the cost of a call, small beside them.
BLOCK_BYTES = 4 << 20


@runtime_checkable
class Source(Protocol):
    """Rows that can be taken by their numbers, or read in blocks from the first to the last."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the type of all rows that are handed out."""

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Return the rows with these ascending numbers, as an array or a CSR matrix."""

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield successive blocks of rows with their place. Equal shapes give equal blocks."""


class ArraySource:
    """The rows of an array or of a sparse matrix, which is never made dense."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = computing_dtype(matrix.dtype)

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Return the rows with these ascending numbers; without a copy if these are all."""
        chosen = self.matrix if len(rows) == self.shape[0] else self.matrix[rows]
        return chosen.astype(self.dtype, copy=False)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield successive blocks of rows with their place."""
        for where in block_slices(self.shape, self.dtype):
            yield where, self.matrix[where].astype(self.dtype, copy=False)


def as_source(X: Any) -> Source:
    """Return a source as it is, and an array or a sparse matrix as a source."""
    if isinstance(X, Source):
        return X
    matrix = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"X has shape {matrix.shape}; expected (n_samples, n_features), at least one of each")
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"X holds {matrix.dtype}; expected numbers")
    return ArraySource(matrix)


def computing_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float64 for float64 and wider, and float32 for all other types, in the byte order of this machine."""
    return np.dtype(np.float64 if dtype.kind == "f" and dtype.itemsize >= 8 else np.float32)


def block_slices(shape: tuple[int, int], dtype: np.dtype[Any]) -> Iterator[slice]:
    """Split rows into blocks of limited size."""
    step = max(1, BLOCK_BYTES // (shape[1] * dtype.itemsize))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))
