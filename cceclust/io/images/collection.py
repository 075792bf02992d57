"""A collection of images, however it is stored."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.io.reading import naming

__all__ = ["ImageCollection"]


class ImageCollection:
    """Images in a fixed order. Made by :func:`cceclust.io.images.open_images`.

    `source` says to people what was opened, `files` are what is read. `labels` are true labels, integers or names, and
    `paths` where each image lies, unless the images are rows of an array; either may be None.
    """

    def __init__(
        self,
        source: str,
        files: Sequence[Path],
        n_images: int,
        read: Callable[[int], NDArray[np.uint8]],
        *,
        labels: NDArray[Any] | None = None,
        paths: NDArray[Any] | None = None,
    ) -> None:
        self.source = source
        self.files = files
        self.labels = labels
        self.paths = paths
        self._n_images = n_images
        self._read = read

    def __len__(self) -> int:
        return self._n_images

    def read(self, index: int) -> NDArray[np.uint8]:
        """Return an image as RGB of shape (height, width, 3); raise FileError if it cannot be read."""
        name = f"{self.files[0]}[{index}]" if self.paths is None else str(self.paths[index])
        with naming(name, "a readable image"):
            return self._read(index)

    def fingerprint(self) -> str:
        """Return a digest of names, sizes and modification times: it changes when the images do."""
        digest = hashlib.sha256(os.fsencode(f"{self.source}\0{len(self)}"))
        for file in self.files:
            try:
                status = file.stat()
                state = f"{status.st_size}\0{status.st_mtime_ns}"
            except OSError:
                state = "missing"
            digest.update(os.fsencode(f"\0{file}\0{state}"))
        return digest.hexdigest()

    def first(self, n_images: int) -> ImageCollection:
        """Return the collection of the first ``n_images`` images."""
        if n_images >= len(self):
            return self
        beginning = copy.copy(self)
        beginning.source = f"{self.source} (first {n_images})"
        beginning.labels = None if self.labels is None else self.labels[:n_images]
        beginning.paths = None if self.paths is None else self.paths[:n_images]
        beginning._n_images = n_images
        return beginning
