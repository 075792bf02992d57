"""What all estimators make of their weights and their number of threads."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError

__all__ = ["checked_weights", "thread_count"]


def checked_weights(sample_weight: ArrayLike | None, n_samples: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return one weight a row."""
    if sample_weight is None:
        return np.ones(n_samples, dtype)
    weights = np.asarray(sample_weight, dtype)
    if weights.shape != (n_samples,):
        raise InputError(f"sample_weight has shape {weights.shape}; expected one weight for each of {n_samples} rows")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError("sample_weight contains values that are negative, NaN or infinite; expected none")
    if not weights.any():
        raise InputError("sample_weight is zero for every row; expected a positive weight somewhere")
    return weights


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads to use: all cores by default, and scikit-learn's meaning of negative numbers."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r}; expected a positive whole number, or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
