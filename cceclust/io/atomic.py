"""The one way to write a file: never over an input, complete or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cceclust.errors import CceclustError, FileError, InputError, TargetExistsError

__all__ = ["check_targets", "replacing", "writing"]


def check_targets(targets: Sequence[str | Path], *, inputs: Iterable[str | Path] = (), force: bool = False) -> None:
    """Raise unless all targets can be written and none is an input; call this before long work, to fail early.

    Symbolic links, hard links and other spellings count as the same file.
    """
    paths = [Path(target) for target in targets]
    sources = [Path(source) for source in inputs if Path(source).exists()]
    for target in paths:
        check_target(target, force)
        if target.exists() and any(target.samefile(source) for source in sources):
            raise InputError(f"{target} is one of the files to read; name another to write")
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError(f"{', '.join(map(str, paths))}: a file would be written twice; name different files")


def check_target(target: Path, force: bool) -> None:
    with writing(target):
        if target.exists() and not target.is_file():
            raise FileError(f"cannot write {target}: it is a directory or a device; name a file")
        if target.exists() and not force:
            raise TargetExistsError(f"{target} exists already; use --force (force=True) to overwrite it")
        if not target.parent.is_dir():
            raise FileError(f"cannot write {target}: there is no directory {target.parent}; create it first")
        if not os.access(target.parent, os.W_OK):
            raise FileError(f"cannot write {target}: directory {target.parent} is not writable")


@contextmanager
def replacing(target: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a path beside ``target`` to write to, and rename it to ``target`` once it is complete and on the disk.

    Parts that a killed writer of the same target left behind are removed. Of two writers at once, the later one wins.
    """
    target = Path(target)
    check_target(target, force)
    with writing(target):
        remove_leftovers(target)
        part = target.with_name(f".{target.name}.{this_machine()}.{os.getpid()}.{secrets.token_hex(4)}.part")
        try:
            yield part
            check_target(target, force)
            if target.exists():
                # Keep the permissions of the old file.
                shutil.copymode(target, part)
            with part.open("r+b") as file:
                # If it were renamed before it is on the disk, a power cut could leave an empty file.
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def remove_leftovers(target: Path) -> None:
    """Remove parts of ``target`` whose writers, processes of this machine, are dead."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.{this_machine()}\.(\d+)\.[0-9a-f]+\.part")
    for file in target.parent.iterdir():
        if (match := pattern.fullmatch(file.name)) and not is_running(int(match[1])):
            file.unlink(missing_ok=True)


def this_machine() -> str:
    """Return the name of this machine as a part of a file name: on shared disks, process numbers alone say little."""
    return re.sub(r"\W", "-", socket.gethostname())


def is_running(process: int) -> bool:
    if os.name == "nt":
        # There, os.kill would end it.
        return True
    with suppress(PermissionError):
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True


@contextmanager
def writing(target: Path) -> Iterator[None]:
    try:
        yield
    except CceclustError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error
