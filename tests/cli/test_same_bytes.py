"""Equal runs make equal files, so that tools that watch files by their digest work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cceclust.io import write_features


def fit_in_a_process(folder: Path, seed: str, *options: str) -> dict[str, bytes]:
    """Fit the features in a folder by a process of its own, and return all that it writes."""
    before = set(folder.iterdir())
    command = [sys.executable, "-m", "cceclust", "fit", "x.h5", "-k", "3", *options]
    # Sets and dictionaries of text are ordered differently with each of these seeds.
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return {file.name: file.read_bytes() for file in sorted(set(folder.iterdir()) - before)}


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Return two folders of different names with the same features."""
    labels = np.repeat([0, 1, 2], 30)
    X = np.random.default_rng(0).normal(size=(90, 5)) + 8 * np.eye(3, 5)[labels]
    folders = [tmp_path / "first", tmp_path / "the second"]
    for folder in folders:
        folder.mkdir()
        write_features(folder / "x.h5", X, labels=labels, names=[f"row {i}" for i in range(90)])
    return folders


def test_two_processes_write_the_same_bytes(folders: list[Path]) -> None:
    first, second = (fit_in_a_process(folder, seed, "--report") for folder, seed in zip(folders, "12", strict=True))
    assert len(first) == 3
    assert first == second
