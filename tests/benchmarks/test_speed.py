"""Speed: fits and K-means take turns, and the table has every case beside what is promised."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import speed

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits.h5"


def test_both_take_turns_and_the_ratio_is_a_median(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted: list[str] = []
    for name in ("KMeans", "CCEClusterer"):
        kind = type(
            name, (), {"__init__": lambda *_, **__: None, "fit": lambda self, _: fitted.append(type(self).__name__)}
        )
        monkeypatch.setattr(speed, name, kind)
    # In three rounds, K-means takes 1, 2 and 4 seconds, and a fit 3, 2 and 2.
    ticks = itertools.chain.from_iterable((0.0, float(seconds)) for seconds in (1, 3, 2, 2, 4, 2))
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(sys, "argv", ["speed.py", "--case", "wide", "--rows", "600"])
    speed.main()
    assert fitted == ["CCEClusterer", *3 * ["KMeans", "CCEClusterer"]]
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "| 600 × 2,048, K = 10 | 2.00 | 2.00 | 1.00 | 0.6 |"


def test_real_fits_of_a_file_are_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(DIGITS), "--case", "wide", "many", "command", "--rows", "700", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["speed.py", *arguments])
    speed.main()
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()][2:]
    assert [row[0] for row in rows[:2]] == ["700 × 64, K = 10", "700 × 64, K = 300"]
    assert all(float(row[3]) > 0 for row in rows[:2])
    assert rows[2][0] == "cceclust fit fashion-resnet50.h5 --k 10"
    assert rows[2][-1] == "3 s"


def test_rows_of_a_file_are_repeated_with_a_little_noise() -> None:
    rows = speed.repeated_rows(DIGITS, 4000)
    assert rows.shape == (4000, 64)
    assert 0 < np.abs(rows[0] - rows[1797]).max() < 0.1 * np.ptp(rows)
