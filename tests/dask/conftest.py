"""Rows for Dask, and one cluster of two worker processes for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(scope="session")
def blobs() -> NDArray[np.float32]:
    """Return 900 rows in four groups, in a random order."""
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 4, 900)
    return (generator.normal(size=(900, 6)) + 6 * np.eye(4, 6)[groups]).astype(np.float32)


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """Return the address of a cluster of two worker processes."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0") as started:
        yield started.scheduler_address
