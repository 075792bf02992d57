"""What is tried, what is fixed, and what the graph chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

from cceclust import CCEClusterer, choices, clustering_accuracy, nearest_neighbors
from cceclust.training import candidates
from cceclust.training.candidates import arena_of, modularity_of_rows, partitions_of, plan_heads
from cceclust.training.choosing import choose
from cceclust.training.graph_partition import partition_graph, symmetric_graph
from cceclust.training.rows import ArrayRows, in_memory
from cceclust.training.settings import FitSettings
from cceclust.training.space import TrainingSpace
from cceclust.training.standardization import Standardization

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

PARTITION = np.repeat([0, 1, 2], [70, 20, 10])
EQUAL = np.full(3, 1 / 3)


def plans(*, crowded: bool = False, partition: Any = PARTITION, **changes: Any) -> Any:
    settings = FitSettings(3, **{"fairness": "auto", "prior": "auto", "graph_candidates": True, "n_init": 6, **changes})
    return plan_heads(settings, 0.5, EQUAL, partition, crowded=crowded)


def unequal() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), [400, 150, 60, 30])
    centres = 30 * np.eye(4, 60)
    return generator.normal(size=(len(classes), 60)) + centres[classes], classes


def test_many_clusters_are_left_to_one_head_from_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "MANY_CLUSTERS", 3)
    assert [plan.start for plan in plans()] == ["graph"]
    assert [plan.start for plan in plans(n_init=1)] == ["random"]
    assert {plan.start for plan in plans(init="k-means")} == {"k-means"}


def test_many_clusters_are_all_found_and_better_than_by_k_means() -> None:
    X, classes = make_blobs(2000, 64, centers=100, cluster_std=1.5, center_box=(-2, 2), random_state=0)
    model = CCEClusterer(100, random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 100
    plain = KMeans(100, n_init=1, random_state=0).fit(X)
    assert adjusted_rand_score(classes, model.labels_) > adjusted_rand_score(classes, plain.labels_) + 0.1


def test_partitions_into_many_clusters_are_made_at_the_resolution_at_which_the_graph_falls_into_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, _ = unequal()
    space = TrainingSpace.of_rows(ArrayRows(X), Standardization(X.mean(axis=0), 1.0))
    arena = arena_of(space, np.ones(len(X)), nearest_neighbors(X, 15))
    monkeypatch.setattr(choices, "MANY_CLUSTERS", 20)
    few, many = (partitions_of(arena, count, seed=0, n_threads=1) for count in (19, 20))
    assert few.resolution == 1.0 < many.resolution
    for found in (few, many):
        scores = arena.links_of(found.labels).modularities_at(found.resolution)
        assert list(scores) == sorted(scores, reverse=True)


def test_many_clusters_are_judged_at_that_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []

    def spy(labels: Any, modularities: Any, cuts: Any, *args: Any, **options: Any) -> int:
        judged.append((modularities, cuts))
        return choose(labels, modularities, cuts, *args, **options)

    monkeypatch.setattr(candidates, "choose", spy)
    monkeypatch.setattr(choices, "MANY_CLUSTERS", 20)
    for n_clusters in (19, 20):
        model = CCEClusterer(n_clusters, random_state=0).fit(unequal()[0])
        reported = np.array(list(model.candidates_.values()))
        modularities, cuts = judged[-1]
        times = (1 - cuts - modularities) / (1 - cuts - reported)
        np.testing.assert_allclose(times, times[0])
        assert bool(times[0] > 1.1) is (n_clusters == 20)


def test_heads_differ_in_start_fairness_prior_and_decay() -> None:
    found = plans()
    assert {plan.start for plan in found} == {"random", "k-means", "graph"}
    assert {plan.fairness for plan in found} == {1.0, 10.0, 100.0}
    assert {plan.weight_decay for plan in found} == {0.5, 0.15}
    assert any(np.allclose(plan.prior, [0.7, 0.2, 0.1]) for plan in found)


def test_what_is_given_is_not_varied() -> None:
    assert {plan.fairness for plan in plans(fairness=3.0)} == {3.0}
    assert {plan.weight_decay for plan in plans(weight_decay=0.5)} == {0.5}
    assert {plan.start for plan in plans(init="random")} == {"random"}
    assert all(np.array_equal(plan.prior, EQUAL) for plan in plans(prior=None))


def test_more_heads_go_through_the_mix_again() -> None:
    found = plans(n_init=8)
    assert [plan.start for plan in found[6:]] == [plan.start for plan in found[:2]]


def test_crowded_clusters_have_no_random_start_and_no_graph_no_graph_start() -> None:
    assert "random" not in {plan.start for plan in plans(crowded=True)}
    assert "graph" not in {plan.start for plan in plans(partition=None)}


def test_without_graph_candidates_all_heads_are_alike() -> None:
    found = plans(graph_candidates=False, fairness=7.0)
    assert len({(plan.start, plan.fairness, plan.weight_decay) for plan in found}) == 1


def test_unequal_clusters_are_found_without_a_prior() -> None:
    X, classes = unequal()
    model = CCEClusterer(4, random_state=0).fit(X)
    assert adjusted_rand_score(classes, model.labels_) > 0.99
    forced = CCEClusterer(4, random_state=0, fairness=100.0, prior=np.full(4, 0.25), max_iter=20).fit(X)
    assert adjusted_rand_score(classes, forced.labels_) < adjusted_rand_score(classes, model.labels_)


def test_partitions_of_a_large_graph_share_their_fine_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "ROWS_TO_SHARE_PARTS", 500)
    X, classes = unequal()
    model = CCEClusterer(4, random_state=0).fit(X)
    assert len(model.candidates_) == 6 + 2 + 1
    assert adjusted_rand_score(classes, model.labels_) > 0.99


def test_the_chosen_one_is_among_the_candidates_and_k_means_is_one() -> None:
    X, _ = unequal()
    model = CCEClusterer(4, random_state=0).fit(X)
    assert len(model.candidates_) == 6 + choices.PARTITIONS + choices.UNEVEN_PARTITIONS + 1
    assert "K-means" in model.candidates_
    assert model.candidates_[model.chosen_] == model.modularity_
    assert model.score(X) == pytest.approx(model.modularity_, abs=0.02)


def test_sparse_rows_are_judged_on_a_sample(monkeypatch: Any) -> None:
    monkeypatch.setattr(choices, "ROWS_TO_JUDGE", 500)
    generator = np.random.default_rng(0)
    classes = generator.integers(0, 3, 2000)
    X = (generator.normal(size=(2000, 8)) + 8 * np.eye(3, 8)[classes]).astype(np.float32)
    model = CCEClusterer(3, random_state=0, max_epochs=5).fit(sparse.csr_matrix(X))
    assert model.modularity_ > 0.6
    assert adjusted_rand_score(classes, model.labels_) > 0.98


def test_very_few_rows_are_left_to_the_loss() -> None:
    model = CCEClusterer(4, random_state=0).fit(unequal()[0][:8])
    assert model.candidates_ is None
    assert model.modularity_ is None


def test_modularity_of_rows_is_high_for_their_groups_and_zero_for_one_cluster() -> None:
    X, classes = unequal()
    rows, weights = in_memory(X), np.ones(len(X))
    good = modularity_of_rows(rows, classes, weights)
    assert good > 0.4
    assert good > modularity_of_rows(rows, np.random.default_rng(0).permutation(classes), weights) + 0.3
    assert modularity_of_rows(rows, np.zeros(len(X), int), weights) == pytest.approx(0)
    assert modularity_of_rows(in_memory(X[:1]), classes[:1], weights[:1]) == 0


@pytest.mark.parametrize("sizes", [(700, 200, 100), (900, 60, 40)])
def test_clear_clusters_of_unequal_size_are_not_split_for_the_sake_of_modularity(sizes: tuple[int, ...]) -> None:
    centres = np.array([[0.0] * 5, [6.0] * 5, [0, 12, 0, 12, 0]])
    classes = np.repeat([0, 1, 2], sizes)
    X = centres[classes] + np.random.default_rng(0).normal(size=(1000, 5))
    assert adjusted_rand_score(classes, CCEClusterer(3, random_state=0).fit(X).labels_) > 0.99


def test_rows_without_weight_take_up_no_cluster() -> None:
    generator = np.random.default_rng(0)
    classes = np.arange(600) % 6
    X = 8 * np.eye(6, 20)[classes] + generator.normal(size=(600, 20))
    noise, weights = generator.normal(size=(200, 20)), np.r_[np.ones(600), np.zeros(200)]
    model = CCEClusterer(6, random_state=0).fit(np.concatenate([X, noise]), sample_weight=weights)
    assert adjusted_rand_score(classes, model.labels_[:600]) > 0.98


def test_tiny_weights_do_not_stop_the_graph_from_being_divided() -> None:
    classes = np.arange(400) % 4
    X = 8 * np.eye(4, 20)[classes] + np.random.default_rng(0).normal(size=(400, 20))
    partition = partition_graph(symmetric_graph(nearest_neighbors(X, 15), np.full(400, 1e-8)), 4)
    assert adjusted_rand_score(classes, partition) > 0.98


@pytest.mark.parametrize("settings", [{"graph_candidates": False}, {"prior": None}])
def test_a_graph_start_without_a_partition_is_a_k_means_start(settings: dict[str, Any]) -> None:
    X, _ = unequal()
    found, expected = (
        CCEClusterer(4, random_state=0, max_epochs=2, init=init, **settings).fit(X) for init in ("graph", "k-means")
    )
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_the_score_judges_as_the_fit_does() -> None:
    X, y = load_wine(return_X_y=True)
    scaled, raw = (CCEClusterer(3, random_state=0, scale=how).fit(X) for how in ("auto", "overall"))
    assert scaled.score(X) == pytest.approx(scaled.modularity_)
    pieces = scaled.labels_.copy()
    np.testing.assert_array_equal(scaled.partial_fit(X).labels_, pieces)
    assert scaled.outlier_score_ is None
    assert clustering_accuracy(y, pieces) > clustering_accuracy(y, raw.labels_)


def test_where_the_graph_joins_copies_of_rows_it_is_k_means(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    kinds = generator.integers(0, 2, (10, 7))
    rows = (kinds[generator.integers(0, 10, 600)] ^ (generator.uniform(size=(600, 7)) < 0.05)).astype(float)
    model = CCEClusterer(10, scale="overall", random_state=0)
    assert model.fit(rows).chosen_ == "K-means"
    monkeypatch.setattr(choices, "MOST_COPIES", 1.0)
    assert model.fit(rows).chosen_ != "K-means"


def copies(n_kinds: int) -> TrainingSpace:
    matrix = np.repeat(np.random.default_rng(0).normal(size=(n_kinds, 3)), 120 // n_kinds, axis=0)
    return TrainingSpace.of_rows(ArrayRows(matrix), Standardization(np.zeros(3), 1.0))


@pytest.mark.parametrize(("n_kinds", "joins"), [(12, True), (120, False)])
def test_a_graph_joins_copies_if_rows_are_equal_to_all_their_neighbours(n_kinds: int, joins: bool) -> None:
    space = copies(n_kinds)
    found = nearest_neighbors(space.rows.matrix, 5, metric="euclidean")
    assert arena_of(space, np.ones(120), found).joins_copies is joins
    rounded = space.rows.matrix + 1e-7 * np.random.default_rng(1).normal(size=(120, 3))
    almost = TrainingSpace.of_rows(ArrayRows(rounded), space.standardization)
    assert arena_of(almost, np.ones(120), found).joins_copies is joins


def test_a_row_among_its_own_neighbours_is_no_copy() -> None:
    own = np.repeat(np.arange(120)[:, None], 5, axis=1)
    assert not arena_of(copies(120), np.ones(120), own).joins_copies
    own[:, 0] = (own[:, 0] + 1) % 120
    assert not arena_of(copies(120), np.ones(120), own).joins_copies
