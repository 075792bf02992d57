"""The loss of labelled rows against finite differences of the plain-NumPy losses; which of them join a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from cceclust.objective import collision_cross_entropy, cross_entropy
from cceclust.training.labels import LabelledRows, Supervision

N_RESTARTS, N_CLUSTERS, N_POINTS = 2, 3, 6
ROWS = np.array([1, 4, 5, 8, 9, 12])


def some_targets() -> Any:
    return np.random.default_rng(0).dirichlet(np.ones(N_CLUSTERS), N_POINTS)


def some_logits() -> Any:
    return np.random.default_rng(1).normal(size=(N_RESTARTS, N_CLUSTERS, N_POINTS))


def some_weights() -> Any:
    return np.random.default_rng(2).dirichlet(np.ones(N_POINTS))


def plain_loss(logits: Any, targets: Any, weights: Any, *, collision: bool) -> float:
    loss = collision_cross_entropy if collision else cross_entropy
    return float(loss(targets, softmax(logits, axis=0).T) @ weights)


@pytest.mark.parametrize("collision", [True, False])
@pytest.mark.parametrize("targets", [some_targets(), np.eye(N_CLUSTERS)[[0, 1, 2, 2, 1, 0]]], ids=["soft", "one-hot"])
def test_gradient_is_that_of_the_plain_loss(collision, targets):
    logits, weights, weight, step = some_logits(), some_weights(), 1.7, 1e-6
    supervision = Supervision(ROWS, targets, collision=collision, weight=weight)
    probabilities = softmax(logits, axis=1)
    losses = supervision.to_gradient(probabilities, np.arange(N_POINTS), weights)
    for restart in range(N_RESTARTS):
        expected = weight * plain_loss(logits[restart], targets, weights, collision=collision)
        assert losses[restart] == pytest.approx(expected)
        for place in np.ndindex(N_CLUSTERS, N_POINTS):
            ends = []
            for sign in (1, -1):
                moved = logits[restart].copy()
                moved[place] += sign * step
                ends.append(weight * plain_loss(moved, targets, weights, collision=collision))
            slope = (ends[0] - ends[1]) / (2 * step)
            assert probabilities[(restart, *place)] == pytest.approx(slope, abs=1e-8)


def test_each_row_learns_from_its_own_label():
    targets, weights = some_targets(), np.array([0.25, 0.75])
    supervision = Supervision(ROWS, targets)
    picked = np.array([4, 0])
    probabilities = softmax(some_logits()[:, :, :2], axis=1)
    expected = collision_cross_entropy(targets[picked], probabilities[0].T) @ weights
    assert supervision.to_gradient(probabilities, picked, weights)[0] == pytest.approx(expected)


def test_uniform_labels_pull_nowhere_by_collision_but_do_by_shannon():
    uniform = np.full((N_POINTS, N_CLUSTERS), 1 / N_CLUSTERS)
    slopes = {}
    for collision in (True, False):
        slopes[collision] = softmax(some_logits(), axis=1)
        Supervision(ROWS, uniform, collision=collision).to_gradient(
            slopes[collision], np.arange(N_POINTS), some_weights()
        )
    np.testing.assert_allclose(slopes[True], 0, atol=1e-15)
    assert np.abs(slopes[False]).max() > 0.01


def test_a_prediction_that_underflowed_is_pulled_back():
    probabilities = np.array([[[1.0], [0.0]]], np.float32)
    losses = Supervision(np.array([0]), np.array([[0.0, 1.0]], np.float32)).to_gradient(
        probabilities, np.array([0]), np.ones(1, np.float32)
    )
    np.testing.assert_array_equal(probabilities, [[[1.0], [-1.0]]])
    assert np.isfinite(losses).all()


def test_loss_is_that_of_the_labelled_ones_among_some_rows():
    targets, probabilities = some_targets(), softmax(some_logits(), axis=1)
    supervision = Supervision(ROWS, targets)
    rows, weights = np.array([0, 4, 7, 9, 10, 11]), np.array([1.0, 2, 1, 6, 1, 1])
    expected = collision_cross_entropy(targets[[1, 4]], probabilities[0].T[[1, 3]]) @ np.array([0.25, 0.75])
    assert supervision.losses(probabilities, rows, weights)[0] == pytest.approx(expected)
    assert supervision.losses(probabilities, rows + 100, weights).tolist() == [0.0, 0.0]


def test_a_batch_gets_all_labelled_rows_or_as_many_different_ones_as_it_may():
    rows = LabelledRows(np.zeros((20, 2)), np.arange(0, 20, 2), np.ones(10))
    generator = np.random.default_rng(0)
    assert rows.draw(10, generator).tolist() == list(range(10))
    drawn = rows.draw(4, generator)
    assert len(set(drawn.tolist())) == 4
    assert not np.array_equal(np.sort(rows.draw(4, generator)), np.sort(drawn))


def test_labels_of_some_rows_keep_their_distributions():
    everything, which = Supervision(ROWS, some_targets()), np.arange(1, 14, 2)
    some = everything.among(which)
    np.testing.assert_array_equal(which[some.rows], np.intersect1d(ROWS, which))
    np.testing.assert_array_equal(some.targets, everything.targets[np.isin(ROWS, which)])
    assert everything.among(slice(None)) is everything


def test_rows_without_a_label_lose_their_weight():
    weights = Supervision(ROWS, some_targets()).only_labelled(np.arange(1.0, 15.0))
    np.testing.assert_array_equal(np.flatnonzero(weights), ROWS)
    np.testing.assert_array_equal(weights[ROWS], ROWS + 1)
