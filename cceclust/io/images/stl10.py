"""The binary files of STL-10 (https://cs.stanford.edu/~acoates/stl10/)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.images.arrays import ArrayPart, Reopened

__all__ = ["read_stl10", "stl10_batches"]

BATCHES = ("train_X.bin", "test_X.bin", "unlabeled_X.bin")
SIDE = 96


def stl10_batches(folder: Path) -> list[Path]:
    """List the image files of a folder."""
    return [folder / name for name in BATCHES if (folder / name).is_file()]


def read_stl10(path: Path) -> ArrayPart:
    """Map images into memory, and read labels (1 to 10 in the file) and their names from beside them."""
    images = Reopened(map_images, path)
    labels_path, names_path = path.with_name(path.name.replace("_X", "_y")), path.with_name("class_names.txt")
    if not labels_path.is_file():
        return ArrayPart((path,), images)
    labels = np.fromfile(labels_path, np.uint8).astype(np.int64) - 1
    if not names_path.is_file():
        return ArrayPart((path, labels_path), images, labels)
    names = names_path.read_text().split()
    if labels.min() < 0 or labels.max() >= len(names):
        raise FileContentError(f"{labels_path}: labels go up to {labels.max() + 1}, but there are {len(names)} names")
    return ArrayPart((path, labels_path, names_path), images, np.array(names)[labels])


def map_images(path: Path) -> NDArray[Any]:
    """Map the file, which stores channels first and columns before rows, as (n, row, column, channel)."""
    size = path.stat().st_size
    if size == 0 or size % (3 * SIDE * SIDE):
        raise FileContentError(f"{path} is not an STL-10 file: {size:,} bytes is no multiple of {3 * SIDE * SIDE}")
    return np.memmap(path, np.uint8, "r").reshape(-1, 3, SIDE, SIDE).transpose(0, 3, 2, 1)
