"""Cells of near rows: every row is in one, and none is too large."""

from __future__ import annotations

import numpy as np
import pytest

from cceclust.fit import cells as module
from cceclust.fit.cells import as_targets, as_unit_length, cells_around_centres


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("repeated", [1, 30, 1200])
def test_cells_hold_every_row_once_beside_similar_ones(
    metric: str, repeated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_IN_CELL", 10)
    rows = as_unit_length(np.random.default_rng(0).normal(size=(1200 // repeated, 4)).astype(np.float32))
    rows = np.tile(rows, (repeated, 1))
    if metric == "euclidean":
        rows[:, -1] = 1
    cells = cells_around_centres(rows, 0, map, metric)
    np.testing.assert_array_equal(np.sort(cells.order), np.arange(1200))
    assert cells.starts[[0, -1]].tolist() == [0, 1200]
    assert 0 < np.diff(cells.starts).min() <= np.diff(cells.starts).max() <= 80
    assert cells.centres is not None
    own = np.repeat(cells.centres, np.diff(cells.starts), axis=0)
    to_own = ((rows[cells.order] - own) ** 2).sum(axis=1).mean()
    to_others = ((rows[cells.order] - np.roll(own, 600, axis=0)) ** 2).sum(axis=1).mean()
    assert to_own <= 0.25 * to_others + 1e-9


def test_products_with_targets_rank_by_distance() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    rows[:, -1] = 1
    products = rows @ as_targets(rows, "euclidean").T
    distances = ((rows[:, None] - rows) ** 2).sum(axis=2)
    np.testing.assert_allclose((rows[:, :-1] ** 2).sum(axis=1)[:, None] - 2 * products, distances, atol=1e-4)
