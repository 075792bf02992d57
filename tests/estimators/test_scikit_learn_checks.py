"""scikit-learn's own checks of all estimators, as their plain constructors make them.

Only projected gradient descent, which takes most of a minute for some of the checks, is cut short.
"""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import (
    check_estimator_sparse_array,
    check_estimator_sparse_matrix,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

from cceclust.estimators import MIADM, MIGD, CCEByPGD, CCEClassifier, CCEClusterer, KMeans, SeLa

OF_WEIGHTS = (check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data)
OF_SPARSE_INPUT = (check_estimator_sparse_array, check_estimator_sparse_matrix)
CLUSTERERS = [CCEClusterer, MIGD, SeLa, MIADM, CCEByPGD]
CHECKED = [CCEClusterer(), MIGD(), SeLa(), MIADM(), CCEByPGD(max_iter=20, max_epochs=5), CCEClassifier(), KMeans()]
COLUMNS = (
    "the check expects a column of predict_proba for each of the 4 classes in its y; a clusterer does not look at y "
    "and has a column for each of its 8 clusters"
)
GRAPH = (
    "repeated rows are each other's nearest neighbours, so the graph that chooses among several starts is not that of "
    "weighted rows; with one start there is nothing to choose, and the check passes"
)
K_MEANS = "as scikit-learn says of its own KMeans, the starts drawn from weighted rows are not those of repeated rows"


def declared(estimator: Any) -> dict[str, str]:
    """Return the checks that cannot pass, with the reason."""
    reasons = {}
    if isinstance(estimator, KMeans):
        reasons |= dict.fromkeys(OF_WEIGHTS, K_MEANS)
    if isinstance(estimator, CCEClusterer | CCEByPGD):
        reasons |= dict.fromkeys(OF_WEIGHTS, GRAPH)
    if isinstance(estimator, tuple(CLUSTERERS)):
        reasons |= dict.fromkeys(OF_SPARSE_INPUT, COLUMNS)
    return {check.__name__: reason for check, reason in reasons.items()}


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
# K-means warns of checks with fewer different rows than clusters.
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@parametrize_with_checks(CHECKED, expected_failed_checks=declared)
def test_estimator_keeps_the_contract(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
@pytest.mark.parametrize("kind", CLUSTERERS)
@pytest.mark.parametrize("check", OF_SPARSE_INPUT)
def test_sparse_checks_pass_with_as_many_clusters_as_they_have_classes(kind, check):
    check(kind.__name__, kind(4, n_init=2, max_epochs=10))


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
@pytest.mark.parametrize("estimator", [CCEClusterer(n_init=1, graph_candidates=False), CCEByPGD(n_init=1, max_iter=20)])
@pytest.mark.parametrize("check", OF_WEIGHTS)
def test_weights_count_as_repetitions_where_there_is_one_start(estimator, check):
    check(type(estimator).__name__, estimator)
