"""Workers end with their parent, also when it is killed before they have started to work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

PARENT = """
import multiprocessing, os, sys, time
from cceclust.workers import end_with

def work(parent, loading):
    time.sleep(loading)
    end_with(parent)
    print("working", flush=True)
    time.sleep(60)

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work, args=(os.getpid(), float(sys.argv[1])))
    process.start()
    print(process.pid, flush=True)
    process.join()
"""


def is_alive(pid: int) -> bool:
    """Tell whether a process lives; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("loading", [0, 2])
def test_a_killed_parent_takes_its_worker_with_it(tmp_path: Path, loading: int) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, str(script), str(loading)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        if not loading:
            assert parent.stdout.readline() == "working\n"
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + 30
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(worker)
