"""Predictions of Dask arrays and data frames."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from cceclust import CCEClassifier, CCEClusterer
from cceclust.dask.arrays import as_dask_array, lazy_results
from cceclust.errors import InputError
from cceclust.training.head import Curves, Head
from cceclust.training.logits import all_logits, likeliest
from cceclust.training.rows import in_memory


@pytest.fixture(scope="module")
def clusterer(blobs: NDArray[np.float32]) -> CCEClusterer:
    return CCEClusterer(4, random_state=0).fit(blobs)


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
    assert found.chunks[0] == lazy.chunks[0]
    np.testing.assert_allclose(found.compute(scheduler="sync"), expected, atol=1e-5)


def test_partitions_of_data_frames_may_be_empty_and_of_unknown_length(
    clusterer: CCEClusterer, blobs: NDArray[np.float32]
) -> None:
    frame = dd.from_pandas(pd.DataFrame(blobs), npartitions=3)
    some = frame.map_partitions(lambda part: part[part.index >= 400])
    assert np.isnan(clusterer.predict(some).shape[0])
    np.testing.assert_array_equal(clusterer.predict(some).compute(scheduler="sync"), clusterer.labels_[400:])


def test_names_of_columns_are_checked(blobs: NDArray[np.float32]) -> None:
    frame = pd.DataFrame(blobs, columns=list("abcdef"))
    model = CCEClusterer(4, n_init=1, random_state=0).fit(dd.from_pandas(frame, npartitions=2))
    assert model.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(dd.from_pandas(frame[list("fedcba")], npartitions=2))


def test_classes_are_predicted_by_name(blobs: NDArray[np.float32]) -> None:
    names = np.where(blobs[:, 0] > 3, "first", "other")
    model = CCEClassifier(n_init=1, random_state=0).fit(da.from_array(blobs, chunks=(300, 6)), names)
    found = model.predict(da.from_array(blobs, chunks=(500, 6)))
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(scheduler="sync"), model.predict(blobs))


def test_rows_that_are_not_finite_are_refused_when_they_are_computed(
    clusterer: CCEClusterer, blobs: NDArray[np.float32]
) -> None:
    blobs = blobs.copy()
    blobs[500, 2] = np.nan
    lazy = clusterer.predict(da.from_array(blobs, chunks=(200, 6)))
    with pytest.raises(InputError, match="a row contains NaN"):
        lazy.compute(scheduler="sync")


def test_before_a_fit_there_are_no_predictions() -> None:
    with pytest.raises(NotFittedError):
        CCEClusterer(2).predict_proba(da.zeros((4, 2)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: da.zeros(5), "X has 1 dimensions; expected 2"),
        (lambda: da.zeros((5, 2), dtype="U3"), "numpy.ndarray of type <U3; expected NumPy arrays of numbers"),
        (
            lambda: da.zeros((5, 2)).map_blocks(scipy.sparse.csr_array, meta=scipy.sparse.csr_array((0, 0))),
            "csr_array of type float64; expected NumPy arrays",
        ),
        (
            lambda: dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["x"]}), npartitions=1),
            "column 'b' holds no numbers",
        ),
        (lambda: dd.from_pandas(pd.Series([1.0]), npartitions=1), "X has 1 dimensions"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_named(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_dask_array(make())


def test_without_dask_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['dask'] = None; import cceclust.dask"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    assert "MissingExtraError" in last
    assert 'pip install "cceclust[dask]"' in last


def test_curved_heads_predict_lazily_what_they_predict_at_once() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 4))
    curves = Curves(generator.normal(size=(2, 4)), generator.normal(size=2), generator.normal(size=(3, 3)))
    head = Head(generator.normal(size=(3, 4)), generator.normal(size=3), curves)
    found = lazy_results(da.from_array(X, chunks=(20, 4)), head, likeliest).compute()
    np.testing.assert_array_equal(found, all_logits(head, in_memory(X)).argmax(axis=1))
