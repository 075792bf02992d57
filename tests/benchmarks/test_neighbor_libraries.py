"""The comparison with libraries: settings are raised until the recall is reached, and a second run must repeat."""

from __future__ import annotations

import neighbor_libraries
import numpy as np
import pytest
from neighbor_libraries import Outcome


def test_settings_are_raised_until_the_recall_is_reached() -> None:
    runs: list[int] = []

    def run(name: str, setting: int, n_samples: int, limit: int) -> Outcome:
        runs.append(setting)
        return Outcome(setting / 5000, float(setting), 1.0, f"{len(runs)}")

    setting, outcome, repeats = neighbor_libraries.compare(["cceclust"], 100, 0.6, run=run)["cceclust"]
    assert runs == [1000, 1500, 2400, 3300, 3300]
    assert outcome is not None
    assert (setting, outcome.seconds, repeats) == (3300, 3300.0, False)
    neighbor_libraries.compare(["cceclust"], 100, 0.6, first=3000, run=run)
    assert runs[5:] == [3300, 3300]
    once = neighbor_libraries.compare(["cceclust"], 100, 0.6, first=3000, again=False, run=run)["cceclust"]
    assert runs[7:] == [3300]
    assert once[2] is None


def test_no_stronger_setting_is_tried_after_one_that_was_stopped() -> None:
    runs: list[int] = []

    def run(name: str, setting: int, n_samples: int, limit: int) -> Outcome | None:
        runs.append(setting)
        return Outcome(0.1, 1.0, 1.0, "") if setting < 1500 else None

    assert neighbor_libraries.compare(["cceclust"], 100, 0.6, run=run) == {"cceclust": (1500, None, None)}
    assert runs == [1000, 1500]


def test_a_search_ends_at_its_limit() -> None:
    assert neighbor_libraries.in_its_own_process("cceclust", 30_000, 30_000, 1) is None


def test_our_search_has_a_perfect_recall_where_all_are_compared() -> None:
    rows = neighbor_libraries.comparable(500)
    found = neighbor_libraries.by_cells(rows, 500)
    assert neighbor_libraries.recall_of(found, rows) == pytest.approx(1.0, abs=1e-3)
    assert neighbor_libraries.recall_of(np.roll(found, 7, axis=0), rows) < 0.5


def test_rows_are_dropped_from_their_own_neighbours() -> None:
    found = np.array([[0, 1, 2], [2, 0, 1], [0, 1, 3]])
    np.testing.assert_array_equal(neighbor_libraries.without_itself(found), [[1, 2], [2, 0], [0, 1]])
