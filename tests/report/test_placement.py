"""Rows are placed by the neighbours in the file, or by those that a search finds; a sample stands for many."""

from __future__ import annotations

import numpy as np
import pytest

from cceclust.clustering import find_neighbors
from cceclust.io import Clusters, open_features, write_features
from cceclust.report import placement
from cceclust.report.placement import place_rows, to_unit_square


def placed(path, clusters=None):
    with open_features(path) as features:
        return place_rows(clusters or Clusters(np.zeros(features.n_samples, int)), features)


def test_groups_lie_apart_inside_the_picture(small_features):
    found = placed(small_features)
    assert found.rows.tolist() == list(range(120))
    assert found.places.min() >= 0.03
    assert found.places.max() <= 0.97
    centres = found.places.reshape(3, 40, 2).mean(axis=1)
    spread = found.places.reshape(3, 40, 2).std(axis=1).max()
    assert min(np.linalg.norm(centres[a] - centres[b]) for a, b in ((0, 1), (0, 2), (1, 2))) > 3 * spread


def test_neighbours_in_the_file_are_used(small_features, searched):
    find_neighbors(small_features, 6)
    searched.clear()
    with open_features(small_features) as features:
        stored = features.neighbors
    assert np.array_equal(placed(small_features).neighbors, stored)
    assert searched == []


def test_too_few_or_damaged_neighbours_in_the_file_are_not(tmp_path, small_features, searched):
    import h5py

    for graph in (np.zeros((120, 2), int), np.full((120, 9), 500)):
        with h5py.File(small_features, "r+") as file:
            file.pop("neighbors", None)
            file["neighbors"] = graph
            file["neighbors"].attrs["dataset"] = "features"
        assert placed(small_features).neighbors.shape == (120, 15)
    assert searched == [15, 15]


def test_of_many_rows_a_fixed_sample_is_placed(small_features, monkeypatch):
    monkeypatch.setattr(placement, "MOST_ROWS", 50)
    first, second = placed(small_features), placed(small_features)
    assert len(np.unique(first.rows)) == 50
    assert first.neighbors.max() < 50
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.places, second.places)


def test_rows_that_are_not_finite_are_left_out(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    matrix[3, 1], matrix[20] = np.nan, np.inf
    write_features(tmp_path / "x.h5", matrix)
    assert placed(tmp_path / "x.h5").rows.tolist() == [row for row in range(40) if row not in (3, 20)]
    write_features(tmp_path / "y.h5", matrix[1:4])
    assert placed(tmp_path / "y.h5") is None


def test_columns_are_scaled_as_in_the_fit(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    matrix[:30, 0] += 9
    write_features(tmp_path / "even.h5", matrix)
    write_features(tmp_path / "uneven.h5", matrix * np.float32([1, 1e4, 1]))
    scaled = Clusters(np.zeros(60, int), diagnostics={"columns_scaled": True})
    expected = placed(tmp_path / "even.h5", scaled).neighbors
    assert np.array_equal(placed(tmp_path / "uneven.h5", scaled).neighbors, expected)
    assert not np.array_equal(placed(tmp_path / "uneven.h5").neighbors, expected)


def test_directions_are_evened_out_as_in_the_fit(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    write_features(tmp_path / "round.h5", matrix)
    write_features(tmp_path / "long.h5", matrix * np.float32([6, 1, 1]))
    evened = Clusters(np.zeros(60, int), diagnostics={"directions_evened": True})
    expected = placed(tmp_path / "round.h5").neighbors

    def shared(found):
        return np.mean([len(set(one) & set(other)) for one, other in zip(found, expected, strict=True)])

    assert shared(placed(tmp_path / "long.h5", evened).neighbors) > shared(placed(tmp_path / "long.h5").neighbors) + 1


@pytest.mark.parametrize("matrix", [np.arange(30.0).reshape(-1, 1), np.ones((30, 4))])
def test_one_column_and_equal_rows_can_be_placed(tmp_path, matrix):
    write_features(tmp_path / "x.h5", matrix)
    assert np.isfinite(placed(tmp_path / "x.h5").places).all()


def test_the_longer_side_is_across_and_few_far_points_do_not_shrink_the_map():
    places = np.random.default_rng(0).normal(size=(5000, 2)) * (1, 5)
    places[0] = 0, 1e6
    unit = to_unit_square(places)
    order = np.argsort(places[1:, 1])
    assert abs(np.corrcoef(unit[1:, 0][order], np.arange(4999))[0, 1]) > 0.9
    assert unit[:, 0].std() > 0.1
    assert unit[0, 0] in (0.03, 0.97)
