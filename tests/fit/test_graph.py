"""Partitions of a graph: of high modularity, with the wanted number of parts, the same every time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cceclust.fit.graph import (
    improved_labels,
    partition_graph,
    symmetric_graph,
)
from cceclust.fit.modularity import neighbor_modularity


def groups(sizes, n_neighbors=5, seed=0):
    """Return neighbours that are mostly of the same group, and the groups."""
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.append(0, np.cumsum(sizes))
    neighbors = np.array([generator.integers(starts[k], starts[k + 1], n_neighbors) for k in labels])
    stray = generator.random(neighbors.shape) < 0.1
    return np.where(stray, generator.integers(0, len(labels), neighbors.shape), neighbors), labels


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_graph_is_the_matrix_of_neighbours_and_its_transpose(is_weighted):
    generator = np.random.default_rng(0)
    # Some rows are neighbours of themselves, and some are listed twice.
    neighbors, weights = generator.integers(0, 30, (30, 6)), generator.random(30) if is_weighted else np.ones(30)
    directed = np.zeros((30, 30))
    np.add.at(directed, (np.repeat(np.arange(30), 6), neighbors.ravel()), 1)
    expected = (directed + directed.T) * np.outer(weights, weights)
    graph = symmetric_graph(neighbors, weights if is_weighted else None)
    found = sparse.csr_array((graph.weights, graph.others, graph.starts), (30, 30))
    assert found.has_canonical_format
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-15)
    np.testing.assert_allclose(graph.strengths, expected.sum(axis=1))


@pytest.mark.parametrize("sizes", [[100, 100, 100], [120, 80, 50, 30]])
def test_it_finds_groups_of_any_size(sizes):
    neighbors, labels = groups(sizes, n_neighbors=10)
    found = partition_graph(symmetric_graph(neighbors), len(sizes))
    assert neighbor_modularity(found, neighbors) >= neighbor_modularity(labels, neighbors) - 1e-9
    assert np.mean(found == labels) > 0.98


@settings(max_examples=40)
@given(st.integers(2, 40), st.integers(1, 4), st.integers(0, 1000), st.data())
def test_there_are_as_many_parts_as_wanted_and_none_is_empty(n_samples, n_neighbors, seed, data):
    n_parts = data.draw(st.integers(1, n_samples))
    neighbors = np.random.default_rng(seed).integers(0, n_samples, (n_samples, n_neighbors))
    found = partition_graph(symmetric_graph(neighbors), n_parts, seed=seed)
    assert found.shape == (n_samples,)
    assert (np.bincount(found, minlength=n_parts) > 0).all()
    assert found.max() == n_parts - 1


@settings(max_examples=40)
@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 1000))
def test_moves_never_lower_the_modularity(n_samples, n_parts, seed):
    generator = np.random.default_rng(seed)
    neighbors, labels = generator.integers(0, n_samples, (n_samples, 3)), generator.integers(0, n_parts, n_samples)
    better = improved_labels(symmetric_graph(neighbors), labels, n_parts)
    assert neighbor_modularity(better, neighbors) >= neighbor_modularity(labels, neighbors) - 1e-12
    assert better.max() < n_parts


def test_where_it_changes_nothing_no_single_move_gains():
    neighbors, labels = groups([20, 20, 20], n_neighbors=3)
    graph, labels = symmetric_graph(neighbors), np.random.default_rng(1).permutation(labels)
    better = improved_labels(graph, labels, 3)
    while (better != labels).any():
        labels, better = better, improved_labels(graph, better, 3)
    reached = neighbor_modularity(better, neighbors)
    for i in range(60):
        for k in range(3):
            moved = better.copy()
            moved[i] = k
            assert neighbor_modularity(moved, neighbors) <= reached + 1e-9


def test_the_seed_alone_decides():
    graph = symmetric_graph(groups([40] * 5, n_neighbors=3)[0])
    one, same, other = (partition_graph(graph, 7, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
