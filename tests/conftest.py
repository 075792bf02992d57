"""What all tests share: the same examples every time, no thread pools that fight each other, small files."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# Test processes run side by side, and the arrays are small. NumPy, which reads these once, is not loaded yet.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

hypothesis.settings.register_profile("cceclust", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("cceclust")


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep lines that long work prints every ten seconds out of tests that a busy machine makes long."""
    monkeypatch.setattr("cceclust.progress.SECONDS_BETWEEN_LINES", 3600.0)


@pytest.fixture
def small_features(tmp_path: Path) -> Path:
    """Return a feature file of 120 rows in three far-apart groups, with labels and paths."""
    import numpy as np

    from cceclust.io import write_features

    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    features = generator.normal(size=(120, 6)) + 8 * np.eye(3, 6)[labels]
    path = tmp_path / "small.h5"
    write_features(
        path,
        features.astype(np.float32),
        labels=labels,
        paths=[f"images/{row}.png" for row in range(120)],
        attributes={"backbone": "none"},
    )
    return path
