"""Estimators saved as model files: what comes back, and what is refused."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from cceclust.errors import FileContentError, TargetExistsError
from cceclust.estimators import CCEClassifier, CCEClusterer
from cceclust.io import read_model

X, Y = make_blobs(120, 5, centers=3, random_state=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.safetensors"


@pytest.mark.parametrize("curved", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loaded_clusterers_predict_the_same_bits(curved, dtype, path) -> None:
    # Between three overlapping groups, borders curve.
    rows = (X * 0.3 + np.random.default_rng(0).normal(size=X.shape)).astype(dtype)
    fitted = CCEClusterer(3, curved=curved, prior=[0.3, 0.3, 0.4], n_jobs=1, random_state=0).fit(rows)
    fitted.save(path)
    loaded, model = CCEClusterer.load(path), read_model(path)
    np.testing.assert_array_equal(loaded.predict(rows), fitted.labels_)
    np.testing.assert_array_equal(loaded.transform(rows), fitted.transform(rows))
    np.testing.assert_array_equal(loaded.coef_, fitted.coef_)
    np.testing.assert_array_equal(loaded.cluster_centers_, fitted.cluster_centers_)
    np.testing.assert_array_equal(model.predict_proba(rows), fitted.predict_proba(rows))
    assert (fitted.curves_ is None) == (loaded.curves_ is None) == (not curved)
    assert loaded.n_features_in_ == 5
    assert loaded.n_clusters_ == 3
    assert loaded.get_params() == fitted.get_params()
    assert list(loaded.get_feature_names_out()) == list(fitted.get_feature_names_out())
    assert loaded.score(rows) == fitted.score(rows)


@pytest.mark.parametrize("names", [np.array(["a", "b", "c"]), np.array([4, 7, 9])])
def test_loaded_classifiers_know_their_classes(names, path) -> None:
    noise = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    fitted = CCEClassifier(label_noise=noise, random_state=0).fit(X, names[Y])
    fitted.save(path)
    loaded = CCEClassifier.load(path)
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(read_model(path).predict(X), fitted.predict(X))
    assert loaded.score(X, names[Y]) == fitted.score(X, names[Y])


def test_a_search_is_loaded_as_the_number_it_found(path) -> None:
    fitted = CCEClusterer([2, 3, 4], random_state=np.random.RandomState(0)).fit(X)
    fitted.save(path)
    loaded = CCEClusterer.load(path)
    assert (loaded.n_clusters, loaded.random_state) == (fitted.n_clusters_, None)


def test_names_of_columns_are_kept(path) -> None:
    table = pd.DataFrame(X, columns=list("abcde"))
    fitted = CCEClusterer(3, random_state=0).fit(table)
    fitted.save(path)
    loaded = CCEClusterer.load(path)
    # A table with other names is refused, and one with the same names gives no warning.
    np.testing.assert_array_equal(loaded.predict(table), fitted.labels_)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table.rename(columns={"a": "z"}))


def test_other_kinds_of_models_are_refused(path) -> None:
    CCEClassifier(random_state=0).fit(X, Y).save(path)
    with pytest.raises(FileContentError, match=r"not a model of CCEClusterer; use CCEClassifier\.load"):
        CCEClusterer.load(path)
    CCEClusterer(3, random_state=0).fit(X).save(path, force=True)
    with pytest.raises(FileContentError, match=r"not a model of CCEClassifier; use CCEClusterer\.load"):
        CCEClassifier.load(path)
    path.write_bytes(pickle.dumps(CCEClusterer(3)))
    with pytest.raises(FileContentError, match="not a safetensors file"):
        CCEClusterer.load(path)


def test_saving_needs_a_fit_and_a_free_name(path) -> None:
    with pytest.raises(NotFittedError):
        CCEClusterer(3).save(path)
    fitted = CCEClusterer(3, random_state=0).fit(X)
    fitted.save(path)
    with pytest.raises(TargetExistsError):
        fitted.save(path)
