"""The one way to write a file: never over an input, complete or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cceclust.errors import CceclustError, FileError, InputError, TargetExistsError

__all__ = ["check_targets", "refuse_inputs", "refuse_to_overwrite", "replacing"]


def check_targets(targets: Sequence[str | Path], *, inputs: Iterable[str | Path] = (), force: bool = False) -> None:
    """Raise unless all targets can be written; call this before long work, so that it fails early.

    Parameters
    ----------
    targets : sequence of str or Path
        The files to write.
    inputs : iterable of str or Path
        The files that are read; none of them may be a target, under any name.
    force : bool
        Allow targets that exist.

    Examples
    --------
    >>> from cceclust.io.atomic import check_targets
    >>> check_targets(["sample_data/digits.h5"], inputs=["sample_data/../sample_data/digits.h5"], force=True)
    Traceback (most recent call last):
    cceclust.errors.InputError: sample_data/digits.h5 is one of the files to read; name another to write
    """
    paths = [Path(target) for target in targets]
    for number, target in enumerate(paths):
        refuse_to_overwrite(target, force=force)
        if target.resolve() in [other.resolve() for other in paths[:number]]:
            raise InputError(f"{target} would be written twice; name two files")
    refuse_inputs(paths, inputs)


def refuse_to_overwrite(target: str | Path, *, force: bool) -> None:
    """Raise unless ``target`` may be written."""
    target = Path(target)
    with naming(target):
        if target.exists() and not target.is_file():
            raise FileError(f"cannot write {target}: it is a directory or a device; name a file")
        if target.exists() and not force:
            raise TargetExistsError(f"{target} exists already; use --force (force=True) to overwrite it")
        if not target.parent.is_dir():
            raise FileError(f"cannot write {target}: there is no directory {target.parent}; create it first")
        if not os.access(target.parent, os.W_OK):
            raise FileError(f"cannot write {target}: directory {target.parent} is not writable")


def refuse_inputs(targets: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """Raise if a target is one of the inputs: symbolic links, hard links and other spellings count as the same file."""
    sources = [Path(source) for source in inputs if Path(source).exists()]
    for target in targets:
        if target.exists() and any(target.samefile(source) for source in sources):
            raise InputError(f"{target} is one of the files to read; name another to write")


@contextmanager
def replacing(target: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a path beside ``target`` to write to, and rename it to ``target`` once it is complete and on the disk.

    Parts that a killed writer of the same target left behind are removed. Of two writers at once, the later one wins.

    Parameters
    ----------
    target : str or Path
        The file to write.
    force : bool
        Replace ``target`` if it exists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cceclust.io.atomic import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "numbers.txt")
    ...     with replacing(target) as part:
    ...         _ = part.write_text("1 2 3")
    ...         there_before = target.exists()
    ...     there_before, target.read_text()
    (False, '1 2 3')
    """
    target = Path(target)
    refuse_to_overwrite(target, force=force)
    with naming(target):
        remove_leftovers(target)
        part = target.with_name(f".{target.name}.{this_machine()}.{os.getpid()}.{secrets.token_hex(4)}.part")
        try:
            yield part
            refuse_to_overwrite(target, force=force)
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
        match = pattern.fullmatch(file.name)
        if match and not is_running(int(match[1])):
            file.unlink(missing_ok=True)


def this_machine() -> str:
    """Return the name of this machine as a part of a file name: on shared disks, process numbers alone say little."""
    return re.sub(r"\W", "-", socket.gethostname())


def is_running(process: int) -> bool:
    """Tell whether a process of this number exists."""
    try:
        # On Windows, this call would end the process.
        if os.name != "nt":
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


@contextmanager
def naming(target: Path) -> Iterator[None]:
    """Name the target in errors of the operating system."""
    try:
        yield
    except CceclustError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error
