"""scikit-learn's own checks of the estimators, as their plain constructors make them."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cceclust.estimators import CCEClassifier, CCEClusterer

# The same two that scikit-learn's KMeans declares.
WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
STARTS = "random starts on weighted rows are not those on repeated rows, and repeated rows are their own neighbours"
ROUNDING = "a repeated row is its own neighbour, which moves the axes a little"


def declared(estimator: Any) -> dict[str, str]:
    """Return the checks that cannot pass, with the reason."""
    return dict.fromkeys(WEIGHTS, STARTS if isinstance(estimator, CCEClusterer) else ROUNDING)


# Two checks of sparse rows want as many columns of predict_proba as their y has classes.
@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
@parametrize_with_checks([CCEClusterer(4), CCEClassifier()], expected_failed_checks=declared)
def test_the_estimator_keeps_the_contract(estimator: Any, check: Any) -> None:
    check(estimator)
