from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from cceclust import clustering_accuracy
from cceclust.fit.heads import GivenLabels
from cceclust.fit.pipeline import Fit, Settings, fit_source
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


def test_the_reason_names_the_chosen_score_and_candidates_have_scores(digits: Fit) -> None:
    assert digits.choice is not None
    score = list(digits.choice.scores.values())[digits.choice.best]
    assert f"{score:.3f}" in digits.choice.reason
    assert len(digits.choice.scores) > 5


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
