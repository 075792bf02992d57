"""Labels of any kind as integers or strings, some of which may be missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError

__all__ = ["as_labels", "is_missing", "label_accuracy", "name_extra_clusters"]


def as_labels(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return labels as a vector of integers or strings, with −1 or the empty string for missing ones."""
    labels = np.asarray(values)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"{name} have shape {labels.shape}; expected (n_samples,)")
    if labels.dtype.kind == "O":
        labels = from_objects(labels)
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8")
    if labels.dtype.kind == "f":
        # pandas stores integers with gaps as floats with NaN.
        whole = np.where(np.isnan(labels), -1, labels)
        fractions = whole[~(np.isfinite(whole) & (whole == np.floor(whole)))]
        if fractions.size:
            raise InputError(f"{name} hold numbers such as {fractions[0]:g}; expected whole numbers or strings")
        return np.asarray(whole, np.int64)
    if labels.dtype.kind == "b":
        return labels.astype(np.int64)
    if labels.dtype.kind not in "iuU":
        raise InputError(f"{name} are of type {labels.dtype}; expected integers or strings")
    return labels


def from_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Turn Python objects into integers if all are integers, otherwise into strings; None and NaN are missing."""
    # pandas has three missing values, one of which cannot be compared: compare their texts.
    gaps = [not isinstance(value, str) and str(value) in ("None", "nan", "<NA>") for value in labels]
    pairs = list(zip(gaps, labels, strict=True))
    if all(gap or isinstance(value, int | np.integer) for gap, value in pairs):
        return np.array([-1 if gap else int(value) for gap, value in pairs], np.int64)
    return np.array(["" if gap else str(value) for gap, value in pairs], str)


def is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which integers or strings mean "no label": −1, "-1" or the empty string."""
    return np.asarray(np.isin(labels, ("", "-1")) if labels.dtype.kind == "U" else labels == -1)


def name_extra_clusters(classes: NDArray[Any], count: int) -> NDArray[Any]:
    """Return labels for clusters beyond the classes: the next numbers, or "extra 1", "extra 2", …"""
    if classes.dtype.kind == "U":
        return np.array([f"extra {number}" for number in range(1, count + 1)], str)
    return np.asarray(np.arange(count) + classes.max() + 1)


def label_accuracy(true_labels: ArrayLike, predicted: ArrayLike) -> float:
    """Return the share of rows with a true label whose predicted label is that one; 3 and "3" are the same label."""
    truth, found = as_labels(true_labels, "true labels"), as_labels(predicted, "predicted labels")
    known = ~is_missing(truth)
    return float((truth[known].astype(str) == found[known].astype(str)).mean())
