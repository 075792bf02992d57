"""Estimators saved as model files: what comes back, and what is refused."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from cceclust.clustering import fit_file
from cceclust.errors import FileContentError, InputError, TargetExistsError
from cceclust.estimators import MIADM, MIGD, CCEByPGD, CCEClassifier, CCEClusterer, KMeans, SeLa
from cceclust.io import Model, read_model, write_features, write_model

X, Y = make_blobs(120, 5, centers=3, random_state=0)
CLUSTERERS = [CCEClusterer, MIGD, SeLa, MIADM, CCEByPGD, KMeans]


@pytest.mark.parametrize("kind", CLUSTERERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loaded_clusterers_predict_the_same_bits(kind, dtype, tmp_path: Path) -> None:
    rows = X.astype(dtype)
    fitted = kind(3, n_init=2, random_state=0).fit(rows)
    fitted.save(tmp_path / "m.safetensors")
    loaded = kind.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(rows), fitted.labels_)
    np.testing.assert_array_equal(loaded.transform(rows), fitted.transform(rows))
    np.testing.assert_array_equal(loaded.coef_, fitted.coef_)
    np.testing.assert_array_equal(loaded.intercept_, fitted.intercept_)
    np.testing.assert_array_equal(loaded.cluster_centers_, fitted.cluster_centers_)
    assert loaded.n_features_in_ == 5
    assert loaded.n_clusters_ == 3
    assert loaded.get_params() == fitted.get_params()
    assert list(loaded.get_feature_names_out()) == list(fitted.get_feature_names_out())


@pytest.mark.parametrize("names", [np.array(["a", "b", "c"]), np.array([4, 7, 9])])
def test_loaded_classifiers_know_their_classes(names, tmp_path: Path) -> None:
    fitted = CCEClassifier(label_noise=np.full((3, 3), 0.1) + 0.7 * np.eye(3), random_state=0).fit(X, names[Y])
    fitted.save(tmp_path / "m.safetensors")
    loaded = CCEClassifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(read_model(tmp_path / "m.safetensors").predict(X), fitted.predict(X))


def test_a_search_is_loaded_as_the_number_it_found(tmp_path: Path) -> None:
    fitted = CCEClusterer([2, 3, 4], random_state=np.random.RandomState(0), n_init=2).fit(X)
    fitted.save(tmp_path / "m.safetensors")
    loaded = CCEClusterer.load(tmp_path / "m.safetensors")
    assert (loaded.n_clusters, loaded.random_state) == (fitted.n_clusters_, None)


def test_score_of_scaled_columns_is_kept(tmp_path: Path) -> None:
    table = X * [1, 1, 1, 1, 1e4]
    fitted = CCEClusterer(3, n_init=2, random_state=0).fit(table)
    fitted.save(tmp_path / "m.safetensors")
    loaded = CCEClusterer.load(tmp_path / "m.safetensors")
    assert fitted.columns_scaled_
    assert loaded.columns_scaled_
    assert loaded.score(table) == fitted.score(table)


def test_names_of_columns_are_kept(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=list("abcde"))
    fitted = CCEClusterer(3, n_init=2, random_state=0).fit(table)
    fitted.save(tmp_path / "m.safetensors")
    loaded = CCEClusterer.load(tmp_path / "m.safetensors")
    # A table with other names is refused, and one with the same names gives no warning.
    np.testing.assert_array_equal(loaded.predict(table), fitted.labels_)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table.rename(columns={"a": "z"}))


def test_files_of_the_command_line_load(tmp_path: Path) -> None:
    write_features(tmp_path / "x.h5", X)
    clusters, written = fit_file(tmp_path / "x.h5", 3, n_init=2, random_state=0)
    estimator, model = CCEClusterer.load(written[1]), read_model(written[1])
    for predicted in (estimator.predict(X), model.predict(X), model.predict(sparse.csr_array(X))):
        np.testing.assert_array_equal(predicted, clusters.labels)
    np.testing.assert_array_equal(model.predict_proba(X), estimator.predict_proba(X))
    np.testing.assert_array_equal(model.cluster_centers, estimator.cluster_centers_)
    by_k_means = fit_file(tmp_path / "x.h5", 3, method="kmeans", random_state=0, force=True)[0]
    np.testing.assert_array_equal(KMeans.load(written[1]).predict(X), by_k_means.labels)


def test_one_feature_is_enough(tmp_path: Path) -> None:
    column = np.arange(60.0)[:, None]
    fitted = KMeans(2, n_init=1, random_state=0).fit(column)
    fitted.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(read_model(tmp_path / "m.safetensors").predict(column), fitted.labels_)


def test_other_kinds_of_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    MIGD(3, n_init=2, random_state=0).fit(X).save(path)
    with pytest.raises(FileContentError, match=r"not a model of SeLa; it was made by MIGD: use MIGD\.load"):
        SeLa.load(path)
    CCEClassifier(random_state=0).fit(X, Y).save(path, force=True)
    with pytest.raises(FileContentError, match=r"it was made by CCEClassifier: use CCEClassifier\.load"):
        CCEClusterer.load(path)
    write_model(path, Model(np.eye(2), np.zeros(2)), force=True)
    with pytest.raises(FileContentError, match="made by none of the estimators: use read_model"):
        CCEClusterer.load(path)
    write_model(path, Model(np.eye(2), np.zeros(2), {"method": "kmeans"}), force=True)
    with pytest.raises(FileContentError, match="has no cluster_centers"):
        KMeans.load(path)
    path.write_bytes(pickle.dumps(MIGD(3)))
    with pytest.raises(FileContentError, match="not a model file"):
        MIGD.load(path)


def test_saving_needs_a_fit_and_a_free_name(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        CCEClusterer(3).save(tmp_path / "m.safetensors")
    fitted = KMeans(3, n_init=2, random_state=0).fit(X)
    fitted.save(tmp_path / "m.safetensors")
    with pytest.raises(TargetExistsError):
        fitted.save(tmp_path / "m.safetensors")


def test_loaded_models_do_not_go_on_learning(tmp_path: Path) -> None:
    CCEClusterer(3, n_init=2, random_state=0).fit(X).save(tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="can predict but not go on learning"):
        CCEClusterer.load(tmp_path / "m.safetensors").partial_fit(X)


def test_models_refuse_rows_they_cannot_predict() -> None:
    model = Model(np.eye(2), np.zeros(2))
    with pytest.raises(InputError, match=r"shape \(1, 3\); expected \(n_samples, 2\)"):
        model.predict([[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match="row 1 contains NaN"):
        model.predict_proba([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(InputError, match="expected rows of numbers"):
        model.predict([["cat", "dog"]])
