"""K-means against scikit-learn's, and on rows that repeat, weigh nothing or are sparse."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans

from cceclust.training.kmeans import first_places, kmeans, move_centres, squared_lengths


def blobs(n_rows=600, n_clusters=6, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n_clusters, 8))[np.arange(n_rows) % n_clusters] + 0.5 * generator.normal(
        size=(n_rows, 8)
    )


def equal(n_rows):
    return np.full(n_rows, 1 / n_rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_as_good_as_scikit_learns(dtype, seed):
    rows = blobs(seed=seed).astype(dtype)
    centres, inertia = kmeans(rows, equal(600), 6, n_init=10, seed=seed)
    theirs = KMeans(6, n_init=10, random_state=seed).fit(rows)
    assert centres.dtype == dtype
    assert inertia == pytest.approx(theirs.inertia_ / 600, rel=0.01)
    exact = ((rows[:, None] - centres) ** 2).sum(axis=2).min(axis=1).mean()
    assert inertia == pytest.approx(exact, rel=1e-3)


def test_rounds_end_where_scikit_learns_do():
    rows = blobs()
    places = rows[:6]
    centres, _ = move_centres(rows, equal(600), places)
    theirs = KMeans(6, init=places, n_init=1).fit(rows)
    np.testing.assert_allclose(centres, theirs.cluster_centers_, atol=1e-6)


def test_a_row_of_twice_the_weight_is_two_rows():
    rows, weights = blobs(90, 3), np.where(np.arange(90) < 30, 2.0, 1.0)
    twice = np.concatenate([rows, rows[:30]])
    one, inertia = move_centres(rows, weights / weights.sum(), rows[:3])
    two, other = move_centres(twice, equal(120), rows[:3])
    np.testing.assert_allclose(one, two)
    assert inertia == pytest.approx(other)


def test_sparse_rows_have_the_same_clusters():
    rows = np.where(blobs() > 0.5, blobs(), 0.0)
    dense, inertia = kmeans(rows, equal(600), 6, n_init=2, seed=0)
    from_sparse, other = kmeans(sparse.csr_array(rows), equal(600), 6, n_init=2, seed=0)
    np.testing.assert_allclose(dense, from_sparse, atol=1e-9)
    assert inertia == pytest.approx(other)


def test_a_centre_without_rows_moves_to_the_farthest():
    rows = np.array([[0.0], [1.0], [10.0], [11.0]])
    centres, inertia = move_centres(rows, equal(4), np.array([[0.0], [100.0]]))
    assert sorted(centres.ravel()) == [0.5, 10.5]
    assert inertia == 0.25


def test_fewer_different_rows_than_clusters_are_no_obstacle():
    rows = np.repeat([[0.0, 0.0], [3.0, 4.0]], 10, axis=0)
    centres, inertia = kmeans(rows, equal(20), 5, n_init=2, seed=0)
    assert inertia == pytest.approx(0, abs=1e-12)
    assert {tuple(centre) for centre in centres.round(9)} == {(0.0, 0.0), (3.0, 4.0)}


def test_first_places_are_far_from_each_other():
    rows = blobs(600, 6) + 100 * np.eye(8)[np.arange(600) % 6]
    for seed in range(5):
        places = first_places(rows, squared_lengths(rows), equal(600), 6, np.random.RandomState(seed))
        assert set(places % 6) == set(range(6))
