"""Image files in a folder, in a list or in an archive."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.decoding import IMAGE_SUFFIXES, decode
from cceclust.io.reading import naming

__all__ = ["open_folder", "open_list", "open_tar", "open_zip"]

# No photograph is this large; an archive member that claims to be is not read into memory.
MAX_MEMBER_BYTES = 1 << 28


class EncodedImages(ImageCollection):
    """Images that must be decoded, each with a path; class folders give the labels."""

    def __init__(self, source: Path, files: Sequence[Path], paths: Sequence[str]) -> None:
        if not paths:
            raise FileContentError(f"{source} has no images; expected files that end in {', '.join(IMAGE_SUFFIXES)}")
        super().__init__(str(source), files, labels=labels_from(paths), paths=np.array(paths))

    def __len__(self) -> int:
        return 0 if self.paths is None else len(self.paths)

    def read(self, index: int) -> NDArray[np.uint8]:
        return decode(self._file(index), self.name(index))

    @abstractmethod
    def _file(self, index: int) -> Path | BinaryIO: ...


class ImageFiles(EncodedImages):
    """Images in one file each."""

    def _file(self, index: int) -> Path:
        return Path(self.name(index))


class TarImages(EncodedImages):
    """Members of an uncompressed tar archive, read in place."""

    def __init__(self, path: Path, members: Sequence[tarfile.TarInfo]) -> None:
        super().__init__(path, [path], [f"{path.as_posix()}/{member.name}" for member in members])
        self._path = path
        self._places = [(member.offset_data, member.size) for member in members]

    def _file(self, index: int) -> BinaryIO:
        offset, size = self._places[index]
        refuse_large_member(self.name(index), size)
        with self._path.open("rb") as file:
            file.seek(offset)
            return io.BytesIO(file.read(size))


class ZipImages(EncodedImages):
    """Members of a zip archive, decompressed in memory."""

    def __init__(self, path: Path, members: Sequence[str]) -> None:
        super().__init__(path, [path], [f"{path.as_posix()}/{member}" for member in members])
        self._path = path
        self._members = members
        self._archive: zipfile.ZipFile | None = None

    def __getstate__(self) -> dict[str, Any]:
        # An open file cannot be sent to another process, which opens its own.
        return {**self.__dict__, "_archive": None}

    def _file(self, index: int) -> BinaryIO:
        with naming(self.name(index), "compressed in a way that is known"):
            self._archive = self._archive or zipfile.ZipFile(self._path)
            member = self._members[index]
            refuse_large_member(self.name(index), self._archive.getinfo(member).file_size)
            return io.BytesIO(self._archive.read(member))


def open_folder(path: Path) -> ImageCollection:
    """Collect the images of a folder and its subfolders, sorted by path."""
    files = sorted(
        Path(folder, name) for folder, _, names in os.walk(path) for name in names if is_image(Path(folder, name), path)
    )
    return ImageFiles(path, files, [file.as_posix() for file in files])


def is_image(file: Path, root: Path) -> bool:
    """Tell by the name whether a path is an image; hidden files and folders are ignored."""
    visible = not any(part.startswith(".") for part in file.relative_to(root).parts)
    return visible and file.suffix.lower() in IMAGE_SUFFIXES


def open_list(path: Path) -> ImageCollection:
    """Read a text file with a path on each line, relative to the folder of the list."""
    with naming(str(path), "a text with the path of an image on each line"):
        lines = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    files = [path.parent / line for line in lines if line]
    return ImageFiles(path, [path, *files], [file.as_posix() for file in files])


def open_tar(path: Path) -> ImageCollection:
    """List the images of a tar archive."""
    with naming(str(path), "an uncompressed tar archive"), tarfile.open(path, "r:") as archive:
        members = [member for member in archive if member.isreg() and is_image_member(member.name)]
    return TarImages(path, sorted(members, key=lambda member: member.name))


def open_zip(path: Path) -> ImageCollection:
    """List the images of a zip archive."""
    with naming(str(path), "a zip archive"), zipfile.ZipFile(path) as archive:
        return ZipImages(path, sorted(name for name in set(archive.namelist()) if is_image_member(name)))


def is_image_member(name: str) -> bool:
    """Tell by the name whether an archive member is an image; macOS adds its own files in ``__MACOSX``."""
    path = PurePosixPath(name)
    hidden = any((part.startswith(".") and part != ".") or part == "__MACOSX" for part in path.parts)
    return not hidden and path.suffix.lower() in IMAGE_SUFFIXES


def refuse_large_member(name: str, size: int) -> None:
    """Raise before a decompression bomb is read into memory."""
    if size > MAX_MEMBER_BYTES:
        raise FileContentError(f"{name} is refused: {size:,} bytes is over the limit of {MAX_MEMBER_BYTES:,}")


def labels_from(paths: Sequence[str]) -> NDArray[Any] | None:
    """Return the class folder of each path: the first folder below the common one; None if any path has none.

    Examples
    --------
    >>> labels_from(["pets/cat/1.png", "pets/dog/new/2.png"]).tolist()
    ['cat', 'dog']
    >>> labels_from(["pets/cat/1.png", "pets/2.png"]) is None
    True
    """
    folders = [PurePosixPath(path).parent.parts for path in paths]
    shortest, longest = min(folders), max(folders)
    shared = next((i for i, (a, b) in enumerate(zip(shortest, longest, strict=False)) if a != b), len(shortest))
    if any(len(parts) <= shared for parts in folders):
        return None
    return np.array([parts[shared] for parts in folders])
