"""Data on which every method does well in no time."""

import numpy as np
import pytest

from cceclust.files import write_features


@pytest.fixture(scope="session")
def blobs():
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    centres = np.array([[4.0, 0, 0, 0], [0, 4, 0, 0], [0, 0, 4, 0]])
    return (centres[labels] + generator.normal(size=(120, 4))).astype(np.float32), labels


@pytest.fixture(scope="session")
def blob_file(blobs, tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "blobs.h5"
    features, labels = blobs
    write_features(path, features, labels=np.array(["a", "b", "c"])[labels])
    return path


@pytest.fixture(scope="session")
def stripes(tmp_path_factory):
    """Write noisy images of horizontal, vertical and no stripes, which a few labels are enough to tell apart."""
    generator = np.random.default_rng(0)
    rows = np.tile(200 * (np.arange(32)[:, None] // 4 % 2), 32)
    kinds = np.stack([rows, rows.T, np.full_like(rows, 100)])
    labels = np.tile([0, 1, 2], 10)
    images = np.clip(kinds[labels] + generator.normal(20, 10, (30, 32, 32)), 0, 255).astype(np.uint8)
    path = tmp_path_factory.mktemp("images") / "stripes.npz"
    # Names whose order is not that of their first appearance.
    np.savez(path, images=images, labels=np.array(["vertical", "horizontal", "none"])[labels])
    return path
