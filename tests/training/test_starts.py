"""Heads around centres are K-means' clusters, to the bit whatever the threads."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from cceclust.training.rows import in_memory
from cceclust.training.space import TrainingSpace
from cceclust.training.spectrum import measure_spectrum
from cceclust.training.standardization import measure
from cceclust.training.starts import heads_around_centres


def draw(X, n_clusters, n_restarts=1, seed=0):
    rows, weights = in_memory(X), np.ones(len(X), X.dtype)
    standardization = measure(rows, weights, standardize=True)
    heads = heads_around_centres(
        n_restarts,
        np.random.default_rng(seed),
        space=TrainingSpace.of_rows(rows, standardization),
        n_clusters=n_clusters,
        spectrum=measure_spectrum(rows, standardization, weights, seed=0),
        sample_weight=weights,
    )
    return heads, (X - standardization.mean) / standardization.scale


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    return generator.integers(0, 4, (1000, 2)) + 0.1 * generator.normal(size=(1000, 2))


def test_they_assign_as_k_means_does(rows):
    heads, standardised = draw(rows, 16, n_restarts=5)
    weights, biases = heads.unstacked()
    best = KMeans(16, n_init=10, random_state=0).fit_predict(rows)
    agreements = [
        adjusted_rand_score(best, (standardised @ w.T + b).argmax(axis=1)) for w, b in zip(weights, biases, strict=True)
    ]
    assert max(agreements) > 0.99
    assert min(agreements) > 0.7
    assert len({w.tobytes() for w in weights}) == 5


def test_threads_do_not_change_a_bit(rows):
    with threadpool_limits(1):
        one, _ = draw(rows, 16, n_restarts=3)
    with threadpool_limits(2):
        two, _ = draw(rows, 16, n_restarts=3)
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.biases, two.biases)
