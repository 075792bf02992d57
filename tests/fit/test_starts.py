from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from cceclust.fit import starts
from cceclust.fit.neighbors import Metric, find_neighbors
from cceclust.fit.starts import COMPONENTS, KMEANS, find_starts, run_kmeans


def groups(n_groups: int, each: int, distance: float = 3.0) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    truth = np.repeat(np.arange(n_groups), each)
    points = generator.normal(size=(n_groups, 8))[truth] * distance + generator.normal(size=(len(truth), 8))
    return (points - points.mean(axis=0)).astype(np.float32), truth


def starts_of(points: Any, n_clusters: int, metric: Metric = "euclidean", **options: Any) -> dict[str, Any]:
    neighbors = find_neighbors(points, min(15, len(points) - 1), metric, 0, 1)
    weights = np.ones(len(points), np.float32)
    return dict(find_starts(points, neighbors, weights, metric, n_clusters, **{"seed": 0, "n_threads": 1, **options}))


class TestFindStarts:
    @pytest.mark.parametrize("metric", ["cosine", "euclidean"])
    def test_every_kind_finds_far_groups(self, metric: Metric) -> None:
        points, truth = groups(5, 40)
        found = starts_of(points, 5, metric)
        assert len(found) >= 2
        assert {name: adjusted_rand_score(truth, labels) > 0.8 for name, labels in found.items()} == dict.fromkeys(
            found, True
        )

    def test_clusters_that_were_found_twice_are_one_start(self) -> None:
        points, _ = groups(5, 40, 20.0)
        # All kinds find these groups: one start is left, and K-means, which is always there.
        assert list(starts_of(points, 5)) == [COMPONENTS, KMEANS]
        assert len(starts_of(groups(5, 40, 0.5)[0], 5)) > 4

    def test_kmeans_comes_last_and_no_cluster_is_empty(self) -> None:
        points, _ = groups(4, 30, 0.5)
        found = starts_of(points, 7)
        assert list(found)[-1] == KMEANS
        assert all(len(np.unique(labels)) == 7 for labels in found.values())

    def test_separate_parts_are_a_start_if_there_are_as_many_as_clusters(self) -> None:
        points, truth = groups(3, 30, 20.0)
        assert adjusted_rand_score(truth, starts_of(points, 3)[COMPONENTS]) == 1
        assert COMPONENTS not in starts_of(points, 4)

    def test_two_nested_rings_are_found_though_kmeans_does_not(self) -> None:
        angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
        ring = np.column_stack([np.cos(angle), np.sin(angle)])
        points, truth = np.vstack([ring, 4 * ring]).astype(np.float32), np.repeat([0, 1], 200)
        found = starts_of(points, 2)
        assert adjusted_rand_score(truth, found[COMPONENTS]) == 1 > adjusted_rand_score(truth, found[KMEANS])


class TestKMeans:
    def test_many_points_are_clustered_from_a_part_of_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(starts, "ROWS_FOR_AXES", 200)
        points, truth = groups(3, 300, 6.0)
        labels = run_kmeans(points, np.ones(len(points), np.float32), 3, seed=0)
        assert adjusted_rand_score(truth, labels) == 1

    def test_points_of_more_weight_draw_the_centres(self) -> None:
        points = np.array([[0.0], [1.0], [2.4]], np.float32)
        assert run_kmeans(points, np.array([1, 1, 9], np.float32), 2, seed=0).tolist().count(0) in (1, 2)
        heavy_ends = run_kmeans(points, np.array([1, 9, 9], np.float32), 2, seed=0)
        assert heavy_ends[0] == heavy_ends[1] != heavy_ends[2]

    def test_the_number_of_openmp_threads_changes_no_bit(self) -> None:
        script = """
import numpy as np
from cceclust.fit.starts import run_kmeans
points = np.random.default_rng(0).normal(size=(3000, 20)).astype(np.float32)
print(run_kmeans(points, np.ones(3000, np.float32), 10, seed=0).tolist())
"""
        one, three = (
            subprocess.run(
                [sys.executable, "-c", script],
                env={**os.environ, "OMP_NUM_THREADS": str(count)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for count in (1, 3)
        )
        assert one == three
