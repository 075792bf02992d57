"""HDF5 as cceclust uses it: reading that survives hostile files, writing that survives a full disk."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.guarded_reading import let_a_child_read_first
from cceclust.io.reading import refuse_bomb

__all__ = [
    "LateErrorFile",
    "as_plain_value",
    "is_text",
    "lies_elsewhere",
    "open_hdf5",
    "plain_attributes",
    "read_column",
    "refuse_chunk_bombs",
    "write_column",
    "writing_hdf5",
]

# Smaller arrays are read completely to check that they can be read.
WHOLE_BYTES = 1 << 24
MOST_ATTRIBUTES = 10_000


class LateErrorFile(io.FileIO):
    """A file that stores its first write error instead of raising it, and keeps all later data in memory.

    After a failed write (a full disk), the HDF5 library leaves the process in a state that crashes later, so it must
    never see one. Writers check ``error`` from time to time, and stop.
    """

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self.error: BaseException | None = None
        self._unwritten: dict[int, bytes] = {}

    def write(self, data: Any) -> int:
        """Write all of ``data``, or keep it in memory after an error."""
        view, position = memoryview(data).cast("B"), self.tell()
        try:
            written = 0
            while self.error is None and written < len(view):
                written += super().write(view[written:])
        except BaseException as error:  # Ctrl-C must not pass through HDF5 either.
            self.error = error
        if self.error is not None:
            self._unwritten[position] = bytes(view)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        """Read data that was written or kept; HDF5 reads its own indices back."""
        view, position = memoryview(buffer).cast("B"), self.tell()
        read = super().readinto(view) or 0
        view[read:] = bytes(len(view) - read)
        for start, data in self._unwritten.items():
            first, last = max(start, position), min(start + len(data), position + len(view))
            if first < last:
                view[first - position : last - position] = data[first - start : last - start]
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length, if there is room."""
        try:
            if self.error is None:
                return super().truncate(size)
        except BaseException as error:
            self.error = error
        return size or 0

    def raise_error(self) -> None:
        """Raise the first error, if there was one."""
        if self.error is not None:
            raise self.error


@contextmanager
def writing_hdf5(path: Path) -> Iterator[tuple[h5py.File, LateErrorFile]]:
    """Create an HDF5 file; on closing, raise the error of the first failed write.

    Long writes should call the second value's ``raise_error`` between pieces, so that they stop soon after a failure.
    """
    with LateErrorFile(path, "w+b") as storage:
        with h5py.File(storage, "w") as file:
            yield file, storage
        storage.raise_error()


def open_hdf5(path: Path) -> h5py.File:
    """Open a file for reading, after a check that this does not crash the process."""
    let_a_child_read_first(path, walk)
    return h5py.File(path, "r")


def walk(path: Path) -> None:
    """Read the structure, the text and the small arrays of a file, and skip what is refused."""

    def visit(_: str, item: h5py.Dataset | h5py.Group) -> None:
        try:
            plain_attributes(item.attrs)
            if isinstance(item, h5py.Dataset) and not lies_elsewhere(item):
                refuse_chunk_bombs(item)
                # Text of variable length is stored in heaps; damaged heaps cause endless loops.
                if item.dtype.hasobject or item.nbytes <= WHOLE_BYTES:
                    read_column(item)
        except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
            # The library has no error type of its own for too little memory.
            if "alloc" in str(error):
                raise MemoryError from None

    with h5py.File(path, "r") as file:
        plain_attributes(file.attrs)
        file.visititems(visit)


def refuse_chunk_bombs(dataset: h5py.Dataset) -> None:
    """Raise if reading a row of a small file would fill the memory; this also reads the index of the chunks."""
    if dataset.chunks:
        n_bytes = math.prod(dataset.chunks) * dataset.dtype.itemsize
        refuse_bomb(Path(dataset.file.filename), f"a chunk of {dataset.name}", n_bytes)
        dataset.id.get_num_chunks()


def is_text(dataset: h5py.Dataset) -> bool:
    """Tell whether a dataset holds strings."""
    return h5py.check_string_dtype(dataset.dtype) is not None


def lies_elsewhere(dataset: h5py.Dataset) -> bool:
    """Tell whether a dataset has its values in other files, which an untrusted file must not make us read."""
    return bool(dataset.external) or bool(dataset.is_virtual)


def read_column(dataset: h5py.Dataset) -> NDArray[Any]:
    """Read numbers, or text as ``str``; file names that are not UTF-8 keep their bytes, as in :func:`os.fsdecode`."""
    path = Path(dataset.file.filename)
    if dataset.shape is None:
        raise FileContentError(f"{path}: dataset {dataset.name!r} is empty")
    refuse_bomb(path, dataset.name, dataset.nbytes)
    if not is_text(dataset):
        return np.asarray(dataset[...])
    text = dataset.asstr(errors="surrogateescape")[...]
    # NumPy stores every string with the length of the longest.
    longest = max(map(len, np.ravel(text)), default=0)
    refuse_bomb(path, dataset.name, 4 * longest * np.size(text))
    return np.asarray(text, dtype=str)


def write_column(file: h5py.File, name: str, column: ArrayLike) -> None:
    """Write numbers or text."""
    values = np.asarray(column)
    if values.dtype.kind == "U":
        encoded = np.char.encode(values, "utf-8", "surrogateescape")
        file.create_dataset(name, data=encoded.astype(object), dtype=h5py.string_dtype())
    elif values.dtype.kind in "fiub":
        file.create_dataset(name, data=values)
    else:
        raise InputError(f"{name} are of type {values.dtype}; expected numbers or text")


def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return HDF5 attributes as plain Python values."""
    if len(attributes) > MOST_ATTRIBUTES:
        raise FileContentError(f"{len(attributes):,} attributes; expected no more than {MOST_ATTRIBUTES:,}")
    return {str(name): as_plain_value(value) for name, value in attributes.items()}


def as_plain_value(value: Any) -> Any:
    """Convert what h5py returns for an attribute."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [as_plain_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str | int | float | bool) else str(value)
