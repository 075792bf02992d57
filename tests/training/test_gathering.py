"""Rows that are not in memory: two passes over them, and the clusters of those that are."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.metrics import adjusted_rand_score

from cceclust import CCEClassifier, CCEClusterer, choices
from cceclust.errors import InputError
from cceclust.files import FeatureFile, open_features, write_features
from cceclust.training.gathering import digest_block, gather, look_at_sample, rows_to_keep
from cceclust.training.progress import Progress
from cceclust.training.rows import FileRows, in_memory
from cceclust.training.settings import FitSettings

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

CLASSES = np.arange(900) % 3


def blobs(n_columns: int = 12, dtype: Any = np.float64) -> Any:
    generator = np.random.default_rng(0)
    spread = np.linspace(1.5, 0.5, n_columns)
    return (generator.normal(size=(900, n_columns)) * spread + 5 * np.eye(3, n_columns)[CLASSES] + 7).astype(dtype)


def clusterer(n_clusters: Any = 3, **changes: Any) -> CCEClusterer:
    return CCEClusterer(n_clusters, random_state=0, n_init=3, max_epochs=8, **changes)


@pytest.fixture
def file_of(tmp_path: Path) -> Iterator[Any]:
    """Write a matrix to a file of some kind, and open it."""
    opened: list[FeatureFile] = []

    def write(matrix: Any, kind: str = "h5") -> FeatureFile:
        path = tmp_path / f"x.{kind}"
        if kind == "h5":
            write_features(path, matrix)
        elif kind == "npy":
            np.save(path, matrix)
        else:
            save_file({"features": matrix}, path)
        opened.append(open_features(path))
        return opened[-1]

    yield write
    for file in opened:
        file.close()


def streamed(file: FeatureFile) -> FileRows:
    """Return the rows of a file that does not fit."""
    return FileRows(file, 600 * file.n_features * 8)


def assert_same_clusters(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.probabilities_, other.probabilities_, atol=1e-4)
    assert one.chosen_ == other.chosen_


@pytest.mark.parametrize("kind", ["h5", "npy", "safetensors"])
@pytest.mark.parametrize("n_components", [0, 4])
def test_the_clusters_are_those_of_rows_in_memory(file_of: Any, kind: str, n_components: int) -> None:
    there = clusterer(n_components=n_components).fit(streamed(file_of(blobs(), kind)))
    assert_same_clusters(there, clusterer(n_components=n_components).fit(blobs()))
    assert there.n_trained_rows_ == 900
    assert there.outlier_score_ is not None


def test_the_number_of_clusters_is_found_as_in_memory(file_of: Any) -> None:
    there, here = clusterer("auto").fit(streamed(file_of(blobs()))), clusterer("auto").fit(blobs())
    assert there.k_scores_ == pytest.approx(here.k_scores_)
    assert_same_clusters(there, here)


@pytest.mark.parametrize("n_components", [0, 4])
def test_columns_in_other_units_and_far_rows_are_treated_as_in_memory(file_of: Any, n_components: int) -> None:
    X = blobs()
    X[:, 5] *= 1e4
    X[17] = 1e7
    there = clusterer(n_components=n_components).fit(streamed(file_of(X)))
    here = clusterer(n_components=n_components).fit(X)
    assert there.columns_scaled_
    assert here.problems_ == there.problems_
    assert "1 of 900 rows" in there.problems_[-1]
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-3, atol=1e-6)
    assert_same_clusters(there, here)


@pytest.mark.parametrize("n_components", [0, 6])
def test_directions_are_evened_out_as_in_memory(file_of: Any, n_components: int) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(1200, 7)) * [10, 10, 10, 10, 1, 1, 1]
    X[:, 4:] += 8 * np.eye(3)[np.arange(1200) % 3]
    there = clusterer(3, n_components=n_components).fit(streamed(file_of(X)))
    here = clusterer(3, n_components=n_components).fit(X)
    assert here.directions_evened_
    assert there.directions_evened_
    assert_same_clusters(there, here)


def test_many_far_rows_are_measured_like_others(file_of: Any) -> None:
    X = blobs()
    X[:100] += 1e3
    weights = np.ones(900)
    there = gather(streamed(file_of(X)), FitSettings(3), weights, neighbors=None, labelled=None, seed=0)
    assert there.n_far == 0
    np.testing.assert_allclose(there.space.origin.mean, X.mean(axis=0))
    np.testing.assert_allclose(there.space.origin.deviations, X.std(axis=0))


@pytest.mark.parametrize("n_components", [0, 4])
def test_projected_rows_are_those_of_the_exact_mean(file_of: Any, n_components: int, monkeypatch: Any) -> None:
    # The sample is small, so its mean is far from that of all rows.
    monkeypatch.setattr(choices, "ROWS_FOR_COMPONENTS", 20)
    X, settings = blobs(), FitSettings(3, n_components=n_components)
    space = gather(streamed(file_of(X)), settings, np.ones(900), neighbors=None, labelled=None, seed=0).space
    np.testing.assert_allclose(space.origin.mean, X.mean(axis=0))
    standardized = (X - X.mean(axis=0)) / space.origin.scale
    expected = standardized if space.axes is None else standardized @ space.axes.T
    found = (space.rows.matrix - space.standardization.mean) / space.standardization.scale
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_threads_do_not_show(file_of: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(choices, "BLOCK_BYTES", 2000)
    rows = streamed(file_of(blobs(dtype=np.float32)))
    spaces = [
        gather(rows, FitSettings(3, n_jobs=n_jobs), np.ones(900, "f4"), neighbors=None, labelled=None, seed=0).space
        for n_jobs in (1, 3)
    ]
    np.testing.assert_array_equal(spaces[0].origin.deviations, spaces[1].origin.deviations)
    np.testing.assert_array_equal(spaces[0].rows.matrix, spaces[1].rows.matrix)


@pytest.mark.parametrize("kind", ["h5", "npy", "safetensors"])
def test_the_file_is_read_twice_and_a_sample_before(file_of: Any, kind: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(choices, "ROWS_FOR_COMPONENTS", 100)
    monkeypatch.setattr(choices, "BLOCK_BYTES", 5000)
    file = file_of(blobs(), kind)
    in_passes, starts, sampled = np.zeros(900, int), [], []
    read = file.read

    def counting(rows: Any) -> Any:
        if isinstance(rows, slice):
            in_passes[rows] += 1
            starts.append(rows.start)
        else:
            sampled.append(len(rows))
        return read(rows)

    monkeypatch.setattr(file, "read", counting)
    clusterer("auto", n_components=4).fit(streamed(file))
    assert (in_passes == 2).all()
    assert starts == 2 * sorted(set(starts))
    assert sampled == [100]


def test_progress_is_reported_for_each_pass_from_the_start(file_of: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(choices, "BLOCK_BYTES", 100 * 12 * 8)
    reports: list[Progress] = []
    clusterer("auto").fit(streamed(file_of(blobs())), on_progress=reports.append)
    assert list(dict.fromkeys(report.phase for report in reports)) == [
        "Reading a sample",
        "Measuring rows",
        "Comparing numbers of clusters",
        "Finding neighbours",
        "Training",
        "Choosing clusters",
        "Predicting rows",
    ]
    for phase in ("Measuring rows", "Predicting rows"):
        passed = [(report.done, report.total) for report in reports if report.phase == phase]
        assert passed == [(done, 900) for done in range(0, 1000, 100)]


def test_nan_in_the_last_row_is_found(file_of: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(choices, "ROWS_FOR_COMPONENTS", 50)
    X = blobs()
    X[-1, 3] = np.nan
    with pytest.raises(InputError, match="NaN or infinity in 1 of 900 rows, first in row 899"):
        clusterer().fit(streamed(file_of(X)))


@pytest.mark.parametrize("n_columns", [4, 12])
def test_infinity_is_found_though_it_is_far(file_of: Any, n_columns: int) -> None:
    X = blobs(n_columns)
    X[0, 2] = np.inf
    with pytest.raises(InputError, match="NaN or infinity in 1 of 900 rows, first in row 0"):
        clusterer().fit(streamed(file_of(X)))


class TestSample:
    def test_of_very_many_rows_a_sample_is_trained_on(self, file_of: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(choices, "MOST_ROWS_KEPT", 300)
        model = clusterer("auto").fit(streamed(file_of(blobs())))
        assert model.n_trained_rows_ == 300
        assert len(model.labels_) == 900
        assert adjusted_rand_score(CLASSES, model.labels_) > 0.95
        assert model.outlier_score_ is None
        # Numbers of clusters were compared on rows of the sample, which are named by their place in the file.
        rows = model.k_search_.rows
        assert rows.max() > 300
        assert adjusted_rand_score(model.labels_[rows], model.k_search_.labels[-1]) > 0.9

    def test_neighbours_of_all_rows_are_refused_beside_a_sample(self, file_of: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(choices, "MOST_ROWS_KEPT", 300)
        graph = (np.arange(900)[:, None] + [3, 6]) % 900
        with pytest.raises(InputError, match="neighbours of 900 rows were given, but 300 rows are trained on"):
            clusterer().fit(streamed(file_of(blobs())), neighbors=graph)

    def test_labelled_rows_come_first(self, file_of: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(choices, "MOST_ROWS_KEPT", 300)
        y = np.where(np.arange(900) % 7 == 0, CLASSES, -1)
        model = CCEClassifier(random_state=0, max_epochs=8).fit(streamed(file_of(blobs())), y)
        assert model.n_trained_rows_ == 300
        assert (model.predict(blobs()) == CLASSES).mean() > 0.97

    @pytest.mark.parametrize("n_labelled", [0, 50, 700])
    def test_it_is_drawn_without_repetition_from_rows_with_weight(self, n_labelled: int) -> None:
        weights = np.ones(1000)
        weights[::10] = 0
        labelled = np.flatnonzero(weights)[:n_labelled]
        kept = rows_to_keep(weights, labelled, 300, seed=0)
        assert isinstance(kept, np.ndarray)
        assert len(np.unique(kept)) == len(kept) == 300
        assert (np.diff(kept) > 0).all()
        assert (weights[kept] > 0).all()
        assert np.isin(kept, labelled).sum() == min(n_labelled, 300)
        assert rows_to_keep(weights[:300], None, 300, seed=0) == slice(None)


def test_what_runs_on_blocks_can_be_sent_elsewhere() -> None:
    rows, weights = in_memory(blobs()), np.ones(900)
    looked_at = look_at_sample(rows, FitSettings(3, n_components=4), weights, finds_far=True, seed=0)
    function = partial(digest_block, looked_at=looked_at)
    sent = pickle.loads(pickle.dumps(function))
    here, there = (f(rows.matrix, weights, np.ones(900, bool)) for f in (function, sent))
    np.testing.assert_array_equal(here.kept, there.kept)
    np.testing.assert_array_equal(here.moments.near, there.moments.near)
