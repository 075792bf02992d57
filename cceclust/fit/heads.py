"""Heads: softmax of a few features of each point, trained by collision cross-entropy and EM in steps without a rate.

A head is linear in the point, in the products of every two of its leading axes (so that borders may curve), and in 1.
For soft targets t and predictions σ, its loss is convex in the weights W, and its curvature is at most that of
Böhning's bound, ½ FᵀF: so the step

    W ← W + (½ FᵀAF + d)⁻¹ (FᵀA (t − σ) − d W)

never raises the loss, with A the weights of the rows and d the weight decay. The bound does not depend on W: it is
factorised once for all heads and all steps (D. Böhning, "Multinomial logistic regression algorithm", 1992).

Heads and probabilities are K-major, (n_clusters, n_points): the inner loops run over points and vectorise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from cceclust.compiled import compiled
from cceclust.fit.head import Curves, Head, products_of_pairs
from cceclust.fit.sample import Projection
from cceclust.fit.source import block_slices
from cceclust.pseudo_labels import EMSolver

__all__ = ["ROUNDS", "Basis", "GivenLabels", "HeadTrainer", "basis_of"]

# Borders may curve along this many leading axes: 10 lost half a point on pixels, 24 gained nothing.
CURVED_AXES = 16
# Weight decay. Labels alone need more of it, or wrong ones are learnt by heart.
DECAY, DECAY_WITH_LABELS_ALONE = 0.01, 0.3
# Steps towards a start, and as many rounds of EM and a step; more changed nothing.
ROUNDS = 15
# Iterations of EM in a round.
EM_ITERATIONS = 5


@dataclass(frozen=True)
class Basis:
    """What heads are linear in.

    Attributes
    ----------
    n_linear : int
        Number of axes of the points.
    means, deviations : ndarray of shape (n_curved,)
        Of the leading axes, along which borders may curve.
    product_means : ndarray
        The means of the products of every two of these, after scaling.
    """

    n_linear: int
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    product_means: NDArray[np.float64]

    @property
    def n_features(self) -> int:
        """Number of columns that a head has a weight for."""
        return self.n_linear + len(self.product_means) + 1

    def features(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features of points: the points, their products, and 1."""
        features = np.empty((len(points), self.n_features), np.float32)
        # Block by block, as products need several times the memory of what is kept of them.
        for where in block_slices(features.shape, features.dtype):
            places = (points[where, : len(self.means)] - self.means) / self.deviations
            features[where, : self.n_linear] = points[where]
            features[where, self.n_linear : -1] = products_of_pairs(places.astype(np.float32)) - self.product_means
        features[:, -1] = 1
        return features

    def fold(self, weights: NDArray[np.float64], projection: Projection, dtype: np.dtype[np.floating]) -> Head:
        """Return the head for raw rows."""
        linear, products, bias = np.split(weights, [self.n_linear, weights.shape[1] - 1], axis=1)
        coef = linear @ projection.matrix.T
        intercept = bias[:, 0] - coef @ projection.mean - products @ self.product_means
        if not len(self.means):
            return Head(coef.astype(dtype), intercept.astype(dtype))
        axes = (projection.matrix[:, : len(self.means)] / self.deviations).T
        offsets = -axes @ projection.mean - self.means / self.deviations
        curves = Curves(axes.astype(dtype), offsets.astype(dtype), products.astype(dtype))
        return Head(coef.astype(dtype), intercept.astype(dtype), curves)


def basis_of(points: NDArray[np.float32], weights: NDArray[np.float32], *, curved: bool) -> Basis:
    """Return what heads of these points are linear in."""
    leading = points[:, : CURVED_AXES if curved else 0].astype(np.float64)
    shares = weights.astype(np.float64) / weights.sum(dtype=np.float64)
    means = shares @ leading
    variances = shares @ (leading - means) ** 2
    # Axes come in the order of their variance.
    n_curved = int((variances > np.finfo(np.float32).eps * variances.max(initial=0.0)).sum())
    means, deviations = means[:n_curved], np.sqrt(variances[:n_curved])
    places = (leading[:, :n_curved] - means) / deviations
    moments = (places * shares[:, None]).T @ places
    return Basis(points.shape[1], means, deviations, moments[np.triu_indices(n_curved)])


