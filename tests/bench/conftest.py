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
