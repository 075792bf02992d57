"""Writing files so that a reader sees either the whole file or none, and nothing is overwritten by accident."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cceclust.errors import CceclustError, FileError, InputError, TargetExistsError

__all__ = ["refuse_input", "refuse_to_overwrite", "replacing"]


def refuse_to_overwrite(target: str | Path, *, force: bool) -> None:
    """Raise unless ``target`` may be written: worth calling before long work, not only after it."""
    target = Path(target)
    try:
        if target.exists() and not target.is_file():
            raise FileError(f"cannot write {target}: it is a directory or a device; name a file")
        if target.exists() and not force:
            raise TargetExistsError(f"{target} exists already; use --force (force=True) to overwrite it")
        if not target.parent.is_dir():
            raise FileError(f"cannot write {target}: there is no directory {target.parent}; create it first")
        if not os.access(target.parent, os.W_OK):
            raise FileError(f"cannot write {target}: directory {target.parent} is not writable")
    except CceclustError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error


def refuse_input(target: Path, inputs: Iterable[Path]) -> None:
    """Raise if ``target`` is one of the files that are read, by whatever name."""
    if target.exists() and any(source.exists() and target.samefile(source) for source in inputs):
        raise InputError(f"{target} is one of the files to read; name another to write")


@contextmanager
def replacing(target: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a path beside ``target`` to write to, and rename it to ``target`` once it is whole.

    Parameters
    ----------
    target : str or Path
        The file to end up with.
    force : bool
        Replace ``target`` if it exists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cceclust.files.atomic import replacing
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
    # The process id keeps two runs that write the same target from mixing their bytes.
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        refuse_to_overwrite(target, force=force)
        if target.exists():
            # What only its owner may read stays so.
            shutil.copymode(target, part)
        part.replace(target)
    except CceclustError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
