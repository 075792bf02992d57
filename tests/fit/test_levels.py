"""How many clusters: what is found, what is said about it, and what it must not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from cceclust.fit.levels import Levels, adjusted_rand, find_levels
from cceclust.fit.neighbors import find_neighbors


def levels_of(
    points: NDArray[Any],
    allowed: list[int] | None = None,
    *,
    weights: NDArray[Any] | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> tuple[Levels, NDArray[np.int32]]:
    """Find the levels of points, with their 15 nearest neighbours by distance."""
    points = np.asarray(points - points.mean(axis=0), np.float32)
    return find_levels(
        points,
        np.ones(len(points), np.float32) if weights is None else weights.astype(np.float32),
        find_neighbors(points, min(15, len(points) - 1), "euclidean", 0, 1),
        "euclidean",
        None if allowed is None else np.array(allowed),
        seed=seed,
        n_threads=n_threads,
    )


def blobs(n_clusters: int, size: int = 60) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Draw well separated clouds of the same size."""
    points, labels = make_blobs([size] * n_clusters, n_features=10, cluster_std=0.7, random_state=n_clusters)
    return points, labels.astype(np.int32)


def groups_of_blobs() -> NDArray[Any]:
    """Draw four far groups of 300 points, each of six clouds that overlap."""
    generator = np.random.default_rng(0)
    centres = 60 * np.eye(4, 8)[np.repeat(np.arange(4), 6)] + generator.normal(size=(24, 8))
    return centres[np.repeat(np.arange(24), 50)] + generator.normal(size=(1200, 8))


@pytest.mark.parametrize("n_clusters", [3, 7, 25])
def test_separate_clouds_are_found(n_clusters: int) -> None:
    points, truth = blobs(n_clusters)
    levels, labels = levels_of(points)
    assert levels.chosen == labels.max() + 1 == n_clusters
    assert adjusted_rand(labels, truth) == 1
    assert levels.range[0] <= n_clusters <= levels.range[1] <= n_clusters + 1
    assert levels.splits == {}
    assert not levels.is_weak
    assert not levels.at_edge


def test_clouds_of_unequal_size_are_found() -> None:
    points, truth = make_blobs([800, 200, 50, 25], n_features=10, cluster_std=0.7, random_state=1)
    levels, labels = levels_of(points)
    assert levels.chosen == 4
    assert adjusted_rand(labels, truth.astype(np.int32)) == 1


def test_the_same_seed_and_any_number_of_threads_give_the_same_levels() -> None:
    points = np.random.default_rng(0).normal(size=(400, 5))
    (one, labels), (other, labels_again) = levels_of(points, seed=3), levels_of(points, seed=3, n_threads=2)
    np.testing.assert_array_equal(labels, labels_again)
    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(one.excess, other.excess)
    assert (one.chosen, one.range, one.splits, one.is_weak) == (other.chosen, other.range, other.splits, other.is_weak)


@pytest.mark.parametrize("n_features", [2, 10, 60])
def test_a_cloud_without_structure_is_one_cluster(n_features: int) -> None:
    points = np.random.default_rng(1).normal(size=(1000, n_features))
    levels, labels = levels_of(points)
    assert levels.chosen == labels.max() + 1 == 1
    assert levels.range == (1, 1)
    assert levels.further == levels.splits == {}
    assert levels.is_weak
    assert levels_of(points, [4, 5])[0].chosen in (4, 5)


@pytest.mark.parametrize(
    ("allowed", "chosen", "at_edge"),
    [([2, 3, 4, 5], 5, True), ([9, 10, 11], 9, True), ([5, 6, 7, 8, 9], 7, False), ([7], 7, False)],
)
def test_a_range_is_respected_and_its_edge_is_said(allowed: list[int], chosen: int, at_edge: bool) -> None:
    levels, labels = levels_of(blobs(7)[0], allowed)
    assert levels.chosen == labels.max() + 1 == chosen
    assert levels.at_edge is at_edge


def test_clusters_of_several_clouds_are_said_to_look_like_them() -> None:
    points, truth = blobs(9)
    levels, labels = levels_of(points, [3])
    clouds = {cluster: len(np.unique(truth[labels == cluster])) for cluster in range(3)}
    assert levels.splits == {cluster: count for cluster, count in clouds.items() if count > 1}
    assert sum(levels.splits.values()) >= 8


def test_another_level_is_named_with_its_sizes() -> None:
    levels, _ = levels_of(groups_of_blobs(), [24])
    assert levels.range[0] > 4
    assert list(levels.further) == [4]
    np.testing.assert_array_equal(levels.further[4], np.full(4, 300))


def test_weights_count_but_do_not_tear_clouds_apart() -> None:
    points, truth = blobs(3)
    weights = np.random.default_rng(0).choice([0.5, 1.5], len(points))
    (equal, _), (weighted, labels) = levels_of(points), levels_of(points, weights=weights)
    assert weighted.chosen == 3
    assert adjusted_rand(labels, truth) == 1
    assert list(weighted.counts) != list(equal.counts)


@pytest.mark.parametrize("n_points", [2, 3, 5, 9, 10, 12, 21])
@pytest.mark.parametrize("are_equal", [False, True])
def test_few_or_equal_points_do_not_fail(n_points: int, are_equal: bool) -> None:
    points = np.zeros((n_points, 3)) if are_equal else np.random.default_rng(0).normal(size=(n_points, 3))
    levels, labels = levels_of(points)
    assert len(labels) == n_points
    assert levels.chosen == labels.max() + 1
    levels, labels = levels_of(points, [2, 3])
    assert levels.chosen == labels.max() + 1 in (2, 3)


def test_adjusted_rand_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import adjusted_rand_score

    generator = np.random.default_rng(0)
    one, other = (generator.integers(0, n, 200).astype(np.int32) for n in (4, 9))
    other[:100] = one[:100]
    assert adjusted_rand(one, other) == pytest.approx(adjusted_rand_score(one, other))
    assert adjusted_rand(one, one) == 1
