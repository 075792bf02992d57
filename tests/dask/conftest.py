"""Rows for Dask, and one cluster of two worker processes for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(scope="session")
def blobs() -> NDArray[np.float32]:
    """Return 900 rows in four groups, in a random order."""
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 4, 900)
    return (generator.normal(size=(900, 6)) + 6 * np.eye(4, 6)[groups]).astype(np.float32)


def started(n_workers: int) -> Any:
    """Start a cluster of worker processes."""
    from distributed import LocalCluster

    return LocalCluster(n_workers=n_workers, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0")


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """Return the address of a cluster of two worker processes."""
    with started(2) as running:
        yield running.scheduler_address


@pytest.fixture
def empty_cluster() -> Iterator[str]:
    """Return the address of a scheduler without workers."""
    with started(0) as running:
        yield running.scheduler_address
