"""scikit-learn's own checks of all estimators, as their plain constructors make them."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import (
    check_estimator_sparse_array,
    check_estimator_sparse_matrix,
    parametrize_with_checks,
)

from cceclust.estimators import MIADM, MIGD, CCEByPGD, CCEClassifier, CCEClusterer, KMeans, SeLa

CLUSTERERS = [CCEClusterer, MIGD, SeLa, MIADM, CCEByPGD]
COLUMNS = (
    "the check expects a column of predict_proba for each of the 4 classes in its y; a clusterer does not look at y "
    "and has a column for each of its 8 clusters"
)
GRAPH = (
    "repeated rows are each other's nearest neighbours, so the graph that chooses the clusters is not that of weighted "
    "rows"
)
K_MEANS = "as scikit-learn says of its own KMeans, the starts drawn from weighted rows are not those of repeated rows"


def declared(estimator: Any) -> dict[str, str]:
    """Return the checks that cannot pass, with the reason."""
    of_weights = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    if isinstance(estimator, KMeans):
        return dict.fromkeys(of_weights, K_MEANS)
    reasons = dict.fromkeys(of_weights, GRAPH) if isinstance(estimator, CCEClusterer) else {}
    if isinstance(estimator, tuple(CLUSTERERS)):
        reasons |= dict.fromkeys(("check_estimator_sparse_array", "check_estimator_sparse_matrix"), COLUMNS)
    return reasons


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
@parametrize_with_checks([kind() for kind in (*CLUSTERERS, CCEClassifier, KMeans)], expected_failed_checks=declared)
def test_estimator_keeps_the_contract(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
@pytest.mark.parametrize("kind", CLUSTERERS)
@pytest.mark.parametrize("check", [check_estimator_sparse_array, check_estimator_sparse_matrix])
def test_sparse_checks_pass_with_as_many_clusters_as_they_have_classes(kind, check):
    check(kind.__name__, kind(4, n_init=2))
