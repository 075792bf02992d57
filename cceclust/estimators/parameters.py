"""Checks of parameters that all estimators share."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError

__all__ = ["check_at_least", "check_not_negative", "check_positive", "checked_weights", "thread_count"]


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


def check_at_least(name: str, value: Any, least: int) -> None:
    """Raise unless a parameter is a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name}={value!r}; expected a whole number of at least {least}")


def check_not_negative(name: str, value: Any) -> None:
    """Raise unless a parameter is a finite number of at least zero."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < 0:
        raise InputError(f"{name}={value!r}; expected a number of at least 0")


def check_positive(name: str, value: Any) -> None:
    """Raise unless a parameter is a finite number above zero."""
    check_not_negative(name, value)
    if value == 0:
        raise InputError(f"{name}=0; expected a number above 0")


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads to use: all cores by default, and scikit-learn's meaning of negative numbers."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r}; expected a positive whole number, or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
