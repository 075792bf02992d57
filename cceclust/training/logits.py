"""The logits of raw rows: the one place where a head meets rows, so that fitting and predicting agree to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust.training.rows import Rows

__all__ = ["all_logits", "probabilities_of", "row_logits", "with_logits"]


def with_logits(coef: NDArray[Any], intercept: NDArray[Any], rows: Rows) -> Iterator[tuple[slice, Any, NDArray[Any]]]:
    """Yield successive blocks of raw rows: their position, the rows, and ``x · coefᵀ + intercept``.

    Equal rows in blocks of equal size give equal bits, so a prediction repeats the labels of the fit.
    """
    # Contiguous, otherwise each sparse block would copy them.
    by_feature = np.ascontiguousarray(coef.T)
    for where, block in rows.blocks(len(coef)):
        yield where, block, np.asarray(block @ by_feature) + intercept


def row_logits(coef: NDArray[Any], intercept: NDArray[Any], rows: Rows) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield the logits of successive blocks of raw rows, with their position."""
    for where, _, logits in with_logits(coef, intercept, rows):
        yield where, logits


def all_logits(coef: NDArray[Any], intercept: NDArray[Any], rows: Rows) -> NDArray[Any]:
    """Return the logits of all rows, shape (n_samples, n_clusters)."""
    with threadpool_limits(1, user_api="blas"):
        return np.concatenate([logits for _, logits in row_logits(coef, intercept, rows)])


def probabilities_of(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the softmax of each row of logits."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
