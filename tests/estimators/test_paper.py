from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from cceclust.errors import InputError
from cceclust.estimators import CCE, MIADM, MIGD, CCEByPGD, SeLa
from cceclust.scoring import clustering_accuracy

METHODS = (CCE, CCEByPGD, MIGD, SeLa, MIADM)
X, Y = make_blobs(600, 5, centers=3, cluster_std=1.0, random_state=0)
X = (X - X.mean(axis=0)) / X.std()


def some(kind: type[Any], **changes: Any) -> Any:
    return kind(3, **{"max_iter": 50, "max_epochs": 20, "random_state": 0, **changes})


# Some of the checks want as many columns of predict_proba as their y has classes.
@parametrize_with_checks([CCE(4)])
def test_scikit_learn_accepts_the_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


def test_defaults_are_the_settings_that_the_paper_prints() -> None:
    expected = {"learning_rate": 0.1, "weight_decay": 0.02, "batch_size": 250, "max_epochs": 10}
    for kind, fairness in ((CCE, 100.0), (CCEByPGD, 100.0), (MIGD, 1.3), (MIADM, 1.0)):
        assert kind().get_params().items() >= expected.items()
        assert kind._fairness == fairness


@pytest.mark.parametrize("kind", METHODS)
def test_clear_groups_are_found(kind: type[Any]) -> None:
    assert any(clustering_accuracy(Y, some(kind, random_state=seed).fit_predict(X)) > 0.95 for seed in range(3))


@pytest.mark.parametrize("kind", METHODS)
def test_labels_are_the_likeliest_clusters_and_what_predict_says(kind: type[Any]) -> None:
    model = some(kind).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, model.predict_proba(X).argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("kind", METHODS)
def test_the_loss_falls_and_has_an_entry_per_epoch(kind: type[Any]) -> None:
    model = some(kind).fit(X)
    assert len(model.loss_curve_) == model.n_iter_ == 20
    assert model.loss_curve_[-1] < model.loss_curve_[0]


def test_sparse_rows_give_the_clusters_of_dense_ones() -> None:
    dense = some(CCE).fit(X)
    thin = some(CCE).fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0; expected a whole number of at least 1"),
        ({"n_clusters": 601}, "n_samples=600 should be >= n_clusters=601"),
        ({"learning_rate": 0}, "learning_rate=0; expected a number above 0"),
        ({"fairness": -1}, "fairness=-1; expected a number of at least 0"),
        ({"momentum": "much"}, "momentum='much'; expected a number of at least 0"),
    ],
)
@pytest.mark.parametrize("kind", [CCE, MIGD])
def test_errors_say_what_was_expected(kind: type[Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        some(kind).set_params(**changes).fit(X)
