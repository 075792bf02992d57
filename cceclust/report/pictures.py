"""The picture of each row: an image file, or a row of an array of images."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import CceclustError, FileError, InputError
from cceclust.io import Clusters, FeatureFile
from cceclust.io.images import open_images
from cceclust.io.images.decoding import IMAGE_SUFFIXES, decode
from cceclust.report.drawing import data_uri

# Smaller images, such as those of 28 × 28 pixels, are kept as they are and enlarged without blurring.
SMALL_SIDE = 40
# The name of a collection of images, as extract states it: file:dataset (first N).
INPUT = re.compile(r"(?P<file>.+?)(?::(?P<dataset>[^:]+?))?(?: \(first (?P<limit>\d+)\))?")

Pixels = NDArray[np.uint8]
# Returns the pixels of a row; None if they cannot be read.
Pictures = Callable[[int], Pixels | None]


def find_pictures(
    clusters: Clusters, features: FeatureFile | None, folder: Path, images: Path | None = None
) -> Pictures | None:
    """Find the pictures of rows; None if they came from no images.

    The provenance of the clusters names the collection that rows came from, or the file of the features holds images,
    too; or else the paths of the clusters name image files. `images` is the folder, archive or file to take them from,
    by default the folder of the clusters. Clusters may come from somebody else, and reports are shared: only regular
    files inside that folder are opened, wherever paths and links lead.
    """
    root, n_rows, paths = folder if images is None else images, len(clusters.labels), clusters.paths
    stated = INPUT.fullmatch(str(clusters.provenance.get("input") or ""))
    parts = {} if stated is None else stated.groupdict()
    # Only the name of a stored path is used.
    named = None if stated is None else root / Path(parts["file"]).name
    beside = None if features is None else features.path
    for place, dataset in ((images, None), (named, parts.get("dataset")), (beside, "images")):
        if place is None:
            continue
        try:
            # The files of a folder are read by their paths, if there are any.
            if place.is_dir() and paths is not None:
                continue
            if not all(may_open(file, root) for file in (place, *place.rglob("*"))):
                continue
            found = open_images(place, dataset=dataset)
        except (CceclustError, OSError, ValueError, RuntimeError):
            continue
        if parts.get("limit") == str(n_rows):
            found = found.first(n_rows)
        if len(found) == n_rows and (found.paths is None or place.suffix.lower() == ".zip"):
            return readable(found.read)
    if paths is not None and any(str(path).lower().endswith(IMAGE_SUFFIXES) for path in paths[:100]):
        return readable(lambda row: read_file(str(paths[row]), root, (root, folder, Path())))
    if images is not None:
        raise InputError(f"{images} holds no collection of {n_rows:,} images, one for each row")
    return None


def may_open(path: Path, root: Path) -> bool:
    """Tell whether a path leads inside a folder, and neither to a pipe nor to a list of other paths."""
    is_ordinary = path.is_dir() or (path.is_file() and path.suffix.lower() != ".txt")
    return is_ordinary and path.resolve().is_relative_to(root.resolve())


def read_file(path: str, root: Path, bases: tuple[Path, ...]) -> Pixels:
    """Read an image file inside a folder, by a path relative to one of some folders."""
    for base in bases:
        file = (base / path).resolve()
        if may_open(file, root):
            return decode(file, file.name)
    raise FileError(f"there is no file {path} inside {root}")


def readable(read: Callable[[int], Pixels]) -> Pictures:
    """Return a function that returns None where reading fails, and without Pillow, which draws what was read."""

    def attempt(row: int) -> Pixels | None:
        try:
            return read(row) if find_spec("PIL") else None
        # ValueError: the path has a null byte; RuntimeError: links that lead to themselves.
        except (CceclustError, OSError, ValueError, RuntimeError):
            return None

    return attempt


def shrink(pixels: Pixels, side: int) -> str:
    """Return an image of at most some side length as a data URL."""
    from PIL import Image

    image = Image.fromarray(pixels)
    is_small = max(image.size) <= SMALL_SIDE
    image.thumbnail((side, side))
    file = io.BytesIO()
    image.save(file, "WEBP", lossless=is_small, quality=72, method=4)
    return data_uri(file.getvalue(), "image/webp")
