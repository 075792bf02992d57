"""One mean per column and one scale for all columns, so that one weight decay suits features of any scale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust.errors import InputError
from cceclust.training.kernels import add_moments
from cceclust.training.rows import Rows

__all__ = [
    "Standardization",
    "block_moments",
    "fold",
    "measure",
    "refuse_what_is_not_finite",
    "rows_not_finite",
    "standardization_of",
]

# A column whose deviation is a smaller fraction of its mean counts as constant.
ROUNDING = 1e-7


@dataclass(frozen=True)
class Standardization:
    """The map ``x → (x − mean) / scale``.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Mean of each column.
    scale : float
        Square root of the mean variance of the columns: one number, so that directions keep their relative size.
    deviations : ndarray of shape (n_features,) or None
        Standard deviation of each column, if it was measured.
    """

    mean: NDArray[Any]
    scale: float
    deviations: NDArray[np.float64] | None = None


def measure(rows: Rows, sample_weight: NDArray[Any], *, standardize: bool, n_threads: int = 1) -> Standardization:
    """Check all rows for values that are not finite, and find the mean and scale if needed, in one pass.

    Raises
    ------
    InputError
        If a value is NaN or infinite, with the number of such rows and the first.
    """
    n_features = rows.shape[1]
    sums, squares = np.zeros(n_features), np.zeros(n_features)
    # Subtracting a row first keeps the digits of data far from the origin.
    first = rows.take(np.array([np.argmax(sample_weight > 0)]))
    shift = np.zeros(n_features) if sparse.issparse(first) else np.asarray(first[0], np.float64)
    moments = rows.map_blocks(partial(block_moments, shift=shift), sample_weight, n_threads=n_threads)
    for _, (added, added_squares) in moments:
        sums += added
        squares += added_squares
    if not (np.isfinite(sums).all() and np.isfinite(squares).all()):
        refuse_what_is_not_finite(rows)
    if not standardize:
        return Standardization(np.zeros(n_features, rows.dtype), 1.0)
    return standardization_of(sums, squares, shift, sample_weight.sum(dtype=np.float64), rows.dtype)


def standardization_of(
    sums: NDArray[np.float64],
    squares: NDArray[np.float64],
    shift: NDArray[np.float64],
    total: np.float64,
    dtype: np.dtype[Any],
) -> Standardization:
    """Return mean and scale, given the weighted column sums of ``x − shift`` and its square, and the sum of weights."""
    offset = sums / total
    mean = shift + offset
    variance = squares / total - offset**2
    # Rounding errors of a constant column are no variance, and data without variance are not scaled.
    variance[variance <= (ROUNDING * mean) ** 2] = 0
    variance = np.maximum(variance, 0)
    scale = float(np.sqrt(variance.mean()))
    return Standardization(mean.astype(dtype), scale or 1.0, np.sqrt(variance))


def block_moments(
    block: Any, weights: NDArray[Any], *, shift: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted column sums of ``x − shift`` and of its square, for a block of rows."""
    if sparse.issparse(block):
        wide = block.astype(np.float64)
        return wide.T @ weights, wide.multiply(wide).T @ weights
    sums, squares = np.zeros(block.shape[1]), np.zeros(block.shape[1])
    add_moments(block, weights, shift, sums, squares)
    return sums, squares


def rows_not_finite(block: Any) -> NDArray[np.bool_]:
    """Tell for each row of a block whether it contains NaN or infinity."""
    if not sparse.issparse(block):
        return np.asarray(~np.isfinite(block).all(axis=1))
    bad, entries = np.zeros(block.shape[0], bool), block.tocoo()
    bad[entries.row[~np.isfinite(entries.data)]] = True
    return bad


def refuse_what_is_not_finite(rows: Rows) -> None:
    """Raise with the number of rows that contain NaN or infinity, and the first of them."""
    count, first = 0, -1
    for where, bad in rows.map_blocks(rows_not_finite):
        if bad.any() and first < 0:
            first = where.start + int(np.argmax(bad))
        count += int(bad.sum())
    if count:
        raise InputError(
            f"features contain NaN or infinity in {count} of {rows.shape[0]} rows, first in row {first}; "
            "remove or impute these rows"
        )
    raise InputError("features are too large to be squared in float64 (above 1e150); rescale them")


def fold(weights: NDArray[Any], biases: NDArray[Any], standardization: Standardization) -> tuple[Any, Any]:
    """Return the weights and biases for raw features of heads that were trained on standardised ones.

    Parameters
    ----------
    weights : ndarray of shape (..., n_clusters, n_features)
        Weights for standardised features.
    biases : ndarray of shape (..., n_clusters)
        Biases for standardised features.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        coef = weights / np.float64(standardization.scale)
        intercept = biases - coef @ standardization.mean.astype(np.float64)
        folded = coef.astype(weights.dtype), intercept.astype(weights.dtype)
    if not all(np.isfinite(part).all() for part in folded):
        raise InputError(
            f"features that vary by {standardization.scale:.3g} around their mean need weights that {weights.dtype} "
            "cannot hold; rescale and centre them, or use float64"
        )
    return folded
