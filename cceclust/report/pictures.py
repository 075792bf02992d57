"""The picture of each row: an image file, or a row of an array of images such as those of MNIST, CIFAR and STL-10."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import CceclustError, FileError, MissingExtraError
from cceclust.io.clusters import Clusters
from cceclust.io.features import FeatureFile
from cceclust.io.images import ImageCollection, open_images
from cceclust.io.images.arrays import ArrayImages
from cceclust.io.images.decoding import IMAGE_SUFFIXES, decode
from cceclust.io.images.opening import find_batches

__all__ = ["ImageFinder", "Pictures", "find_pictures", "shrink"]

SIDE = 80
# Smaller images, such as those of MNIST, are kept as they are and enlarged without blurring.
SMALL_SIDE = 40
# Pictures on the map are small, and there are many of them.
SHEET_SIDE, SHEET_QUALITY, MOST_BYTES_OF_A_SHEET = 40, 60, 400_000
# The name of a collection of images, as extract states it: file:dataset (split) (first N).
INPUT = re.compile(
    r"(?P<file>.+?)(?::(?P<dataset>[^:]+?))?(?: \((?P<split>train|test|unlabeled)\))?(?: \(first (?P<limit>\d+)\))?"
)


class ImageFinder:
    """Finds images by the paths in a file, which may come from somebody else.

    Only regular files inside one folder are opened, wherever links lead: a report is meant to be shared and must not
    show files that its reader may not see.

    Parameters
    ----------
    root : Path
        The folder or archive that images are read from.
    bases : sequence of Path
        The folders that paths may be relative to.
    """

    def __init__(self, root: Path, bases: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self._outside: set[str] = set()
        self._bases = [root, *bases]
        self._archives: dict[Path, tuple[ImageCollection, dict[str, int]]] = {}

    @property
    def n_outside(self) -> int:
        """Number of images that were not opened because they lie outside `root`."""
        return len(self._outside)

    def may_open(self, path: Path) -> bool:
        """Tell whether a file or folder lies inside the folder that images are read from, wherever links lead."""
        return path.resolve().is_relative_to(self.root)

    def read(self, path: str) -> NDArray[np.uint8] | None:
        """Return the pixels of an image file or of a member of an archive; None if it cannot be read."""
        is_outside = False
        try:
            for base in self._bases:
                place = (base / path).resolve()
                file = next((parent for parent in (place, *place.parents) if parent.is_file()), None)
                if file is not None and file.is_relative_to(self.root):
                    return decode(file, file.name) if file == place else self._read_member(file, place)
                is_outside = is_outside or file is not None
        except MissingExtraError:
            raise
        # ValueError: the path has a null byte; RuntimeError: links that lead to themselves.
        except (FileError, OSError, ValueError, RuntimeError):
            return None
        if is_outside:
            self._outside.add(path)
        return None

    def _read_member(self, archive: Path, place: Path) -> NDArray[np.uint8] | None:
        # Only archives: a list of paths could lead out of the folder again.
        if archive.suffix.lower() not in (".zip", ".tar"):
            return None
        if archive not in self._archives:
            images = open_images(archive)
            names = [] if images.paths is None else images.paths.tolist()
            self._archives[archive] = images, {name: index for index, name in enumerate(names)}
        images, index_of = self._archives[archive]
        name = place.as_posix()
        return images.read(index_of[name]) if name in index_of else None


@dataclass
class Pictures:
    """The pictures of rows.

    Attributes
    ----------
    read : callable
        Returns the pixels of the picture of a row, or None if it cannot be read.
    described : str
        Where pictures are looked for, in words.
    finder : ImageFinder
        Knows how many images were not opened, and why.
    """

    read: Callable[[int], NDArray[np.uint8] | None]
    described: str
    finder: ImageFinder

    def sheet(self, rows: NDArray[np.intp]) -> tuple[bytes, list[int], int, int]:
        """Put the pictures of rows side by side.

        Returns
        -------
        sheet : bytes
            A WebP image.
        shown : list of int
            The positions in `rows` of the pictures that could be read, in the order of the sheet.
        columns, side : int
            Pictures in a line of the sheet, and their size in pixels.
        """
        found = [(position, pixels) for position, row in enumerate(rows) if (pixels := self.read(int(row))) is not None]
        side = min(SHEET_SIDE, max((max(pixels.shape[:2]) for _, pixels in found), default=1))
        tiles = [tile(pixels, side) for _, pixels in found]
        shown = [position for position, _ in found]
        while len(encoded := side_by_side(tiles)) > MOST_BYTES_OF_A_SHEET:
            # Every other one is enough: the pictures come from all over the map.
            tiles, shown = tiles[::2], shown[::2]
        return encoded, shown, columns_for(len(tiles)), side


def tile(pixels: NDArray[np.uint8], side: int) -> Any:
    """Return an image that fits into a square, in its middle."""
    image = pillow().fromarray(pixels)
    image.thumbnail((side, side))
    square = pillow().new("RGB", (side, side))
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square


def columns_for(n_tiles: int) -> int:
    """Return how many tiles lie side by side, so that all together are about square."""
    return int(np.ceil(np.sqrt(max(1, n_tiles))))


def side_by_side(tiles: list[Any]) -> bytes:
    """Return equally large square images as one WebP image; nothing for no images."""
    if not tiles:
        return b""
    side, columns = tiles[0].width, columns_for(len(tiles))
    sheet = pillow().new("RGB", (columns * side, -(-len(tiles) // columns) * side))
    for place, image in enumerate(tiles):
        down, across = divmod(place, columns)
        sheet.paste(image, (across * side, down * side))
    encoded = io.BytesIO()
    sheet.save(encoded, "WEBP", quality=SHEET_QUALITY, method=4)
    return encoded.getvalue()


def find_pictures(
    clusters: Clusters, features: FeatureFile | None, finder: ImageFinder, images: Path | None
) -> Pictures | None:
    """Find the pictures of rows; None if they came from no images.

    Parameters
    ----------
    clusters : Clusters
        Their paths name image files; or else their provenance names the collection that rows came from.
    features : FeatureFile, optional
        Its file may hold images beside the features.
    finder : ImageFinder
        Opens files, and only where it may.
    images : Path, optional
        The folder, archive or file of images that was asked for.
    """
    paths = clusters.paths
    if paths is not None and any(str(path).lower().endswith(IMAGE_SUFFIXES) for path in paths[:100]):
        return Pictures(lambda row: finder.read(str(paths[row])), f"the first should be {paths[0]}", finder)
    stated = INPUT.fullmatch(str(clusters.provenance.get("input") or ""))
    parts: dict[str, Any] = {} if stated is None else stated.groupdict()
    # Only the name of a stored path is used: it may come from somebody else.
    named = None if stated is None else finder.root / Path(parts["file"]).name
    beside = None if features is None else features.path
    for place, dataset in ((images, None), (named, parts.get("dataset")), (beside, "images")):
        if place is None:
            continue
        found = open_array(place, finder, len(clusters.labels), parts.get("split"), parts.get("limit"), dataset)
        if found is not None:
            return Pictures(partial(readable, found), f"they are rows of {place.name}", finder)
    if images is None:
        return None
    problem = f"{images.name} holds no array of {len(clusters.labels):,} images, one for each row"
    return Pictures(lambda row: None, problem, finder)


def open_array(
    place: Path, finder: ImageFinder, n_rows: int, split: str | None, limit: str | None, dataset: str | None
) -> ImageCollection | None:
    """Open an array of as many images as there are rows, if there is one at this place inside the finder's folder."""
    try:
        files = find_batches(place) if place.is_dir() else [place]
        # A pipe would keep us waiting, and a list of paths could lead out of the folder again.
        if not files or not all(finder.may_open(file) and file.is_file() for file in files):
            return None
        if place.suffix.lower() in (".txt", ".zip", ".tar"):
            return None
        found = open_images(place, split=split if place.is_dir() else None, dataset=None if place.is_dir() else dataset)
    except (CceclustError, OSError, ValueError, RuntimeError):
        return None
    is_array = isinstance(found, ArrayImages) and all(finder.may_open(file) for file in found.files)
    if limit is not None and len(found) > n_rows == int(limit):
        found = found.first(n_rows)
    return found if is_array and len(found) == n_rows else None


def readable(images: ImageCollection, row: int) -> NDArray[np.uint8] | None:
    """Return the pixels of a row; None if they cannot be read."""
    try:
        return images.read(row)
    except (FileError, OSError):
        return None


def pillow() -> Any:
    """Return Pillow's module for images."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError.of("showing images", "Pillow", "report") from None
    return Image


def shrink(pixels: NDArray[np.uint8]) -> bytes:
    """Encode an image as a small WebP."""
    image = pillow().fromarray(pixels)
    is_small = max(image.size) <= SMALL_SIDE
    image.thumbnail((SIDE, SIDE))
    encoded = io.BytesIO()
    image.save(encoded, "WEBP", lossless=is_small, quality=72, method=4)
    return encoded.getvalue()
