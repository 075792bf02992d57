"""Scores agree with brute force and scikit-learn, and do not depend on how clusters are named."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from cceclust import clustering_accuracy, match_clusters, score_clusters
from cceclust.errors import InputError
from cceclust.labels import label_accuracy, name_extra_clusters
from cceclust.scoring import score_without_labels, worst_confusions

labelled_rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


def brute_force_accuracy(truth: list[int], found: list[int]) -> float:
    """Try every one-to-one matching."""
    classes, clusters = sorted(set(truth)), sorted(set(found))
    # Clusters without a class are matched with names that no class has.
    candidates = classes + [f"none {k}" for k in range(len(clusters))]
    return max(
        np.mean([dict(zip(clusters, names, strict=True))[k] == c for c, k in zip(truth, found, strict=True)])
        for names in itertools.permutations(candidates, len(clusters))
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=15))
def test_accuracy_equals_that_of_the_best_of_all_matchings(rows):
    truth, found = map(list, zip(*rows, strict=True))
    assert clustering_accuracy(truth, found) == pytest.approx(brute_force_accuracy(truth, found))


@given(labelled_rows, st.permutations(range(5)))
def test_names_of_the_clusters_do_not_matter(rows, names):
    truth, found = map(np.array, zip(*rows, strict=True))
    renamed = np.array([f"cluster {names[k]}" for k in found])
    assert clustering_accuracy(truth, renamed) == clustering_accuracy(truth, found)


@given(labelled_rows)
def test_scores_agree_with_each_other_and_with_scikit_learn(rows):
    truth, found = map(np.array, zip(*rows, strict=True))
    scores = score_clusters(truth, found)
    assert scores.accuracy == clustering_accuracy(truth, found) <= scores.purity
    assert scores.nmi == pytest.approx(normalized_mutual_info_score(truth, found))
    assert scores.ari == pytest.approx(adjusted_rand_score(truth, found))
    assert scores.confusion.sum() == len(rows)
    assert np.trace(scores.confusion) == pytest.approx(scores.accuracy * len(rows))
    matched = {entry.cluster: entry.label for entry in scores.classes if entry.cluster is not None}
    assert matched == match_clusters(truth, found)


@given(labelled_rows)
def test_recall_and_precision_are_those_of_the_matched_cluster(rows):
    truth, found = map(np.array, zip(*rows, strict=True))
    for entry in score_clusters(truth, found).classes:
        in_class = truth == entry.label
        in_cluster = np.zeros(len(rows), bool) if entry.cluster is None else found == entry.cluster
        assert entry.size == in_class.sum()
        assert entry.recall == pytest.approx((in_class & in_cluster).sum() / in_class.sum())
        if entry.cluster is None:
            assert entry.precision is None
        else:
            assert entry.precision == pytest.approx((in_class & in_cluster).sum() / in_cluster.sum())


def test_rectangular_matchings_leave_out_what_is_too_many():
    assert match_clusters(["a", "a", "b"], [0, 1, 2]) in ({0: "a", 2: "b"}, {1: "a", 2: "b"})
    scores = score_clusters(["a", "b", "c", "c"], [0, 0, 1, 1])
    assert [entry.cluster for entry in scores.classes].count(None) == 1
    assert scores.confusion.shape == (3, 2)
    assert scores.accuracy == 0.75


@pytest.mark.parametrize(
    "truth",
    [
        [0, 0, 1, 1, -1],
        ["x", "x", "y", "y", ""],
        ["x", "x", "y", "y", "-1"],
        np.array(["x", "x", "y", "y", None], object),
        np.array([0, 0, 1, 1, None], object),
        np.array([0.0, 0.0, 1.0, 1.0, np.nan]),
        np.array([b"x", b"x", b"y", b"y", b""]),
        np.array([[0], [0], [1], [1], [-1]]),
    ],
)
def test_missing_labels_of_any_type_are_left_out_and_counted(truth):
    scores = score_clusters(truth, [1, 1, 0, 1, 1])
    assert (scores.n_samples, scores.n_without_label, scores.n_without_cluster) == (4, 1, 0)
    assert scores.accuracy == 0.75


def test_rows_without_a_cluster_are_counted_apart():
    scores = score_clusters([0, 0, 1, -1], [3, -1, 2, -1])
    assert (scores.n_samples, scores.n_without_label, scores.n_without_cluster) == (2, 1, 1)


@pytest.mark.parametrize(
    ("truth", "found", "message"),
    [
        ([0, 1], [0, 1, 2], "2 true labels for 3 clustered rows"),
        ([-1, -1], [0, 1], "no row of 2 has both"),
        ([0.5, 1.0], [0, 1], "such as 0.5"),
        ([[0, 1], [1, 0]], [0, 1], r"shape \(2, 2\)"),
        ([1j, 2j], [0, 1], "type complex128"),
    ],
)
def test_what_cannot_be_scored_is_named(truth, found, message):
    with pytest.raises(InputError, match=message):
        clustering_accuracy(truth, found)


def test_too_many_distinct_labels_are_refused_before_they_fill_the_memory():
    rows = np.arange(20_000)
    with pytest.raises(InputError, match="are these row numbers"):
        clustering_accuracy(rows, rows)


def test_a_million_rows_of_a_thousand_classes_are_exact():
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 1000, 1_000_000)
    is_wrong = generator.random(len(truth)) < 0.3
    # Wrong rows go to the next cluster, so no other matching can be better and the accuracy is known exactly.
    found = (truth + is_wrong) % 1000
    accuracy = clustering_accuracy(truth, (found * 7 + 3) % 1000)
    assert accuracy == pytest.approx(1 - is_wrong.mean(), abs=1e-12)


def test_worst_confusions_come_first_and_leave_out_the_diagonal():
    truth, found = ["a"] * 5 + ["b"] * 5, [0, 0, 0, 1, 1, 1, 1, 1, 1, 0]
    assert worst_confusions(score_clusters(truth, found)) == [("a", 1, 2), ("b", 0, 1)]


def test_equal_sizes_have_entropy_one_and_empty_clusters_lower_it():
    assert score_without_labels([0, 1, 2, 2, 1, 0]).size_entropy == pytest.approx(1)
    with_empty = score_without_labels([0, 1, 0, 1], probabilities=np.full((4, 4), 0.25))
    assert with_empty.size_entropy == pytest.approx(0.5)
    assert (with_empty.n_clusters, with_empty.n_empty, with_empty.smallest) == (4, 2, 0)


def test_silhouette_is_high_for_separate_groups_and_absent_where_undefined():
    points = np.concatenate([np.zeros((5, 2)), np.full((5, 2), 9.0)]) + np.random.default_rng(0).normal(0, 0.1, (10, 2))
    rows = np.arange(10)
    apart = score_without_labels(np.repeat([0, 1], 5), sample=rows, sample_features=points)
    mixed = score_without_labels(np.tile([0, 1], 5), sample=rows, sample_features=points)
    assert apart.silhouette is not None
    assert apart.silhouette > 0.9
    assert mixed.silhouette is not None
    assert mixed.silhouette < 0.1
    assert score_without_labels(np.zeros(10, int), sample=rows, sample_features=points).silhouette is None


def test_known_figures_are_kept_and_unknown_ones_are_none():
    scores = score_without_labels([0, 1], modularity=0.3)
    assert (scores.modularity, scores.mean_confidence, scores.silhouette) == (0.3, None, None)
    assert score_without_labels([0, 1], probabilities=np.array([[0.9, 0.1], [0.3, 0.7]])).mean_confidence == 0.8


@pytest.mark.parametrize(("size", "offset"), [(1.0, 1000.0), (2e37, 0.0), (1e-37, 0.0)])
def test_silhouette_is_that_of_scikit_learn_whatever_the_size_of_numbers(size, offset):
    generator = np.random.default_rng(0)
    points, labels = generator.normal(size=(100, 3)), generator.integers(0, 4, 100)
    points[labels == 1] += 5
    # A row that is alone in its cluster, one without a cluster and one that is not finite.
    labels[:2] = 9, -1
    given = (points * size + offset).astype(np.float32)
    given[2, 0] = np.nan
    found = score_without_labels(labels, sample=np.arange(100), sample_features=given).silhouette
    assert found == pytest.approx(silhouette_score(np.delete(points, [1, 2], 0), np.delete(labels, [1, 2])), abs=1e-4)


def test_names_and_missing_marks_are_compared_as_they_are_read():
    assert label_accuracy(["cat", "dog", ""], ["cat", "cat", "dog"]) == 0.5
    assert label_accuracy([3, 4, -1], np.array(["3", "5", "6"])) == 0.5


def test_extra_clusters_get_the_next_names():
    assert name_extra_clusters(np.array([0, 1, 4]), 2).tolist() == [5, 6]
    assert name_extra_clusters(np.array(["cat", "dog"]), 1).tolist() == ["extra 1"]
