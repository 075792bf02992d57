"""From the bytes of an image file to RGB pixels as a person would see them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, FileError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

__all__ = ["IMAGE_SUFFIXES", "as_rgb", "decode"]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff")
# Naming the formats keeps Pillow from trying its many others, some of which start other programs.
PILLOW_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF")
# Pillow warns of larger images, since a small file may claim to be one: half a gigabyte of RGB.
MOST_PIXELS = 178_956_970


def decode(file: Path | BinaryIO, name: str) -> NDArray[np.uint8]:
    """Decode an image file as RGB: upright by its EXIF orientation, transparency on white; errors have its name."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtraError.of("reading image files", "Pillow", "torch") from None
    try:
        with warnings.catch_warnings():
            # Pillow warns of odd metadata, which is harmless, and of large images, which are refused below.
            warnings.simplefilter("ignore")
            with Image.open(file, formats=PILLOW_FORMATS) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise FileContentError(f"{name} is refused: it has more than {MOST_PIXELS:,} pixels")
                ImageOps.exif_transpose(image, in_place=True)
                return pixels(image, name)
    except FileError:
        raise
    except Exception as error:  # damaged bytes can cause any error inside a decoder
        raise FileContentError(f"{name} is not a readable image ({error or type(error).__name__})") from None


def pixels(image: PILImage, name: str) -> NDArray[np.uint8]:
    if image.mode == "F":
        raise FileContentError(f"{name} holds floating-point numbers; expected 8- or 16-bit pixels")
    if image.mode.startswith("I"):
        # Pillow clips 16-bit grey to 8 bits instead of scaling it.
        return as_rgb((np.asarray(image).clip(0, 65535) // 257).astype(np.uint8))
    if image.has_transparency_data:
        return as_rgb(np.asarray(image.convert("RGBA")))
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))


def as_rgb(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Turn grey (h, w) or (h, w, 1), RGB (h, w, 3) or RGBA (h, w, 4) into RGB, with transparency on white."""
    if image.ndim == 2:
        image = image[:, :, None]
    if image.shape[2] == 1:
        return np.repeat(image, 3, axis=2)
    if image.shape[2] == 4:
        alpha = image[:, :, 3:].astype(np.uint16)
        blended = image[:, :, :3] * alpha + 255 * (255 - alpha)
        return ((blended + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(image)
