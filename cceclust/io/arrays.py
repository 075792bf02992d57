"""The arrays in a file by name, before any of them is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.reading import listed, naming

__all__ = ["StoredArray", "StoredFile", "contents", "load_array", "load_column"]


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
        """Describe an array of a NumPy type."""
        kind = "numbers" if dtype.kind in "fiub" else "text" if dtype.kind in "US" else "other"
        return cls(shape, kind, "text" if kind == "text" else str(dtype), load)


@dataclass(frozen=True)
class StoredFile:
    """The arrays of an open file, and its attributes."""

    arrays: dict[str, StoredArray]
    attributes: dict[str, Any] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None


def contents(stored: Mapping[str, StoredArray]) -> str:
    """List arrays with their shapes and types, for an error message."""
    return listed(f"{name} {array.shape} {array.type_name}".strip() for name, array in stored.items())


def load_array(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any] | None:
    """Read an array of numbers or text into memory, if it exists."""
    if name not in stored:
        return None
    if stored[name].kind not in ("numbers", "text"):
        raise FileContentError(f"{path}: {name or 'it'} holds {stored[name].type_name}; expected numbers or text")
    with naming(f"{path}, dataset {name!r},", "what it says it is"):
        array = np.asarray(stored[name].load()[...])
        return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def load_column(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any] | None:
    """Read a value for each row into memory, if it exists; (n, 1) counts as (n,)."""
    array = load_array(path, stored, name)
    return array[:, 0] if array is not None and array.ndim == 2 and array.shape[1] == 1 else array
