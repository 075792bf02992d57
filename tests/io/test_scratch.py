"""Scratch files leave nothing behind, however a process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cceclust.errors import FileError
from cceclust.io import write_features
from cceclust.io.scratch import scratch_array


def test_it_is_an_array_like_any_other(tmp_path: Path) -> None:
    array = scratch_array((50, 3), np.dtype("f8"), folder=tmp_path)
    assert type(array) is np.ndarray
    assert array.shape == (50, 3)
    array[:] = np.arange(150).reshape(50, 3)
    np.testing.assert_array_equal(array[[40, 2]].sum(axis=1), [363, 21])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="a full disk is found later here")
def test_a_disk_without_room_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot write a scratch file of [\d,]+ bytes to .*; allow more memory"):
        scratch_array((1 << 56, 1), np.dtype("f4"), folder=tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="maps of a process are looked at")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_fit_that_was_stopped(tmp_path: Path, end: signal.Signals) -> None:
    generator = np.random.default_rng(0)
    write_features(tmp_path / "x.h5", generator.normal(size=(3000, 20)).astype("f4"))
    command = [sys.executable, "-m", "cceclust", "fit", "x.h5", "--k", "3", "--memory", "50KB"]
    process = subprocess.Popen(
        [*command, "--set", "max_epochs=100000", "--set", "tol=0"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        # The tests themselves may run where SIGINT is ignored, as in the background of a script.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while str(tmp_path) not in Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None, process.stderr
            time.sleep(0.02)
        process.send_signal(end)
        process.communicate(timeout=60)
    finally:
        process.kill()
    # A lock that was left by a kill blocks nobody, and goes with the next writer.
    left = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")}
    assert left == {"x.h5"}
