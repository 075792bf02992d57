"""Whatever an estimator shows is documented; everything else is private."""

import inspect
import re

import pytest
from sklearn.datasets import make_blobs

from cceclust.estimators import CCE, MIADM, MIGD, CCEByPGD, CCEClassifier, CCEClusterer, SeLa
from cceclust.estimators.paper import PaperClusterer

X, Y = make_blobs(60, 3, centers=3, random_state=0)
PAPER = [kind(3, max_iter=20, random_state=0) for kind in (CCE, CCEByPGD, MIGD, SeLa, MIADM)]


@pytest.mark.parametrize(
    "estimator", [CCEClassifier(), CCEClusterer(3, random_state=0), *PAPER], ids=lambda each: type(each).__name__
)
def test_attributes_parameters_and_methods_are_documented(estimator) -> None:
    estimator.fit(X, Y)
    text = type(estimator).__doc__ + (PaperClusterer if estimator in PAPER else CCEClusterer).__doc__
    shown = {name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")}
    assert {"coef_", "n_features_in_"} <= shown
    public = {name for name in dir(estimator) if not name.startswith("_")}
    methods = {name for name in public if inspect.ismethod(getattr(estimator, name))}
    assert {name for name in shown | set(estimator.get_params()) if not re.search(rf"\b{name}\b", text)} == set()
    assert {name for name in methods if not inspect.getdoc(getattr(estimator, name))} == set()
