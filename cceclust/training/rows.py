"""Where training gets its rows from: an array, a sparse matrix, or a file that need not fit into memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.errors import InputError

if TYPE_CHECKING:
    from cceclust.files import FeatureFile
    from cceclust.training.diagnosis import Prediction
    from cceclust.training.head import Head
    from cceclust.training.progress import OnProgress

__all__ = [
    "ArrayRows",
    "DistantRows",
    "FileRows",
    "LazyRows",
    "Rows",
    "SparseRows",
    "computing_dtype",
    "half_of_the_memory",
    "in_memory",
    "refuse_little_memory",
    "slices",
]

Result = TypeVar("Result")


class Rows(Protocol):
    """Rows to train on or to predict, wherever they are.

    Whatever must see every row goes through `map_blocks`, so that rows may be worked on where they are.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the type of all computations."""

    def map_blocks(
        self, function: Callable[..., Result], *columns: NDArray[Any], n_outputs: int = 0, n_threads: int = 1
    ) -> Iterator[tuple[slice, Result]]:
        """Yield ``function(block, *parts)`` for successive blocks of rows, in their order, with their position.

        Parameters
        ----------
        function : callable
            Of a block of rows (of type `dtype`, dense or CSR) and the parts of `columns` that belong to it. It must
            not depend on anything else and be picklable, as it may run in another thread, process or machine.
        *columns : ndarray of shape (n_samples, ...)
            What belongs to the rows, such as their weights.
        n_outputs : int
            Number of results for each row, which limits the size of the blocks.
        n_threads : int
            Number of blocks that are worked on at the same time. It does not change the results.
        """

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return the rows with these indices, which are few and sorted."""


@runtime_checkable
class DistantRows(Rows, Protocol):
    """Rows that are not in memory: what is trained on is copied from them."""

    @property
    def memory(self) -> int:
        """Bytes that the copy may take, and the search for neighbours in it."""

    def room_for(self, shape: tuple[int, int]) -> NDArray[Any]:
        """Return an array of this shape for the copy, not yet filled."""


@runtime_checkable
class LazyRows(DistantRows, Protocol):
    """Rows that are so many that their predictions stay where they are."""

    def predict(
        self,
        head: Head,
        *,
        sample_weight: NDArray[Any] | None,
        on_progress: OnProgress,
    ) -> Prediction:
        """Return the predictions of a head, as far as they are needed here."""


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

    def map_blocks(
        self, function: Callable[..., Result], *columns: NDArray[Any], n_outputs: int = 0, n_threads: int = 1
    ) -> Iterator[tuple[slice, Result]]:
        """Yield ``function(block, *parts)`` for successive blocks of rows, with their position."""
        return map_in_order(function, self.blocks(n_outputs), columns, n_threads)

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return the rows with these indices, which are few and sorted."""
        return self.matrix[indices]


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

    def map_blocks(
        self, function: Callable[..., Result], *columns: NDArray[Any], n_outputs: int = 0, n_threads: int = 1
    ) -> Iterator[tuple[slice, Result]]:
        """Yield ``function(block, *parts)`` for successive blocks of rows, with their position."""
        return map_in_order(function, self.blocks(n_outputs), columns, n_threads)

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return the rows with these indices, which are few and sorted."""
        return self.matrix[indices]


