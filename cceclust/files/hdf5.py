"""HDF5 as cceclust uses it: writing that survives a full disk, columns of numbers or text, plain attributes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError

__all__ = ["LateErrorFile", "plain_attributes", "read_column", "write_column", "writing_hdf5"]


class LateErrorFile(io.FileIO):
    """A file that remembers its first failed write instead of raising it, and keeps what comes after in memory.

    The HDF5 library leaves the process in a state that crashes when a write fails under it (a full disk), so it must
    never see one. Whoever writes looks at ``error`` now and then, and stops.
    """

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self.error: BaseException | None = None
        self._unwritten: dict[int, bytes] = {}

    def write(self, data: Any) -> int:
        """Write all of ``data``, or keep it."""
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
        """Read what was written or kept; HDF5 reads its own indices back."""
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
    """Create an HDF5 file and raise, when it is closed, the error of any write that failed.

    Long writes should call the second value's ``raise_error`` between pieces, to stop soon after a failure.
    """
    with LateErrorFile(path, "w+b") as storage:
        with h5py.File(storage, "w") as file:
            yield file, storage
        storage.raise_error()


def read_column(dataset: h5py.Dataset) -> NDArray[Any]:
    """Read numbers, or text as ``str``; file names that are not UTF-8 keep their bytes, as in :func:`os.fsdecode`."""
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return np.asarray(dataset.asstr(errors="surrogateescape")[...], dtype=str)
    return np.asarray(dataset[...])


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
    """Return HDF5 attributes as values of plain Python."""
    return {name: as_plain_value(value) for name, value in attributes.items()}


def as_plain_value(value: Any) -> Any:
    """Convert what h5py returns for an attribute."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value if isinstance(value, str | int | float | bool) else str(value)
