"""From decoded images to the input of an ImageNet network, as in ImageNet evaluation."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["describe_preprocessing", "normalize", "resize_and_crop"]

# ImageNet evaluation uses the middle 224 of 256 pixels.
RESIZED_TO_CROPPED = 256 / 224
MEAN = (0.485, 0.456, 0.406)
STANDARD_DEVIATION = (0.229, 0.224, 0.225)


def describe_preprocessing(size: int) -> str:
    """Describe the preprocessing in words, for the provenance of a file."""
    return (
        f"RGB; short side to {round(size * RESIZED_TO_CROPPED)} px (images smaller than {size} px: to {size} px), "
        f"bilinear with antialiasing; centre crop of {size} px; ImageNet mean and standard deviation"
    )


def resize_and_crop(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Resize the short side and take the centre.

    Parameters
    ----------
    image : ndarray of shape (height, width, 3), uint8
        RGB.
    size : int
        Size of the result. The short side becomes 256/224 of it, or just ``size`` if the image is smaller than that.

    Returns
    -------
    ndarray of shape (size, size, 3), uint8

    Examples
    --------
    >>> import numpy as np
    >>> from cceclust.torch.preprocessing import resize_and_crop
    >>> resize_and_crop(np.zeros((300, 500, 3), np.uint8), 224).shape
    (224, 224, 3)
    """
    # Imported here, so that the losses alone do not need Pillow.
    from PIL import Image

    height, width = image.shape[:2]
    short = min(height, width)
    resized = size if short < size else round(size * RESIZED_TO_CROPPED)
    left, right = kept_part(width, width * resized // short, size)
    top, bottom = kept_part(height, height * resized // short, size)
    # Only the crop is computed: this is faster, and a very long image does not become huge.
    kept = Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR, box=(left, top, right, bottom))
    return np.asarray(kept)


def kept_part(length: int, resized: int, size: int) -> tuple[float, float]:
    """Return where, in an image of ``length``, the middle ``size`` pixels of its resized version begin and end."""
    start = round((resized - size) / 2)
    return start * length / resized, min((start + size) * length / resized, length)


def normalize(pixels: Tensor) -> Tensor:
    """Turn pixels (n, height, width, 3) of uint8 into network input (n, 3, height, width) of float32, channels last."""
    mean, deviation = (torch.tensor(values, device=pixels.device) * 255 for values in (MEAN, STANDARD_DEVIATION))
    return pixels.float().sub_(mean).div_(deviation).permute(0, 3, 1, 2)
