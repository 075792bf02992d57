"""What all readers share: the arrays of a file, the choice by its ending, checks of it, and one kind of error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cceclust.errors import CceclustError, FileContentError, FileError, InputError

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class StoredArray:
    """An array as the header of its file describes it; ``load()`` gives what can be sliced by rows."""

    shape: tuple[int, ...]
    kind: str  # "numbers", "text", "sparse" or "other"
    type_name: str
    load: Callable[[], Any]
    # Reads a column of a table as text, as it is spelled if the format has only text.
    spelled: Callable[[], list[str]] | None = None

    @classmethod
    def of_dtype(cls, shape: tuple[int, ...], dtype: np.dtype[Any], load: Callable[[], Any]) -> StoredArray:
        kind = "numbers" if dtype.kind in "fiub" else "text" if dtype.kind in "US" else "other"
        return cls(shape, kind, "text" if kind == "text" else str(dtype), load)


@dataclass(frozen=True)
class StoredFile:
    """The arrays of an open file, and its attributes."""

    arrays: dict[str, StoredArray]
    attributes: dict[str, Any] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None


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
    refuse_what_is_not_there(path)
    if not path.is_file():
        kind = "a directory; expected a file" if path.is_dir() else "a pipe or a device; expected a file"
        raise FileError(f"{path} is {kind}")
    try:
        with path.open("rb") as file:
            is_empty = not file.read(1)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from error
    if is_empty:
        raise FileContentError(f"{path} is empty (0 bytes)")


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
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileContentError(f"{part} is damaged or not {what} ({reason})") from error


def listed(names: Iterable[str]) -> str:
    names = list(names)
    shown = ", ".join(names[:12]) or "none"
    return shown + (f", … ({len(names)} in all)" if len(names) > 12 else "")
