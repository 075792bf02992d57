"""Image arrays in ``.npy``, ``.npz`` and HDF5 files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.hdf5 import open_hdf5
from cceclust.io.images.arrays import ArrayImages, ArrayPart, Reopened
from cceclust.io.images.collection import ImageCollection
from cceclust.io.reading import refuse_bomb
from cceclust.io.stored import StoredArray, contents, load_column, refuse_names_in_npy, stored_file

__all__ = ["open_array_images"]


def open_array_images(path: Path, dataset: str | None, labels_dataset: str | None) -> ImageCollection:
    """Read labels into memory, and images on request; images of an archive are read into memory as well."""
    refuse_names_in_npy(path, dataset, labels_dataset)
    with stored_file(path) as file:
        name = "" if "" in file.arrays else choose_images(path, file.arrays, dataset)
        labels = load_labels(path, file.arrays, labels_dataset)
        refuse_bomb(path, name or "its array", file.arrays[name].n_bytes)
        in_memory = path.suffix.lower() == ".npz"
        images = file.arrays[name].load() if in_memory else Reopened(open_array, path, name)
        return ArrayImages(f"{path}:{name}" if name else path, [ArrayPart((path,), images, labels)])


def open_array(path: Path, name: str) -> Any:
    """Open an array on disk: map it, or keep its file open."""
    return open_hdf5(path)[name] if name else np.lib.format.open_memmap(path, mode="r")


def choose_images(path: Path, stored: Mapping[str, StoredArray], wanted: str | None) -> str:
    """Return the name of the images: the wanted one, ``images``, or the only array that could be images."""
    candidates = {
        name: array for name, array in stored.items() if array.type_name == "uint8" and len(array.shape) in (3, 4)
    }
    if wanted is not None and wanted.strip("/") not in stored:
        raise FileContentError(f"{path} has no dataset {wanted!r}; it has {contents(stored)}")
    if wanted is not None:
        return wanted.strip("/")
    if "images" in stored:
        return "images"
    if len(candidates) == 1:
        return next(iter(candidates))
    if candidates:
        raise FileContentError(f"{path} has several image arrays; choose one with --dataset: {contents(candidates)}")
    raise FileContentError(
        f"{path} has no images, an array (n, height, width[, channels]) of uint8; it has {contents(stored)}"
    )


def load_labels(path: Path, stored: Mapping[str, StoredArray], wanted: str | None) -> NDArray[Any] | None:
    """Return the labels with the given name, or those called ``labels`` if they exist."""
    if wanted is not None and wanted not in stored:
        raise FileContentError(f"{path} has no dataset {wanted!r} for labels; it has {contents(stored)}")
    return load_column(path, stored, wanted or "labels")
