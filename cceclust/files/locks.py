"""Locks that keep two processes from writing the same thing at once.

A lock is a small hidden file that says who holds it. The system frees it when its process ends, however it ends, so a
lock that is left behind by a kill holds nobody up; the next owner removes the file.
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

# What the threads of this process hold: a writer must not be stopped by a claim of its own.
HELD: set[tuple[Path, int]] = set()


@contextmanager
def locked(lock_file: Path, target: Path, *, held_is_fine: bool = False) -> Iterator[bool]:
    """Keep others from writing ``target``; raise if one is at it.

    Parameters
    ----------
    lock_file : Path
        The file that stands for the lock.
    target : Path
        What is to be written, for the error.
    held_is_fine : bool
        Go on if this thread holds the lock already.

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
            # Removed while it is held: whoever opened it before finds it gone and tries again.
            key[0].unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def take(lock_file: Path, target: Path) -> int | None:
    """Return the descriptor of a lock that is ours now; None where locks are unknown."""
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
            # A file system without locks: names of their own still keep two writers apart.
            os.close(descriptor)
            lock_file.unlink(missing_ok=True)
            return None
        if is_still_at(lock_file, descriptor):
            # The lock holds also without a name, for which a full disk has no room.
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return descriptor
        os.close(descriptor)


def is_still_at(path: Path, descriptor: int) -> bool:
    """Tell whether the open file is the one of this name, which its last owner may have removed meanwhile."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
