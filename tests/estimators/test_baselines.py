from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn import cluster
from sklearn.metrics import adjusted_rand_score

from cceclust.errors import InputError
from cceclust.estimators import MIADM, MIGD, CCEByPGD, KMeans, SeLa

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

CLASSES = np.arange(400) % 4
METHODS = [MIGD, SeLa, MIADM, CCEByPGD]


def blobs(dtype: Any = np.float64) -> Any:
    return (np.random.default_rng(0).normal(size=(400, 6)) + 7 * np.eye(4, 6)[CLASSES]).astype(dtype)


def fitted(method: Any, X: Any, **changes: Any) -> Any:
    return method(4, **{"n_init": 4, "max_epochs": 40, "random_state": 0, "n_jobs": 1, **changes}).fit(X)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_easy_groups_are_found(method: Any, dtype: Any) -> None:
    model = fitted(method, blobs(dtype))
    assert adjusted_rand_score(CLASSES, model.labels_) > 0.95
    assert model.coef_.dtype == dtype
    np.testing.assert_array_equal(model.predict(blobs(dtype)), model.labels_)


@pytest.mark.parametrize("method", METHODS)
def test_one_thread_equals_two(method: Any) -> None:
    one, two = (fitted(method, blobs(), max_epochs=10, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.losses_, two.losses_)


@pytest.mark.parametrize("method", METHODS)
def test_the_graph_chooses_among_the_restarts(method: Any) -> None:
    model = fitted(method, blobs(), max_epochs=2)
    assert len(model.candidates_) == 4
    assert model.modularity_ == model.candidates_[model.chosen_]
    assert model.modularity_ >= max(model.candidates_.values()) - 0.05


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_cluster_that_the_prior_excludes_stays_empty(dtype: Any) -> None:
    model = fitted(CCEByPGD, blobs(dtype)[CLASSES != 1], prior=[0.4, 0.3, 0, 0.3])
    assert np.isfinite(model.losses_).all()
    assert adjusted_rand_score(CLASSES[CLASSES != 1], model.labels_) > 0.95
    assert not (model.labels_ == 2).any()


def test_migd_s_loss_is_its_formula() -> None:
    model = fitted(MIGD, blobs(), max_epochs=10)
    sigma = model.predict_proba(blobs())
    entropy = -(sigma * np.log(sigma)).sum(axis=1).mean()
    mean = sigma.mean(axis=0)
    assert model.loss_ == pytest.approx(entropy + model.fairness * (mean * np.log(4 * mean)).sum())


def test_neighbours_are_refused_where_there_are_no_pseudo_labels() -> None:
    with pytest.raises(InputError, match="MIGD has no use for neighbors"):
        MIGD(4).fit(blobs(), neighbors=np.zeros((400, 1), int))


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        (MIGD, "fairness", -1.0),
        (SeLa, "sharpness", -1.0),
        (MIADM, "fairness", -1.0),
        (CCEByPGD, "step_size", -1.0),
        (CCEByPGD, "fairness", -1.0),
        (CCEByPGD, "fairness", "x"),
    ],
)
def test_bad_parameters_are_refused_by_name(method: Any, name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        fitted(method, blobs(), **{name: value})


class TestKMeans:
    def test_it_is_scikit_learn_s(self) -> None:
        ours, theirs = (method(4, n_init=2, random_state=0).fit(blobs()) for method in (KMeans, cluster.KMeans))
        np.testing.assert_array_equal(ours.labels_, theirs.labels_)
        np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("offset", [0, -30, 1e4])
    def test_the_head_finds_the_nearest_centre(self, dtype: Any, offset: float) -> None:
        X = blobs(dtype) + dtype(offset)
        model = KMeans(4, n_init=2, random_state=0).fit(X)
        assert model.coef_.dtype == model.intercept_.dtype == dtype
        np.testing.assert_array_equal((X @ model.coef_.T + model.intercept_).argmax(axis=1), model.labels_)

    def test_the_head_s_softmax_is_that_of_squared_distances(self) -> None:
        model = KMeans(4, n_init=2, random_state=0).fit(blobs())
        squared = ((blobs()[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
        np.testing.assert_allclose(
            softmax(blobs() @ model.coef_.T + model.intercept_, axis=1), softmax(-squared, axis=1), atol=1e-9
        )
