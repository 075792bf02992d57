"""The arrays in a file by name, before any of them is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["StoredArray", "StoredFile"]


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
