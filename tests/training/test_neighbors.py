"""Nearest neighbours: exact where they should be, the same for any number of threads, and clear about bad graphs."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from cceclust import nearest_neighbors
from cceclust.errors import InputError
from cceclust.training.neighbors import as_neighbors, neighbors_and_recall


def exact_neighbors(X, n_neighbors):
    centred = X - X.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    search = NearestNeighbors(n_neighbors=n_neighbors + 1).fit(unit)
    return search.kneighbors(unit, return_distance=False)[:, 1:]


def recall(found, exact):
    return np.mean([np.isin(one, other).mean() for one, other in zip(exact, found, strict=True)])


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(2.0, 1.0, (300, 20))


def test_narrow_rows_are_searched_exactly(rows):
    assert np.array_equal(nearest_neighbors(rows, 5), exact_neighbors(rows, 5))


def test_blocks_do_not_show(rows, monkeypatch):
    whole = nearest_neighbors(rows, 5)
    monkeypatch.setattr("cceclust.choices.ROWS_IN_CELL", 7)
    assert np.array_equal(nearest_neighbors(rows, 5), whole)


@pytest.mark.parametrize("n_compared", [None, 100])
def test_threads_do_not_show(rows, n_compared, monkeypatch):
    monkeypatch.setattr("cceclust.choices.ROWS_IN_CELL", 7)
    found = [nearest_neighbors(rows, 5, n_compared=n_compared, n_jobs=n_jobs) for n_jobs in (1, 2, -1)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_cells_find_most_neighbours_in_a_fraction_of_the_comparisons(monkeypatch):
    monkeypatch.setattr("cceclust.choices.ROWS_IN_CELL", 20)
    X = np.random.default_rng(0).normal(size=(2000, 5))
    found, exact = nearest_neighbors(X, 10, n_compared=400), exact_neighbors(X, 10)
    assert recall(found, exact) > 0.9
    assert (found != np.arange(2000)[:, None]).all()


def test_many_rows_are_sorted_into_cells(rows, monkeypatch):
    monkeypatch.setattr("cceclust.choices.ROWS_IN_CELL", 7)
    monkeypatch.setattr("cceclust.choices.ROWS_COMPARED", 50)
    monkeypatch.setattr("cceclust.choices.MOST_ROWS_FOR_ALL_PAIRS", 200)
    found = nearest_neighbors(rows, 5)
    assert np.array_equal(found, nearest_neighbors(rows, 5, n_compared=50))
    assert 0.3 < recall(found, exact_neighbors(rows, 5)) < 1


@pytest.mark.parametrize("distinct", [1, 2])
def test_equal_rows_crowd_a_cell_and_are_searched_in_pieces(distinct, monkeypatch):
    monkeypatch.setattr("cceclust.choices.ROWS_IN_CELL", 5)
    monkeypatch.setattr("cceclust.choices.LARGEST_CELL", 9)
    X = np.tile(np.array([[1.0, 2.0], [3.0, 1.0]])[:distinct], (60, 1))
    neighbors = nearest_neighbors(X, 4, n_compared=20)
    assert (X[neighbors] == X[:, None]).all()
    assert (neighbors != np.arange(len(X))[:, None]).all()
    assert all(len(set(row)) == 4 for row in neighbors.tolist())


def test_projection_finds_most_neighbours_of_wide_rows_with_few_directions():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 10)) @ generator.normal(size=(10, 200)) + 0.01 * generator.normal(size=(400, 200))
    assert recall(nearest_neighbors(X, 10, n_components=16), exact_neighbors(X, 10)) > 0.95


@pytest.mark.parametrize("block_bytes", [16 << 20, 10_000])
def test_wide_rows_far_from_zero_are_told_apart(block_bytes, monkeypatch):
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", block_bytes)
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 30)) @ generator.normal(size=(30, 300)) + generator.normal(size=(600, 300))
    far = (X + 1e6).astype(np.float32)
    assert recall(nearest_neighbors(far, 10), exact_neighbors(far.astype(np.float64), 10)) > 0.98


def test_sparse_rows_have_the_neighbours_of_dense_ones(rows):
    rows[rows < 2] = 0
    assert np.array_equal(nearest_neighbors(sparse.csr_matrix(rows), 5), nearest_neighbors(rows, 5))


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_scale_does_not_matter(rows, factor):
    scaled = (rows * factor).astype(np.float32)
    same = nearest_neighbors(scaled, 1) == nearest_neighbors(rows.astype(np.float32), 1)
    assert same.mean() > 0.99


def test_no_row_is_its_own_neighbour_even_among_duplicates():
    neighbors = nearest_neighbors(np.repeat(np.eye(3), 4, axis=0), 3)
    own_group = np.arange(12)[:, None] // 4
    assert (neighbors // 4 == own_group).all()
    assert (neighbors != np.arange(12)[:, None]).all()


def test_constant_rows_have_some_neighbours():
    neighbors = nearest_neighbors(np.ones((5, 2)), 2)
    assert (neighbors >= 0).all()
    assert (neighbors < 5).all()


def test_progress_ends_with_all_rows(rows):
    seen = []
    nearest_neighbors(rows, 2, on_block=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (300, 300)


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


def test_fractions_of_rows_to_compare_with_are_refused(rows):
    with pytest.raises(InputError, match=r"n_compared=99\.5; expected a whole number"):
        nearest_neighbors(rows, 2, n_compared=99.5)


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


@pytest.mark.parametrize("n_components", [10, 256])
def test_rows_with_nan_are_refused(rows, n_components):
    rows[3, 4] = np.nan
    with pytest.raises(InputError, match="NaN or infinity"):
        nearest_neighbors(rows, 2, n_components=n_components)


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist, sparse.csr_array])
def test_whole_numbers_have_the_neighbours_of_fractions(rows, convert):
    counts = np.rint(40 * rows).astype(np.uint8)
    expected = nearest_neighbors(counts.astype(np.float32), 5, n_components=10)
    assert recall(nearest_neighbors(convert(counts), 5, n_components=10), expected) > 0.99


def test_few_rows_in_one_cell(rows):
    assert np.array_equal(nearest_neighbors(rows[:200], 5, n_compared=50), nearest_neighbors(rows[:200], 5))


def test_impossible_numbers_of_components_are_refused(rows):
    with pytest.raises(InputError, match="n_components=0"):
        nearest_neighbors(rows, 2, n_components=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_by_distance_they_are_exact_far_from_the_origin(rows, dtype):
    far = (rows[:, :3] * 1000 + 5000).astype(dtype)
    exact = NearestNeighbors(n_neighbors=5).fit(far).kneighbors(return_distance=False)
    assert recall(nearest_neighbors(far, 5, metric="euclidean"), exact) > 0.999


def test_by_distance_cells_miss_few():
    rows = np.random.default_rng(0).normal(size=(4000, 3))
    exact = NearestNeighbors(n_neighbors=5).fit(rows).kneighbors(return_distance=False)
    assert recall(nearest_neighbors(rows, 5, metric="euclidean", n_compared=1500), exact) > 0.95


def test_clusters_in_one_direction_are_told_apart_by_distance_alone():
    near = np.random.default_rng(0).normal(0, 0.01, (50, 2))
    rows = np.concatenate([near + np.array([1, 0]), near + np.array([3, 0]), near - np.array([4, 0])])
    labels = np.repeat([0, 1, 2], 50)
    assert (labels[nearest_neighbors(rows, 5, metric="euclidean")] == labels[:, None]).all()
    assert not (labels[nearest_neighbors(rows, 5)] == labels[:, None]).all()


def test_an_unknown_metric_is_refused(rows):
    with pytest.raises(InputError, match="metric='manhattan'; expected 'cosine' or 'euclidean'"):
        nearest_neighbors(rows, 5, metric="manhattan")


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_of_equally_near_rows_the_first_are_kept(metric):
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    assert nearest_neighbors(X, 3, metric=metric)[5].tolist() == [0, 1, 2]


@pytest.fixture
def sorted_often(monkeypatch):
    """Let few rows be searched like very many."""
    monkeypatch.setattr("cceclust.choices.ROWS_IN_CELL", 20)
    monkeypatch.setattr("cceclust.choices.MOST_ROWS_FOR_ONE_SORTING", 0)
    monkeypatch.setattr("cceclust.choices.SORTINGS", 4)


def spread_rows(n_samples=4000):
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(10, 12))
    return (centres[generator.integers(0, 10, n_samples)] + generator.normal(size=(n_samples, 12))).astype(np.float32)


def exact_by(metric, X, n_neighbors):
    if metric == "cosine":
        return exact_neighbors(X, n_neighbors)
    return NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_several_sortings_and_links_find_more_with_as_many_comparisons(metric, sorted_often, monkeypatch):
    X = spread_rows()
    exact = exact_by(metric, X, 10)
    often = nearest_neighbors(X, 10, metric=metric, n_compared=160)
    monkeypatch.setattr("cceclust.choices.ROUNDS_OF_LINKS", 0)
    without_links = nearest_neighbors(X, 10, metric=metric, n_compared=160)
    monkeypatch.setattr("cceclust.choices.MOST_ROWS_FOR_ONE_SORTING", 10_000)
    once = nearest_neighbors(X, 10, metric=metric, n_compared=160)
    assert recall(often, exact) > 0.9
    assert recall(often, exact) > recall(without_links, exact) + 0.1
    assert recall(without_links, exact) > recall(once, exact) + 0.05


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_lists_of_several_sortings_hold_each_row_once_the_nearest_first(metric, sorted_often):
    X = spread_rows(1500).astype(np.float64)
    neighbors = nearest_neighbors(X, 12, metric=metric, n_compared=160)
    assert all(len({row, *others}) == 13 for row, others in enumerate(neighbors.tolist()))
    rows = X - X.mean(axis=0)
    if metric == "cosine":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    distances = np.linalg.norm(rows[neighbors] - rows[:, None], axis=2)
    assert (np.diff(distances, axis=1) > -1e-4).all()


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_threads_do_not_show_in_several_sortings(metric, sorted_often, monkeypatch):
    # Small pieces of work, so that threads take turns; equal rows, so that many similarities differ in the last bit.
    monkeypatch.setattr("cceclust.choices.ROWS_AT_ONCE", 16)
    X = np.concatenate([spread_rows(1500), spread_rows(300)])
    first = nearest_neighbors(X, 8, metric=metric, n_compared=100, n_jobs=1)
    for n_jobs in (2, 2, 5):
        np.testing.assert_array_equal(nearest_neighbors(X, 8, metric=metric, n_compared=100, n_jobs=n_jobs), first)


def test_seeds_sort_differently(sorted_often):
    X = spread_rows(1500)
    one, other = (nearest_neighbors(X, 8, n_compared=80, random_state=seed) for seed in (0, 1))
    assert 0 < (one != other).mean() < 0.5


@pytest.mark.parametrize("distinct", [1, 2, 3])
def test_rows_that_repeat_are_neighbours_in_several_sortings(distinct, sorted_often, monkeypatch):
    monkeypatch.setattr("cceclust.choices.LARGEST_CELL", 32)
    X = np.tile(np.array([[1.0, 2.0], [3.0, 1.0], [-5.0, 2.0]])[:distinct], (100, 1))
    neighbors = nearest_neighbors(X, 6, n_compared=100)
    assert (X[neighbors] == X[:, None]).all()
    assert all(len({row, *others}) == 7 for row, others in enumerate(neighbors.tolist()))


@pytest.mark.parametrize(("n_samples", "n_neighbors"), [(2, 1), (5, 4), (12, 3), (60, 20), (60, 59)])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_few_rows_sorted_often(n_samples, n_neighbors, metric, sorted_often):
    X = spread_rows(n_samples)
    neighbors = nearest_neighbors(X, n_neighbors, metric=metric, n_compared=n_neighbors + 1)
    assert neighbors.shape == (n_samples, n_neighbors)
    assert all(len({row, *others}) == n_neighbors + 1 for row, others in enumerate(neighbors.tolist()))
    assert neighbors.min() >= 0
    assert neighbors.max() < n_samples


def test_more_neighbours_than_links_are_found(sorted_often, monkeypatch):
    monkeypatch.setattr("cceclust.choices.MOST_LINKS", 8)
    X = spread_rows(2000)
    assert recall(nearest_neighbors(X, 30, n_compared=300), exact_neighbors(X, 30)) > 0.85


def test_progress_of_several_sortings_only_rises_and_ends_with_all_rows(sorted_often):
    seen = []
    nearest_neighbors(spread_rows(500), 2, n_compared=80, on_block=lambda done, total: seen.append((done, total)))
    done = [one for one, _ in seen]
    assert done == sorted(done)
    assert len(set(done)) > 20
    assert seen[-1] == (500, 500)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("most_for_one", [0, 10_000])
def test_recall_on_a_sample_is_about_that_of_all_rows(metric, most_for_one, sorted_often, monkeypatch):
    monkeypatch.setattr("cceclust.choices.MOST_ROWS_FOR_ONE_SORTING", most_for_one)
    X = spread_rows()
    found, estimate = neighbors_and_recall(X, 10, metric=metric, n_components=256, n_compared=100, random_state=0)
    truth = recall(found, exact_by(metric, X, 10))
    assert 0.2 < truth < 0.97
    assert estimate == pytest.approx(truth, abs=0.04)


def test_recall_is_whole_where_all_are_compared_and_where_rows_repeat(rows, sorted_often):
    options = {"metric": "cosine", "n_components": 256, "random_state": 0}
    assert neighbors_and_recall(rows, 5, n_compared=300, **options)[1] == 1.0
    assert neighbors_and_recall(np.tile(rows[:3], (40, 1)), 5, n_compared=60, **options)[1] == 1.0
