"""Sinkhorn's scaling balances, and approaches the optimal assignment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

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