@dataclass(frozen=True)
class GivenLabels:
    """What is known of the classes of some points.

    Attributes
    ----------
    rows : ndarray of shape (n_labelled,)
        Numbers of the points.
    targets : ndarray of shape (n_labelled, n_clusters)
        Distributions over the classes; one-hot where a class is certain.
    collision : bool
        Whether their loss is collision cross-entropy or Shannon's.
    weight : float
        Weight of their mean loss beside that of all points.
    """

    rows: NDArray[np.intp]
    targets: NDArray[np.float64]
    collision: bool = True
    weight: float = 1.0


class HeadTrainer:
    """Trains heads on the same points.

    Parameters
    ----------
    features : ndarray of shape (n_points, n_columns), float32
        From :meth:`Basis.features`.
    weights : ndarray of shape (n_points,)
        Of the points.
    neighbors : ndarray of shape (n_points, n_neighbors)
        Pseudo-labels are found for the mean of the neighbours' predictions.
    fairness : float
        λ of the loss: how strongly sizes are pulled to the prior.
    given : GivenLabels, optional
        Fixed targets of some points.
    self_labeling : bool
        Whether points also get pseudo-labels.
    """

    def __init__(
        self,
        features: NDArray[np.float32],
        weights: NDArray[np.float32],
        neighbors: NDArray[np.int32],
        *,
        fairness: float,
        given: GivenLabels | None = None,
        self_labeling: bool = True,
    ) -> None:
        self.features, self.neighbors, self.fairness, self.given = features, neighbors, fairness, given
        self.shares = (weights / weights.sum(dtype=np.float64)).astype(np.float32)
        self.self_labeling = self_labeling
        row_weights = self.shares.copy() if self_labeling else np.zeros_like(self.shares)
        if given is not None:
            labelled = self.shares[given.rows]
            self.label_shares = given.weight * labelled / labelled.sum()
            row_weights[given.rows] += self.label_shares
        bound = np.zeros((features.shape[1], features.shape[1]))
        for where in block_slices(features.shape, features.dtype):
            bound += features[where].T @ (features[where] * row_weights[where, None]) / 2
        self.decay = np.full(features.shape[1], DECAY if self_labeling else DECAY_WITH_LABELS_ALONE)
        self.decay[-1] = 0.0
        bound[np.diag_indices_from(bound)] += np.maximum(self.decay, 1e-6)
        self.factor = cho_factor(bound)

    def predict(self, head: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the probabilities of a head, shape (n_clusters, n_points)."""
        probabilities = head.astype(np.float32) @ self.features.T
        softmax_in_place(probabilities)
        return probabilities

    def labels(self, head: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the cluster of each point."""
        logits = head.astype(np.float32) @ self.features.T
        return np.asarray(logits.argmax(axis=0), np.int32)

    def step(self, head: NDArray[np.float64], residual: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the head after a step, given the weighted differences between targets and predictions."""
        gradient = (residual @ self.features).astype(np.float64) - self.decay * head
        return np.asarray(head + cho_solve(self.factor, gradient.T, check_finite=False).T)

    def towards(self, start: NDArray[np.int32], n_clusters: int) -> NDArray[np.float64]:
        """Return a head that was trained towards the clusters of a start."""
        targets = np.zeros((n_clusters, len(start)), np.float32)
        targets[start, np.arange(len(start))] = 1
        head = np.zeros((n_clusters, self.features.shape[1]))
        for _ in range(ROUNDS):
            head = self.step(head, (targets - self.predict(head)) * self.shares)
        return head

    def towards_given(self, n_clusters: int) -> NDArray[np.float64]:
        """Return a head that was trained on the given labels alone."""
        head = np.zeros((n_clusters, self.features.shape[1]))
        for _ in range(ROUNDS):
            predicted = self.predict(head)
            residual = np.zeros_like(predicted)
            self.add_given(residual, predicted)
            head = self.step(head, residual)
        return head

    def refine(
        self, head: NDArray[np.float64], prior: NDArray[np.float64], n_rounds: int = ROUNDS
    ) -> NDArray[np.float64]:
        """Return the head after rounds of EM and a step, towards clusters whose shares are near the prior."""
        solver = EMSolver(self.fairness, prior=prior, max_iter=EM_ITERATIONS, tol=0.0)
        averaged = np.empty((len(head), len(self.features)), np.float32)
        for _ in range(n_rounds):
            predicted = self.predict(head)
            mean_of_neighbors(predicted, self.neighbors, averaged)
            residual = averaged.copy()
            solver.solve(averaged, residual, self.shares)
            to_residual(residual, predicted, self.shares)
            self.add_given(residual, predicted)
            head = self.step(head, residual)
        return head

    def add_given(self, residual: NDArray[np.float32], predicted: NDArray[np.float32]) -> None:
        """Add the differences between given labels and predictions (residual IN and OUT)."""
        if self.given is None:
            return
        targets, probabilities = self.given.targets.T.astype(np.float32), predicted[:, self.given.rows]
        if self.given.collision:
            targets = targets * probabilities
            targets /= np.maximum(targets.sum(axis=0), np.finfo(np.float32).tiny)
        residual[:, self.given.rows] += (targets - probabilities) * self.label_shares


@compiled(error_model="numpy")
def softmax_in_place(logits: NDArray[np.float32]) -> None:
    """Replace logits by probabilities: those of each point, a column, sum to 1."""
    n_clusters, n_points = logits.shape
    block = 512
    largest, total = np.empty(block, np.float32), np.empty(block, np.float32)
    for first in range(0, n_points, block):
        count = min(block, n_points - first)
        largest[:] = -np.inf
        total[:] = 0
        for k in range(n_clusters):
            for i in range(count):
                largest[i] = max(largest[i], logits[k, first + i])
        for k in range(n_clusters):
            for i in range(count):
                power = np.exp(logits[k, first + i] - largest[i])
                logits[k, first + i] = power
                total[i] += power
        for i in range(count):
            total[i] = np.float32(1) / total[i]
        for k in range(n_clusters):
            for i in range(count):
                logits[k, first + i] *= total[i]


@compiled(error_model="numpy")
def mean_of_neighbors(
    predicted: NDArray[np.float32], neighbors: NDArray[np.int32], averaged: NDArray[np.float32]
) -> None:
    """Write the mean of each point's neighbours' predictions to `averaged` (OUT)."""
    n_points, n_neighbors = neighbors.shape
    part = np.float32(1 / n_neighbors)
    for k in range(predicted.shape[0]):
        row, target = predicted[k], averaged[k]
        for i in range(n_points):
            total = np.float32(0)
            for m in range(n_neighbors):
                total += row[neighbors[i, m]]
            target[i] = total * part


@compiled(error_model="numpy")
def to_residual(
    pseudo_labels: NDArray[np.float32], predicted: NDArray[np.float32], shares: NDArray[np.float32]
) -> None:
    """Replace pseudo-labels y by ``share · (t − σ)`` with the targets t ∝ y·σ of collision cross-entropy (IN and OUT).

    Where y and σ share no class, no direction is better than another.
    """
    n_clusters, n_points = predicted.shape
    smallest = np.float32(1e-30)
    total = np.zeros(n_points, np.float32)
    for k in range(n_clusters):
        for i in range(n_points):
            total[i] += pseudo_labels[k, i] * predicted[k, i]
    for i in range(n_points):
        total[i] = np.float32(1) / total[i] if total[i] > smallest else np.float32(0)
    for k in range(n_clusters):
        for i in range(n_points):
            share = pseudo_labels[k, i] * total[i] if total[i] > 0 else np.float32(1)
            pseudo_labels[k, i] = shares[i] * predicted[k, i] * (share - np.float32(1))
