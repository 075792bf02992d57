"""What all readers share: choice by file ending, checks of the file, limits on its unpacked size, one kind of error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from cceclust.errors import CceclustError, FileContentError, FileError, InputError

__all__ = [
    "by_ending",
    "listed",
    "naming",
    "reading",
    "refuse_bomb",
    "refuse_what_is_no_file",
    "refuse_what_is_not_there",
]

Choice = TypeVar("Choice")

# No file of real data grows by more when it is unpacked. Files of zeros do; they are allowed up to the floor.
MOST_GROWTH = 250
UNSUSPICIOUS_BYTES = 1 << 26


def by_ending(
    path: str | Path, choices: Mapping[str, Choice], what: str, error: type[FileContentError | InputError]
) -> Choice:
    """Return the choice for the ending of a file's name; raise ``error`` if there is none."""
    ending = Path(path).suffix.lower()
    if ending not in choices:
        raise error(f"{path}: cannot {what} files that end in {ending!r}; expected one of {', '.join(choices)}")
    return choices[ending]


def refuse_what_is_not_there(path: Path) -> None:
    """Raise a clear error if there is neither a file nor a folder; cheap enough to be the first check of all."""
    try:
        path.stat()
    except FileNotFoundError:
        raise FileError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def refuse_what_is_no_file(path: Path) -> None:
    """Raise a clear error for a path that is missing, not a file, unreadable or empty."""
    try:
        if path.is_dir():
            raise FileError(f"{path} is a directory; expected a file")
        if path.exists() and not path.is_file():
            raise FileError(f"{path} is a pipe or a device; expected a file that can be read in any order")
        with path.open("rb") as file:
            if not file.read(1):
                raise FileContentError(f"{path} is empty (0 bytes)")
    except CceclustError:
        raise
    except FileNotFoundError:
        raise FileError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Check that ``path`` is a file, and say "is damaged or not {what}" when reading it fails."""
    refuse_what_is_no_file(path)
    with naming(str(path), what):
        yield


@contextmanager
def naming(part: str, what: str) -> Iterator[None]:
    """Turn any exception of a reader into an error that names the file, or the part of it, that was read."""
    try:
        yield
    except CceclustError:
        raise
    except MemoryError:
        raise FileContentError(f"{part} is damaged or too large: there is not enough memory for it") from None
    # On damaged bytes, parsers raise nearly any exception; the file is at fault, not the parser.
    except Exception as error:
        raise FileContentError(f"{part} is damaged or not {what} ({error or type(error).__name__})") from error


def refuse_bomb(path: Path, name: str, n_bytes: int, *, file_bytes: int | None = None) -> None:
    """Raise if an array is far larger than the file that holds it, before it fills the memory."""
    limit = max(UNSUSPICIOUS_BYTES, MOST_GROWTH * (path.stat().st_size if file_bytes is None else file_bytes))
    if n_bytes > limit:
        raise FileContentError(
            f"{path} is refused: {name} would take {n_bytes:,} bytes, over {MOST_GROWTH} times the size of the file"
        )


def listed(names: Iterable[str]) -> str:
    """Join names for an error message."""
    names = list(names)
    shown = ", ".join(names[:12]) or "none"
    return shown + (f", … ({len(names)} in all)" if len(names) > 12 else "")
