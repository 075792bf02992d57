"""scikit-learn's own checks, none of them declared as an expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cceclust.estimators import MIADM, MIGD, CCEByPGD, CCEClassifier, CCEClusterer, SeLa

# Four clusters, because two checks of sparse input expect predict_proba to have a column for each class of their y.
ESTIMATORS = [*(method(4, n_init=2) for method in (CCEClusterer, MIGD, SeLa, MIADM, CCEByPGD)), CCEClassifier()]


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_keeps_the_contract(estimator, check):
    check(estimator)
