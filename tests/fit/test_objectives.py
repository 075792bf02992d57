"""Every objective's gradient against finite differences of the plain-NumPy losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from cceclust.fit.objectives import MutualInformation, SelfLabeling, to_collision_gradient
from cceclust.objective import (
    collision_cross_entropy,
    cross_entropy,
    entropy,
    gradient_by_logits,
    kl_divergence,
    loss_cce_plus,
    loss_ce_kl,
)
from cceclust.pseudo_labels import AlternatingDirectionSolver, EMSolver, OptimalTransportSolver, solve_pseudo_labels

PRIOR = np.array([0.5, 0.3, 0.2])
LOGITS = 2 * np.random.default_rng(0).normal(size=(3, 8))
WEIGHTS = np.random.default_rng(1).dirichlet(np.ones(8))


def finite_differences(function: Callable[[Any], float], logits: Any, step: float = 1e-6) -> Any:
    gradient = np.empty_like(logits)
    for place in np.ndindex(*logits.shape):
        moved = [logits.copy(), logits.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        gradient[place] = (function(moved[0]) - function(moved[1])) / (2 * step)
    return gradient


def rows_of(logits: Any) -> Any:
    return softmax(logits, axis=0).T


def test_mutual_information_has_the_gradient_and_the_value_of_its_formula() -> None:
    def loss(logits: Any) -> float:
        sigma = rows_of(logits)
        return float(WEIGHTS @ entropy(sigma) + 1.3 * kl_divergence(WEIGHTS @ sigma, PRIOR))

    gradient, value = MutualInformation(1.3, PRIOR).gradient(LOGITS.copy(), WEIGHTS)
    assert value == pytest.approx(loss(LOGITS))
    np.testing.assert_allclose(gradient, finite_differences(loss, LOGITS), atol=1e-8)


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
    sigma = rows_of(LOGITS)
    labels = solve_pseudo_labels(solver, sigma, sample_weight=WEIGHTS).pseudo_labels
    gradient, value = SelfLabeling(solver, collision=collision).gradient(LOGITS.copy(), WEIGHTS)
    assert value == pytest.approx(loss(sigma, labels, fairness=2.0, prior=PRIOR, sample_weight=WEIGHTS))
    expected = finite_differences(lambda moved: float(WEIGHTS @ fit(labels, rows_of(moved))), LOGITS)
    np.testing.assert_allclose(gradient, expected, atol=1e-7)


@pytest.mark.parametrize("collision", [True, False])
def test_companions_learn_the_label_of_the_mean_prediction(collision: bool) -> None:
    theirs, solver = LOGITS[:, ::-1], EMSolver(max_iter=30)
    gradient, _ = SelfLabeling(solver, collision=collision).gradient(np.hstack([LOGITS, theirs]), WEIGHTS)
    shared = (rows_of(LOGITS) + rows_of(theirs)) / 2
    labels = solve_pseudo_labels(solver, shared, sample_weight=WEIGHTS).pseudo_labels
    for logits, part in ((LOGITS, gradient[:, :8]), (theirs, gradient[:, 8:])):
        away = gradient_by_logits(rows_of(logits), labels) if collision else rows_of(logits) - labels
        np.testing.assert_allclose(part, (WEIGHTS[:, None] * away / 2).T, atol=1e-12)


def test_saturated_predictions_get_balanced_labels() -> None:
    # All prefer the first cluster by so much that float32 has 0 for the other; the last four would leave it first.
    logits = np.zeros((2, 8), np.float32)
    logits[0] = np.repeat([900, 200], 4)
    weights = np.full(8, 1 / 8, np.float32)
    objective = SelfLabeling(OptimalTransportSolver(one_hot=True), collision=False)
    for batch in (logits, np.hstack([logits, logits])):
        gradient, loss = objective.gradient(batch.copy(), weights)
        np.testing.assert_array_equal(gradient[1] < 0, np.tile(np.arange(8) >= 4, batch.shape[1] // 8))
        assert loss == pytest.approx(logits[0, 4:].sum() / 8, rel=1e-5)


def test_where_labels_and_predictions_share_no_class_nothing_is_learnt() -> None:
    sigma, labels = np.array([[1.0, 0.4], [0.0, 0.6]]), np.array([[0.0, 0.5], [1.0, 0.5]])
    to_collision_gradient(sigma, labels, np.full(2, 0.5))
    np.testing.assert_array_equal(sigma[:, 0], 0)


@pytest.mark.parametrize(
    "make", [lambda: SelfLabeling(EMSolver(max_iter=30)), lambda: MutualInformation(1.3, np.full(3, 1 / 3))]
)
def test_float32_stays_float32_and_close_to_float64(make: Callable[[], Any]) -> None:
    gradient, loss = make().gradient(LOGITS.copy(), WEIGHTS)
    narrow, narrow_loss = make().gradient(LOGITS.astype(np.float32), WEIGHTS.astype(np.float32))
    assert narrow.dtype == np.float32
    assert narrow_loss == pytest.approx(loss, rel=1e-4)
    np.testing.assert_allclose(narrow, gradient, atol=1e-4)
