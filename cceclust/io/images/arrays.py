"""Images that are rows of an array in a ``.npy``, ``.npz`` or HDF5 file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cceclust.errors import FileContentError
from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.decoding import as_rgb
from cceclust.io.reading import StoredArray
from cceclust.io.stored import ARRAY_FILES, contents, load_array, load_column, stored_file

__all__ = ["open_array_images"]


def open_array_images(path: Path, dataset: str | None, labels_dataset: str | None) -> ImageCollection:
    with stored_file(path) as file:
        name = choose_images(path, file.arrays, dataset)
        labels = load_column(path, file.arrays, labels_dataset or "labels")
        if labels_dataset is not None and labels is None:
            raise FileContentError(
                f"{path} has no dataset {labels_dataset!r} for labels; it has {contents(file.arrays)}"
            )
        shape, type_name = file.arrays[name].shape, file.arrays[name].type_name
        in_memory = load_array(path, file.arrays, name) if path.suffix.lower() == ".npz" else None
    if type_name != "uint8":
        raise FileContentError(f"{path}: images have the type {type_name}; expected uint8 (0 to 255)")
    if len(shape) not in (3, 4) or 0 in shape or (len(shape) == 4 and shape[3] not in (1, 3, 4)):
        raise FileContentError(
            f"{path}: images have the shape {shape}; expected (n, height, width) or (n, height, width, channels) "
            "with 1, 3 or 4 channels, which come last"
        )
    if labels is not None and labels.shape != shape[:1]:
        raise FileContentError(f"{path}: labels have the shape {labels.shape}; expected one for {shape[0]} images")
    # The others stay open, for images are read when they are asked for.
    array = ARRAY_FILES[path.suffix.lower()][1](path).arrays[name].load() if in_memory is None else in_memory
    source = f"{path}:{name}" if name else str(path)
    return ImageCollection(source, [path], shape[0], lambda index: as_rgb(np.asarray(array[index])), labels=labels)


def choose_images(path: Path, stored: Mapping[str, StoredArray], wanted: str | None) -> str:
    """Return the name of the images: the wanted one, ``images``, or the only array that could be images."""
    likely = [name for name, array in stored.items() if array.type_name == "uint8" and len(array.shape) in (3, 4)]
    if wanted is not None or "images" in stored:
        likely = [name for name in stored if name == (wanted or "images").strip("/")]
    if len(likely) > 1:
        raise FileContentError(f"{path} has several image arrays; choose one with --dataset: {contents(stored)}")
    if not likely:
        expected = (
            "images, an array (n, height, width[, channels]) of uint8" if wanted is None else f"dataset {wanted!r}"
        )
        raise FileContentError(f"{path} has no {expected}; it has {contents(stored)}")
    return likely[0]
