"""A clustering with everything a report can show, and a browser to look at it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cceclust.io import Clusters, write_clusters, write_features

HOSTILE = "<script>document.title='broken'</script>"


def make_clustering(n_rows: int, n_clusters: int, **fields: Any) -> Clusters:
    """Return a clustering of random points whose classes are known but not always hit."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, n_clusters, n_rows)
    logits = 4 * np.eye(n_clusters)[truth] + generator.normal(0, 1.5, (n_rows, n_clusters))
    probabilities = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).astype(np.float32)
    known: dict[str, Any] = {
        "true_labels": truth,
        "levels": np.array([[2, 0.3], [4, 0.8], [5, 0.9], [5, 0.7], [8, 0.5]]),
        "parameters": {"n_clusters": n_clusters, "fairness": 10.0},
        "diagnostics": {
            "number_of_clusters": {"chosen": 5, "low": 4, "high": 5, "is_weak": False, "at_edge": False},
            "candidates": {"graph": 0.812, "K-means": 0.7},
            "reason": "its clusters keep neighbours together best",
            "warnings": [],
        },
    }
    return Clusters(probabilities.argmax(axis=1), probabilities, **{**known, **fields})


@pytest.fixture
def clustering() -> Clusters:
    """Return a clustering of 300 points in 5 clusters."""
    return make_clustering(300, 5)


@pytest.fixture(scope="module")
def rich_clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cluster file with images, warnings and labels that would break a careless page."""
    from PIL import Image

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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a headless Chromium."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs Debian's packages chromium and chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for feature in ("gpu", "quic", "background-networking", "component-update", "sync"):
        options.add_argument(f"--disable-{feature}")
    for argument in ("headless", "no-sandbox", "no-first-run", f"user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    session = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield session
    session.quit()
