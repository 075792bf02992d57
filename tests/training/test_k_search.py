"""The number of clusters: what is counted, what is found, and when nothing is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs
from threadpoolctl import threadpool_info, threadpool_limits

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.graph_partition import symmetric_graph
from cceclust.training.k_search import (
    Cloud,
    KSearch,
    dimension_of_cloud,
    intrinsic_dimension,
    join_parts,
    measured_dimension,
    random_borders,
    rising_levels,
    search_k,
    search_rows,
)
from cceclust.training.modularity import neighbor_modularity
from cceclust.training.neighbors import nearest_neighbors
from cceclust.training.rows import in_memory


def random_graph(n_rows: int, n_neighbors: int, seed: int) -> NDArray[np.int32]:
    generator = np.random.default_rng(seed)
    others = [generator.choice(np.delete(np.arange(n_rows), row), n_neighbors, replace=False) for row in range(n_rows)]
    return np.array(others, np.int32)


def blobs(sizes: list[int], n_features: int, *, width: float = 1.0, box: float = 8.0, seed: int = 0) -> NDArray[Any]:
    rows, _ = make_blobs(sizes, n_features, cluster_std=width, center_box=(-box, box), random_state=seed)
    return np.asarray(rows)


def found(rows: NDArray[Any], most: int = 30, **options: Any) -> KSearch:
    return search_rows(in_memory(rows), range(2, most + 1), n_jobs=1, **options)


class TestJoining:
    @settings(max_examples=20)
    @given(n_rows=st.integers(8, 40), n_neighbors=st.integers(1, 5), seed=st.integers(0, 100))
    def test_every_step_is_counted_as_its_labels_are(self, n_rows: int, n_neighbors: int, seed: int) -> None:
        neighbors = random_graph(n_rows, n_neighbors, seed)
        level = rising_levels(symmetric_graph(neighbors), n_rows, seed)[-1]
        way = join_parts(symmetric_graph(neighbors), level.labels, random_borders)
        for n_parts in range(1, level.n_parts + 1):
            labels = way.labels_of(n_parts)
            assert len(np.unique(labels)) == n_parts
            assert way.cuts[n_parts - 1] == pytest.approx((labels[neighbors] != labels[:, None]).mean())
            assert way.saved[n_parts - 1] == pytest.approx(neighbor_modularity(labels, neighbors))

    def test_parts_are_nested(self) -> None:
        graph = symmetric_graph(random_graph(60, 3, 0))
        way = join_parts(graph, rising_levels(graph, 20, 0)[-1].labels, random_borders)
        for n_parts in range(2, 15):
            fine, coarse = way.labels_of(n_parts + 1), way.labels_of(n_parts)
            assert len(np.unique(fine * 100 + coarse)) == n_parts + 1

    def test_what_shares_most_pairs_is_joined_first(self) -> None:
        # Two pairs of triangles; a pair of neighbours joins the two of each.
        triangles = [[1, 2], [0, 2], [0, 3], [4, 5], [3, 5], [3, 4], [7, 8], [6, 8], [6, 9], [10, 11], [9, 11], [9, 10]]
        graph = symmetric_graph(np.array(triangles))
        way = join_parts(graph, np.repeat(np.arange(4, dtype=np.int32), 3), random_borders)
        assert way.labels_of(2).tolist() == [0] * 6 + [1] * 6


class TestClouds:
    def test_a_whole_cloud_has_no_border_and_small_parts_have_most(self) -> None:
        points = np.random.default_rng(0).normal(size=(300, 3))
        graph = symmetric_graph(nearest_neighbors(points, 10, metric="euclidean", n_jobs=1))
        cloud = Cloud.of_graphs([graph], 20, seed=0)
        shares = np.array([1.0, 0.5, 0.2, 0.1, 0.05])
        cuts = cloud.borders(shares) / shares
        assert cuts[0] == 0
        assert (np.diff(cuts) > 0).all()
        assert cuts[-1] < 1

    @pytest.mark.parametrize("dimension", [1, 2, 5])
    def test_dimension_is_measured_within_a_fifth(self, dimension: int) -> None:
        points = np.random.default_rng(0).uniform(size=(1500, dimension))
        distances = np.linalg.norm(points[:, None] - points, axis=2)
        nearest = np.sort(distances, axis=1)[:, 1:16]
        assert intrinsic_dimension(nearest) == pytest.approx(dimension, rel=0.2)
        assert intrinsic_dimension(nearest[:, ::-1]) == intrinsic_dimension(nearest)

    def test_equal_rows_have_a_dimension_all_the_same(self) -> None:
        assert intrinsic_dimension(np.zeros((5, 3))) == 1.0
        assert dimension_of_cloud(np.inf, 30, 5, seed=0, n_jobs=1) == choices.MOST_DIMENSIONS

    @pytest.mark.parametrize("dimension", [1, 3, 30])
    def test_a_cloud_is_given_its_own_dimension_where_less_is_measured(self, dimension: int) -> None:
        points = np.random.default_rng(0).normal(size=(1000, dimension))
        neighbors = nearest_neighbors(points, 15, metric="euclidean", n_compared=len(points), n_jobs=1)
        measured = measured_dimension(points, neighbors)
        found = dimension_of_cloud(measured, len(points), 15, seed=1, n_jobs=1)
        assert found == pytest.approx(dimension, rel=0.07)
        assert dimension < 10 or measured < 0.7 * dimension


class TestSearch:
    @pytest.mark.parametrize(
        ("sizes", "n_features"),
        [
            ([150] * 4, 5),
            ([150] * 3, 2),
            ([60] * 9, 20),
            ([500, 120, 40], 8),
            ([300, 300], 8),
            ([500, 60], 5),
        ],
    )
    def test_blobs_are_counted(self, sizes: list[int], n_features: int) -> None:
        search = found(blobs(sizes, n_features, seed=3))
        assert search.chosen == len(sizes)
        assert search.score_of[search.chosen] == search.scores.max()

    def test_clusters_without_a_border_count_however_little_they_save(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(choices, "LEAST_SAVED", 1.0)
        far = np.repeat([[0.0, 0.0], [20.0, 20.0]], 150, axis=0)
        search = found(far + np.random.default_rng(0).normal(size=far.shape))
        assert search.chosen == 2
        assert search.lengths[0] == pytest.approx(0, abs=1e-12)

    def test_noise_saves_no_more_than_chance(self) -> None:
        search = found(np.random.default_rng(5).normal(size=(150, 2)))
        assert search.saved.max() < 0

    def test_scores_are_what_is_saved_less_a_cost_for_few_clusters(self) -> None:
        search = found(blobs([60] * 4, 12, seed=3))
        worth = search.scores / search.saved
        assert (np.diff(worth[search.ks <= 20]) < 0).all()
        np.testing.assert_allclose(np.diff(worth[search.ks >= 20]), 0, atol=1e-12)

    def test_in_few_dimensions_clusters_cost_more_and_so_do_many(self) -> None:
        few, many = (found(blobs([60] * 4, n_dimensions, seed=3)) for n_dimensions in (2, 12))
        worth, usual = few.scores / few.saved, many.scores / many.saved
        assert (worth < usual).all()
        assert (np.diff(worth) < 0).all()

    def test_the_largest_number_tried_decides_little(self) -> None:
        rows, _ = load_digits(return_X_y=True)
        few, many = found(rows, 30), found(rows, 60)
        assert few.chosen == pytest.approx(many.chosen, abs=1)
        np.testing.assert_allclose(few.scores, many.scores[: len(few.scores)], atol=0.01)

    def test_unequal_blobs_are_counted_where_modularity_counts_more(self) -> None:
        search = found(blobs([500, 120, 40], 8, seed=3))
        assert search.ks[search.modularity.argmax()] > 3

    @pytest.mark.parametrize("kind", ["uniform", "normal", "long", "heavy"])
    @pytest.mark.parametrize("n_features", [2, 12])
    def test_noise_has_one_cluster(self, kind: str, n_features: int) -> None:
        generator = np.random.default_rng(1)
        size = (500, n_features)
        draws = {"uniform": generator.uniform, "heavy": partial(generator.standard_t, 5)}
        noise = draws.get(kind, generator.normal)(size=size)
        search = found(noise * (np.arange(1, n_features + 1) ** -1.0 if kind == "long" else 1.0))
        assert search.chosen == 1
        assert search.runners_up == []
        assert search.labels.shape == (0, 500)
        assert "nothing in the graph of neighbours speaks for clusters" in search.in_words()

    def test_threads_and_scale_do_not_matter(self) -> None:
        rows = blobs([80] * 3, 4)
        one = found(rows)
        other = search_rows(in_memory(1e3 * rows + 5), range(2, 31), n_jobs=2)
        assert other.chosen == one.chosen == 3
        np.testing.assert_array_equal(search_rows(in_memory(rows), range(2, 31), n_jobs=2).scores, one.scores)
        np.testing.assert_allclose(other.scores, one.scores, atol=0.02)

    def test_only_candidates_are_scored(self) -> None:
        search = search_rows(in_memory(blobs([80] * 4, 5)), [9, 4, 4, 1, 6], n_jobs=1)
        assert search.ks.tolist() == [4, 6, 9]
        assert list(search.score_of) == [4, 6, 9]
        assert search.chosen == 4

    def test_sparse_and_wide_rows_are_searched(self) -> None:
        rows = np.maximum(blobs([60] * 3, 400, box=3.0), 0.0)
        dense = found(rows)
        assert dense.chosen == 3
        assert search_rows(in_memory(sparse.csr_array(rows)), range(2, 31), n_jobs=1).chosen == 3

    def test_many_rows_are_sampled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(choices, "ROWS_FOR_SEARCH", 200)
        monkeypatch.setattr(choices, "SEARCH_ROWS_PER_CLUSTER", 1)
        search = found(blobs([150] * 3, 5, seed=3))
        assert len(np.unique(search.rows)) == len(search.rows) == 200
        assert search.labels.shape == (len(search.levels), 200)
        assert search.chosen == 3

    def test_rows_without_weight_are_left_out(self) -> None:
        rows = blobs([100] * 4, 5, seed=3)
        last = slice(300, None)
        weights = np.ones(400)
        order = np.argsort(rows[:, 0])
        weights[order[last]] = 0
        search = found(rows, sample_weight=weights)
        assert set(search.rows) == set(order[:300])

    def test_given_neighbours_decide(self) -> None:
        # The rows are noise, but their neighbours are in their own half.
        rows = np.random.default_rng(0).normal(size=(200, 5))
        halves = [np.arange(100), np.arange(100, 200)]
        generator = np.random.default_rng(1)
        neighbors = np.array(
            [generator.choice(np.setdiff1d(halves[row // 100], row), 8, replace=False) for row in range(200)]
        )
        search = found(rows, neighbors=neighbors)
        assert search.chosen == 2
        assert len(np.unique(search.labels[search.levels == 2][0] * 2 + np.arange(200) // 100)) == 2

    def test_few_or_equal_rows_are_one_cluster(self) -> None:
        assert search_rows(in_memory(np.eye(5)), n_jobs=1).chosen == 1
        assert search_rows(in_memory(np.ones((50, 3))), n_jobs=1).chosen == 1

    def test_more_clusters_than_rows_are_refused(self) -> None:
        with pytest.raises(InputError, match="goes up to 60, but there are 50 rows"):
            search_rows(in_memory(np.zeros((50, 3))), range(2, 61))


def judged(scores: dict[int, float], chosen: int, levels: list[int]) -> KSearch:
    values, none = np.array(list(scores.values())), np.zeros(len(scores))
    labels = np.zeros((len(levels), 3), np.int32)
    return KSearch(
        np.array(list(scores)), values, none, none, none, none, chosen, np.array(levels), labels, np.arange(3)
    )


class TestWords:
    def test_plateaus_are_named(self) -> None:
        search = judged({9: 0.5, 10: 0.819, 11: 0.825}, 11, [11])
        assert search.in_words() == "11 clusters (score 0.825); 10 (0.819) is about as good"
        assert search.runners_up == [10]

    def test_other_levels_are_named(self) -> None:
        search = judged({3: 0.7, 6: 0.9, 9: 0.5}, 6, [3, 6])
        assert search.in_words() == "6 clusters (score 0.900); 3 (0.700) may be worth a look as well"

    def test_a_hierarchy_shows_both_levels(self) -> None:
        centres = np.repeat(20 * np.eye(3, 6), 4, axis=0) + 4 * np.tile(np.eye(6)[2:], (3, 1))
        generator = np.random.default_rng(0)
        rows = np.repeat(centres, 50, axis=0) + generator.normal(size=(600, 6))
        search = found(rows)
        assert search.chosen == 12
        assert 3 in search.levels
        coarse = search.labels[search.levels == 3][0]
        assert len(np.unique(coarse * 3 + np.arange(600) // 200)) == 3


def test_a_search_leaves_the_threads_of_products_as_they_were() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 4))
    with threadpool_limits(2, user_api="blas"):
        search_k(rows, range(2, 6), n_jobs=2)
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}
