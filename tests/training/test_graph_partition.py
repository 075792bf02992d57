"""Partitions of a graph: of high modularity, with the wanted number of parts, the same every time."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cceclust.training.graph_partition import (
    fine_parts,
    graph_of_parts,
    grown_parts,
    improved_labels,
    partition_graph,
    partition_unevenly,
    resolution_for,
    symmetric_graph,
)
from cceclust.training.modularity import links_of, neighbor_modularity


def groups(sizes, n_neighbors=5, seed=0):
    """Return neighbours that are mostly of the same group, and the groups."""
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.append(0, np.cumsum(sizes))
    neighbors = np.array(
        [generator.integers(starts[k], starts[k + 1], n_neighbors) for k in labels],
    )
    stray = generator.random(neighbors.shape) < 0.1
    return np.where(stray, generator.integers(0, len(labels), neighbors.shape), neighbors), labels


@pytest.mark.parametrize("partition", [partition_graph, partition_unevenly])
@pytest.mark.parametrize("sizes", [[100, 100, 100], [120, 80, 50, 30]])
def test_it_finds_groups_of_any_size(sizes, partition):
    neighbors, labels = groups(sizes, n_neighbors=10)
    found = partition(symmetric_graph(neighbors), len(sizes))
    assert neighbor_modularity(found, neighbors) >= neighbor_modularity(labels, neighbors) - 1e-9
    assert np.mean(found == labels) > 0.98


def test_a_large_group_is_left_whole_where_sizes_may_differ():
    # Ten rows in a ring share most neighbours; the large group is a long ring that modularity would rather cut.
    rings = [400, 30, 30, 30]
    starts = np.cumsum([0, *rings[:-1]])
    neighbors = np.concatenate(
        [start + (np.arange(n)[:, None] + np.arange(1, 11)) % n for start, n in zip(starts, rings, strict=True)]
    )
    # A few links between the small groups tempt to join them.
    neighbors[400:406, 0], neighbors[430:436, 0] = 435, 465
    labels = np.repeat(np.arange(4), rings)
    even, uneven = (partition(symmetric_graph(neighbors), 4) for partition in (partition_graph, partition_unevenly))
    assert (labels[neighbors] != labels[:, None]).mean() < (even[neighbors] != even[:, None]).mean()
    np.testing.assert_array_equal(uneven, labels)


def test_partitions_from_fine_parts_are_as_good():
    neighbors, labels = groups([120, 80, 50, 30], n_neighbors=10)
    graph = symmetric_graph(neighbors)
    fine = fine_parts(graph, 4)
    assert fine.max() + 1 >= 8
    for partition in (partition_graph, partition_unevenly):
        found = partition(graph, 4, fine=fine)
        assert neighbor_modularity(found, neighbors) >= neighbor_modularity(labels, neighbors) - 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.integers(1, 4), st.integers(0, 1000), st.data())
def test_there_are_as_many_parts_as_wanted_and_none_is_empty(n_samples, n_neighbors, seed, data):
    n_parts = data.draw(st.integers(1, n_samples))
    neighbors = np.random.default_rng(seed).integers(0, n_samples, (n_samples, n_neighbors))
    graph = symmetric_graph(neighbors)
    for partition, fine in product((partition_graph, partition_unevenly), (None, fine_parts(graph, n_parts))):
        found = partition(graph, n_parts, seed=seed, fine=fine)
        assert found.shape == (n_samples,)
        assert (np.bincount(found, minlength=n_parts) > 0).all()
        assert found.max() == n_parts - 1


@settings(max_examples=40, deadline=None)
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
    neighbors, _ = groups([40] * 5, n_neighbors=3)
    graph = symmetric_graph(neighbors)
    np.testing.assert_array_equal(partition_graph(graph, 7, seed=3), partition_graph(graph, 7, seed=3))


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


def test_a_resolution_divides_the_graph_into_enough_parts_of_more_even_size():
    neighbors, _ = groups([300, 300, 40, 40, 40, 40], n_neighbors=10)
    graph = symmetric_graph(neighbors)
    assert resolution_for(graph, 6) == 1.0
    resolution = resolution_for(graph, 12)
    assert resolution > 1.0
    assert len(np.unique(grown_parts(graph, resolution, 0))) >= 12 > len(np.unique(grown_parts(graph, 1.0, 0)))
    plain, finer = (partition_graph(graph, 12, resolution=tried) for tried in (1.0, resolution))
    assert len(np.unique(finer)) == 12
    links = links_of(np.stack([plain, finer]), neighbors)
    assert np.diff(links.modularities_at(resolution)) >= 0
    assert np.bincount(finer).std() < np.bincount(plain).std()


def test_rows_without_weight_pull_nobody():
    neighbors = np.array([[1, 4], [0, 4], [3, 4], [2, 4], [0, 1]])
    weighted = symmetric_graph(neighbors, np.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    found = partition_graph(weighted, 3)
    assert found[0] == found[1] != found[2] == found[3]


def test_parts_are_linked_as_often_as_their_nodes():
    neighbors, labels = groups([40, 30, 20])
    graph = symmetric_graph(neighbors)
    parts = graph_of_parts(graph, labels.astype(np.int32), 3)
    expected = np.zeros((3, 3))
    np.add.at(expected, (np.repeat(labels, neighbors.shape[1]), labels[neighbors.ravel()]), 1)
    found = np.zeros((3, 3))
    found[np.repeat(np.arange(3), np.diff(parts.starts)), parts.others] = parts.weights
    np.testing.assert_array_equal(found, expected + expected.T)
    np.testing.assert_array_equal(parts.strengths, found.sum(axis=1))
