"""How the features vary along their leading directions, from a sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.extmath import randomized_svd

from cceclust.training.rows import Rows

__all__ = ["leading_axes", "leading_variances", "sample_rows"]

ROWS_FOR_SPECTRUM = 1000


def sample_rows(
    rows: Rows, sample_weight: NDArray[Any], seed: int, *, most: int = ROWS_FOR_SPECTRUM
) -> tuple[Any, NDArray[np.float64]]:
    """Return some rows with weight, in double precision, and their weights, which sum to 1. Sparse rows stay so."""
    chosen = np.flatnonzero(sample_weight > 0)
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, most, replace=False))
    weights = sample_weight[chosen].astype(np.float64)
    return rows.take(chosen).astype(np.float64), weights / weights.sum()


def leading_variances(
    sample: Any, centre: NDArray[Any], weights: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """Return the largest eigenvalues, ascending, of the weighted mean of ``(x − centre)(x − centre)ᵀ``.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> leading_variances(rows, np.zeros(2), np.full(4, 0.25), 2)
    array([0.5, 2. ])
    """
    roots = np.sqrt(weights)
    if sparse.issparse(sample) and sample.shape[1] > sample.shape[0]:
        # Centred, they would be dense: centre the products instead.
        cross = sample @ centre
        products = (sample @ sample.T).toarray() - cross[:, None] - cross + centre @ centre
        products *= roots[:, None] * roots
    else:
        dense = sample.toarray() if sparse.issparse(sample) else sample
        scaled = (dense - centre) * roots[:, None]
        products = scaled @ scaled.T if scaled.shape[1] > scaled.shape[0] else scaled.T @ scaled
    last = len(products) - 1
    variances = linalg.eigh(products, eigvals_only=True, subset_by_index=(max(0, last - count + 1), last))
    return np.asarray(np.maximum(variances, 0.0))


def leading_axes(centred: NDArray[np.float64], count: int, seed: int) -> NDArray[np.float32]:
    """Return the directions along which centred rows vary most, of length 1: as many as asked for, or as there are rows.

    Examples
    --------
    >>> import numpy as np
    >>> axes = leading_axes(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 1, seed=0)
    >>> np.abs(axes).round(3)
    array([[1., 0.]], dtype=float32)
    """
    # Their order of magnitude may be beyond that of float32, which is precise enough for directions.
    spread = np.abs(centred).max() or 1.0
    axes = randomized_svd((centred / spread).astype(np.float32), min(count, *centred.shape), n_iter=2, random_state=seed)[2]
    return np.asarray(axes)
