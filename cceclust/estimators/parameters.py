"""Checks of row weights, shared by all estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError

__all__ = ["checked_weights"]


def checked_weights(sample_weight: ArrayLike | None, n_samples: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return one weight per row, scaled so that the largest is 1."""
    if sample_weight is None:
        return np.ones(n_samples, dtype)
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (n_samples,):
        raise InputError(f"sample_weight has shape {weights.shape}; expected one weight for each of {n_samples} rows")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError("sample_weight contains values that are negative, NaN or infinite; expected none")
    if not weights.any():
        raise InputError("sample_weight is zero for every row; expected a positive weight somewhere")
    # Only ratios matter, and sums of huge weights would overflow float32, tiny weights underflow.
    return np.asarray(weights / weights.max(), dtype)
