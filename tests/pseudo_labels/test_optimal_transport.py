"""Sinkhorn's scaling balances, and approaches the optimal assignment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.special import log_softmax, logsumexp

from cceclust.pseudo_labels import OptimalTransportSolver, solve_pseudo_labels


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=st.integers(0, 10_000), n_clusters=st.integers(1, 8))
def test_both_marginals_are_met(dtype, seed, n_clusters):
    generator = np.random.default_rng(seed)
    sigma = softmax(generator.normal(size=(40, n_clusters))).astype(dtype)
    prior, weights = generator.dirichlet(np.full(n_clusters, 5.0)), generator.random(40) + 0.1
    solver = OptimalTransportSolver(prior=prior, sharpness=3.0, tol=1e-4)
    result = solve_pseudo_labels(solver, sigma, sample_weight=weights)
    assert result.converged
    np.testing.assert_allclose(result.pseudo_labels.sum(axis=1), 1, atol=1e-5)
    sizes = weights @ result.pseudo_labels / weights.sum()
    np.testing.assert_allclose(sizes, prior, atol=2e-4)


def test_sharp_solution_is_the_optimal_balanced_assignment():
    sigma = softmax(np.random.default_rng(3).normal(size=(12, 3)))
    solver = OptimalTransportSolver(sharpness=200.0, one_hot=True, max_iter=100_000, tol=1e-6)
    labels = solve_pseudo_labels(solver, sigma).pseudo_labels.argmax(axis=1)
    _, places = linear_sum_assignment(-np.log(np.repeat(sigma, 4, axis=1)))
    np.testing.assert_array_equal(labels, places // 4)


def test_one_hot_is_the_soft_solution_rounded():
    sigma = softmax(np.random.default_rng(0).normal(size=(50, 5)))
    soft = solve_pseudo_labels(OptimalTransportSolver(), sigma).pseudo_labels
    hard = solve_pseudo_labels(OptimalTransportSolver(one_hot=True), sigma).pseudo_labels
    np.testing.assert_array_equal(hard, np.eye(5)[soft.argmax(axis=1)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sharpness", [0.1, 25.0, 1e4])
def test_nothing_yields_nan(dtype, sharpness):
    for sigma in (np.eye(4)[[0, 0, 0, 1]], np.full((3, 4), 0.25), np.ones((2, 1))):
        prior = np.eye(sigma.shape[1])[0]
        for u in (None, prior):
            solver = OptimalTransportSolver(prior=u, sharpness=sharpness, max_iter=50, tol=0)
            labels = solve_pseudo_labels(solver, sigma.astype(dtype)).pseudo_labels
            np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-5)


def test_loss_curve_shows_every_iteration():
    sigma = softmax(np.random.default_rng(0).normal(size=(50, 5)))
    solver = OptimalTransportSolver(max_iter=6, tol=0)
    curve = solve_pseudo_labels(solver, sigma, return_loss_curve=True).loss_curve
    expected = solve_pseudo_labels(OptimalTransportSolver(max_iter=3, tol=0), sigma, return_loss_curve=True).loss_curve
    np.testing.assert_array_equal(curve[:4], expected)
    assert len(set(curve)) == 7


def balanced_by_logsumexp(logits, n_iterations, sharpness=25.0):
    """The textbook scaling in the log domain, in float64."""
    scores = sharpness * log_softmax(logits.astype(np.float64), axis=1)
    points, clusters = np.zeros((len(scores), 1)), np.zeros((1, scores.shape[1]))
    for _ in range(n_iterations):
        points = -logsumexp(scores + clusters, axis=1, keepdims=True)
        clusters = np.log(len(scores) / scores.shape[1]) - logsumexp(scores + points, axis=0, keepdims=True)
    return np.exp(scores + clusters - logsumexp(scores + clusters, axis=1, keepdims=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 30.0, 1000.0])
def test_saturated_predictions_are_balanced_as_by_the_textbook(dtype, size):
    generator = np.random.default_rng(0)
    # Nearly all prefer the first cluster, by so much that no other probability is above 0 in float32.
    logits = size * (generator.normal(size=(60, 4)) + np.array([6.0, 0.0, 0.0, 0.0])).astype(dtype)
    labels = np.empty((4, 60), dtype)
    solver = OptimalTransportSolver(max_iter=300, tol=0)
    known = np.ascontiguousarray(log_softmax(logits, axis=1).T)
    solver.solve(known, labels, np.full(60, 1 / 60, dtype))
    # A thousand times 25 leaves float32 few digits behind the point.
    tolerance = 3e-7 * 25 * size if dtype == np.float32 else 1e-12 * size
    np.testing.assert_allclose(labels.T, balanced_by_logsumexp(logits, 300), atol=10 * tolerance + 1e-7)


def test_probabilities_of_exactly_zero_still_leave_every_cluster_its_share():
    labels = solve_pseudo_labels(OptimalTransportSolver(), np.eye(4, dtype=np.float32)[np.zeros(8, int)]).pseudo_labels
    np.testing.assert_allclose(labels.mean(axis=0), 0.25, atol=1e-5)
