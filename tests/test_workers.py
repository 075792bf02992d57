"""Workers end with their parent, also when it is killed while they start."""

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
import sys, time
from cceclust.workers import WorkerContext, WorkerProcess

def work(seconds):
    time.sleep(seconds)

if __name__ == "__main__":
    if sys.argv[1] == "pipe":
        # As where there is no such signal.
        WorkerProcess.__reduce__ = object.__reduce__
    process = WorkerContext().Process(target=work, args=(60,))
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


def children_of(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


@pytest.mark.parametrize(("how", "delay"), [("signal", 0.0), ("signal", 0.2), ("pipe", 1.5)])
def test_a_killed_parent_takes_its_workers_with_it(tmp_path: Path, how: str, delay: float) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, str(script), how], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        time.sleep(delay)
        family = [worker, *children_of(parent.pid)]
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + 30
    while any(map(is_alive, family)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in family if is_alive(pid)]
