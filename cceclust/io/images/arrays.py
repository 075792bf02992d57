"""Images that are rows of arrays in memory or on disk: in ``.npy``, ``.npz`` and HDF5 files, or batches of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.arrays import StoredArray
from cceclust.io.hdf5 import open_hdf5
from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.decoding import as_rgb
from cceclust.io.reading import naming
from cceclust.io.stored import contents, load_column, stored_file

__all__ = ["ArrayImages", "ArrayPart", "Reopened", "open_array_images"]


@dataclass
class ArrayPart:
    """Images of shape (n, height, width[, channels]), their labels, and the files of both, that of the images first."""

    files: tuple[Path, ...]
    images: Any
    labels: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        path, shape = self.files[0], tuple(self.images.shape)
        if self.images.dtype != np.uint8:
            raise FileContentError(f"{path}: images have the type {self.images.dtype}; expected uint8 (0 to 255)")
        if len(shape) not in (3, 4) or 0 in shape or (len(shape) == 4 and shape[3] not in (1, 3, 4)):
            raise FileContentError(
                f"{path}: images have the shape {shape}; expected (n, height, width) or (n, height, width, channels) "
                "with 1, 3 or 4 channels, which come last"
            )
        if self.labels is not None and self.labels.shape != shape[:1]:
            raise FileContentError(
                f"{path}: labels have the shape {self.labels.shape}; expected one for {shape[0]} images"
            )


class ArrayImages(ImageCollection):
    """The images of one or several arrays, one array after the other."""

    def __init__(self, source: Path | str, parts: Sequence[ArrayPart]) -> None:
        labels = [part.labels for part in parts if part.labels is not None]
        self._parts = parts
        self._ends = np.cumsum([len(part.images) for part in parts])
        super().__init__(
            str(source),
            [file for part in parts for file in part.files],
            int(self._ends[-1]),
            labels=np.concatenate(labels) if len(labels) == len(parts) else None,
        )

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


def open_array_images(path: Path, dataset: str | None, labels_dataset: str | None) -> ImageCollection:
    """Read labels into memory, and images on request; images of an archive are read into memory as well."""
    with stored_file(path) as file:
        stored = file.arrays
        name = choose_images(path, stored, dataset)
        if labels_dataset is not None and labels_dataset not in stored:
            raise FileContentError(f"{path} has no dataset {labels_dataset!r} for labels; it has {contents(stored)}")
        labels = load_column(path, stored, labels_dataset or "labels")
        in_memory = path.suffix.lower() == ".npz"
        images = stored[name].load() if in_memory else Reopened(open_array, path, name)
        return ArrayImages(f"{path}:{name}" if name else path, [ArrayPart((path,), images, labels)])


def open_array(path: Path, name: str) -> Any:
    """Open an array on disk: map it, or keep its file open."""
    return open_hdf5(path).arrays[name].load() if name else np.lib.format.open_memmap(path, mode="r")


def choose_images(path: Path, stored: Mapping[str, StoredArray], wanted: str | None) -> str:
    """Return the name of the images: the wanted one, ``images``, or the only array that could be images."""
    if wanted is not None and wanted.strip("/") not in stored:
        raise FileContentError(f"{path} has no dataset {wanted!r}; it has {contents(stored)}")
    if wanted is not None or "images" in stored:
        return (wanted or "images").strip("/")
    candidates = {
        name: array for name, array in stored.items() if array.type_name == "uint8" and len(array.shape) in (3, 4)
    }
    if len(candidates) > 1:
        raise FileContentError(f"{path} has several image arrays; choose one with --dataset: {contents(candidates)}")
    if not candidates:
        raise FileContentError(
            f"{path} has no images, an array (n, height, width[, channels]) of uint8; it has {contents(stored)}"
        )
    return next(iter(candidates))
