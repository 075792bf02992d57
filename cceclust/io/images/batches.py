"""The files of well-known data sets: CIFAR's python batches, the idx files of MNIST, and STL-10."""

from __future__ import annotations

import gzip
import math
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.images.arrays import ArrayPart, Reopened
from cceclust.io.reading import naming, reading

__all__ = ["batches_in", "read_batch"]

PICKLE_MAGIC = b"\x80"
CIFAR = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
CIFAR_100 = ("train", "test")
CIFAR_PIXELS = 3 * 32 * 32
# Names of the labels in CIFAR-100's batches; the first is the default.
CIFAR_100_LABELS = ("coarse_labels", "fine_labels")
UINT8_MAGIC = b"\0\0\x08"
STL10 = ("train_X.bin", "test_X.bin", "unlabeled_X.bin")
STL10_SIDE = 96


def batches_in(folder: Path) -> list[Path]:
    """List the batches that lie in a folder itself, those of training first."""
    for names in (CIFAR, CIFAR_100, STL10):
        found = [folder / name for name in names if (folder / name).is_file()]
        if found:
            return found
    # Where an idx file is there both plain and gzipped, only the plain one is read.
    idx = {file.name.removesuffix(".gz"): file for file in sorted(folder.glob("*images*idx*"), reverse=True)}
    return sorted(idx.values(), key=lambda file: ("train" not in file.name, file.name))


def read_batch(path: Path, labels_name: str | None = None) -> ArrayPart:
    """Recognise a batch by its first bytes, and read it with the labels of the given name if it has several."""
    with reading(path, "a batch of images"):
        with path.open("rb") as file:
            magic = file.read(3)
        if magic[:1] == PICKLE_MAGIC:
            return read_cifar(path, labels_name)
        if labels_name is not None:
            raise InputError(f"{path} is no batch of CIFAR-100, which alone has labels to choose from by name")
        if path.name.endswith("_X.bin"):
            return read_stl10(path)
        if (path.suffix == ".gz" and ".tar" not in path.name) or magic == UINT8_MAGIC:
            return read_idx_images(path)
    raise FileContentError(
        f"{path} is none of the collections of images that can be read: a folder, .txt, .zip, .npy, .npz, .h5, idx "
        "files, python batches of CIFAR or binary files of STL-10; unpack other archives (tar -xf) and name the folder"
    )


def read_cifar(path: Path, labels_name: str | None) -> ArrayPart:
    """Read a pickled batch without letting the pickle run anything (https://www.cs.toronto.edu/~kriz/cifar.html)."""
    batch = read_pickle(path)
    known = CIFAR_100_LABELS if b"coarse_labels" in batch else ("labels",)
    if labels_name is not None and labels_name not in known:
        raise InputError(f"{path} has no labels {labels_name!r}; it has {' and '.join(known)}")
    name = labels_name or known[0]
    pixels, labels = batch.get(b"data"), batch.get(name.encode())
    if not isinstance(pixels, np.ndarray) or pixels.shape[1:] != (CIFAR_PIXELS,):
        raise FileContentError(f"{path} is not a CIFAR batch: expected 'data' with {CIFAR_PIXELS} columns")
    if not isinstance(labels, list) or len(labels) != len(pixels):
        raise FileContentError(f"{path} is not a CIFAR batch: expected a list of {len(pixels)} labels")
    images = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    meta = path.with_name("batches.meta" if name == "labels" else "meta")
    if not meta.is_file():
        return ArrayPart((path,), images, np.array(labels, np.int64))
    # "fine_labels" are named by "fine_label_names".
    names = read_pickle(meta).get(name.removesuffix("s").encode() + b"_names", [])
    return ArrayPart((path, meta), images, named(meta, np.array(labels), [name.decode() for name in names]))


def named(path: Path, labels: NDArray[Any], names: list[str]) -> NDArray[Any]:
    """Replace the numbers of classes by their names."""
    if labels.min() < 0 or labels.max() >= len(names):
        raise FileContentError(
            f"{path} names {len(names)} classes, but labels go from {labels.min()} to {labels.max()}"
        )
    return np.asarray(np.array(names)[labels])


class ArrayUnpickler(pickle.Unpickler):
    """Loads numbers, text, lists, dicts and NumPy arrays, and refuses everything that could run code."""

    ALLOWED = frozenset(
        {
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy._core.numeric", "_frombuffer"),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch of images needs")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def read_pickle(path: Path) -> dict[bytes, Any]:
    """Read a pickled dict; its keys are bytes, as Python 2 wrote them."""
    with naming(str(path), "a CIFAR batch"), path.open("rb") as file:
        content = ArrayUnpickler(file, encoding="bytes").load()
    if not isinstance(content, dict):
        raise FileContentError(f"{path} holds a {type(content).__name__}; expected the dict of a CIFAR batch")
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}


def read_idx_images(path: Path) -> ArrayPart:
    """Read images, and their labels from ``t10k-labels-idx1-ubyte[.gz]`` beside ``t10k-images-idx3-ubyte[.gz]``."""
    name = path.name.replace("images", "labels").replace("idx3", "idx1").removesuffix(".gz")
    beside = [file for file in (path.with_name(name), path.with_name(f"{name}.gz")) if file != path and file.is_file()]
    if not beside:
        return ArrayPart((path,), read_idx(path))
    return ArrayPart((path, beside[0]), read_idx(path), read_idx(beside[0]).astype(np.int64))


def read_idx(path: Path) -> NDArray[Any]:
    """Read an array of bytes whose header gives its shape (http://yann.lecun.com/exdb/mnist/)."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with naming(str(path), "an idx file"), opener(path, "rb") as file:
        magic = file.read(4)
        if magic[:3] != UINT8_MAGIC:
            raise FileContentError(f"{path} is not an idx file of bytes: it starts with {magic.hex(' ')}")
        shape = struct.unpack(f">{magic[3]}I", file.read(4 * magic[3]))
        size = math.prod(shape)
        content = file.read(size + 1)
    if len(content) != size:
        came = "fewer" if len(content) < size else "more"
        raise FileContentError(f"{path} is damaged: its header promises {shape} = {size:,} bytes, it has {came}")
    return np.frombuffer(content, np.uint8).reshape(shape)


def read_stl10(path: Path) -> ArrayPart:
    """Map images into memory, and read labels (1 to 10) and names from beside them (https://cs.stanford.edu/~acoates)."""
    images = Reopened(map_stl10, path)
    labels_path, names_path = path.with_name(path.name.replace("_X", "_y")), path.with_name("class_names.txt")
    if not labels_path.is_file():
        return ArrayPart((path,), images)
    labels = np.fromfile(labels_path, np.uint8).astype(np.int64) - 1
    if not names_path.is_file():
        return ArrayPart((path, labels_path), images, labels)
    return ArrayPart((path, labels_path, names_path), images, named(names_path, labels, names_path.read_text().split()))


def map_stl10(path: Path) -> NDArray[Any]:
    """Map the file, which stores channels first and columns before rows, as (n, row, column, channel)."""
    size = path.stat().st_size
    if size % (3 * STL10_SIDE * STL10_SIDE):
        raise FileContentError(f"{path} is not an STL-10 file: {size:,} bytes is no multiple of {3 * STL10_SIDE**2}")
    return np.memmap(path, np.uint8, "r").reshape(-1, 3, STL10_SIDE, STL10_SIDE).transpose(0, 3, 2, 1)
