"""What a head minimises on a batch: each objective turns logits into their gradient.

Arrays are K-major, (n_clusters, n_points). The points of a batch may be followed by as many companions, each of which
shares the pseudo-label of the point at the same position.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cceclust.compiled import compiled
from cceclust.pseudo_labels import Solver

__all__ = ["MutualInformation", "Objective", "SelfLabeling"]

Array = NDArray[np.floating[Any]]


class Objective(Protocol):
    """A loss of the logits of a batch."""

    def gradient(self, logits: Array, weights: Array) -> tuple[Array, float]:
        """Return the gradient by the logits, which may be overwritten, and the loss; weights sum to 1."""


class SelfLabeling:
    """Cross-entropy with pseudo-labels that a solver finds for each batch (Algorithm 2 of the supplement).

    With `collision` it is H₂(y, σ) of equation 9, otherwise Shannon's H(y, σ) of equation 8. Where points have
    companions, the labels are found for the means of the two predictions, and so is the mean of the two losses.
    """

    def __init__(self, solver: Solver, *, collision: bool = True) -> None:
        self.solver = solver
        self.collision = collision

    def gradient(self, logits: Array, weights: Array) -> tuple[Array, float]:
        """Return the gradient by the logits, and the solver's loss."""
        n_points, share = len(weights), weights
        known = log_softmax(logits.copy()) if self.solver.takes_logarithms else None
        sigma = shared = softmax(logits)
        if sigma.shape[1] > n_points:
            share = weights / 2
            shared = (sigma[:, :n_points] + sigma[:, n_points:]) / 2
            if known is not None:
                known = np.logaddexp(known[:, :n_points], known[:, n_points:]) - math.log(2)
        labels = shared.copy()
        loss = self.solver.solve(shared if known is None else known, labels, weights).loss
        to_gradient = to_collision_gradient if self.collision else to_shannon_gradient
        to_gradient(sigma, labels, share)
        return sigma, loss


class MutualInformation:
    """Mean of H(σ) + w KL(σ̄ ‖ u), equation 1: the paper's MIGD, which needs no pseudo-labels."""

    def __init__(self, fairness: float, prior: NDArray[np.float64]) -> None:
        self.fairness = fairness
        self.prior = prior

    def gradient(self, logits: Array, weights: Array) -> tuple[Array, float]:
        """Return the gradient by the logits, and the loss."""
        logarithms = log_softmax(logits)
        sigma = np.exp(logarithms)
        tiny = np.finfo(sigma.dtype).tiny
        pull = self.fairness * np.log(np.maximum(sigma @ weights, tiny) / np.maximum(self.prior, tiny))
        # By the probabilities: −ln σ − 1 + w (ln σ̄/u + 1); the constants vanish in the softmax's derivative.
        by_probability = pull.astype(sigma.dtype)[:, None] - logarithms
        mean = (by_probability * sigma).sum(axis=0)
        return sigma * (by_probability - mean) * weights, float(mean @ weights)


def softmax(logits: Array) -> Array:
    """Turn logits into probabilities over the clusters, in place."""
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits


def log_softmax(logits: Array) -> Array:
    """Turn logits into logarithms of probabilities, in place."""
    logits -= logits.max(axis=0)
    logits -= np.log(np.exp(logits).sum(axis=0))
    return logits


@compiled(error_model="numpy")
def to_collision_gradient(sigma: Array, labels: Array, weights: Array) -> None:
    """Replace σ by w (σ − q), q ∝ y·σ. Where y and σ share no class, no direction is better than another."""
    n_clusters, n_points = labels.shape
    zero, one = sigma.dtype.type(0), sigma.dtype.type(1)
    # Below this, a reciprocal would overflow.
    smallest = sigma.dtype.type(np.finfo(sigma.dtype).tiny)
    inverse = np.empty(n_points, sigma.dtype)
    for first in range(0, sigma.shape[1], n_points):
        inverse[:] = zero
        for k in range(n_clusters):
            probability = sigma[k, first : first + n_points]
            for i in range(n_points):
                inverse[i] += probability[i] * labels[k, i]
        for i in range(n_points):
            inverse[i] = one / inverse[i] if inverse[i] >= smallest else zero
        for k in range(n_clusters):
            probability = sigma[k, first : first + n_points]
            for i in range(n_points):
                ratio = labels[k, i] * inverse[i] if inverse[i] > zero else one
                probability[i] *= weights[i] * (one - ratio)


@compiled(error_model="numpy")
def to_shannon_gradient(sigma: Array, labels: Array, weights: Array) -> None:
    """Replace σ by w (σ − y)."""
    n_clusters, n_points = labels.shape
    for first in range(0, sigma.shape[1], n_points):
        for k in range(n_clusters):
            probability = sigma[k, first : first + n_points]
            for i in range(n_points):
                probability[i] = weights[i] * (probability[i] - labels[k, i])
