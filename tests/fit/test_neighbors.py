"""Nearest neighbours: exact where they should be, the same for any number of threads, and clear about bad graphs."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from cceclust import nearest_neighbors
from cceclust.errors import InputError
from cceclust.fit.neighbors import as_neighbors

METRICS = pytest.mark.parametrize("metric", ["cosine", "euclidean"])


def exact_neighbors(X, n_neighbors, metric="cosine"):
    rows = X - X.mean(axis=0)
    if metric == "cosine":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return NearestNeighbors(n_neighbors=n_neighbors).fit(rows).kneighbors(return_distance=False)


def recall(found, exact):
    return np.mean([np.isin(one, other).mean() for one, other in zip(exact, found, strict=True)])


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(2.0, 1.0, (300, 20))


@pytest.fixture
def in_cells(monkeypatch):
    """Let a few rows be searched like many."""
    monkeypatch.setattr("cceclust.fit.cells.ROWS_IN_CELL", 20)
    monkeypatch.setattr("cceclust.fit.neighbors.MOST_ROWS_FOR_ALL_PAIRS", 100)
    monkeypatch.setattr("cceclust.fit.neighbors.ROWS_COMPARED", 400)


@METRICS
def test_few_rows_are_searched_exactly(rows, metric):
    assert recall(nearest_neighbors(rows, 5, metric=metric), exact_neighbors(rows, 5, metric)) > 0.999


@METRICS
@pytest.mark.parametrize("n_rows", [300, 1500])
def test_the_number_of_threads_changes_nothing(metric, n_rows, in_cells):
    X = np.random.default_rng(0).normal(size=(n_rows, 6))
    # Rows that repeat are equally near.
    X[:100] = X[100:200]
    one, two, five = (nearest_neighbors(X, 5, metric=metric, n_jobs=n_jobs) for n_jobs in (1, 2, 5))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, five)


@METRICS
def test_cells_find_most_neighbours_in_a_fraction_of_the_comparisons(metric, in_cells):
    X = np.random.default_rng(0).normal(size=(3000, 5))
    found = nearest_neighbors(X, 10, metric=metric)
    assert 0.9 < recall(found, exact_neighbors(X, 10, metric)) < 1
    assert all(len({row, *others}) == 11 for row, others in enumerate(found.tolist()))


@METRICS
def test_the_nearest_come_first(metric, in_cells):
    X = np.random.default_rng(0).normal(size=(1500, 5))
    neighbors = nearest_neighbors(X, 10, metric=metric)
    centred = X - X.mean(axis=0)
    if metric == "cosine":
        centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    distances = np.linalg.norm(centred[neighbors] - centred[:, None], axis=2)
    assert (np.diff(distances, axis=1) > -1e-4).all()


@pytest.mark.parametrize("distinct", [1, 2, 3])
def test_rows_that_repeat_are_neighbours_and_none_is_its_own(distinct, in_cells):
    X = np.tile(np.array([[1.0, 2.0], [3.0, 1.0], [-5.0, 2.0]])[:distinct], (100, 1))
    neighbors = nearest_neighbors(X, 6)
    assert (X[neighbors] == X[:, None]).all()
    assert all(len({row, *others}) == 7 for row, others in enumerate(neighbors.tolist()))


def test_wide_rows_far_from_zero_are_told_apart():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 30)) @ generator.normal(size=(30, 300)) + generator.normal(size=(600, 300))
    far = (X + 1e5).astype(np.float32)
    assert recall(nearest_neighbors(far, 10), exact_neighbors(far.astype(np.float64), 10)) > 0.95


@pytest.mark.parametrize("convert", [sparse.csr_matrix, sparse.csc_array, np.ndarray.tolist, np.asfortranarray])
def test_the_kind_of_matrix_does_not_matter(rows, convert):
    rows[rows < 2] = 0
    assert recall(nearest_neighbors(convert(rows), 5), nearest_neighbors(rows, 5)) > 0.999


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_scale_does_not_matter(rows, factor):
    scaled = (rows * factor).astype(np.float32)
    assert recall(nearest_neighbors(scaled, 5), nearest_neighbors(rows, 5)) > 0.99


@pytest.mark.parametrize(
    ("n_neighbors", "expected"),
    [(0, "a whole number of at least 1"), (2.5, "a whole number of at least 1"), (300, "fewer than the 300 rows")],
)
def test_impossible_numbers_of_neighbours_are_refused(rows, n_neighbors, expected):
    with pytest.raises(InputError, match=f"n_neighbors={n_neighbors}; expected {expected}"):
        nearest_neighbors(rows, n_neighbors)


@pytest.mark.parametrize("shape", [(), (5,), (5, 0), (5, 3, 2)])
def test_what_is_no_matrix_is_refused(shape):
    with pytest.raises(InputError, match=rf"X has shape {re.escape(str(shape))}; expected \(n_samples, n_features\)"):
        nearest_neighbors(np.zeros(shape), 2)


def test_an_unknown_metric_and_rows_that_are_not_finite_are_refused(rows):
    with pytest.raises(InputError, match="metric='manhattan'; expected 'cosine' or 'euclidean'"):
        nearest_neighbors(rows, 5, metric="manhattan")
    rows[3, 4] = np.nan
    with pytest.raises(InputError, match="NaN or infinity"):
        nearest_neighbors(rows, 2)


def test_a_graph_of_scikit_learn_becomes_an_array(rows):
    graph = kneighbors_graph(rows, 4)
    neighbors = as_neighbors(graph, 300)
    assert neighbors.shape == (300, 4)
    assert (graph.toarray()[np.arange(300)[:, None], neighbors] == 1).all()


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.zeros((3, 2), int), "shape"),
        (np.zeros((4, 2)), "float64"),
        (np.full((4, 2), 4), "row numbers from 4 to 4; expected 0 to 3"),
        (np.full((4, 2), -1), "row numbers from -1"),
        (sparse.eye(3, format="csr"), r"\(4, 4\)"),
        (sparse.csr_matrix((4, 4)), "entries a row"),
    ],
)
def test_graphs_that_do_not_fit_are_refused(graph, message):
    with pytest.raises(InputError, match=message):
        as_neighbors(graph, 4)
