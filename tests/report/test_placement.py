"""Rows are placed by their neighbours, as a fit finds them; a sample stands for many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cceclust.fit.source import ArraySource
from cceclust.report import placement
from cceclust.report.placement import place_rows


def placed(matrix, *, columns_scaled=False):
    return place_rows(ArraySource(matrix), columns_scaled=columns_scaled)


def three_groups():
    generator = np.random.default_rng(0)
    return (generator.normal(size=(120, 6)) + 8 * np.repeat(np.eye(3, 6), 40, axis=0)).astype(np.float32)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_groups_lie_apart_inside_the_picture(kind):
    found = placed(kind(three_groups()))
    assert found.rows.tolist() == list(range(120))
    assert found.places.min() >= 0.03
    assert found.places.max() <= 0.97
    centres = found.places.reshape(3, 40, 2).mean(axis=1)
    spread = found.places.reshape(3, 40, 2).std(axis=1).max()
    assert min(np.linalg.norm(centres[a] - centres[b]) for a, b in ((0, 1), (0, 2), (1, 2))) > 3 * spread


def test_of_many_rows_a_fixed_sample_is_placed(monkeypatch):
    monkeypatch.setattr(placement, "MOST_POINTS", 50)
    first, second = placed(three_groups()), placed(three_groups())
    assert len(np.unique(first.rows)) == 50
    assert first.neighbors.max() < 50
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.places, second.places)


def test_a_row_far_from_all_others_is_left_out_and_two_rows_make_no_map():
    matrix = three_groups()
    matrix[7] = 1e6
    assert placed(matrix).rows.tolist() == [row for row in range(120) if row != 7]
    assert placed(matrix[:2]) is None


def test_columns_are_scaled_as_in_the_fit():
    matrix = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    uneven = matrix * np.float32([1, 1e4, 1])
    scaled = placed(uneven, columns_scaled=True)
    assert np.array_equal(scaled.neighbors, placed(matrix, columns_scaled=True).neighbors)
    assert not np.array_equal(scaled.neighbors, placed(uneven).neighbors)


@pytest.mark.parametrize("matrix", [np.arange(30.0).reshape(-1, 1), np.ones((30, 4))])
def test_one_column_and_equal_rows_can_be_placed(matrix):
    assert np.isfinite(placed(matrix).places).all()
