"""Whatever an estimator shows is documented; everything else is private."""

import inspect

import pytest
from sklearn import cluster
from sklearn.datasets import make_blobs

from cceclust.estimators import MIADM, MIGD, CCEByPGD, CCEClassifier, CCEClusterer, KMeans, SeLa

X, Y = make_blobs(60, 3, centers=3, random_state=0)
BASELINES = (MIGD, SeLa, MIADM, CCEByPGD)
ESTIMATORS = [CCEClassifier(), *(kind(3, n_init=2, random_state=0) for kind in (CCEClusterer, *BASELINES, KMeans))]


def documentation(estimator: object) -> str:
    """Return the documentation of a class, with that of the class to which it refers."""
    text = type(estimator).__doc__ or ""
    if isinstance(estimator, BASELINES):
        text += CCEClusterer.__doc__ or ""
    return text + (cluster.KMeans.__doc__ or "" if isinstance(estimator, KMeans) else "")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_attributes_and_methods_are_documented(estimator) -> None:
    estimator.fit(X, Y)
    shown = {name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")}
    assert {"coef_", "n_features_in_"} <= shown
    assert {name for name in shown if name not in documentation(estimator)} == set()
    methods = [
        name for name in dir(estimator) if not name.startswith("_") and inspect.ismethod(getattr(estimator, name))
    ]
    assert {"save", "load", "predict"} <= set(methods)
    assert [name for name in methods if not inspect.getdoc(getattr(estimator, name))] == []
