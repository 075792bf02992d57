"""The logits of raw rows: the one place where a head meets rows, so that fitting and predicting agree to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust.training.head import Curves, Head
from cceclust.training.rows import Rows

__all__ = ["all_logits", "block_logits", "head_on_blocks", "likeliest", "probabilities_of", "row_logits", "unchanged"]

Result = TypeVar("Result")


def row_logits(head: Head, rows: Rows, *, n_threads: int = 1) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield the logits of successive blocks of raw rows, with their position.

    Equal rows in blocks of equal size give equal bits, so a prediction repeats the labels of the fit.
    """
    return rows.map_blocks(head_on_blocks(block_logits, head), n_outputs=head.n_clusters, n_threads=n_threads)


def all_logits(head: Head, rows: Rows) -> NDArray[Any]:
    """Return the logits of all rows, shape (n_samples, n_clusters)."""
    with threadpool_limits(1, user_api="blas"):
        return np.concatenate([logits for _, logits in row_logits(head, rows)])


def head_on_blocks(function: Callable[..., Result], head: Head) -> Callable[..., Result]:
    """Return a function of a block of rows, given one of a block and a head whose weights go by feature."""
    # Contiguous, otherwise each sparse block would copy them.
    by_feature = np.ascontiguousarray(head.coef.T)
    return partial(function, by_feature=by_feature, intercept=head.intercept, curves=head.curves)


def block_logits(
    block: Any, *, by_feature: NDArray[Any], intercept: NDArray[Any], curves: Curves | None = None
) -> NDArray[Any]:
    """Return the logits of a block of rows."""
    logits = np.asarray(np.asarray(block @ by_feature) + intercept)
    return logits if curves is None else logits + curves.logits(block)


def probabilities_of(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the softmax of each row of logits."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def likeliest(logits: NDArray[Any]) -> NDArray[np.int64]:
    """Return the cluster with the largest logit of each row."""
    return np.asarray(logits.argmax(axis=1), np.int64)


def unchanged(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the logits themselves."""
    return logits
