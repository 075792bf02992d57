"""Image arrays in ``.npy``, ``.npz`` and HDF5 files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.files.images.arrays import ArrayImages, ArrayPart, Reopened
from cceclust.files.images.collection import ImageCollection
from cceclust.files.reading import reading
from cceclust.files.stored import StoredArray, contents, hdf5_arrays, load_column, npz_arrays

__all__ = ["open_hdf5", "open_npy", "open_npz"]


def open_npy(path: Path, dataset: str | None, labels_dataset: str | None) -> ImageCollection:
    """Map a NumPy file into memory."""
    if dataset is not None or labels_dataset is not None:
        raise InputError(f"{path}: a .npy file holds one unnamed array; leave out --dataset and --labels-dataset")
    with reading(path, "an array of images"):
        return ArrayImages(path, [ArrayPart((path,), Reopened(map_npy, path))])


def map_npy(path: Path) -> NDArray[Any]:
    """Map the array of a file into memory."""
    return np.lib.format.open_memmap(path, mode="r")


def open_npz(path: Path, dataset: str | None, labels_dataset: str | None) -> ImageCollection:
    """Read images and labels from an archive of NumPy arrays into memory."""
    with reading(path, "an archive of arrays"), np.load(path, allow_pickle=False) as archive:
        stored = npz_arrays(archive)
        name, labels = choose_images(path, stored, dataset), load_labels(path, stored, labels_dataset)
        return ArrayImages(f"{path}:{name}", [ArrayPart((path,), stored[name].load(), labels)])


def open_hdf5(path: Path, dataset: str | None, labels_dataset: str | None) -> ImageCollection:
    """Read labels into memory, and images from their HDF5 dataset as they are asked for."""
    with reading(path, "an HDF5 file"):
        with h5py.File(path, "r") as file:
            stored = hdf5_arrays(file)
            name, labels = choose_images(path, stored, dataset), load_labels(path, stored, labels_dataset)
        return ArrayImages(f"{path}:{name}", [ArrayPart((path,), Reopened(open_hdf5_dataset, path, name), labels)])


def open_hdf5_dataset(path: Path, name: str) -> Any:
    """Open a dataset, which keeps its file open."""
    return h5py.File(path, "r")[name]


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
    """Return the labels of that name, or those called ``labels`` if they are there."""
    if wanted is not None and wanted not in stored:
        raise FileContentError(f"{path} has no dataset {wanted!r} for labels; it has {contents(stored)}")
    return load_column(path, stored, wanted or "labels")
