"""The layout follows its formula, keeps groups apart and neighbours together, and does not depend on threads."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from cceclust import nearest_neighbors
from cceclust.report import layout
from cceclust.report.layout import LONGEST_PUSH, MOMENTUM, SAMPLES, lay_out, move


def drawn_by(point, step, n_points):
    """Return the random points that repel a point in a step: SplitMix64 in whole numbers of any size."""
    state, whole = (point * 0xD1B54A32D192ED03 + step * 0x8CB92BA72F3D8DD7) % 2**64, 2**64
    drawn = []
    for _ in range(SAMPLES):
        state = (state + 0x9E3779B97F4A7C15) % whole
        bits = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % whole
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % whole
        drawn.append(((bits ^ (bits >> 31)) >> 32) * n_points >> 32)
    return np.array(drawn)


def moved_by_formula(places, moves, graph, step, rate, repulsion):
    """Return places and moves after a step, written down as the formula."""
    moves = moves.copy()
    for point, attractions in enumerate(graph):
        differences = places[point] - places
        closeness = 1 / (1 + (differences**2).sum(axis=1, keepdims=True))
        drawn = drawn_by(point, step, len(places))
        away = (closeness[drawn] ** 2 * differences[drawn]).mean(axis=0)
        push = repulsion * attractions.sum() * away - (attractions[:, None] * closeness * differences).sum(axis=0)
        push *= min(1, LONGEST_PUSH / max(np.linalg.norm(push), 1e-300))
        moves[point] = MOMENTUM * moves[point] + rate * push
    return places + moves, moves


@pytest.mark.parametrize("repulsion", [5.0, 5000.0])
def test_a_step_is_the_formula(repulsion):
    generator = np.random.default_rng(0)
    graph = np.where(generator.uniform(size=(60, 60)) < 0.1, generator.uniform(size=(60, 60)), 0)
    starts = np.append(0, (graph > 0).sum(axis=1).cumsum())
    places, moves = generator.normal(0, 2, (2, 60, 2))
    expected, expected_moves = moved_by_formula(places, moves, graph, 7, 0.8, repulsion)
    moved = np.zeros_like(places)
    others = np.nonzero(graph)[1].astype(np.int32)
    move(places, moves, moved, 7, 0, 60, starts, others, graph[graph > 0], 0.8, repulsion)
    np.testing.assert_allclose(moved, expected, rtol=1e-9)
    np.testing.assert_allclose(moves, expected_moves, rtol=1e-9, atol=1e-12)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(layout, "STEPS", 60)
    X = np.random.default_rng(0).normal(size=(101, 5))
    layouts = [lay_out(nearest_neighbors(X, 8), X[:, :2], n_threads) for n_threads in (1, 2, 7)]
    assert layouts[0].tobytes() == layouts[1].tobytes() == layouts[2].tobytes()


def kept_neighbors(places, neighbors):
    found = nearest_neighbors(places, neighbors.shape[1], metric="euclidean")
    return np.mean([len(np.intersect1d(*pair)) for pair in zip(found, neighbors, strict=True)]) / neighbors.shape[1]


def test_digits_keep_far_more_neighbours_than_in_two_principal_components():
    X = load_digits().data.astype(np.float32)
    neighbors = nearest_neighbors(X, 15, metric="euclidean")
    plane = PCA(2, random_state=0).fit_transform(X)
    assert kept_neighbors(plane, neighbors) < 0.2
    assert kept_neighbors(lay_out(neighbors, plane, 1), neighbors) > 0.5
