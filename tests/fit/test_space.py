from __future__ import annotations

from typing import Any

import numpy as np

from cceclust.fit.sample import Sample, take_sample
from cceclust.fit.source import as_source
from cceclust.fit.space import sharpened


def sample_of(rows: Any) -> Sample:
    return take_sample(
        as_source(rows),
        np.ones(len(rows)),
        first=np.empty(0, np.intp),
        scale="overall",
        n_components=100,
        max_rows=100_000,
        seed=0,
    )


def smooth_and_clustered() -> tuple[Any, Any]:
    """Rows along which one column changes much and in two groups, another little less but as noise."""
    generator = np.random.default_rng(0)
    truth = np.arange(400) % 2
    rows = generator.normal(size=(400, 10)) * [6, *[1] * 9]
    rows[:, 1] = 4 * truth + 0.3 * rows[:, 1]
    return rows, truth


def test_the_axis_that_tells_groups_apart_comes_first() -> None:
    rows, truth = smooth_and_clustered()
    before = sample_of(rows)
    after = sharpened(before, "euclidean", 0, 1)

    def separation(axis: Any) -> float:
        return float(abs(np.corrcoef(axis, truth)[0, 1]))

    assert separation(before.points[:, 0]) < 0.3
    assert separation(after.points[:, 0]) > separation(before.points[:, 0])


def test_shifted_scaled_or_turned_rows_give_the_same_points() -> None:
    rows, _ = smooth_and_clustered()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 10)))[0]
    one = sharpened(sample_of(rows), "euclidean", 0, 1).points
    other = sharpened(sample_of(3 * rows @ turn + 5), "euclidean", 0, 1).points
    np.testing.assert_allclose(np.abs(other), np.abs(one), atol=1e-3)
