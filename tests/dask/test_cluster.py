"""Fits on two worker processes: the same bits as anywhere else, also if one is killed."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed.scheduler import KilledWorker
from numpy.typing import NDArray

from cceclust import CCEClusterer
from cceclust.dask import cluster as cluster_module
from cceclust.dask.cluster import connected, naming_lost_workers
from cceclust.dask.rows import DaskRows
from cceclust.errors import ClusterError
from cceclust.version import __version__


def test_two_workers_give_the_bits_of_threads_of_one_process(blobs: NDArray[np.float32], cluster: str) -> None:
    lazy = da.from_array(blobs, chunks=(130, 6))
    with connected(cluster):
        found = CCEClusterer(4, n_components=3, random_state=0).fit(lazy)
        labels = found.labels_.compute()
    expected = CCEClusterer(4, n_components=3, random_state=0).fit(lazy)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)
    np.testing.assert_array_equal(labels, CCEClusterer(4, n_components=3, random_state=0).fit(blobs).labels_)


def test_a_worker_that_is_killed_half_way_changes_nothing(
    blobs: NDArray[np.float32], cluster: str, tmp_path: Path
) -> None:
    def die_once(block: NDArray[np.float32], block_info: Any = None) -> NDArray[np.float32]:
        flag = tmp_path / "died"
        if block_info and block_info[0]["chunk-location"][0] == 3 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    safe = da.from_array(blobs, chunks=(130, 6))
    with connected(cluster):
        found = CCEClusterer(4, random_state=0).fit(safe.map_blocks(die_once, dtype=safe.dtype))
    assert (tmp_path / "died").exists()
    np.testing.assert_array_equal(found.coef_, CCEClusterer(4, random_state=0).fit(safe).coef_)


def test_a_chunk_that_is_too_large_for_a_worker_is_refused_before_the_work(cluster: str) -> None:
    message = r"a chunk of 1,000,000 rows takes 400,000,000 bytes, .* rechunk to at most 833,333 rows"
    with connected(cluster), pytest.raises(ClusterError, match=message):
        DaskRows(da.zeros((1_000_000, 100), chunks=(1_000_000, 100), dtype=np.float32))


def test_workers_that_are_lost_again_and_again_are_said_in_one_line() -> None:
    with pytest.raises(ClusterError, match="4 workers in a row were lost with the same rows"), naming_lost_workers():
        raise KilledWorker("task", SimpleNamespace(address="tcp://10.0.0.2:1"), 3)


def test_workers_with_another_version_are_refused(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "__version__", "9.9")
    message = rf"cceclust on the workers: {re.escape(__version__)}; install 9.9, the version of this machine"
    with pytest.raises(ClusterError, match=message), connected(cluster):
        pass


def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE", 1)
    threads = set(threading.enumerate())
    for address in ("tcp://127.0.0.1:1", "no address"):
        with pytest.raises(ClusterError, match=f"there is no scheduler of Dask at {address!r}"), connected(address):
            pass
    assert not [thread for thread in set(threading.enumerate()) - threads if thread.name == "IO loop"]


def test_a_scheduler_without_workers_is_named(empty_cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE", 1)
    message = "has no workers; start some with: dask worker"
    with pytest.raises(ClusterError, match=message), connected(empty_cluster):
        pass
