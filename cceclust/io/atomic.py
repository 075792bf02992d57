"""The one way to write a file: never over an input, never two writers at once, complete or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cceclust.errors import CceclustError, FileError, InputError, TargetExistsError
from cceclust.io.locks import locked

__all__ = ["check_targets", "claiming", "refuse_inputs", "refuse_to_overwrite", "replacing"]


@contextmanager
def claiming(
    targets: Sequence[str | Path], *, inputs: Iterable[str | Path] = (), force: bool = False
) -> Iterator[None]:
    """Guard the files to be written; enter this before long work, so that it fails early.

    Nobody else may write them meanwhile. Leftovers of a killed writer of the same files are removed.

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
    >>> from cceclust.io.atomic import claiming
    >>> with claiming(["sample_data/digits.h5"], inputs=["sample_data/../sample_data/digits.h5"], force=True):
    ...     pass
    Traceback (most recent call last):
    cceclust.errors.InputError: sample_data/digits.h5 is one of the files to read; name another to write
    """
    paths = [Path(target) for target in targets]
    for number, target in enumerate(paths):
        refuse_to_overwrite(target, force=force)
        if target.resolve() in [other.resolve() for other in paths[:number]]:
            raise InputError(f"{target} would be written twice; name two files")
    refuse_inputs(paths, inputs)
    with ExitStack() as claims:
        for target in paths:
            with naming(target):
                claims.enter_context(claimed(target))
        yield


def check_targets(
    targets: Sequence[str | Path], *, inputs: Iterable[str | Path] = (), force: bool = False
) -> None:
    with claiming(targets, inputs=inputs, force=force):
        pass


@contextmanager
def claimed(target: Path, *, held_is_fine: bool = False) -> Iterator[None]:
    """Hold the lock of a target, and remove what a killed writer left beside it."""
    with locked(target.with_name(f".{target.name}.lock"), target, held_is_fine=held_is_fine) as is_new:
        if is_new:
            remove_leftovers(target)
        yield


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
    there = {file: target for target in targets if (file := identity(target)) is not None}
    if not there:
        return
    for source in inputs:
        file = identity(Path(source))
        if file in there:
            raise InputError(f"{there[file]} is one of the files to read; name another to write")


def identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, the same under all its names; None if there is no such file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def remove_leftovers(target: Path) -> None:
    """Remove parts that a killed writer of ``target`` left; only the owner of its lock may do so."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]+\.part")
    for file in target.parent.iterdir():
        if pattern.fullmatch(file.name):
            file.unlink(missing_ok=True)


@contextmanager
def replacing(target: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a path beside ``target`` to write to, and rename it to ``target`` once it is complete and on the disk.

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
    with naming(target), claimed(target, held_is_fine=True):
        # A unique name keeps two writers apart even where the file system has no locks.
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            yield part
            refuse_to_overwrite(target, force=force)
            if target.exists():
                # Keep the permissions of the old file.
                shutil.copymode(target, part)
            flush_to_disk(part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Wait until a file is on the disk: if it were renamed earlier, a power cut could leave it empty."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


@contextmanager
def naming(target: Path) -> Iterator[None]:
    """Name the target in errors of the operating system."""
    try:
        yield
    except CceclustError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error
