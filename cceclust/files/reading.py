"""What all readers share: refusing what is no file, and turning a parser's complaints into errors of ours."""

from __future__ import annotations

import tokenize
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from cceclust.errors import CceclustError, FileContentError, FileError

__all__ = ["listed", "reading", "refuse_what_is_no_file"]

# What h5py, NumPy and safetensors raise when the bytes they parse make no sense.
COMPLAINTS = (
    OSError, ValueError, KeyError, TypeError, RuntimeError, EOFError, NotImplementedError, OverflowError,
    SyntaxError, tokenize.TokenError, zipfile.BadZipFile, SafetensorError,
)  # fmt: skip


def refuse_what_is_no_file(path: Path) -> None:
    """Raise a clear error for what is missing, not a file, unreadable or empty."""
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
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from error


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Check that ``path`` is a file, and say "is damaged or not {what}" when parsing it fails."""
    refuse_what_is_no_file(path)
    try:
        yield
    except CceclustError:
        raise
    except COMPLAINTS as error:
        raise FileContentError(f"{path} is damaged or not {what} ({error})") from error


def listed(names: Iterable[str]) -> str:
    """Join names for an error message."""
    names = list(names)
    shown = ", ".join(names[:12]) or "none"
    return shown + (f", … ({len(names)} in all)" if len(names) > 12 else "")
