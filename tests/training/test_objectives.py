"""Every objective's gradient against finite differences of the plain-NumPy losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from cceclust.objective import (
    collision_cross_entropy,
    cross_entropy,
    entropy,
    kl_divergence,
    loss_cce_plus,
    loss_ce_kl,
)
from cceclust.pseudo_labels import AlternatingDirectionSolver, EMSolver, solve_pseudo_labels
from cceclust.training.objectives import MutualInformation, SelfLabeling

N_RESTARTS, N_CLUSTERS, N_POINTS = 2, 3, 8
PRIOR = np.array([0.5, 0.3, 0.2])


def some_logits() -> Any:
    return 2 * np.random.default_rng(0).normal(size=(N_RESTARTS, N_CLUSTERS, N_POINTS))


def some_weights() -> Any:
    weights = np.random.default_rng(1).random(N_POINTS)
    return weights / weights.sum()


def finite_differences(function: Callable[[Any], float], logits: Any, step: float = 1e-6) -> Any:
    """Return the gradient of a function of logits (n_clusters, n_points)."""
    gradient = np.empty_like(logits)
    for place in np.ndindex(*logits.shape):
        ends = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[place] += sign * step
            ends.append(function(moved))
        gradient[place] = (ends[0] - ends[1]) / (2 * step)
    return gradient


def rows_of(logits: Any) -> Any:
    """Return the probabilities (n_points, n_clusters) of logits (n_clusters, n_points)."""
    return softmax(logits, axis=0).T


def test_mutual_information_has_the_gradient_and_the_value_of_its_formula() -> None:
    logits, weights = some_logits(), some_weights()

    def loss(one: Any) -> float:
        sigma = rows_of(one)
        return float(weights @ entropy(sigma) + 1.3 * kl_divergence(weights @ sigma, PRIOR))

    objective, stack = MutualInformation(PRIOR, 1.3), softmax(logits, axis=1)
    np.testing.assert_allclose(objective.losses(stack, weights), [loss(one) for one in logits])
    losses = objective.to_gradient(stack, weights)
    np.testing.assert_allclose(losses, [loss(one) for one in logits])
    np.testing.assert_allclose(stack, [finite_differences(loss, one) for one in logits], atol=1e-8)


@pytest.mark.parametrize(
    ("solver", "collision", "loss", "fit"),
    [
        (EMSolver(fairness=2.0, prior=PRIOR, max_iter=30), True, loss_cce_plus, collision_cross_entropy),
        (AlternatingDirectionSolver(fairness=2.0, prior=PRIOR, max_iter=30), False, loss_ce_kl, cross_entropy),
    ],
)
def test_self_labeling_descends_on_the_cross_entropy_with_its_pseudo_labels(
    solver: Any, collision: bool, loss: Any, fit: Any
) -> None:
    logits, weights = some_logits(), some_weights()
    stack = softmax(logits, axis=1)
    losses = SelfLabeling(solver, collision=collision).to_gradient(stack, weights)
    for restart, one in enumerate(logits):
        labels = solve_pseudo_labels(solver, rows_of(one), sample_weight=weights).pseudo_labels
        expected = loss(rows_of(one), labels, fairness=2.0, prior=PRIOR, sample_weight=weights)
        assert losses[restart] == pytest.approx(expected)
        gradient = finite_differences(lambda moved, y=labels: float(weights @ fit(y, rows_of(moved))), one)
        np.testing.assert_allclose(stack[restart], gradient, atol=1e-7)


def test_companions_learn_the_shared_pseudo_label() -> None:
    logits, weights = some_logits(), some_weights()
    both = np.concatenate([logits, logits[:, ::-1]], axis=2)
    stack, solver = softmax(both, axis=1), EMSolver(max_iter=30)
    own, theirs = stack[:, :, :N_POINTS].copy(), stack[:, :, N_POINTS:].copy()
    SelfLabeling(solver, companion_weight=0.5).to_gradient(stack, weights)
    shared = np.ascontiguousarray(((2 * own + theirs) / 3).transpose(0, 2, 1))
    labels = np.stack([solve_pseudo_labels(solver, one, sample_weight=weights).pseudo_labels.T for one in shared])
    for part, sigma, gradient in ((2 / 3, own, stack[:, :, :N_POINTS]), (1 / 3, theirs, stack[:, :, N_POINTS:])):
        product = labels * sigma
        expected = part * weights * (sigma - product / product.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(gradient, expected, atol=1e-9)


def test_companions_equal_to_their_points_change_nothing() -> None:
    logits, weights = some_logits(), some_weights()
    alone, doubled = softmax(logits, axis=1), softmax(np.concatenate([logits, logits], axis=2), axis=1)
    objective = SelfLabeling(EMSolver(max_iter=30), companion_weight=2.0)
    np.testing.assert_allclose(objective.to_gradient(doubled, weights), objective.to_gradient(alone, weights))
    np.testing.assert_allclose(doubled[:, :, :N_POINTS] + doubled[:, :, N_POINTS:], alone, atol=1e-12)


@pytest.mark.parametrize(
    "make", [lambda: SelfLabeling(EMSolver(max_iter=30)), lambda: MutualInformation(np.full(3, 1 / 3), 1.3)]
)
def test_float32_stays_float32_and_close_to_float64(make: Callable[[], Any]) -> None:
    wide, weights = softmax(some_logits(), axis=1), some_weights()
    narrow = wide.astype(np.float32)
    losses = make().to_gradient(wide, weights)
    np.testing.assert_allclose(make().to_gradient(narrow, weights.astype(np.float32)), losses, rtol=1e-4)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, wide, atol=1e-4)


def test_evaluation_goes_beyond_the_iterations_of_a_batch() -> None:
    stack, weights = softmax(some_logits(), axis=1), some_weights()
    hasty = SelfLabeling(EMSolver(fairness=5.0, max_iter=1, tol=0.0))
    patient = SelfLabeling(EMSolver(fairness=5.0, max_iter=2000, tol=0.0))
    best = patient.to_gradient(stack.copy(), weights)
    assert (hasty.to_gradient(stack.copy(), weights) > 1.02 * best).all()
    np.testing.assert_allclose(hasty.losses(stack, weights), best, rtol=1e-2)
