"""Modularity of labels on a graph of neighbours, against the plain table of pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cceclust.errors import InputError
from cceclust.fit.modularity import neighbor_modularity


def by_table(labels, neighbors, weights):
    """Sum J, its trace and its margins as they are written down."""
    table = np.zeros((labels.max() + 1,) * 2)
    for i, row in enumerate(neighbors):
        for j in row:
            table[labels[i], labels[j]] += weights[i] * weights[j]
    table = (table + table.T) / (2 * table.sum())
    return np.trace(table) - (table.sum(axis=0) ** 2).sum()


@st.composite
def graphs(draw):
    n_samples = draw(st.integers(2, 12))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    neighbors = generator.integers(0, n_samples, (n_samples, draw(st.integers(1, 4))))
    labels = generator.integers(0, draw(st.integers(1, 5)), (draw(st.integers(1, 3)), n_samples))
    return labels, neighbors, generator.random(n_samples) + 0.1


@settings(max_examples=60)
@given(graphs())
def test_it_is_the_trace_less_what_strangers_would_share(case):
    labels, neighbors, weights = case
    for given_weights, used in ((None, np.ones(len(weights))), (weights, weights)):
        expected = [by_table(row, neighbors, used) for row in labels]
        np.testing.assert_allclose(neighbor_modularity(labels, neighbors, given_weights), expected, atol=1e-12)


def test_a_stack_gives_the_bits_of_each_labeling_alone():
    generator = np.random.default_rng(0)
    neighbors, labels = generator.integers(0, 500, (500, 7)), generator.integers(0, 6, (3, 500))
    weights = generator.random(500)
    together = neighbor_modularity(labels, neighbors, weights)
    assert [neighbor_modularity(row, neighbors, weights) for row in labels] == together.tolist()


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_only_ratios_of_weights_matter(size):
    neighbors, weights = np.array([[1], [0], [1]]), np.array([1.0, 2.0, 1.0])
    expected = neighbor_modularity([0, 0, 1], neighbors, weights)
    assert neighbor_modularity([0, 0, 1], neighbors, weights * size) == pytest.approx(expected)


@pytest.mark.parametrize("labels", [[0.5, 1.0], [[[0, 1]]], [0, -1], ["a", "b"]])
def test_what_are_no_labels_is_refused(labels):
    with pytest.raises(InputError, match="labels"):
        neighbor_modularity(labels, [[1], [0]])
