"""Worker processes that end with their parent, however it ends.

Only the standard library is imported here: a worker watches its parent before it loads torch, which takes a while.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

__all__ = ["WorkerContext"]

PR_SET_PDEATHSIG = 1


class WorkerProcess(SpawnProcess):
    """A process that is killed when its parent ends."""

    def __reduce__(self) -> tuple[Any, ...]:
        # What the worker needs is wrapped up, so that it watches its parent before it unpacks, and loads, anything.
        return start_watched, (os.getpid(), bytes(ForkingPickler.dumps(self.__dict__)))

    def run(self) -> None:
        """Watch the parent where it sends no signal, and work."""
        threading.Thread(target=end_with_parent, daemon=True).start()
        super().run()


class WorkerContext(SpawnContext):
    """What ``multiprocessing.get_context("spawn")`` is, with processes that end with their parent."""

    Process = WorkerProcess


def start_watched(parent: int, state: bytes) -> WorkerProcess:
    """Rebuild the process in the worker."""
    ask_for_parent_death_signal(parent)
    process = WorkerProcess.__new__(WorkerProcess)
    process.__dict__.update(pickle.loads(state))
    return process


def ask_for_parent_death_signal(parent: int) -> None:
    """Have the system kill this process when its parent ends, where it can; end now if that has happened."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if sys.platform != "win32" and os.getppid() != parent:
        os._exit(1)


def end_with_parent() -> None:
    """Wait until the parent's end of a pipe is closed, which is when it ends, and leave."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
