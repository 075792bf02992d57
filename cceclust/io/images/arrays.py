"""Images that are rows of arrays in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.decoding import as_rgb
from cceclust.io.reading import naming

__all__ = ["ArrayImages", "ArrayPart", "Reopened"]


@dataclass
class ArrayPart:
    """Images of one file, with the labels that belong to them.

    Attributes
    ----------
    files : tuple of Path
        The file of the images first, then any others, such as the file of the labels.
    images : array-like of shape (n, height, width) or (n, height, width, channels), uint8
        An array, or an object that can be indexed like one.
    labels : ndarray of shape (n,) or None
        Integers, or names.
    """

    files: tuple[Path, ...]
    images: Any
    labels: NDArray[Any] | None = None


class ArrayImages(ImageCollection):
    """The images of one or several arrays, one array after the other."""

    def __init__(self, source: Path | str, parts: Sequence[ArrayPart]) -> None:
        for part in parts:
            check(part)
        labels = [part.labels for part in parts if part.labels is not None]
        super().__init__(
            str(source),
            [file for part in parts for file in part.files],
            labels=np.concatenate(labels) if len(labels) == len(parts) else None,
        )
        self._parts = parts
        self._ends = np.cumsum([len(part.images) for part in parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _place(self, index: int) -> tuple[ArrayPart, int]:
        number = int(np.searchsorted(self._ends, index, side="right"))
        part = self._parts[number]
        return part, index - int(self._ends[number]) + len(part.images)

    def read(self, index: int) -> NDArray[np.uint8]:
        part, row = self._place(index)
        with naming(self.name(index), "an image that can be read"):
            return as_rgb(np.asarray(part.images[row]))

    def name(self, index: int) -> str:
        part, row = self._place(index)
        return f"{part.files[0]}[{row}]"


def check(part: ArrayPart) -> None:
    """Raise unless the array holds images, and one label for each if there are labels."""
    path, shape = part.files[0], tuple(part.images.shape)
    if part.images.dtype != np.uint8:
        raise FileContentError(f"{path}: images have the type {part.images.dtype}; expected uint8 (0 to 255)")
    if len(shape) not in (3, 4) or 0 in shape or (len(shape) == 4 and shape[3] not in (1, 3, 4)):
        raise FileContentError(
            f"{path}: images have the shape {shape}; expected (n, height, width) or (n, height, width, channels) "
            "with 1, 3 or 4 channels, which come last"
        )
    if part.labels is not None and part.labels.shape != shape[:1]:
        raise FileContentError(f"{path}: labels have the shape {part.labels.shape}; expected one for {shape[0]} images")


class Reopened:
    """An array on disk; another process opens the file again instead of receiving its contents."""

    def __init__(self, open_array: Callable[..., Any], *arguments: Any) -> None:
        self._recipe = (open_array, *arguments)
        self._array = open_array(*arguments)
        self.shape = self._array.shape
        self.dtype = self._array.dtype

    def __reduce__(self) -> tuple[type[Reopened], tuple[Any, ...]]:
        return Reopened, self._recipe

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, row: int) -> Any:
        return self._array[row]
