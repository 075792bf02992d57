"""The arrays in a file by name, before any of them is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["StoredArray", "StoredFile"]


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, as its header describes it.

    Attributes
    ----------
    shape : tuple of int
    kind : {"numbers", "text", "sparse", "other"}
    type_name : str
        What it holds, for people.
    load : callable
        Reads it, or opens what gives runs of its rows: ``load()[start:stop]``.
    """

    shape: tuple[int, ...]
    kind: str
    type_name: str
    load: Callable[[], Any]

    @classmethod
    def of_dtype(cls, shape: tuple[int, ...], dtype: np.dtype[Any], load: Callable[[], Any]) -> StoredArray:
        """Describe an array of a NumPy type."""
        kind = "numbers" if dtype.kind in "fiub" else "text" if dtype.kind in "US" else "other"
        type_name = "text" if kind == "text" else "objects" if dtype.kind == "O" else str(dtype)
        return cls(shape, kind, type_name, load)


@dataclass(frozen=True)
class StoredFile:
    """The arrays of an open file, and its attributes."""

    arrays: dict[str, StoredArray]
    attributes: dict[str, Any] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None
