"""Worker processes that end with their parent, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["end_with"]

PR_SET_PDEATHSIG = 1


def end_with(parent: int, worker: int = 0) -> None:
    """End this worker when its parent ends: now if that has happened, and later where the system sends a signal.

    Torch's workers look for their parent every few seconds, but not while they wait to be started.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if sys.platform != "win32" and os.getppid() != parent:
        os._exit(1)
