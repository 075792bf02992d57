"""What a head is trained to minimise: each objective turns probabilities into the gradient with respect to the logits.

A stack of probabilities has shape (n_restarts, n_clusters, n_points). The points may be followed by as many
companions (neighbours, augmented views), each of which shares the pseudo-label of the point at the same position.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.pseudo_labels import EMSolver, ExactSolver
from cceclust.pseudo_labels.solver import Solver, logarithms_of
from cceclust.training.kernels import to_collision_gradient, to_shannon_gradient

__all__ = ["MutualInformation", "Objective", "SelfLabeling"]


class Objective(Protocol):
    """An objective with its working memory; one per thread."""

    def to_gradient(self, probabilities: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Replace probabilities, in place, by the gradient for the logits; return each restart's loss."""

    def losses(self, probabilities: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return each restart's loss."""


class SelfLabeling:
    """Cross-entropy with pseudo-labels that a solver finds for each batch (Algorithm 1 of the supplement).

    Parameters
    ----------
    solver : Solver or sequence of Solver
        Finds the pseudo-labels y for the probabilities σ: one for all restarts, or one for each.
    collision : bool
        Train with collision cross-entropy H₂(y, σ) (eq. 9), otherwise with Shannon's H(y, σ) (eq. 8).
    companion_weight : float
        Weight of the companions, relative to a weight of 1 for the points. Pseudo-labels are found for the weighted
        mean of the two predictions and used for both; the losses are averaged likewise, so that the learning rate keeps
        its meaning.
    """

    def __init__(
        self, solver: Solver | Sequence[Solver], *, collision: bool = True, companion_weight: float = 1.0
    ) -> None:
        self.solvers: list[Any] = list(solver) if isinstance(solver, Sequence) else [solver]
        self.collision = collision
        self.companion_weight = companion_weight

    def to_gradient(self, probabilities: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Replace probabilities, in place, by the gradient for the logits; return each restart's loss."""
        n_points = len(weights)
        to_gradient = to_collision_gradient if self.collision else to_shannon_gradient
        if probabilities.shape[2] == n_points:
            pseudo_labels, losses = self._solve(self.solvers, probabilities, weights)
            to_gradient(probabilities, 0, pseudo_labels, weights, 1.0)
            return losses
        points, companions = probabilities[:, :, :n_points], probabilities[:, :, n_points:]
        own = 1 / (1 + self.companion_weight)
        shared = own * points + (1 - own) * companions
        pseudo_labels, losses = self._solve(self.solvers, shared, weights)
        to_gradient(probabilities, 0, pseudo_labels, weights, own)
        to_gradient(probabilities, n_points, pseudo_labels, weights, 1 - own)
        return losses

    def losses(self, probabilities: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return each restart's loss."""
        return self._solve(
            [converged(solver) for solver in self.solvers], np.ascontiguousarray(probabilities), weights
        )[1]

    def _solve(
        self, solvers: list[Any], probabilities: NDArray[Any], weights: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Find pseudo-labels, starting from the probabilities themselves."""
        pseudo_labels, losses = probabilities.copy(), np.empty(len(probabilities))
        for restart, sigma in enumerate(probabilities):
            solver = solvers[restart if len(solvers) > 1 else 0]
            known = logarithms_of(sigma) if solver.takes_logarithms else sigma
            losses[restart] = solver.solve(known, pseudo_labels[restart], weights).loss
        return pseudo_labels, losses


def converged(solver: Any) -> Solver:
    """Return a solver that reaches the minimum of the same loss: the exact solver if there is one."""
    if isinstance(solver, EMSolver):
        return ExactSolver(fairness=solver.fairness, prior=solver.prior, tol=choices.EVALUATION_TOLERANCE)
    patient: Solver = dataclasses.replace(
        solver, max_iter=choices.EVALUATION_ITERATIONS, tol=choices.EVALUATION_TOLERANCE
    )
    return patient


class MutualInformation:
    """The mutual-information loss of Bridle et al. (1991) and Krause et al. (2010), eq. 1: mean H(σ) + w KL(σ̄ ‖ u).

    With a uniform prior u this is mean H(σ) − w H(σ̄), up to a constant.

    Parameters
    ----------
    prior : ndarray of shape (n_clusters,)
        u.
    fairness : float
        w; the paper uses 1.3.
    """

    def __init__(self, prior: NDArray[Any], fairness: float) -> None:
        self.prior = prior
        self.fairness = fairness

    def to_gradient(self, probabilities: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Replace probabilities, in place, by the gradient for the logits; return each restart's loss."""
        losses, pull = self._losses_and_pull(probabilities, weights)
        # By the probabilities: −ln σ − 1 + w (ln σ̄/u + 1); the constants vanish in the softmax's derivative.
        floor = np.finfo(probabilities.dtype).tiny
        by_probability = pull[:, :, None] - np.log(np.maximum(probabilities, floor))
        by_probability -= (by_probability * probabilities).sum(axis=1, keepdims=True)
        probabilities *= by_probability
        probabilities *= weights
        return losses

    def losses(self, probabilities: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return each restart's loss."""
        return self._losses_and_pull(probabilities, weights)[0]

    def _losses_and_pull(
        self, probabilities: NDArray[Any], weights: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Return the losses and ``w ln σ̄/u``."""
        mean = probabilities @ weights
        floor = np.finfo(probabilities.dtype).tiny
        pull = self.fairness * np.log(np.maximum(mean, floor) / np.maximum(self.prior, floor))
        entropy = -((probabilities * np.log(np.maximum(probabilities, floor))).sum(axis=1) @ weights)
        losses: NDArray[np.float64] = (entropy + (mean * pull).sum(axis=1)).astype(np.float64)
        return losses, pull.astype(probabilities.dtype)
