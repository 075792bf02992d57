"""Projected gradient descent projects correctly and finds the minimum of both losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cceclust import estimate_pseudo_labels, objective
from cceclust.errors import InputError
from cceclust.pseudo_labels import PGDSolver, pgd, solve_pseudo_labels


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def project_by_sorting(rows):
    """The textbook projection onto the simplex."""
    descending = -np.sort(-rows, axis=1)
    thresholds = (np.cumsum(descending, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    support = (descending > thresholds).sum(axis=1)
    return np.maximum(rows - thresholds[np.arange(len(rows)), support - 1][:, None], 0)


@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([0.0, 0.1, 1.0, 100.0]))
def test_projection_is_the_nearest_point_of_the_simplex(seed, n_clusters, size):
    rows = size * np.random.default_rng(seed).normal(size=(9, n_clusters))
    labels = np.ascontiguousarray(rows.T)
    pgd._project(labels, np.empty((4, 9)))
    np.testing.assert_allclose(labels.T, project_by_sorting(rows), atol=1e-10)


def test_a_long_run_reaches_the_minimum_that_em_finds():
    sigma = softmax(np.random.default_rng(0).normal(size=(30, 4)))
    by_em = estimate_pseudo_labels(sigma, fairness=1.0, max_iter=100_000, tol=1e-13).pseudo_labels
    solver = PGDSolver(fairness=1.0, step_size=0.15, max_iter=20_000, tol=0)
    by_pgd = solve_pseudo_labels(solver, sigma).pseudo_labels
    losses = [objective.loss_cce_plus(sigma, y, fairness=1.0) for y in (by_em, by_pgd)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.mark.parametrize("loss", ["cce", "cce+"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_steps_lower_the_loss_they_report(loss, dtype):
    generator = np.random.default_rng(0)
    sigma = softmax(generator.normal(size=(40, 5))).astype(dtype)
    prior, weights = generator.dirichlet(np.ones(5)), generator.random(40)
    solver = PGDSolver(fairness=2.0, prior=prior, loss=loss, step_size=0.005, max_iter=50, tol=0)
    result = solve_pseudo_labels(solver, sigma, sample_weight=weights, return_loss_curve=True)
    curve = result.loss_curve
    assert np.diff(curve).max() < 1e-5 if dtype == np.float32 else np.diff(curve).max() < 0
    oracle = objective.loss_cce if loss == "cce" else objective.loss_cce_plus
    expected = oracle(sigma, result.pseudo_labels, fairness=2.0, prior=prior, sample_weight=weights)
    assert curve[-1] == pytest.approx(expected, rel=1e-5)


def test_a_point_of_double_weight_moves_like_two_points():
    sigma = softmax(np.random.default_rng(0).normal(size=(6, 3)))
    solver = PGDSolver(fairness=2.0, step_size=0.05, max_iter=20, tol=0)
    weighted = solve_pseudo_labels(solver, sigma, sample_weight=[2, 1, 1, 1, 1, 1]).pseudo_labels
    repeated = solve_pseudo_labels(solver, sigma[[0, 0, 1, 2, 3, 4, 5]]).pseudo_labels
    np.testing.assert_allclose(weighted, repeated[1:], atol=1e-12)


def test_limit_of_cce_beats_its_neighbourhood():
    sigma = softmax(np.random.default_rng(0).normal(size=(10, 3)))
    solver = PGDSolver(fairness=1.0, loss="cce", step_size=0.1, max_iter=5000, tol=0)
    best = solve_pseudo_labels(solver, sigma).pseudo_labels
    lowest = objective.loss_cce(sigma, best, fairness=1.0)
    generator = np.random.default_rng(1)
    for _ in range(200):
        other = 0.95 * best + 0.05 * generator.dirichlet(np.ones(3), size=10)
        assert objective.loss_cce(sigma, other, fairness=1.0) >= lowest - 1e-9


@pytest.mark.parametrize("step_size", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("loss", ["cce", "cce+"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_even_diverging_steps_stay_on_the_simplex(step_size, loss, dtype):
    sigma = np.eye(4, dtype=dtype)[[0, 0, 1, 2]]
    solver = PGDSolver(fairness=100.0, loss=loss, step_size=step_size, max_iter=20, tol=0)
    labels = solve_pseudo_labels(solver, sigma).pseudo_labels
    assert (labels >= 0).all()
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_iterations", [1, 2, 50])
def test_classes_that_the_prior_excludes_stay_empty_as_if_they_were_not_there(dtype, n_iterations):
    sigma = softmax(np.random.default_rng(0).normal(size=(300, 4))).astype(dtype)
    prior = np.array([0.2, 0.0, 0.5, 0.3])
    kept = prior > 0
    solver = PGDSolver(fairness=10.0, prior=prior, loss="cce", step_size=0.025, max_iter=n_iterations, tol=0)
    result = solve_pseudo_labels(solver, sigma, return_loss_curve=True)
    labels = result.pseudo_labels
    assert (labels[:, ~kept] == 0).all()
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-5)
    expected = objective.loss_cce(sigma, labels, fairness=10.0, prior=prior)
    assert result.loss_curve[-1] == pytest.approx(expected, rel=1e-5)
    # The factor by which probabilities are lifted to sum 1 again makes no difference to the gradient.
    without = sigma[:, kept] / sigma[:, kept].sum(axis=1, keepdims=True)
    start = np.zeros_like(sigma)
    start[:, kept] = without
    among_all = solve_pseudo_labels(solver, sigma, initial=start).pseudo_labels
    alone = solve_pseudo_labels(replace(solver, prior=prior[kept]), without).pseudo_labels
    np.testing.assert_allclose(among_all[:, kept], alone, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_without_fairness_the_prior_excludes_nothing():
    sigma = softmax(np.random.default_rng(0).normal(size=(20, 3)))
    solver = PGDSolver(fairness=0.0, loss="cce", step_size=0.01, max_iter=5, tol=0)
    uniform, excluding = (solve_pseudo_labels(replace(solver, prior=p), sigma) for p in (None, [0.5, 0.5, 0.0]))
    np.testing.assert_array_equal(uniform.pseudo_labels, excluding.pseudo_labels)
    assert excluding.pseudo_labels[:, 2].any()


def test_unknown_loss_is_refused():
    with pytest.raises(InputError, match=r"'cce\+' or 'cce', got 'mse'"):
        PGDSolver(loss="mse")
