"""The alternating solver lowers L_CE+KL to its minimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cceclust.objective import loss_ce_kl
from cceclust.pseudo_labels import AlternatingDirectionSolver, solve_pseudo_labels


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    seed=st.integers(0, 10_000),
    n_clusters=st.integers(1, 10),
    fairness=st.sampled_from([0.05, 1.0, 50.0]),
    sharpness=st.sampled_from([0.0, 1.0, 10.0]),
)
def test_loss_never_rises_and_is_the_objective(dtype, seed, n_clusters, fairness, sharpness):
    generator = np.random.default_rng(seed)
    sigma = softmax(sharpness * generator.normal(size=(25, n_clusters))).astype(dtype)
    prior, weights = generator.dirichlet(np.ones(n_clusters)), generator.random(25) + 0.01
    solver = AlternatingDirectionSolver(fairness=fairness, prior=prior, max_iter=15, tol=0)
    result = solve_pseudo_labels(solver, sigma, sample_weight=weights, return_loss_curve=True)
    curve = result.loss_curve
    slack = 200 * np.finfo(dtype).eps * (1 + fairness + np.abs(curve).max())
    assert np.diff(curve).max() <= slack
    np.testing.assert_allclose(result.pseudo_labels.sum(axis=1), 1, atol=1e-5)
    expected = loss_ce_kl(sigma, result.pseudo_labels, fairness=fairness, prior=prior, sample_weight=weights)
    assert curve[-1] == pytest.approx(expected, abs=slack)


def test_limit_is_the_minimum_that_scipy_finds():
    sigma = softmax(np.random.default_rng(0).normal(size=(6, 3)))
    reference = minimize(
        lambda flat: loss_ce_kl(sigma, flat.reshape(6, 3), fairness=1.0),
        np.full(18, 1 / 3),
        method="SLSQP",
        bounds=[(1e-12, 1)] * 18,
        constraints={"type": "eq", "fun": lambda flat: flat.reshape(6, 3).sum(axis=1) - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    result = solve_pseudo_labels(AlternatingDirectionSolver(max_iter=50_000, tol=1e-12), sigma)
    assert loss_ce_kl(sigma, result.pseudo_labels, fairness=1.0) == pytest.approx(reference.fun, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fairness", [0.0, 1e-6, 1.0, 1e6])
def test_nothing_yields_nan(dtype, fairness):
    for sigma in (np.eye(4)[[0, 0, 0, 1]], np.full((3, 4), 0.25), np.ones((2, 1))):
        for prior in (None, np.eye(sigma.shape[1])[-1]):
            solver = AlternatingDirectionSolver(fairness=fairness, prior=prior, max_iter=20, tol=0)
            labels = solve_pseudo_labels(solver, sigma.astype(dtype)).pseudo_labels
            np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-5)
