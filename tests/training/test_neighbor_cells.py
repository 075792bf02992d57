"""Cells of near rows: every row is in one, and near ones are found without sorting all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cceclust.training.neighbor_cells import Cells, cells_in_groups, nearest_with_rows, put_in_order


def test_every_pair_of_near_cells_is_compared_once() -> None:
    centres = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], np.float32)
    cells = Cells(np.arange(30), np.array([0, 10, 20, 30]), centres, centres)
    assert cells.pairs(20).tolist() == [[0, 0], [1, 1], [2, 2], [0, 1], [1, 2]]
    assert len(cells.pairs(30)) == 6


@given(
    seed=st.integers(0, 1000),
    n_cells=st.integers(1, 60),
    n_rows=st.integers(1, 900),
    levels=st.integers(1, 200),
)
def test_near_cells_are_those_of_sorting_all(seed: int, n_cells: int, n_rows: int, levels: int) -> None:
    generator = np.random.default_rng(seed)
    # Few levels make equal similarities, and the first of equals counts as nearer.
    similarities = (generator.integers(0, levels, n_cells) / levels).astype(np.float32)
    # Cells may be much smaller than usual: then more of them are needed than is likely.
    sizes = generator.integers(1, generator.integers(2, 200), n_cells)
    order = np.argsort(-similarities, kind="stable")
    expected = order[: np.searchsorted(np.cumsum(sizes[order]), n_rows) + 1]
    np.testing.assert_array_equal(nearest_with_rows(similarities, sizes, n_rows), expected)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("repeated", [1, 30])
def test_groups_hold_every_row_once_beside_similar_ones(
    metric: str, repeated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cceclust.choices.ROWS_IN_CELL", 10)
    monkeypatch.setattr("cceclust.choices.LARGEST_CELL", 25)
    rows = np.random.default_rng(0).normal(size=(1200 // repeated, 4)).astype(np.float32)
    rows = np.tile(rows / np.linalg.norm(rows, axis=1, keepdims=True), (repeated, 1))
    if metric == "euclidean":
        rows[:, -1] = 1
    with ThreadPoolExecutor(2) as pool:
        cells = cells_in_groups(rows, (0, 1), pool, metric)
    np.testing.assert_array_equal(np.sort(cells.order), np.arange(len(rows)))
    assert cells.starts[[0, -1]].tolist() == [0, len(rows)]
    assert 0 < np.diff(cells.starts).min() <= np.diff(cells.starts).max() <= 25
    assert cells.centres is not None
    assert len(cells.centres) == cells.count
    own = np.repeat(cells.centres, np.diff(cells.starts), axis=0)
    to_own = ((rows[cells.order] - own) ** 2).sum(axis=1).mean()
    assert to_own < 0.25 * ((rows[cells.order] - np.roll(own, 600, axis=0)) ** 2).sum(axis=1).mean()


@pytest.mark.parametrize("width", [1, 31, 32, 33, 70])
def test_rows_are_sorted_in_place(width: int) -> None:
    generator = np.random.default_rng(0)
    rows, order = generator.normal(size=(50, width)), generator.permutation(50)
    expected = rows[order]
    put_in_order(rows, order)
    np.testing.assert_array_equal(rows, expected)
