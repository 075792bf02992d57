"""The python and binary batches of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html).

CIFAR-100 comes with its 20 coarse labels, or on request with the 100 fine ones. Names of classes are read from the meta
file beside the batches.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.images.arrays import ArrayPart

__all__ = ["cifar_batches", "read_binary_batch", "read_python_batch"]

BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
CIFAR100_BATCHES = ("train", "test")
PIXELS = 3 * 32 * 32
# Names of the labels in CIFAR-100's python batches; the first is the default.
CIFAR100_LABELS = ("coarse_labels", "fine_labels")


def cifar_batches(folder: Path) -> list[Path]:
    """List the batches of a folder, training data first."""
    for names in (BATCHES, CIFAR100_BATCHES):
        for suffix in ("", ".bin"):
            found = [folder / (name + suffix) for name in names if (folder / (name + suffix)).is_file()]
            if found:
                return found
    return []


def read_python_batch(path: Path, labels_name: str | None = None) -> ArrayPart:
    """Read a pickled batch without letting the pickle run anything."""
    batch = read_pickle(path)
    images = batch.get(b"data")
    name = chosen_labels(path, labels_name, has_two=b"coarse_labels" in batch)
    labels = batch.get(name.encode())
    if not isinstance(images, np.ndarray) or images.shape[1:] != (PIXELS,):
        raise FileContentError(f"{path} is not a CIFAR batch: expected 'data' with {PIXELS} columns")
    if not isinstance(labels, list) or len(labels) != len(images):
        raise FileContentError(f"{path} is not a CIFAR batch: expected a list of {len(images)} labels")
    meta = path.with_name("batches.meta" if name == "labels" else "meta")
    names: list[bytes] = []
    if meta.is_file():
        # "fine_labels" are named by "fine_label_names".
        names = read_pickle(meta).get(name.removesuffix("s").encode() + b"_names", [])
    return part(path, meta, images, np.array(labels, np.int64), [name.decode() for name in names])


def read_binary_batch(path: Path, labels_name: str | None = None) -> ArrayPart:
    """Read rows of a label byte (CIFAR-100: coarse, then fine) and the pixels."""
    content = np.fromfile(path, np.uint8)
    label_bytes = next((n for n in (1, 2) if len(content) % (PIXELS + n) == 0), None)
    if label_bytes is None or not len(content):
        raise FileContentError(
            f"{path} is not a binary CIFAR batch: {len(content):,} bytes is no multiple of {PIXELS + 1} or {PIXELS + 2}"
        )
    name = chosen_labels(path, labels_name, has_two=label_bytes == 2)
    rows = content.reshape(-1, PIXELS + label_bytes)
    meta = path.with_name("batches.meta.txt" if name == "labels" else f"{name.removesuffix('s')}_names.txt")
    names = meta.read_text().split() if meta.is_file() else []
    labels = rows[:, 1 if name == "fine_labels" else 0].astype(np.int64)
    return part(path, meta, rows[:, label_bytes:], labels, names)


def chosen_labels(path: Path, wanted: str | None, *, has_two: bool) -> str:
    """Return the name of the labels to read; only CIFAR-100 has two kinds."""
    known = CIFAR100_LABELS if has_two else ("labels",)
    if wanted is not None and wanted not in known:
        raise InputError(f"{path} has no labels {wanted!r}; it has {' and '.join(known)}")
    return wanted or known[0]


def part(path: Path, meta: Path, pixels: NDArray[Any], labels: NDArray[np.int64], names: list[str]) -> ArrayPart:
    """Put the channels last, and replace numbers by class names if they are known."""
    images = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    if not names:
        return ArrayPart((path,), images, labels)
    if labels.min() < 0 or labels.max() >= len(names):
        raise FileContentError(f"{path}: labels go up to {labels.max()}, but {meta} names {len(names)} classes")
    return ArrayPart((path, meta), images, np.array(names)[labels])


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
    try:
        content = ArrayUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except Exception as error:  # damaged pickles raise nearly anything
        raise FileContentError(f"{path} is refused or damaged: {error}") from None
    if not isinstance(content, dict):
        raise FileContentError(f"{path} holds a {type(content).__name__}; expected the dict of a CIFAR batch")
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}
