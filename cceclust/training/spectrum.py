"""How the features vary along their leading directions, from a sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from cceclust.training.rows import Rows

__all__ = ["leading_variances", "sample_rows"]

ROWS_FOR_SPECTRUM = 1000


def sample_rows(rows: Rows, sample_weight: NDArray[Any], seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return some rows with weight, dense and in double precision, and their weights, which sum to 1."""
    chosen = np.flatnonzero(sample_weight > 0)
    if len(chosen) > ROWS_FOR_SPECTRUM:
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, ROWS_FOR_SPECTRUM, replace=False))
    sample = rows.take(chosen)
    dense = sample.toarray() if sparse.issparse(sample) else sample
    weights = sample_weight[chosen].astype(np.float64)
    return dense.astype(np.float64), weights / weights.sum()


def leading_variances(deviations: NDArray[np.float64], weights: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the largest eigenvalues, ascending, of the weighted mean of ``x xᵀ``.

    Examples
    --------
    >>> import numpy as np
    >>> leading_variances(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), np.full(4, 0.25), 2)
    array([0.5, 2. ])
    """
    scaled = deviations * np.sqrt(weights)[:, None]
    is_wide = scaled.shape[1] > scaled.shape[0]
    products = scaled @ scaled.T if is_wide else scaled.T @ scaled
    last = len(products) - 1
    variances = linalg.eigh(products, eigvals_only=True, subset_by_index=(max(0, last - count + 1), last))
    return np.asarray(np.maximum(variances, 0.0))
