"""The idx files of MNIST and similar data sets (http://yann.lecun.com/exdb/mnist/), plain or gzipped."""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.images.arrays import ArrayPart
from cceclust.io.reading import naming, refuse_bomb

__all__ = ["idx_batches", "read_idx_images"]

UINT8_MAGIC = b"\0\0\x08"


def idx_batches(folder: Path) -> list[Path]:
    """List the image files of a folder; where a file is there both plain and gzipped, only the plain one."""
    found = {file.name.removesuffix(".gz"): file for file in sorted(folder.glob("*images*idx*"), reverse=True)}
    return sorted(found.values(), key=lambda file: ("train" not in file.name, file.name))


def read_idx_images(path: Path) -> ArrayPart:
    """Read images, and their labels from the file that has "labels" in its name instead of "images"."""
    images = read_idx(path)
    labels_path = labels_beside(path)
    if labels_path is None:
        return ArrayPart((path,), images)
    return ArrayPart((path, labels_path), images, read_idx(labels_path).astype(np.int64))


def labels_beside(path: Path) -> Path | None:
    """Find ``t10k-labels-idx1-ubyte[.gz]`` for ``t10k-images-idx3-ubyte[.gz]``."""
    name = path.name.replace("images", "labels").replace("idx3", "idx1").removesuffix(".gz")
    candidates = [path.with_name(name), path.with_name(name + ".gz")]
    return next((file for file in candidates if file != path and file.is_file()), None)


def read_idx(path: Path) -> NDArray[Any]:
    """Read an array of bytes whose header gives its shape."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with naming(str(path), "an idx file"), opener(path, "rb") as file:
        magic = file.read(4)
        if magic[:3] != UINT8_MAGIC:
            raise FileContentError(f"{path} is not an idx file of bytes: it starts with {magic.hex(' ')}")
        shape = struct.unpack(f">{magic[3]}I", file.read(4 * magic[3]))
        size = math.prod(shape)
        refuse_bomb(path, "its array", size)
        content = file.read(size + 1)
    if len(content) != size:
        came = "fewer" if len(content) < size else "more"
        raise FileContentError(f"{path} is damaged: its header promises {shape} = {size:,} bytes, it has {came}")
    return np.frombuffer(content, np.uint8).reshape(shape)
