"""Learning from labelled rows: cross-entropy with given distributions, besides an objective that needs no labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelledRows", "Supervision"]


@dataclass(frozen=True)
class LabelledRows:
    """Labelled rows in memory, some of which are added to every batch.

    If one row in a hundred is labelled, a batch of a few hundred rows holds two or three labelled ones: their gradient
    alone would be mostly noise.

    Attributes
    ----------
    matrix : ndarray or CSR matrix
        Holds the rows, possibly among others.
    positions : ndarray of shape (n_labelled,)
        Their positions in the matrix.
    weights : ndarray of shape (n_labelled,)
        Weight of each labelled row.
    """

    matrix: Any
    positions: NDArray[np.intp]
    weights: NDArray[Any]

    def draw(self, most: int, generator: np.random.Generator) -> NDArray[np.intp]:
        """Return the labelled rows for a batch: all, or a random choice of `most` if there are more."""
        if len(self.positions) <= most:
            return np.arange(len(self.positions))
        return generator.choice(len(self.positions), most, replace=False)


@dataclass(frozen=True)
class Supervision:
    """The mean cross-entropy of predictions with given distributions, as a part of the loss.

    Attributes
    ----------
    rows : ndarray of shape (n_labelled,)
        Numbers of the labelled rows in the whole data, ascending.
    targets : ndarray of shape (n_labelled, n_clusters)
        The distribution y given for each of them.
    collision : bool
        Minimise collision cross-entropy H₂(y, σ) = −ln Σ_k y_k σ_k or else Shannon's H(y, σ) = −Σ_k y_k ln σ_k.
        The two are the same where y is one-hot.
    weight : float
        Weight of this mean loss, relative to an objective that needs no labels.
    joining : LabelledRows or None
        Labelled rows that are added to every batch; None if batches consist of labelled rows only.
    """

    rows: NDArray[np.intp]
    targets: NDArray[Any]
    collision: bool = True
    weight: float = 1.0
    joining: LabelledRows | None = None

    def only_labelled(self, sample_weight: NDArray[Any]) -> NDArray[Any]:
        """Return the weights of labelled rows, and 0 for all others."""
        weights = np.zeros_like(sample_weight)
        weights[self.rows] = sample_weight[self.rows]
        return weights

    def among(self, which: slice | NDArray[np.intp]) -> Supervision:
        """Return the labels of some of the rows, given their numbers, ascending; a slice stands for all rows."""
        if isinstance(which, slice):
            return self
        is_kept = np.isin(self.rows, which)
        return replace(self, rows=np.searchsorted(which, self.rows[is_kept]), targets=self.targets[is_kept])

    def joined(self, matrix: Any, sample_weight: NDArray[Any]) -> Supervision:
        """Return the same with labelled rows that are added to every batch, given all rows and their weights."""
        return replace(self, joining=LabelledRows(matrix, self.rows, sample_weight[self.rows]))

    def to_gradient(
        self, probabilities: NDArray[Any], labelled: NDArray[np.intp], weights: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Replace probabilities, in place, by the gradient for the logits; return each restart's loss.

        Parameters
        ----------
        probabilities : ndarray of shape (n_restarts, n_clusters, n_points)
            Predictions σ.
        labelled : ndarray of shape (n_points,)
            The labelled row of each prediction.
        weights : ndarray of shape (n_points,)
            Weights that sum to 1.
        """
        targets = np.ascontiguousarray(self.targets[labelled].T)
        losses = self._losses(probabilities, targets, weights)
        # The gradient is σ − q, where q ∝ y·σ for collision cross-entropy and q = y for Shannon's.
        learned = np.broadcast_to(targets, probabilities.shape)
        if self.collision:
            shared = targets * probabilities
            collision = shared.sum(axis=1, keepdims=True)
            # Where the prediction of the labelled class underflowed to 0, use Shannon's gradient, which raises it.
            learned = np.divide(shared, collision, out=learned.copy(), where=collision > 0)
        probabilities -= learned
        probabilities *= probabilities.dtype.type(self.weight) * weights
        return losses

    def losses(self, probabilities: NDArray[Any], rows: NDArray[np.intp], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return each restart's loss on the labelled ones among some rows.

        Parameters
        ----------
        probabilities : ndarray of shape (n_restarts, n_clusters, n_points)
            Predictions σ.
        rows : ndarray of shape (n_points,)
            Numbers of the rows in the whole data.
        weights : ndarray of shape (n_points,)
            Weight of each row.
        """
        _, among, labelled = np.intersect1d(rows, self.rows, assume_unique=True, return_indices=True)
        if len(labelled) == 0:
            return np.zeros(len(probabilities))
        shares = weights[among] / weights[among].sum()
        return self._losses(probabilities[:, :, among], self.targets[labelled].T, shares)

    def _losses(self, probabilities: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weighted mean cross-entropy of each restart."""
        floor = np.finfo(probabilities.dtype).tiny
        if self.collision:
            rowwise = -np.log(np.maximum((targets * probabilities).sum(axis=1), floor))
        else:
            rowwise = -(targets * np.log(np.maximum(probabilities, floor))).sum(axis=1)
        return np.asarray(self.weight * (rowwise @ weights), np.float64)
