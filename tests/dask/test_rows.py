"""Fits of Dask arrays, in threads of this process."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from cceclust import CCEClusterer, choices
from cceclust.dask.rows import DaskRows, Packed
from cceclust.errors import InputError
from cceclust.training.rows import ArrayRows, Rows


def row_products(block: NDArray[np.float32], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(block.sum(axis=1) * factors)


def put_together(rows: Rows, factors: NDArray[np.float64]) -> tuple[list[int], NDArray[np.float64]]:
    """Return the numbers of the rows as they come, and their results."""
    found = list(rows.map_blocks(row_products, factors))
    return [row for where, _ in found for row in range(where.start, where.stop)], np.concatenate([r for _, r in found])


@pytest.mark.parametrize("block_bytes", [100, 10**9])
def test_blocks_come_in_the_order_of_the_rows_with_their_parts_of_columns(
    blobs: NDArray[np.float32], block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "BLOCK_BYTES", block_bytes)
    factors = np.arange(900.0)
    order, found = put_together(DaskRows(da.from_array(blobs, chunks=((100, 350, 450), (2, 4)))), factors)
    assert order == list(range(900))
    np.testing.assert_array_equal(found, put_together(ArrayRows(blobs), factors)[1])


def test_rows_are_taken_from_all_chunks(blobs: NDArray[np.float32]) -> None:
    wanted = np.array([0, 99, 100, 500, 899])
    np.testing.assert_array_equal(DaskRows(da.from_array(blobs, chunks=(100, 6))).take(wanted), blobs[wanted])


@pytest.mark.parametrize("chunks", [(900, 6), (128, 6), ((1, 898, 1), (3, 3))])
def test_a_fit_equals_that_of_the_array_in_memory(blobs: NDArray[np.float32], chunks: tuple[int, int]) -> None:
    lazy = da.from_array(blobs, chunks=chunks)
    found, expected = CCEClusterer(4, random_state=0).fit(lazy), CCEClusterer(4, random_state=0).fit(blobs)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-3, atol=1e-4)
    assert found.n_trained_rows_ == 900
    assert found.modularity_ == pytest.approx(expected.modularity_)
    assert found.problems_ == expected.problems_
    assert isinstance(found.labels_, da.Array)
    assert isinstance(found.probabilities_, da.Array)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_allclose(found.probabilities_, expected.probabilities_, atol=1e-4)
    np.testing.assert_array_equal(found.fit_predict(lazy), expected.labels_)
    assert found.score(lazy) == pytest.approx(expected.score(blobs))


def test_weights_and_the_number_of_clusters_are_used_as_in_memory(blobs: NDArray[np.float32]) -> None:
    weights = np.where(blobs[:, 0] > 3, 0.0, 1.0)
    lazy = da.from_array(blobs, chunks=(250, 6))
    found = CCEClusterer([2, 3, 4], random_state=0).fit(lazy, sample_weight=weights)
    expected = CCEClusterer([2, 3, 4], random_state=0).fit(blobs, sample_weight=weights)
    assert found.n_clusters_ == expected.n_clusters_ == 3
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-3, atol=1e-4)


def test_lengths_of_partitions_are_found_out(blobs: NDArray[np.float32]) -> None:
    frame = dd.from_pandas(pd.DataFrame(blobs), npartitions=3)
    assert DaskRows(frame.map_partitions(lambda part: part[part.index < 500])).shape == (500, 6)


def test_memory_limits_the_rows_that_are_trained_on(
    blobs: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "LEAST_ROWS_KEPT", 100)
    memory = 600 * 24 * choices.COPIES_FOR_NEIGHBORS
    rows = DaskRows(da.from_array(blobs, chunks=(200, 6)), memory)
    model = CCEClusterer(4, random_state=0).fit(rows)
    assert model.n_trained_rows_ == 600
    assert len(model.labels_.compute()) == 900
    assert model.modularity_ > 0.6


def test_too_little_memory_is_said_in_one_line(blobs: NDArray[np.float32]) -> None:
    with pytest.raises(InputError, match=r"2,400 bytes of memory hold 100 rows of 6 features; allow at least 12,000"):
        DaskRows(da.from_array(blobs), memory=2400)


def test_rows_that_are_not_finite_are_named(blobs: NDArray[np.float32]) -> None:
    blobs = blobs.copy()
    blobs[777, 1] = np.inf
    with pytest.raises(InputError, match="777"):
        CCEClusterer(4, random_state=0).fit(da.from_array(blobs, chunks=(200, 6)))


def test_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match=r"X has shape \(0, 3\)"):
        DaskRows(da.zeros((0, 3)))


def test_pieces_must_be_in_memory(blobs: NDArray[np.float32]) -> None:
    with pytest.raises(InputError, match="a piece of data must be in memory"):
        CCEClusterer(4).partial_fit(da.from_array(blobs))


def test_equal_weights_take_next_to_nothing() -> None:
    packed = Packed.of(np.ones(100_000, np.float32))
    assert len(packed.data) < 2000
    np.testing.assert_array_equal(packed.array(), np.ones(100_000))
