"""Files of any size: the file is what it is said to be, and memory and time are those of a fit of it."""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import scale

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")


def test_a_file_has_clusters_in_rows_of_the_wanted_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "ROWS_AT_ONCE", 300)
    with h5py.File(scale.make_file(tmp_path / "x.h5", 1000, 8)) as file:
        X = file["features"][:]
    assert X.shape == (1000, 8)
    # Variance within clusters is 1; between them, there are centres of variance 4.
    assert X.var(axis=0).mean() > 3
    assert len(np.unique(X[:, 0])) > 990


def test_the_memory_of_a_sample_is_noticed(tmp_path: Path) -> None:
    path = scale.make_file(tmp_path / "x.h5", 40_000, 256)
    small, large = scale.memory_of_fit(path, 2_000), scale.memory_of_fit(path, 40_000)
    assert large > small + 0.8 * path.stat().st_size
    assert small > 0


def test_the_script_prints_both_ratios(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--rows", "500", "1500", "--columns", "6", "--wide", "9", "--max-rows", "400", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["scale.py", *arguments])
    scale.main()
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:3] == ["fit of 500, s", "fit of 1,500, s", "a reading, s"]
    assert float(lines[2][3]) > 0
    assert [row[0] for row in lines[-2:]] == ["6", "9"]
