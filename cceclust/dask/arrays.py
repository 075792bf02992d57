"""Dask arrays and data frames as matrices of features, and what a head says of them, not yet computed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import dask.array as da
import distributed
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust.errors import InputError
from cceclust.training.head import Head
from cceclust.training.logits import block_logits, head_on_blocks
from cceclust.training.rows import ArrayRows, computing_dtype

__all__ = ["as_dask_array", "lazy_results", "use_one_thread"]


def as_dask_array(X: Any) -> da.Array:
    """Return features as a Dask array whose chunks hold whole rows. Nothing is computed.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Of NumPy arrays, or with columns of numbers.
    """
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


def lazy_results(
    X: Any,
    head: Head,
    finish: Callable[[NDArray[Any]], NDArray[Any]],
) -> da.Array:
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
    # One node of the graph, on which the tasks depend; else each of them would carry a copy of the head.
    logits = delayed(head_on_blocks(block_logits, head))
    none = finish(np.empty((0, head.n_clusters), computing_dtype(array.dtype)))
    shape: dict[str, Any] = {"chunks": (array.chunks[0], none.shape[1:])} if none.ndim == 2 else {"drop_axis": 1}
    return array.map_blocks(
        chunk_results,
        head=logits,
        finish=finish,
        none=none,
        n_clusters=head.n_clusters,
        dtype=none.dtype,
        meta=none,
        **shape,
    )


def chunk_results(
    chunk: NDArray[Any],
    *,
    head: Callable[[NDArray[Any]], NDArray[Any]],
    finish: Callable[[NDArray[Any]], NDArray[Any]],
    none: NDArray[Any],
    n_clusters: int,
) -> NDArray[Any]:
    """Return what follows from the logits of the rows of a chunk; the blocks are those of the fit."""
    use_one_thread()
    rows = ArrayRows(np.ascontiguousarray(chunk))
    pieces = [none]
    with np.errstate(over="ignore", invalid="ignore"):
        for _, logits in rows.map_blocks(head, n_outputs=n_clusters):
            if not np.isfinite(logits).all():
                raise InputError(
                    "a row contains NaN, infinity or values too large for the model; remove or impute such rows"
                )
            pieces.append(finish(logits))
    return np.concatenate(pieces)


def use_one_thread() -> None:
    """Give BLAS one thread if this is a worker of Dask: its sums could depend on their number."""
    try:
        distributed.get_worker()
    except ValueError:
        # This is the caller's own process, whose threads are limited while a fit runs.
        return
    limit_blas()


@cache
def limit_blas() -> None:
    """Limit the threads of BLAS for good, as tasks that run at the same time would undo each other's limits."""
    threadpool_limits(1, user_api="blas")
