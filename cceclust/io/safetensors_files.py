"""Files of tensors by name, in the format safetensors, which is mapped into memory and never runs code."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from cceclust.io.arrays import StoredArray, StoredFile

__all__ = ["open_safetensors"]

# NumPy has no other types.
TYPES = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1",
    "U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


class Tensor:
    """A tensor of which runs of rows can be read."""

    def __init__(self, stored: Any) -> None:
        self._stored = stored
        self.shape = tuple(stored.get_shape())
        self.dtype = np.dtype(TYPES[stored.get_dtype()])

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(self._stored[rows])


def open_safetensors(path: Path) -> StoredFile:
    """List the tensors of a file."""
    file: Any = safe_open(path, framework="numpy")
    stored = {}
    for name in file.keys():  # noqa: SIM118, this is no dict
        tensor = file.get_slice(name)
        type_name = tensor.get_dtype()
        shape, load = tuple(tensor.get_shape()), partial(Tensor, tensor)
        if type_name in TYPES:
            stored[name] = StoredArray.of_dtype(shape, np.dtype(TYPES[type_name]), load)
        else:
            stored[name] = StoredArray(shape, "other", type_name, load)
    return StoredFile(stored, dict(file.metadata() or {}))
