"""Image files in a folder or in a zip archive."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.decoding import IMAGE_SUFFIXES, decode
from cceclust.io.reading import naming

__all__ = ["open_folder", "open_zip"]

# No photograph is this large; an archive member that claims to be is not read into memory.
MAX_MEMBER_BYTES = 1 << 28


def open_folder(path: Path) -> ImageCollection:
    """Collect the images of a folder and its subfolders, sorted by path."""
    files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    files = [file for file in files if is_image(file.relative_to(path).as_posix())]
    return encoded_images(path, files, [file.as_posix() for file in files], files.__getitem__)


def open_zip(path: Path) -> ImageCollection:
    with naming(str(path), "a zip archive"):
        archive = zipfile.ZipFile(path)
        members = sorted(name for name in set(archive.namelist()) if is_image(name))

    def open_member(index: int) -> BinaryIO:
        size = archive.getinfo(members[index]).file_size
        if size > MAX_MEMBER_BYTES:
            raise ValueError(f"{size:,} bytes is over the limit of {MAX_MEMBER_BYTES:,}")
        return io.BytesIO(archive.read(members[index]))

    return encoded_images(path, [path], [f"{path.as_posix()}/{name}" for name in members], open_member)


def encoded_images(
    source: Path, files: Sequence[Path], paths: Sequence[str], open_image: Callable[[int], Path | BinaryIO]
) -> ImageCollection:
    """Collect images that must be decoded, each with a path; class folders give the labels."""
    if not paths:
        raise FileContentError(f"{source} has no images; expected files that end in {', '.join(IMAGE_SUFFIXES)}")

    def read(index: int) -> NDArray[np.uint8]:
        return decode(open_image(index), paths[index])

    return ImageCollection(str(source), files, len(paths), read, labels=labels_from(paths), paths=np.array(paths))


def is_image(name: str) -> bool:
    """Tell by the name whether a file is an image; macOS adds its own files in ``__MACOSX`` to archives."""
    path = PurePosixPath(name)
    hidden = any((part.startswith(".") and part != ".") or part == "__MACOSX" for part in path.parts)
    return not hidden and path.suffix.lower() in IMAGE_SUFFIXES


def labels_from(paths: Sequence[str]) -> NDArray[Any] | None:
    """Return the class folder of each path: the first folder below the common one; None if any path has none."""
    folders = [PurePosixPath(path).parent.parts for path in paths]
    shortest, longest = min(folders), max(folders)
    shared = next((i for i, (a, b) in enumerate(zip(shortest, longest, strict=False)) if a != b), len(shortest))
    if any(len(parts) <= shared for parts in folders):
        return None
    return np.array([parts[shared] for parts in folders])
