"""Given labels (few, soft or noisy ones) in one form: distributions over classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from cceclust.errors import InputError
from cceclust.labels import as_labels, is_missing, name_extra_clusters
from cceclust.validation import SUM_TOLERANCE, check_non_negative

__all__ = ["GivenLabels", "read_labels"]

# Distributions written with a few digits do not sum to exactly 1.


@dataclass(frozen=True)
class GivenLabels:
    """Distributions over classes, for the labelled rows.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Names of the classes.
    rows : ndarray of shape (n_labelled,)
        Numbers of the labelled rows, ascending.
    targets : ndarray of shape (n_labelled, n_classes)
        One-hot for hard labels.
    n_rows : int
        Number of all rows.
    """

    classes: NDArray[Any]
    rows: NDArray[np.intp]
    targets: NDArray[Any]
    n_rows: int

    @property
    def is_complete(self) -> bool:
        """Whether every row has a label."""
        return len(self.rows) == self.n_rows

    @property
    def is_certain(self) -> bool:
        """Whether every label is one-hot."""
        return bool((self.targets.max(axis=1) == 1).all())

    def with_weight_in_every_class(self, sample_weight: NDArray[Any]) -> GivenLabels:
        """Return the labels of the rows with a positive weight, which must leave some of every class."""
        kept = self._where(sample_weight[self.rows] > 0)
        if len(kept.rows) == 0:
            raise InputError("no row has a label; cluster without labels instead")
        empty = np.flatnonzero(kept.targets.sum(axis=0) == 0)
        if len(empty):
            name = self.classes[empty[0]]
            raise InputError(
                f"class {name} has no row that is labelled and has weight; label one, or leave the class out and ask "
                "for one more cluster"
            )
        return kept

    def with_noise(self, label_noise: float | ArrayLike) -> GivenLabels:
        """Return what noisy labels stand for: label l becomes row Q_l of the transition matrix, made a distribution."""
        matrix = transition_matrix(label_noise, len(self.classes))
        targets = self.targets @ matrix
        sums = targets.sum(axis=1, keepdims=True)
        if not sums.all():
            label = self.classes[self.targets[int(np.argmin(sums))].argmax()]
            raise InputError(f"label_noise says that {label} is never observed, but rows have this label")
        return replace(self, targets=targets / sums)

    def with_extra_clusters(self, count: int) -> GivenLabels:
        """Return the labels with this many extra clusters, to which no labelled row belongs."""
        classes = np.concatenate([self.classes, name_extra_clusters(self.classes, count)])
        return replace(self, classes=classes, targets=np.pad(self.targets, ((0, 0), (0, count))))

    def informative(self) -> GivenLabels:
        """Return the labels that are not uniform: a uniform label has no effect on collision cross-entropy."""
        if len(self.rows) == 0 or len(self.classes) == 1:
            return self
        kept = self._where(np.ptp(self.targets, axis=1) > SUM_TOLERANCE)
        if len(kept.rows) == 0:
            raise InputError("every soft label is uniform, which teaches nothing; cluster without labels instead")
        return kept

    def _where(self, mask: NDArray[np.bool_]) -> GivenLabels:
        """Return some of the labels."""
        return replace(self, rows=self.rows[mask], targets=self.targets[mask])


def read_labels(y: Any, *, one_class_is_enough: bool = False) -> GivenLabels:
    """Return labels as distributions; −1, "", "-1", None, NaN and rows of NaN mean unknown.

    Where one class is not enough, labels −1 and 1 are two classes, since a single one is nothing to classify.
    """
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        return read_soft_labels(values)
    return read_hard_labels(column_or_1d(values, warn=True), one_class_is_enough)


def read_hard_labels(y: NDArray[Any], one_class_is_enough: bool) -> GivenLabels:
    """Return one-hot distributions for the labels that are known."""
    if y.dtype.kind == "f":
        check_classification_targets(np.append(y[np.isfinite(y)], -1))
    labels = as_labels(y, "labels")
    is_known = ~is_missing(labels)
    if not one_class_is_enough and np.array_equal(np.unique(labels), [-1, 1]):
        is_known[:] = True
    rows = np.flatnonzero(is_known)
    names, codes = np.unique(labels[rows], return_inverse=True)
    return GivenLabels(names, rows, np.eye(len(names))[codes], len(labels))


def read_soft_labels(y: NDArray[Any]) -> GivenLabels:
    """Return the known distributions, after a check of each."""
    try:
        values = y.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"soft labels are of type {y.dtype}; expected numbers that sum to 1 in each row") from None
    rows = np.flatnonzero(~np.isnan(values).all(axis=1))
    targets = values[rows]
    sums = targets.sum(axis=1)
    refuse_row(rows, ~(np.isfinite(sums) & (targets >= 0).all(axis=1)), "holds NaN, infinite or negative values")
    off = np.abs(sums - 1) > SUM_TOLERANCE
    refuse_row(rows, off, f"sums to {sums[off][0]:.6g}" if off.any() else "")
    return GivenLabels(np.arange(values.shape[1]), rows, targets / sums[:, None], len(values))


def refuse_row(rows: NDArray[np.intp], is_bad: NDArray[np.bool_], problem: str) -> None:
    """Raise if a row of soft labels is not a distribution."""
    if is_bad.any():
        raise InputError(
            f"{int(is_bad.sum())} of {len(rows)} rows of soft labels are no distributions: row {rows[is_bad][0]} "
            f"{problem}; expected values of at least 0 that sum to 1, or only NaN where nothing is known"
        )


def transition_matrix(label_noise: float | ArrayLike, n_classes: int) -> NDArray[np.float64]:
    """Return Q, with Q_lk the probability that label l is observed where class k is true."""
    if np.ndim(label_noise) == 0:
        check_non_negative(label_noise, "label_noise")
        noise = float(label_noise)  # type: ignore[arg-type]
        if noise >= 1:
            raise InputError(f"label_noise={noise:g}; expected less than 1: labels that are all noise teach nothing")
        return noise / n_classes + (1 - noise) * np.eye(n_classes)
    matrix = np.asarray(label_noise, np.float64)
    if matrix.shape != (n_classes, n_classes):
        raise InputError(
            f"label_noise has shape {matrix.shape}; expected a number, or a matrix of {n_classes} × {n_classes} classes"
        )
    sums = matrix.sum(axis=0)
    if not (matrix >= 0).all() or not np.allclose(sums, 1, atol=SUM_TOLERANCE):
        transposed = " (its rows do: is it transposed?)" if np.allclose(matrix.sum(axis=1), 1) else ""
        raise InputError(
            "label_noise is no transition matrix: expected entries of at least 0 and columns that sum to 1, the column "
            f"of a true class holding the probability of each label; they sum to {sums.round(4).tolist()}{transposed}"
        )
    return matrix
