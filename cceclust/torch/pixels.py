"""Whole collections of small images as one tensor, cropped and scaled to the input size of a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cceclust.errors import FileContentError, FileError
from cceclust.io.images import ImageCollection

__all__ = ["LoadedImages", "fit_to_square", "load_pixels", "look_at"]

# Number of images that is enough to know the size and the colours of a collection.
N_LOOKED_AT = 100
# ITU-R BT.601, as in Pillow.
LUMINANCE = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class LoadedImages:
    """Images in memory.

    Attributes
    ----------
    pixels : tensor (n, n_channels, size, size) of uint8
        The images that could be read.
    kept : ndarray of int
        Their numbers in the collection.
    skipped : list of str
        The images that could not be read, and why.
    """

    pixels: Tensor
    kept: NDArray[np.int64]
    skipped: list[str]


def look_at(images: ImageCollection) -> tuple[int, bool]:
    """Return the usual short side of images, and whether all are grey, from a sample of them."""
    sides, is_grey = [], True
    for index in np.linspace(0, len(images) - 1, min(N_LOOKED_AT, len(images))).astype(int):
        try:
            image = images.read(int(index))
        except FileError:
            continue
        sides.append(min(image.shape[:2]))
        is_grey = is_grey and bool((image == image[:, :, :1]).all())
    if not sides:
        raise FileContentError(f"none of {len(images)} images of {images.source} that were tried can be read")
    return int(np.median(sides)), is_grey


def load_pixels(images: ImageCollection, size: int, n_channels: int) -> LoadedImages:
    """Read all images into memory.

    Parameters
    ----------
    images : ImageCollection
        See :func:`cceclust.io.images.open_images`.
    size : int
        Side length of the squares that they are cropped and scaled to.
    n_channels : int
        3 for RGB, 1 for luminance.

    Examples
    --------
    >>> from cceclust.io.images import open_images
    >>> from cceclust.torch.pixels import load_pixels
    >>> load_pixels(open_images("sample_data/digits"), 28, 1).pixels.shape
    torch.Size([40, 1, 28, 28])
    """
    pixels = np.empty((len(images), n_channels, size, size), np.uint8)
    kept: list[int] = []
    skipped = []
    for index in range(len(images)):
        try:
            image = fit_to_square(images.read(index), size)
        except FileError as error:
            skipped.append(str(error))
            continue
        pixels[len(kept)] = image.transpose(2, 0, 1) if n_channels == 3 else np.rint(image @ LUMINANCE)
        kept.append(index)
    if not kept:
        raise FileContentError(f"none of the {len(images)} images can be read; the first: {skipped[0]}")
    return LoadedImages(torch.from_numpy(pixels[: len(kept)]), np.array(kept, np.int64), skipped)


def fit_to_square(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Crop the largest square in the middle of an RGB image, and scale it.

    Examples
    --------
    >>> import numpy as np
    >>> from cceclust.torch.pixels import fit_to_square
    >>> fit_to_square(np.zeros((50, 37, 3), np.uint8), 32).shape
    (32, 32, 3)
    """
    height, width = image.shape[:2]
    short = min(height, width)
    top, left = (height - short) // 2, (width - short) // 2
    square = image[top : top + short, left : left + short]
    if short == size:
        return square
    from PIL import Image

    return np.asarray(Image.fromarray(square).resize((size, size), Image.Resampling.BILINEAR))
