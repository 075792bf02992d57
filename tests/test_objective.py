"""The losses have the properties that the paper claims for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cceclust import objective


def random_distributions(seed: int, n_samples: int, n_clusters: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(n_clusters), size=n_samples)


pairs = st.builds(
    lambda seed, n_clusters: (
        random_distributions(seed, 7, n_clusters),
        random_distributions(seed + 1, 7, n_clusters),
    ),
    st.integers(0, 10_000),
    st.integers(1, 30),
)


@given(pairs)
def test_collision_cross_entropy_is_symmetric(pair):
    p, q = pair
    np.testing.assert_allclose(objective.collision_cross_entropy(p, q), objective.collision_cross_entropy(q, p))


@given(pairs)
def test_collision_cross_entropy_is_divergence_plus_mean_entropy(pair):
    p, q = pair
    entropies = (objective.collision_entropy(p) + objective.collision_entropy(q)) / 2
    divergence = objective.collision_divergence(p, q)
    np.testing.assert_allclose(objective.collision_cross_entropy(p, q), divergence + entropies)
    assert (divergence >= -1e-12).all()


@given(pairs)
def test_one_hot_labels_give_shannons_cross_entropy_exactly(pair):
    sigma = pair[1]
    one_hot = np.eye(sigma.shape[1])[np.arange(len(sigma)) % sigma.shape[1]]
    np.testing.assert_array_equal(
        objective.collision_cross_entropy(one_hot, sigma), objective.cross_entropy(one_hot, sigma)
    )


@given(pairs)
def test_kl_divergence_is_cross_entropy_minus_entropy_and_not_negative(pair):
    p, q = pair
    expected = (p * np.log(p / q)).sum(axis=1)
    np.testing.assert_allclose(objective.kl_divergence(p, q), expected, atol=1e-12)
    assert (objective.kl_divergence(p, q) >= -1e-12).all()


@given(pairs)
def test_gradient_by_logits_matches_finite_differences(pair):
    sigma, y = pair
    logits = np.log(sigma)
    step = 1e-6
    numeric = np.empty_like(sigma)
    for k in range(sigma.shape[1]):
        losses = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[:, k] += sign * step
            softmax = np.exp(moved) / np.exp(moved).sum(axis=1, keepdims=True)
            losses.append(objective.collision_cross_entropy(y, softmax))
        numeric[:, k] = (losses[0] - losses[1]) / (2 * step)
    np.testing.assert_allclose(objective.gradient_by_logits(sigma, y), numeric, atol=1e-7)


def test_uniform_labels_give_no_gradient():
    sigma = random_distributions(0, 20, 5)
    np.testing.assert_allclose(objective.gradient_by_logits(sigma, np.full((20, 5), 0.2)), 0, atol=1e-15)


def test_disjoint_distributions_cost_infinity_but_have_a_finite_gradient():
    y, sigma = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert objective.collision_cross_entropy(y, sigma)[0] == np.inf
    assert np.isfinite(objective.gradient_by_logits(sigma, y)).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_their_formulas(weighted):
    sigma, y = random_distributions(0, 9, 4), random_distributions(1, 9, 4)
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    weights = np.arange(9.0) if weighted else None
    share = weights / weights.sum() if weighted else np.full(9, 1 / 9)
    mean = share @ y
    options = {"fairness": 3.0, "prior": prior, "sample_weight": weights}
    collision = share @ -np.log((y * sigma).sum(axis=1))
    shannon = share @ -(y * np.log(sigma)).sum(axis=1)
    forward, backward = (mean * np.log(mean / prior)).sum(), (prior * np.log(prior / mean)).sum()
    assert objective.loss_cce(sigma, y, **options) == pytest.approx(collision + 3 * forward)
    assert objective.loss_cce_plus(sigma, y, **options) == pytest.approx(collision + 3 * backward)
    assert objective.loss_ce_kl(sigma, y, **options) == pytest.approx(shannon + 3 * forward)


def test_what_has_no_weight_costs_nothing_even_if_infinite():
    sigma, y = np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    loss = objective.loss_cce_plus(sigma, y, fairness=0, sample_weight=[0, 1])
    assert loss == pytest.approx(np.log(2))
