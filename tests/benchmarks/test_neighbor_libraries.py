"""The comparison with libraries: settings are raised until the recall is reached, and a second run must repeat."""

from __future__ import annotations

import neighbor_libraries
import numpy as np
import pytest
from neighbor_libraries import Outcome


def test_settings_are_raised_until_the_recall_is_reached() -> None:
    runs: list[int] = []

    def run(name: str, setting: int, n_samples: int) -> Outcome:
        runs.append(setting)
        return Outcome(setting / 5000, float(setting), 1.0, f"{len(runs)}")

    setting, outcome, repeats = neighbor_libraries.compare(["cceclust"], 100, 0.6, run)["cceclust"]
    assert runs == [1000, 1500, 3000, 3000]
    assert (setting, outcome.seconds, repeats) == (3000, 3000.0, False)


def test_our_search_has_a_perfect_recall_where_all_are_compared() -> None:
    rows = neighbor_libraries.comparable(500)
    found = neighbor_libraries.by_cells(rows, 500)
    assert neighbor_libraries.recall_of(found, rows) == pytest.approx(1.0, abs=1e-3)
    assert neighbor_libraries.recall_of(np.roll(found, 7, axis=0), rows) < 0.5


def test_rows_are_dropped_from_their_own_neighbours() -> None:
    found = np.array([[0, 1, 2], [2, 0, 1], [0, 1, 3]])
    np.testing.assert_array_equal(neighbor_libraries.without_itself(found), [[1, 2], [2, 0], [0, 1]])
