"""From images to the input of networks: crops for ImageNet's; for VGG-4 small images and augmented views of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cceclust.errors import FileContentError, FileError, InputError, MissingExtraError
from cceclust.io.images import ImageCollection

__all__ = [
    "LoadedImages",
    "describe_preprocessing",
    "load_pixels",
    "look_at",
    "make_augmentation",
    "normalize",
    "resize_and_crop",
]

# ImageNet evaluation uses the middle 224 of 256 pixels.
RESIZED_TO_CROPPED = 256 / 224
MEAN = (0.485, 0.456, 0.406)
STANDARD_DEVIATION = (0.229, 0.224, 0.225)
# Number of images that is enough to know the size and the colours of a collection.
N_LOOKED_AT = 100
# ITU-R BT.601, as in Pillow.
LUMINANCE = np.array([0.299, 0.587, 0.114])


def describe_preprocessing(size: int) -> str:
    """Describe :func:`resize_and_crop` and :func:`normalize` in words, for the provenance of a file."""
    return (
        f"RGB; short side to {round(size * RESIZED_TO_CROPPED)} px (images smaller than {size} px: to {size} px), "
        f"bilinear with antialiasing; centre crop of {size} px; ImageNet mean and standard deviation"
    )


def resize_and_crop(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Resize the short side to 256/224 of the size, or to the size if the image is smaller, and take the centre."""
    height, width = image.shape[:2]
    short = min(height, width)
    resized = size if short < size else round(size * RESIZED_TO_CROPPED)
    left, right = kept_part(width, width * resized // short, size)
    top, bottom = kept_part(height, height * resized // short, size)
    return resample(image, size, (left, top, right, bottom))


def kept_part(length: int, resized: int, size: int) -> tuple[float, float]:
    """Return where, in an image of ``length``, the middle ``size`` pixels of its resized version begin and end."""
    start = round((resized - size) / 2)
    return start * length / resized, min((start + size) * length / resized, length)


def resample(image: NDArray[np.uint8], size: int, box: tuple[float, float, float, float]) -> NDArray[np.uint8]:
    """Scale a part of an image; nothing else is computed, so a very long image does not become huge."""
    # Imported here, so that the losses alone do not need Pillow.
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR, box=box))


def normalize(pixels: Tensor) -> Tensor:
    """Turn pixels (n, height, width, 3) of uint8 into network input (n, 3, height, width) of float32, channels last."""
    mean, deviation = (torch.tensor(values, device=pixels.device) * 255 for values in (MEAN, STANDARD_DEVIATION))
    return pixels.float().sub_(mean).div_(deviation).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class LoadedImages:
    """Images (n, n_channels, size, size) of uint8, their numbers in the collection, and why others were skipped."""

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
    """Read all images into memory: the largest square in the middle of each, scaled, in colour or as luminance."""
    pixels = np.empty((len(images), n_channels, size, size), np.uint8)
    kept: list[int] = []
    skipped = []
    for index in range(len(images)):
        try:
            image = images.read(index)
        except FileError as error:
            skipped.append(str(error))
            continue
        height, width = image.shape[:2]
        short = min(height, width)
        left, top = (width - short) // 2, (height - short) // 2
        square = resample(image[top : top + short, left : left + short], size, (0, 0, short, short))
        pixels[len(kept)] = square.transpose(2, 0, 1) if n_channels == 3 else np.rint(square @ LUMINANCE)
        kept.append(index)
    if not kept:
        raise FileContentError(f"none of the {len(images)} images can be read; the first: {skipped[0]}")
    return LoadedImages(torch.from_numpy(pixels[: len(kept)]), np.array(kept, np.int64), skipped)


def make_augmentation(kind: str, size: int, n_channels: int) -> Callable[[Tensor], Tensor]:
    """Return a function that turns images (n, n_channels, size, size), from 0 to 1, into views of them.

    Every call draws new views with torch's global random numbers.

    ``digits`` shifts, rotates, scales and shears, which keeps a written digit or letter the same; ``photos`` crops,
    flips and, for RGB, changes colours, which keeps an object the same.
    """
    if kind not in ("digits", "photos"):
        raise InputError(f"augmentation={kind!r}; expected digits or photos")
    try:
        import kornia.augmentation as kornia
    except ImportError:
        raise MissingExtraError.of("augmentation", "kornia", "torch") from None
    if kind == "digits":
        view: Callable[[Tensor], Tensor] = kornia.RandomAffine(
            degrees=25, translate=(0.15, 0.15), scale=(0.7, 1.2), shear=10, p=1.0
        )
    else:
        # Resampling cuts all crops of a batch at once.
        crop = kornia.RandomResizedCrop((size, size), scale=(0.4, 1.0), cropping_mode="resample")
        colours = [kornia.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8), kornia.RandomGrayscale(p=0.2)]
        view = kornia.ImageSequential(crop, kornia.RandomHorizontalFlip(), *(colours if n_channels == 3 else []))
    return view
