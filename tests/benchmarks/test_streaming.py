"""Files larger than memory: the file is what it is said to be, and costs are those of the work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import streaming

from cceclust.io import open_features


def test_a_file_has_clusters_in_rows_of_the_wanted_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 4 * 8 * 64)
    streaming.make_file(tmp_path / "x.h5", 1000, 8)
    with open_features(tmp_path / "x.h5") as features:
        X = features.array()
    assert X.shape == (1000, 8)
    assert X.dtype == np.float32
    # Variance within clusters is 1; between them, there are centres of variance 4.
    assert X.var(axis=0).mean() > 3
    assert len(np.unique(X[:, 0])) > 990


def test_a_fit_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    streaming.make_file(tmp_path / "x.h5", 2000, 4)
    cost = streaming.fit_cost(tmp_path / "x.h5", 16_000)
    assert (tmp_path / "x.clusters.h5").exists()
    assert cost.seconds > 0
    assert cost.cpu_seconds > 0.1
    assert cost.peak > 50e6


def test_a_fit_that_fails_ends_the_measurement(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"fit .* failed"):
        streaming.fit_cost(tmp_path / "missing.h5", 16_000)
