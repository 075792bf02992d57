"""What all tests share: the same examples every time, no thread pools that fight each other, small files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from cceclust.io import Clusters

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


@pytest.fixture
def clustering() -> Clusters:
    """Return a clustering of 300 points in 5 clusters."""
    from report_samples import make_clustering

    return make_clustering(300, 5)


@pytest.fixture(scope="module")
def rich_clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cluster file with images, warnings and labels that would break a careless page."""
    import numpy as np
    from PIL import Image
    from report_samples import HOSTILE, make_clustering

    from cceclust.io import write_clusters, write_features

    folder = tmp_path_factory.mktemp("rich")
    names = np.array(["cat", "dog", HOSTILE, "a & b", "owl"])
    clusters = make_clustering(300, 5)
    paths = np.array([f"images/{row} {HOSTILE.replace('/', '')}.png" for row in range(300)])
    (folder / "images").mkdir()
    for row in range(0, 300, 2):
        Image.new("RGB", (30 + row % 90, 40), (row % 255, 90, 120)).save(folder / str(paths[row]))
    clusters.true_labels = names[clusters.true_labels]
    clusters.paths = paths
    clusters.diagnostics["warnings"] = [f"beware {HOSTILE}"]
    clusters.provenance = {"features": "features.h5", "dataset": "features", "backbone": HOSTILE}
    write_features(folder / "features.h5", np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32))
    write_clusters(folder / "rich.clusters.h5", clusters)
    return folder / "rich.clusters.h5"
