"""Where training gets its rows from: an array, a sparse matrix, or a file that need not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust import choices
from cceclust.errors import InputError

if TYPE_CHECKING:
    from cceclust.files import FeatureFile

__all__ = ["ArrayRows", "Buffer", "FileRows", "Rows", "SparseRows", "computing_dtype", "in_memory"]


@dataclass(frozen=True)
class Buffer:
    """Rows that are in memory now.

    Attributes
    ----------
    matrix : ndarray or CSR matrix of shape (n_rows, n_features)
        The rows.
    indices : ndarray of shape (n_rows,)
        Their numbers in the whole data.
    """

    matrix: Any
    indices: NDArray[np.intp]


class Rows(Protocol):
    """Rows to train on or to predict."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the type of all computations."""

    def blocks(self, n_outputs: int = 0) -> Iterator[tuple[slice, Any]]:
        """Yield successive blocks of rows with their position; the argument is the number of results per row."""

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return the rows with these indices, which are few and sorted."""

    def buffers(self, generator: np.random.Generator) -> Iterator[Buffer]:
        """Yield all rows once, in buffers of random composition."""


class ArrayRows:
    """The rows of an array or of a memory map, which is never copied as a whole."""

    def __init__(self, matrix: NDArray[Any]) -> None:
        self.matrix = matrix
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = computing_dtype(matrix.dtype)

    def blocks(self, n_outputs: int = 0) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield successive blocks of rows with their position."""
        for where in slices(self.shape, self.dtype, n_outputs):
            yield where, self.matrix[where].astype(self.dtype, copy=False)

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return the rows with these indices, which are few and sorted."""
        return self.matrix[indices]

    def buffers(self, generator: np.random.Generator) -> Iterator[Buffer]:
        """Yield the whole array as one buffer."""
        yield Buffer(self.matrix, np.arange(self.shape[0]))


class SparseRows:
    """The rows of a CSR matrix, which is never made dense."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = computing_dtype(matrix.dtype)

    def blocks(self, n_outputs: int = 0) -> Iterator[tuple[slice, Any]]:
        """Yield successive blocks of rows with their position."""
        for where in slices(self.shape, self.dtype, n_outputs):
            yield where, self.matrix[where]

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return the rows with these indices, which are few and sorted."""
        return self.matrix[indices]

    def buffers(self, generator: np.random.Generator) -> Iterator[Buffer]:
        """Yield the whole matrix as one buffer."""
        yield Buffer(self.matrix, np.arange(self.shape[0]))


class FileRows:
    """The rows of a feature file that is larger than the memory it may use."""

    def __init__(self, file: FeatureFile, memory: int) -> None:
        self.file = file
        self.shape = file.shape
        self.dtype = computing_dtype(file.dtype)
        self.rows_in_memory = memory // (self.shape[1] * self.dtype.itemsize)
        if self.rows_in_memory < choices.LEAST_ROWS_IN_MEMORY:
            needed = choices.LEAST_ROWS_IN_MEMORY * self.shape[1] * self.dtype.itemsize
            raise InputError(
                f"{memory:,} bytes of memory hold {self.rows_in_memory} rows of {self.shape[1]:,} features; "
                f"allow at least {needed:,} bytes"
            )

    def blocks(self, n_outputs: int = 0) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield successive blocks of rows with their position."""
        for where in slices(self.shape, self.dtype, n_outputs):
            yield where, self.file.read(where).astype(self.dtype, copy=False)

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return the rows with these indices, which are few and sorted."""
        return self.file.read(indices)

    def buffers(self, generator: np.random.Generator) -> Iterator[Buffer]:
        """Yield buffers made of runs of rows from all over the file."""
        buffers = self.file.shuffled_buffers(generator, rows_in_memory=self.rows_in_memory, dtype=self.dtype)
        for indices, rows in buffers:
            yield Buffer(rows, indices)


def in_memory(matrix: Any) -> ArrayRows | SparseRows:
    """Return the rows of a dense array or of a sparse matrix."""
    if sparse.issparse(matrix):
        return SparseRows(matrix.tocsr())
    # The kernels do not support integers, float16 or foreign byte order, and read row by row. A memory map in Fortran
    # order is used as it is: there may not be enough memory for a copy.
    is_by_rows = matrix.flags.c_contiguous or isinstance(matrix, np.memmap)
    return ArrayRows(matrix.astype(computing_dtype(matrix.dtype), order="K" if is_by_rows else "C", copy=False))


def computing_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float64 for float64 and wider, and float32 for all other types, in the byte order of this machine."""
    return np.dtype(np.float64 if dtype.kind == "f" and dtype.itemsize >= 8 else np.float32)


def slices(shape: tuple[int, int], dtype: np.dtype[Any], n_outputs: int) -> Iterator[slice]:
    """Split rows into blocks of limited size. Equal shapes give equal blocks, so that predictions repeat to the bit."""
    step = max(1, choices.BLOCK_BYTES // (max(shape[1], n_outputs) * dtype.itemsize))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))
