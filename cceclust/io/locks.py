"""Locks that keep two processes from writing the same thing at once.

A lock is a small hidden file that names its owner. The system frees it when its process ends, however it ends, so a
lock file that is left behind by a kill blocks nobody; the next owner removes the file.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cceclust.errors import FileError

__all__ = ["locked"]

# Locks that threads of this process hold: a writer must not be blocked by its own lock.
HELD: set[tuple[Path, int]] = set()


@contextmanager
def locked(lock_file: Path, target: Path, *, held_is_fine: bool = False) -> Iterator[bool]:
    """Keep others from writing ``target``; raise if somebody is writing it.

    Parameters
    ----------
    lock_file : Path
        The lock file.
    target : Path
        What is to be written, for the error.
    held_is_fine : bool
        Continue if this thread already holds the lock.

    Yields
    ------
    bool
        Whether this call took the lock: False if it was held already, and where the file system has no locks.
    """
    key = (lock_file.parent.resolve() / lock_file.name, threading.get_ident())
    descriptor = None if held_is_fine and key in HELD else take(key[0], target)
    if descriptor is None:
        yield False
        return
    HELD.add(key)
    try:
        yield True
    finally:
        HELD.discard(key)
        try:
            # Removed while the lock is held: a process that opened it before sees that it is gone and tries again.
            key[0].unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def take(lock_file: Path, target: Path) -> int | None:
    """Take the lock and return its file descriptor; None where the file system has no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    while True:
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another process"
            os.close(descriptor)
            raise FileError(f"{owner} is writing {target} just now; wait for it, or stop it") from None
        except OSError:
            # A file system without locks: unique temporary names still keep two writers apart.
            os.close(descriptor)
            lock_file.unlink(missing_ok=True)
            return None
        if is_still_at(lock_file, descriptor):
            # The lock works without the owner's name, which may not fit on a full disk.
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return descriptor
        os.close(descriptor)


def is_still_at(path: Path, descriptor: int) -> bool:
    """Tell whether the open file still has this name; its last owner may have removed it meanwhile."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
