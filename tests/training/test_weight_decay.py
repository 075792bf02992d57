"""The automatic weight decay follows the data's variance and the clusters' part of the rows."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from cceclust import CCEClusterer
from cceclust.training.spectrum import Spectrum
from cceclust.training.weight_decay import automatic_weight_decay, suitable_weight_decay

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

WIDE = Spectrum(np.ones(500))


def test_decay_grows_with_the_deviation():
    assert automatic_weight_decay(Spectrum(4 * WIDE.variances), 10) == pytest.approx(
        2 * automatic_weight_decay(WIDE, 10)
    )


def test_decay_falls_with_the_part_of_a_cluster_beyond_ten():
    few, ten, many = (automatic_weight_decay(WIDE, n_clusters) for n_clusters in (2, 10, 40))
    assert few == ten == pytest.approx(4 * many)


def test_decay_falls_where_clusters_are_crowded():
    assert automatic_weight_decay(Spectrum(np.ones(8)), 10) == pytest.approx(automatic_weight_decay(WIDE, 10) / 4)


def test_what_suits_is_what_a_fit_uses():
    X = np.random.default_rng(0).normal(size=(300, 20)).astype(np.float32)
    model = CCEClusterer(4, n_init=1, max_epochs=1, n_neighbors=0, random_state=0).fit(X)
    assert suitable_weight_decay(X, 4) == pytest.approx(model.weight_decay_)


def test_forty_clusters_in_many_dimensions_are_found():
    generator = np.random.default_rng(0)
    classes = np.arange(2000) % 40
    X = 2 * generator.normal(size=(40, 100))[classes] + generator.normal(size=(2000, 100))
    model = CCEClusterer(40, n_init=3, random_state=0).fit(X.astype(np.float32))
    assert adjusted_rand_score(classes, model.labels_) > 0.8