class FileRows:
    """The rows of a feature file that is larger than the memory it may use.

    Parameters
    ----------
    file : FeatureFile
        The file.
    memory : int
        Bytes that features may take.
    make_scratch : callable, optional
        Makes an array of a shape and type outside of memory, for rows to train on that are larger than `memory`; by
        default they are kept in memory all the same.
    """

    def __init__(
        self,
        file: FeatureFile,
        memory: int,
        make_scratch: Callable[[tuple[int, int], np.dtype[Any]], NDArray[Any]] = np.empty,
    ) -> None:
        self.file = file
        self.shape = file.shape
        self.dtype = computing_dtype(file.dtype)
        self.memory = memory
        self.make_scratch = make_scratch
        refuse_little_memory(memory, self.shape[1], self.dtype)

    def room_for(self, shape: tuple[int, int]) -> NDArray[Any]:
        """Return an array of this shape, in memory if there is enough."""
        fits = shape[0] * shape[1] * self.dtype.itemsize <= self.memory
        return np.empty(shape, self.dtype) if fits else self.make_scratch(shape, self.dtype)

    def map_blocks(
        self, function: Callable[..., Result], *columns: NDArray[Any], n_outputs: int = 0, n_threads: int = 1
    ) -> Iterator[tuple[slice, Result]]:
        """Yield ``function(block, *parts)`` for successive blocks of rows, with their position.

        A thread reads ahead meanwhile, from the top of the file to its end, and each chunk once: one that is compressed
        can only be read as a whole.
        """
        blocks = list(slices(self.shape, self.dtype, n_outputs))
        chunk = self.file.chunk_rows
        step = chunk * max(1, blocks[0].stop // chunk)
        runs = (slice(start, min(start + step, self.shape[0])) for start in range(0, self.shape[0], step))
        with ThreadPoolExecutor(1) as reader:
            read = in_order(reader, self._read, ((run, run) for run in runs), ahead=choices.BLOCKS_READ_AHEAD)
            yield from map_in_order(function, cut(read, blocks), columns, n_threads)

    def _read(self, where: slice) -> NDArray[Any]:
        block = self.file.read(where)
        # A part of a memory map is read by copying it.
        return block.astype(self.dtype, copy=not block.flags.owndata)

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return the rows with these indices, which are few and sorted."""
        return self.file.read(indices)


def half_of_the_memory() -> int:
    """Return half of the machine's memory in bytes: what rows may take if nothing else is said."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def refuse_little_memory(memory: int, n_features: int, dtype: np.dtype[Any]) -> None:
    """Raise if so few rows fit into memory that they would not stand for all."""
    row_bytes = n_features * dtype.itemsize
    if memory // row_bytes < choices.LEAST_ROWS_IN_MEMORY:
        raise InputError(
            f"{memory:,} bytes of memory hold {memory // row_bytes} rows of {n_features:,} features; "
            f"allow at least {choices.LEAST_ROWS_IN_MEMORY * row_bytes:,} bytes"
        )


def in_memory(matrix: Any) -> ArrayRows | SparseRows:
    """Return the rows of a dense array or of a sparse matrix."""
    # As SciPy's sparse matrices have it; loading SciPy to ask would take longer than reading most files.
    if hasattr(matrix, "tocsr"):
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


def cut(runs: Iterator[tuple[slice, NDArray[Any]]], blocks: Iterable[slice]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield successive blocks of rows, cut from successive runs of other lengths."""
    parts: list[NDArray[Any]] = []
    end = 0
    for where in blocks:
        while end < where.stop:
            run, rows = next(runs)
            parts.append(rows)
            end = run.stop
        held, count = parts[0] if len(parts) == 1 else np.concatenate(parts), where.stop - where.start
        parts = [held[count:]] if count < len(held) else []
        yield where, held[:count]


def map_in_order(
    function: Callable[..., Result],
    blocks: Iterable[tuple[slice, Any]],
    columns: tuple[NDArray[Any], ...],
    n_threads: int,
) -> Iterator[tuple[slice, Result]]:
    """Yield ``function(block, *parts)`` for blocks and the parts of columns that belong to them, in their order."""

    def apply(arguments: tuple[Any, ...]) -> Result:
        return function(*arguments)

    tasks = ((where, (block, *(column[where] for column in columns))) for where, block in blocks)
    if n_threads == 1:
        yield from ((where, apply(arguments)) for where, arguments in tasks)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from in_order(pool, apply, tasks, ahead=n_threads)


def in_order(
    pool: ThreadPoolExecutor,
    function: Callable[[Any], Result],
    tasks: Iterable[tuple[slice, Any]],
    *,
    ahead: int,
) -> Iterator[tuple[slice, Result]]:
    """Yield each task's position and result, in the order of the tasks, while a few further ones are under way."""
    waiting: deque[tuple[slice, Future[Result]]] = deque()
    for where, argument in tasks:
        waiting.append((where, pool.submit(function, argument)))
        if len(waiting) > ahead:
            first, result = waiting.popleft()
            yield first, result.result()
    while waiting:
        first, result = waiting.popleft()
        yield first, result.result()
