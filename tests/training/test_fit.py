"""The automatic weight decay follows the data's variance and the clusters' part of the rows."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from cceclust import CCEClusterer
from cceclust.choices import decay_for

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")


def used_for(X, n_clusters):
    return CCEClusterer(n_clusters, n_init=1, max_epochs=1, n_neighbors=0, random_state=0).fit(X).weight_decay_


def blobs(n_clusters, width):
    """Clusters on a square grid of distance 1."""
    generator = np.random.default_rng(0)
    classes = np.arange(900) % n_clusters
    side = round(np.sqrt(n_clusters))
    centres = np.stack([classes // side, classes % side], axis=1)
    return (centres + width * generator.normal(size=(900, 2))).astype(np.float32), classes


def test_crowded_clusters_have_less_decay_the_narrower_they_are():
    wide, narrow = (used_for(blobs(9, width)[0], 9) for width in (0.2, 0.1))
    # Heads are steeper by the inverse of the clusters' variance, and their squares by that of its square.
    assert 12 < wide / narrow < 20


def test_decay_does_not_melt_crowded_clusters():
    X, classes = blobs(25, 0.1)
    found = CCEClusterer(25, random_state=0).fit(X)
    assert adjusted_rand_score(classes, found.labels_) > 0.95
    # What suits as many clusters in many dimensions.
    heads = CCEClusterer(25, random_state=0, graph_candidates=False, weight_decay=decay_for(np.ones(500), 25))
    melted = heads.fit(X)
    assert adjusted_rand_score(classes, melted.labels_) < 0.9


def test_forty_clusters_in_many_dimensions_are_found():
    generator = np.random.default_rng(0)
    classes = np.arange(2000) % 40
    X = 2 * generator.normal(size=(40, 100))[classes] + generator.normal(size=(2000, 100))
    model = CCEClusterer(40, n_init=3, random_state=0).fit(X.astype(np.float32))
    assert adjusted_rand_score(classes, model.labels_) > 0.8
