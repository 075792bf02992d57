"""Augmented views of images, made in batches on the device by kornia."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from cceclust.errors import InputError, MissingExtraError

__all__ = ["make_augmentation"]


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
