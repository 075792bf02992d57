from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs

from cceclust import clustering_accuracy
from cceclust.errors import InputError
from cceclust.fit.heads import GivenLabels
from cceclust.fit.pipeline import Fit, Settings, fit_source
from cceclust.fit.predict import block_logits
from cceclust.fit.source import as_source

DIGITS, CLASSES = load_digits(return_X_y=True)
DIGITS = DIGITS.astype(np.float32)


def fit(rows: Any, n_clusters: Any, *, given: GivenLabels | None = None, weights: Any = None, **settings: Any) -> Fit:
    return fit_source(as_source(rows), Settings(n_clusters, **settings), sample_weight=weights, given=given)


@pytest.fixture(scope="module")
def digits() -> Fit:
    return fit(DIGITS, 10)


def test_digits_are_found(digits: Fit) -> None:
    assert clustering_accuracy(CLASSES, digits.prediction.labels) > 0.9


def test_the_head_predicts_raw_rows(digits: Fit) -> None:
    logits = block_logits(digits.head, DIGITS)
    np.testing.assert_array_equal(logits.argmax(axis=1), digits.prediction.labels)


def test_equal_seeds_give_equal_labels_for_any_number_of_threads(digits: Fit) -> None:
    again = fit(DIGITS, 10, n_threads=3)
    np.testing.assert_array_equal(again.prediction.labels, digits.prediction.labels)
    np.testing.assert_array_equal(again.head.coef, digits.head.coef)


def test_the_reason_names_the_chosen_score_and_candidates_have_scores(digits: Fit) -> None:
    assert digits.choice is not None
    score = list(digits.choice.scores.values())[digits.choice.best]
    assert f"{score:.3f}" in digits.choice.reason
    assert len(digits.choice.scores) > 5


def test_sparse_rows_are_clustered_as_well_as_dense_ones() -> None:
    labels = fit(sparse.csr_array(DIGITS), 10).prediction.labels
    assert clustering_accuracy(CLASSES, labels) > 0.89


def test_a_sample_of_the_rows_suffices_and_all_rows_get_a_cluster() -> None:
    result = fit(DIGITS, 10, max_rows=900)
    assert result.n_trained_rows == 900
    assert result.outlier_scores is None
    assert clustering_accuracy(CLASSES, result.prediction.labels) > 0.85


def test_without_products_the_head_is_linear() -> None:
    assert fit(DIGITS[:500], 10, curved=False).head.curves is None
    assert fit(DIGITS[:500], 10).head.curves is not None


def test_given_sizes_are_respected() -> None:
    prior = np.array([0.6, 0.3, 0.1])
    X, _ = make_blobs(1000, 8, centers=1, random_state=0)
    shares = fit(X, 3, prior=prior).prediction.sizes() / 1000
    np.testing.assert_allclose(shares, prior, atol=0.1)


def test_rows_without_weight_change_nothing_but_get_a_cluster() -> None:
    X, y = make_blobs(400, 5, centers=3, random_state=0)
    strange = np.vstack([X, np.random.default_rng(0).uniform(-20, 20, (100, 5))])
    result = fit(strange, 3, weights=np.repeat([1.0, 0.0], [400, 100]))
    assert clustering_accuracy(y, result.prediction.labels[:400]) == 1
    assert len(result.prediction.labels) == 500


def test_far_rows_are_named_as_a_problem_and_change_nothing() -> None:
    X, y = make_blobs(400, 5, centers=3, random_state=0)
    X[0] = 1e7
    result = fit(X, 3)
    assert clustering_accuracy(y[1:], result.prediction.labels[1:]) == 1
    assert any("ignored in training" in problem for problem in result.problems)
    assert result.outlier_scores is not None
    assert result.outlier_scores.argmax() == 0


@pytest.mark.parametrize("n_clusters", [3, 60])
def test_round_clouds_are_found_without_their_number(n_clusters: int) -> None:
    X, y = make_blobs(20 * n_clusters + 500, 16, centers=n_clusters, random_state=0)
    result = fit(X, None)
    assert result.levels is not None
    assert result.levels.chosen == result.head.n_clusters == n_clusters
    assert clustering_accuracy(y, result.prediction.labels) > 0.99


def test_many_small_clusters_are_all_filled() -> None:
    X, y = make_blobs(1600, 32, centers=100, center_box=(-3, 3), random_state=0)
    labels = fit(X, 100).prediction.labels
    assert len(np.unique(labels)) == 100
    assert clustering_accuracy(y, labels) > 0.95


@pytest.mark.parametrize(
    ("rows", "n_clusters"),
    [
        (np.eye(3), 3),
        (np.eye(3), 1),
        (np.eye(3), None),
        (np.ones((10, 4)), 2),
        (np.ones((10, 4)), None),
        (np.ones((1, 4)), 1),
        (np.hstack([np.eye(6), np.ones((6, 2))]), 6),
        (np.repeat(np.eye(2), 20, axis=0), 2),
        (np.full((4, 2), 1e308), 2),
    ],
)
def test_tiny_data_give_clusters_without_an_error(rows: Any, n_clusters: int | None) -> None:
    result = fit(rows, n_clusters)
    assert len(result.prediction.labels) == len(rows)
    assert np.isfinite(result.prediction.probabilities).all()
    if n_clusters == len(rows):
        assert len(np.unique(result.prediction.labels)) == n_clusters


def test_more_clusters_than_rows_are_refused() -> None:
    with pytest.raises(InputError, match="n_samples=3 should be >= n_clusters=4"):
        fit(np.eye(3), 4)


def some_labels(rows: Any, n_classes: int = 10, n_clusters: int = 10) -> GivenLabels:
    assert CLASSES[rows].max() < n_classes
    return GivenLabels(rows, np.eye(n_clusters)[CLASSES[rows]], weight=0.5)


def test_few_labels_name_the_clusters() -> None:
    result = fit(DIGITS, 10, given=some_labels(np.arange(50)))
    assert (result.prediction.labels == CLASSES)[50:].mean() > 0.89


def test_a_class_without_labels_is_a_cluster_of_its_own() -> None:
    rows = np.flatnonzero(CLASSES < 9)[:200]
    result = fit(DIGITS, 10, given=some_labels(rows, 9))
    assert (result.prediction.labels == CLASSES).mean() > 0.92


def test_a_cloud_is_doubted_and_says_why() -> None:
    cloud = np.random.default_rng(0).normal(size=(1000, 10))
    assert fit(cloud, None).levels.is_weak
