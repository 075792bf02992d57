"""Augmentation: views of the right shape and range, new in every call."""

from __future__ import annotations

import pytest
import torch

from cceclust.errors import InputError
from cceclust.torch.pixels import make_augmentation


@pytest.mark.parametrize("kind", ["digits", "photos"])
@pytest.mark.parametrize(("size", "n_channels"), [(28, 1), (32, 3)])
def test_views_are_images_of_the_same_kind_and_differ(kind: str, size: int, n_channels: int) -> None:
    torch.manual_seed(0)
    images = torch.rand(6, n_channels, size, size)
    before = images.clone()
    augment = make_augmentation(kind, size, n_channels)
    first, second = augment(images), augment(images)
    assert torch.equal(images, before)
    assert first.shape == images.shape
    assert first.min() >= -1e-5
    assert first.max() <= 1 + 1e-5
    assert not torch.equal(first, second)
    # Each image of a batch has a view of its own.
    same = augment(images[:1].expand(6, -1, -1, -1))
    assert not torch.equal(same[0], same[1])


def test_digits_are_never_mirrored_or_turned_over() -> None:
    # A bright corner stays in its quarter: turned by 25° at most, moved by 15 %.
    image = torch.zeros(1, 1, 28, 28)
    image[..., 4:10, 4:10] = 1
    torch.manual_seed(0)
    views = make_augmentation("digits", 28, 1)(image.expand(200, -1, -1, -1))
    assert (views[..., 20:, 20:].sum(dim=(1, 2, 3)) == 0).all()


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(InputError, match=r"augmentation='mixup'; expected digits or photos"):
        make_augmentation("mixup", 28, 1)
