"""From decoded images to what an ImageNet network expects, as ImageNet evaluation does it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["describe_preprocessing", "normalize", "resize_and_crop"]

# Evaluation shows networks the middle 224 of 256 pixels.
RESIZED_TO_CROPPED = 256 / 224
# Resizing the short side of a very long image would make it huge; its ends are cropped away anyway.
MAX_ASPECT = 4
MEAN = (0.485, 0.456, 0.406)
STANDARD_DEVIATION = (0.229, 0.224, 0.225)


def describe_preprocessing(size: int) -> str:
    """Put the preprocessing into words, for a file's provenance."""
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
        Side of the result. The short side becomes 256/224 of it, or just ``size`` if the image is smaller than that.

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
    # Whoever uses the losses alone does not need Pillow.
    from PIL import Image

    short = min(image.shape[:2])
    image = crop_centre(image, min(image.shape[0], MAX_ASPECT * short), min(image.shape[1], MAX_ASPECT * short))
    height, width = image.shape[:2]
    target = size if short < size else round(size * RESIZED_TO_CROPPED)
    new_size = (width * target // short, height * target // short)
    resized = np.asarray(Image.fromarray(image).resize(new_size, Image.Resampling.BILINEAR))
    return crop_centre(resized, size, size)


def crop_centre(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Cut away the margins."""
    top, left = round((image.shape[0] - height) / 2), round((image.shape[1] - width) / 2)
    return image[top : top + height, left : left + width]


def normalize(pixels: Tensor) -> Tensor:
    """Turn pixels (n, height, width, 3) of uint8 into network input (n, 3, height, width) of float32, channels last."""
    mean, deviation = (torch.tensor(values, device=pixels.device) * 255 for values in (MEAN, STANDARD_DEVIATION))
    return pixels.float().sub_(mean).div_(deviation).permute(0, 3, 1, 2)
