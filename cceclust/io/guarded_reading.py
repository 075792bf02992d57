"""Reading files that may crash the process: a child process with limited time and memory reads them first.

The HDF5 library, which is written in C, can loop forever, take all memory or crash on a damaged file. When that
happens in a child process, it becomes an ordinary error here.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from cceclust.errors import FileContentError

__all__ = ["let_a_child_read_first"]

# Far more than reading the structure of a file needs; an endless loop reaches it soon.
CPU_SECONDS = 1
BYTES_A_CPU_SECOND = 10_000_000
SPARE_BYTES = 1 << 29
OUT_OF_MEMORY = 77
# The result for each file, by device, inode, size and modification time: how the child failed, or nothing.
KNOWN: dict[tuple[int, int, int, int], str] = {}


def let_a_child_read_first(path: Path, read: Callable[[Path], None]) -> None:
    """Raise FileContentError if a child process does not survive ``read(path)``.

    Exceptions of ``read`` are ignored: they will be raised again when this process reads. On systems without a safe
    fork (all but Linux) nothing is done.
    """
    status = path.stat()
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if sys.platform == "linux" and key not in KNOWN:
        KNOWN[key] = fate_of_a_child(path, read, status.st_size)
    if KNOWN.get(key):
        raise FileContentError(f"{path} is damaged: reading it {KNOWN[key]}")


def fate_of_a_child(path: Path, read: Callable[[Path], None], n_bytes: int) -> str:
    """Return how reading makes a child process fail; nothing if it survives."""
    with warnings.catch_warnings():
        # Forking beside other threads is harmless here: the child only reads, and h5py hands HDF5's lock on to it.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        read_and_die(path, read, n_bytes)
    try:
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    fates = {0: "", -signal.SIGXCPU: "takes too long", OUT_OF_MEMORY: "fills the memory"}
    return fates.get(ended, "crashes")


def read_and_die(path: Path, read: Callable[[Path], None], n_bytes: int) -> None:
    """Run as the child process: read under limits."""
    code = 0
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        set_limits(n_bytes)
        read(path)
    except MemoryError:
        code = OUT_OF_MEMORY
    except BaseException as error:
        # The library has no error type of its own for this.
        code = OUT_OF_MEMORY if "alloc" in str(error) else 0
    finally:
        os._exit(code)


def set_limits(n_bytes: int) -> None:
    """Limit the time and memory of this process to what a file of this size may need."""
    import faulthandler
    import resource

    # A crash is expected here: no traceback, no core file.
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = CPU_SECONDS + n_bytes // BYTES_A_CPU_SECOND
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + SPARE_BYTES + 16 * n_bytes
    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (memory if limit < 0 else min(memory, limit), limit))
