"""Dask arrays and data frames: as a source of rows, and what a head says of them, not yet computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import InputError, MissingExtraError
from cceclust.fit.head import Head
from cceclust.fit.predict import all_logits
from cceclust.fit.source import ArraySource, block_slices, computing_dtype

try:
    import dask.array as da
    from dask.delayed import delayed
except ImportError as error:
    raise MissingExtraError.of("cceclust.dask", "Dask", "dask") from error

__all__ = ["DaskSource", "as_dask_array", "lazy_results"]

# So much is brought to this machine at once: many chunks are computed at the same time, few are held.
BYTES_AT_ONCE = 256 << 20


class DaskSource:
    """The rows of a Dask array or data frame, of which only a part is on this machine at any time.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The features. Where the lengths of its chunks are unknown, they are computed.

    Examples
    --------
    >>> import dask.array as da
    >>> from cceclust.dask import DaskSource
    >>> DaskSource(da.ones((100, 3), chunks=(40, 3))).take(np.array([0, 99]))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """

    def __init__(self, X: Any) -> None:
        array = as_dask_array(X)
        if any(np.isnan(length) for length in array.chunks[0]):
            array = array.compute_chunk_sizes()
        self.array: da.Array = array
        self.shape: tuple[int, int] = (int(array.shape[0]), int(array.shape[1]))
        if 0 in self.shape:
            raise InputError(f"X has shape {self.shape}; expected at least one row and one feature")
        self.dtype = computing_dtype(array.dtype)

    def take(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return the rows with these ascending numbers."""
        chosen = self.array if len(rows) == self.shape[0] else self.array[rows]
        return np.asarray(chosen.compute(), self.dtype)

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield successive blocks of rows with their place."""
        most = max(1, BYTES_AT_ONCE // (self.shape[1] * self.dtype.itemsize))
        ends = np.cumsum(self.array.chunks[0])
        start = 0
        while start < self.shape[0]:
            # Whole chunks, at least one.
            within = ends[(ends > start) & (ends <= start + most)]
            stop = int(within[-1] if len(within) else ends[ends > start][0])
            rows = np.asarray(self.array[start:stop].compute(), self.dtype)
            for where in block_slices(rows.shape, self.dtype):
                yield slice(start + where.start, start + where.stop), rows[where]
            start = stop


def as_dask_array(X: Any) -> da.Array:
    """Return features as a Dask array whose chunks hold whole rows. Nothing is computed."""
    if hasattr(X, "to_dask_array"):
        if getattr(X, "ndim", 0) == 2:
            wrong = [str(name) for name, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"]
            if wrong:
                raise InputError(f"column {wrong[0]!r} holds no numbers; leave such columns out ({len(wrong)} in all)")
        X = X.to_dask_array()
    if not isinstance(X, da.Array):
        raise InputError(f"X is a {type(X).__name__} of Dask; expected a Dask array or a Dask data frame")
    if X.ndim != 2:
        raise InputError(f"X has {X.ndim} dimensions; expected 2: rows and features")
    if not isinstance(X._meta, np.ndarray) or X.dtype.kind not in "fiub":
        kind = f"{type(X._meta).__module__}.{type(X._meta).__name__}"
        raise InputError(f"the chunks of X are {kind} of type {X.dtype}; expected NumPy arrays of numbers")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def lazy_results(X: Any, head: Head, finish: Callable[[NDArray[Any]], NDArray[Any]]) -> da.Array:
    """Return what follows from the logits of each row, as an array that Dask computes when it is asked for.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
        The rows.
    head : Head
        What makes logits of rows.
    finish : callable
        Of the logits of some rows. It must be picklable.
    """
    array = as_dask_array(X)
    none = finish(np.empty((0, head.n_clusters), computing_dtype(array.dtype)))
    shape: dict[str, Any] = {"chunks": (array.chunks[0], none.shape[1:])} if none.ndim == 2 else {"drop_axis": 1}
    # One node of the graph, on which the tasks depend; else each of them would carry a copy of the head.
    return array.map_blocks(results_of_chunk, delayed(head), finish, none, dtype=none.dtype, meta=none, **shape)


def results_of_chunk(
    chunk: NDArray[Any], head: Head, finish: Callable[[NDArray[Any]], NDArray[Any]], none: NDArray[Any]
) -> NDArray[Any]:
    """Return what follows from the logits of the rows of a chunk."""
    return finish(all_logits(head, ArraySource(np.ascontiguousarray(chunk)))) if len(chunk) else none
