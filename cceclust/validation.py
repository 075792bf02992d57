"""Arrays and numbers from users, checked once and brought into the form that the kernels expect."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from cceclust.errors import InputError

__all__ = [
    "FloatArray",
    "as_distributions",
    "as_prior",
    "as_relative_weights",
    "as_weights",
    "check_count",
    "check_non_negative",
    "check_positive",
    "thread_count",
    "uniform_unless_given",
]

FloatArray = npt.NDArray[np.floating[Any]]

# Softmax in half precision misses 1 by about this much.
SUM_TOLERANCE = 1e-3


def as_distributions(values: npt.ArrayLike, name: str) -> FloatArray:
    """Check rows of probabilities, shape (n, k); float32 stays, all else becomes float64."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold numbers, got dtype {array.dtype}")
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{name} must have shape (n_samples, n_clusters), none of them 0; got shape {array.shape}")
    array = array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)
    _refuse_where(~np.isfinite(array), array, ("row", "column"), name, "not a finite number")
    _refuse_where(array < 0, array, ("row", "column"), name, "negative")
    sums = array.sum(axis=1, dtype=np.float64)
    _refuse_where(np.abs(sums - 1) > SUM_TOLERANCE, sums, ("row",), f"the sum of {name}", "not 1")
    return array


def _refuse_where(
    bad: npt.NDArray[np.bool_], values: FloatArray, axes: tuple[str, ...], name: str, complaint: str
) -> None:
    """Raise an error that names the first bad value and its place, counted from 0."""
    if bad.any():
        position = np.unravel_index(np.argmax(bad), bad.shape)
        place = ", ".join(f"{axis} {index}" for axis, index in zip(axes, position, strict=True))
        raise InputError(f"{name} at {place} is {values[position]:.6g}, {complaint}")


@overload
def as_prior(prior: npt.ArrayLike | None, n_clusters: None = None) -> npt.NDArray[np.float64] | None: ...
@overload
def as_prior(prior: npt.ArrayLike | None, n_clusters: int) -> npt.NDArray[np.float64]: ...
def as_prior(prior: npt.ArrayLike | None, n_clusters: int | None = None) -> npt.NDArray[np.float64] | None:
    """Check a distribution over clusters; None means uniform, and stays None while n_clusters is not known.

    A sum that is off by no more than half precision is made 1; any other is refused, since it may as well be a slip.
    """
    if prior is None:
        return None if n_clusters is None else np.full(n_clusters, 1 / n_clusters)
    try:
        array = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"prior={prior!r}; expected numbers") from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"prior must have shape (n_clusters,), got shape {array.shape}")
    _refuse_where(~np.isfinite(array), array, ("cluster",), "prior", "not a finite number")
    _refuse_where(array < 0, array, ("cluster",), "prior", "negative")
    total = float(array.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(f"prior sums to {total:.6g}, expected 1{_scaled_hint(array, total)}")
    scaled = array / total
    return scaled if n_clusters is None else uniform_unless_given(scaled, n_clusters)


def _scaled_hint(prior: npt.NDArray[np.float64], total: float) -> str:
    """Say what the prior is when divided by its sum."""
    if not 0 < total < math.inf:
        return ""
    values = np.array2string(prior / total, precision=4, separator=", ", threshold=10, edgeitems=3, max_line_width=999)
    return f"; divided by its sum it is {values}"


def uniform_unless_given(prior: npt.ArrayLike | None, n_clusters: int) -> npt.NDArray[np.float64]:
    """Return the prior over a number of clusters."""
    if prior is None:
        return np.full(n_clusters, 1 / n_clusters)
    given = np.asarray(prior)
    if len(given) != n_clusters:
        raise InputError(f"prior has {len(given)} entries, but there are {n_clusters} clusters")
    return given


def as_weights(sample_weight: npt.ArrayLike | None, n_samples: int, dtype: npt.DTypeLike) -> FloatArray:
    """Check the weights of the points and scale them to sum 1."""
    weights = as_relative_weights(sample_weight, n_samples, np.float64)
    return np.asarray(weights / weights.sum(), dtype=dtype)


def as_relative_weights(sample_weight: npt.ArrayLike | None, n_samples: int, dtype: npt.DTypeLike) -> FloatArray:
    """Check the weights of the points and scale them so that the largest is 1.

    Only ratios matter, and the sum of huge weights, or the smallest of tiny ones, may be beyond float32.
    """
    if sample_weight is None:
        return np.ones(n_samples, dtype)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise InputError(f"sample_weight must have shape ({n_samples},), got shape {weights.shape}")
    _refuse_where(~np.isfinite(weights), weights, ("row",), "sample_weight", "not a finite number")
    _refuse_where(weights < 0, weights, ("row",), "sample_weight", "negative")
    largest = weights.max()
    if largest == 0:
        raise InputError("sample_weight is zero for every row; expected a positive weight somewhere")
    return np.asarray(weights / largest, dtype=dtype)


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite real number."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)


def check_non_negative(value: Any, name: str) -> None:
    """Refuse what is not a finite number of 0 or more."""
    if not is_number(value) or value < 0:
        raise InputError(f"{name}={value!r}; expected a number of at least 0")


def check_positive(value: Any, name: str) -> None:
    """Refuse what is not a finite number above 0."""
    if not is_number(value) or value <= 0:
        raise InputError(f"{name}={value!r}; expected a number above 0")


def check_count(value: Any, name: str, least: int = 0) -> None:
    """Refuse what is not a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}={value!r}; expected a whole number of at least {least}")


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads to use: all cores by default, and scikit-learn's meaning of negative numbers."""
    # Those that this process may use: of a container, for example.
    from joblib import cpu_count

    cores = int(cpu_count())
    if n_jobs is None:
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r}; expected a positive whole number, or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
