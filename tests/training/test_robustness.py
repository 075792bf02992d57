"""Real tables: columns in different units, a row from another world, rows that fit in nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from cceclust import CCEClusterer, clustering_accuracy
from cceclust.errors import InputError
from cceclust.files import open_features, write_features
from cceclust.training.robustness import distances_from_the_middle, outlier_scores, scaled_columns, without_far_rows
from cceclust.training.rows import ArrayRows, FileRows, in_memory

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

CLASSES = np.arange(300) % 3


def blobs() -> Any:
    return np.random.default_rng(0).normal(size=(300, 6)) + 6 * np.eye(3, 6)[CLASSES]


def clusterer(**changes: Any) -> CCEClusterer:
    return CCEClusterer(3, **{"random_state": 0, "n_init": 3, "max_epochs": 20, **changes})


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_columns_are_divided_by_their_deviations_and_constant_ones_stay(convert: Any) -> None:
    rows = in_memory(convert(np.array([[2.0, 5.0], [4.0, 5.0]])))
    found: Any = scaled_columns(rows, np.array([2.0, 0.0]))
    matrix = found.matrix.toarray() if sparse.issparse(found.matrix) else found.matrix
    np.testing.assert_array_equal(matrix, [[1.0, 5.0], [2.0, 5.0]])


def test_columns_of_a_file_larger_than_memory_cannot_be_scaled(tmp_path: Any) -> None:
    write_features(tmp_path / "x.h5", np.random.default_rng(0).normal(size=(2000, 4)))
    with open_features(tmp_path / "x.h5") as file, pytest.raises(InputError, match="allow more memory"):
        scaled_columns(FileRows(file, 1000 * 4 * 8), np.ones(4))


def test_wine_is_scaled_by_itself_and_its_model_is_for_raw_columns() -> None:
    X, y = load_wine(return_X_y=True)
    model = CCEClusterer(3, random_state=0).fit(X)
    assert model.columns_scaled_
    assert clustering_accuracy(y, model.labels_) > 0.93
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert not CCEClusterer(3, random_state=0, scale="overall").fit(X).columns_scaled_


def test_one_far_row_decides_nothing_but_stands_out() -> None:
    X = np.concatenate([blobs(), np.full((1, 6), 1e5)])
    model = clusterer().fit(X)
    assert adjusted_rand_score(CLASSES, model.labels_[:300]) > 0.95
    assert model.labels_.shape == (301,)
    assert any("1 of 301 rows" in problem for problem in model.problems_)
    assert model.outlier_score_.argmax() == 300
    assert np.isfinite(model.outlier_score_).all()


def test_distances_are_multiples_of_the_usual_one() -> None:
    X = np.concatenate([np.ones((50, 2)), -np.ones((50, 2)), [[30.0, 30.0]]])
    distances = distances_from_the_middle(ArrayRows(X), np.ones(101), seed=0)
    assert np.median(distances) == pytest.approx(1)
    assert distances[100] > 10


def test_a_group_of_far_rows_is_a_cluster() -> None:
    X = np.concatenate([blobs(), np.full((30, 6), 1e4)])
    weights, count = without_far_rows(ArrayRows(X), np.ones(330), seed=0)
    assert count == 0
    assert weights.all()


def test_a_row_between_clusters_has_a_higher_outlier_score_for_any_number_of_threads() -> None:
    X = np.concatenate([blobs(), np.full((1, 6), 9.0)])
    neighbors = np.argsort(((X[:, None] - X) ** 2).sum(axis=2), axis=1)[:, 1:11]
    one, two = (outlier_scores(X, neighbors, n_threads=n) for n in (1, 2))
    assert one.argmax() == 300
    np.testing.assert_array_equal(one, two)


def test_rows_that_repeat_do_not_stand_out() -> None:
    X = np.repeat(np.eye(3), 20, axis=0)
    neighbors = (np.arange(60)[:, None] // 20 * 20 + (np.arange(60)[:, None] + [1, 2, 3]) % 20).astype(int)
    np.testing.assert_array_equal(outlier_scores(X, neighbors, n_threads=1), 1)


def test_the_order_of_rows_changes_no_outlier_score() -> None:
    matrix, order = blobs(), np.random.default_rng(1).permutation(300)
    neighbors = np.random.default_rng(0).integers(0, 300, (300, 4))
    plain = outlier_scores(matrix, neighbors, n_threads=1)
    np.testing.assert_array_equal(outlier_scores(matrix, neighbors, n_threads=2, order=order), plain)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_outlier_scores_of_very_large_and_small_rows_are_the_same(size: float) -> None:
    rows, neighbors = blobs().astype(np.float32), np.random.default_rng(0).integers(0, 300, (300, 4))
    expected = outlier_scores(rows, neighbors, n_threads=1)
    sized = rows * np.float32(size)
    np.testing.assert_allclose(outlier_scores(sized, neighbors, n_threads=1, scale=size), expected, rtol=1e-5)
