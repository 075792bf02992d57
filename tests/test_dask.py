"""Dask collections are a source like any other, and their predictions are lazy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from cceclust import CCEClassifier, CCEClusterer, clustering_accuracy
from cceclust.dask import DaskSource, as_dask_array
from cceclust.errors import InputError


def groups_of(rows: NDArray[np.float32]) -> NDArray[np.intp]:
    return np.asarray(rows[:, :4].argmax(axis=1))


@pytest.fixture(scope="module")
def blobs() -> NDArray[np.float32]:
    """Return 900 rows in four groups, in a random order."""
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 4, 900)
    return (generator.normal(size=(900, 6)) + 9 * np.eye(4, 6)[groups]).astype(np.float32)


@pytest.fixture(scope="module")
def clusterer(blobs: NDArray[np.float32]) -> CCEClusterer:
    return CCEClusterer(4, random_state=0).fit(blobs)


@pytest.mark.parametrize("chunks", [(900, 6), (128, 6), ((1, 898, 1), (3, 3))])
def test_a_fit_equals_that_of_the_array_in_memory(
    clusterer: CCEClusterer, blobs: NDArray[np.float32], chunks: Any
) -> None:
    found = CCEClusterer(4, random_state=0).fit(da.from_array(blobs, chunks=chunks))
    np.testing.assert_array_equal(found.labels_, clusterer.labels_)
    np.testing.assert_allclose(found.coef_, clusterer.coef_, rtol=1e-4, atol=1e-5)


def test_a_fit_on_a_cluster_of_processes_is_as_good(clusterer: CCEClusterer, blobs: NDArray[np.float32]) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        lazy = da.from_array(blobs, chunks=(300, 6))
        model = CCEClusterer(4, random_state=0).fit(lazy)
        np.testing.assert_array_equal(model.labels_, clusterer.labels_)
        assert clustering_accuracy(groups_of(blobs), model.predict(lazy).compute()) == 1.0


def test_rows_and_blocks_are_those_of_the_array(blobs: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cceclust.dask.BYTES_AT_ONCE", 250 * 24)
    source = DaskSource(da.from_array(blobs, chunks=((100, 350, 450), (2, 4))))
    wanted = np.array([0, 99, 100, 500, 899])
    np.testing.assert_array_equal(source.take(wanted), blobs[wanted])
    parts = list(source.blocks())
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in parts]), blobs)
    assert [where.start for where, _ in parts] == [0, 100, 450]


def test_lengths_of_partitions_are_found_out(blobs: NDArray[np.float32]) -> None:
    frame = dd.from_pandas(pd.DataFrame(blobs), npartitions=3)
    assert DaskSource(frame.map_partitions(lambda part: part[part.index < 500])).shape == (500, 6)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform"])
def test_predictions_are_not_computed_before_they_are_asked_for(
    clusterer: CCEClusterer, blobs: NDArray[np.float32], method: str
) -> None:
    seen = []
    lazy = da.from_array(blobs, chunks=(200, 4)).map_blocks(lambda block: seen.append(0) or block, dtype=blobs.dtype)
    seen.clear()
    found, expected = getattr(clusterer, method)(lazy), getattr(clusterer, method)(blobs)
    assert isinstance(found, da.Array)
    assert not seen
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found.compute(scheduler="sync"), expected, atol=1e-4)


def test_scores_are_those_of_the_array(clusterer: CCEClusterer, blobs: NDArray[np.float32]) -> None:
    assert clusterer.score(da.from_array(blobs, chunks=(200, 6))) == clusterer.score(blobs)


def test_partitions_may_be_empty_and_of_unknown_length(clusterer: CCEClusterer, blobs: NDArray[np.float32]) -> None:
    frame = dd.from_pandas(pd.DataFrame(blobs), npartitions=3)
    some = frame.map_partitions(lambda part: part[part.index >= 400])
    np.testing.assert_array_equal(clusterer.predict(some).compute(scheduler="sync"), clusterer.labels_[400:])


def test_names_of_columns_are_checked(blobs: NDArray[np.float32]) -> None:
    frame = pd.DataFrame(blobs, columns=list("abcdef"))
    model = CCEClusterer(4, random_state=0).fit(dd.from_pandas(frame, npartitions=2))
    assert model.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(dd.from_pandas(frame[list("fedcba")], npartitions=2))


def test_classes_are_predicted_by_name(blobs: NDArray[np.float32]) -> None:
    names = np.where(groups_of(blobs) == 0, "first", "other")
    model = CCEClassifier(random_state=0).fit(da.from_array(blobs, chunks=(300, 6)), names)
    found = model.predict(da.from_array(blobs, chunks=(500, 6)))
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(scheduler="sync"), names)


def test_rows_that_are_not_finite_are_refused(clusterer: CCEClusterer, blobs: NDArray[np.float32]) -> None:
    blobs = blobs.copy()
    blobs[777, 1] = np.inf
    with pytest.raises(InputError, match="777"):
        CCEClusterer(4, random_state=0).fit(da.from_array(blobs, chunks=(200, 6)))
    with pytest.raises(InputError, match="contains NaN, infinity"):
        clusterer.predict(da.from_array(blobs, chunks=(200, 6))).compute(scheduler="sync")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: da.zeros(5), "X has 1 dimensions; expected 2"),
        (lambda: da.zeros((5, 2), dtype="U3"), "numpy.ndarray of type <U3; expected NumPy arrays of numbers"),
        (
            lambda: dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["x"]}), npartitions=1),
            "column 'b' holds no numbers",
        ),
    ],
)
def test_what_is_no_matrix_of_numbers_is_named(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_dask_array(make())


def test_without_dask_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['dask'] = None; import cceclust.dask"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "cceclust.dask needs Dask; in a clone of cceclust: pip install" in run.stderr.strip().splitlines()[-1]
