"""The networks of ``cceclust deep``: a backbone, a linear head, and the images they accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cceclust.errors import InputError
from cceclust.torch.resnet import small_resnet18
from cceclust.torch.vgg import COLUMNS, VGG4

__all__ = ["NETWORKS", "ClusterNetwork", "Standardize", "build_network", "choose_network"]

# Images larger than this use the network for the next size.
LARGEST_GREY = 30
LARGEST_FOR_32 = 64
# The widths of the small variants of VGG-4 are divided by this.
NARROWING = 8


class Standardize(nn.Module):
    """Subtract each channel's mean and divide by its standard deviation, both of pixels from 0 to 1.

    They are buffers and saved with the network, which therefore always takes raw images.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32)[:, None, None])
        self.register_buffer("deviation", torch.tensor(deviation, dtype=torch.float32)[:, None, None])

    def forward(self, images: Tensor) -> Tensor:
        """Standardise images (n, n_channels, height, width)."""
        return (images - self.mean) / self.deviation


class ClusterNetwork(nn.Module):
    """A backbone and a linear head that turns its features into the logits of the clusters (equation 2)."""

    def __init__(self, standardize: nn.Module, backbone: nn.Module, n_features: int, n_clusters: int) -> None:
        super().__init__()
        self.standardize = standardize
        self.backbone = backbone
        self.head = nn.Linear(n_features, n_clusters)
        nn.init.zeros_(self.head.bias)

    def features(self, images: Tensor) -> Tensor:
        """Map images to features (n, n_features)."""
        result: Tensor = self.backbone(self.standardize(images))
        return result

    def forward(self, images: Tensor) -> Tensor:
        """Map images to logits (n, n_clusters)."""
        result: Tensor = self.head(self.features(images))
        return result


class Form(NamedTuple):
    """The input of a network, and how its backbone is built."""

    size: int
    n_channels: int
    build: Callable[[int], Any]


NETWORKS = {
    **{f"vgg4-{size}": Form(size, column.n_channels, VGG4) for size, column in COLUMNS.items()},
    **{
        f"vgg4-{size}-small": Form(size, column.n_channels, partial(VGG4, narrowing=NARROWING))
        for size, column in COLUMNS.items()
    },
    "resnet18-32": Form(32, 3, small_resnet18),
    "resnet18-96": Form(96, 3, small_resnet18),
}


def build_network(
    name: str, n_clusters: int, *, mean: Sequence[float] | None = None, deviation: Sequence[float] | None = None
) -> ClusterNetwork:
    """Build a network with random weights.

    Parameters
    ----------
    name : {"vgg4-28", "vgg4-32", "vgg4-96", "vgg4-28-small", …, "resnet18-32", "resnet18-96"}
        The network and the size of its images: grey for ``vgg4-28``, RGB for the others. The small variants have an
        eighth of the widths.
    n_clusters : int
        Number of clusters.
    mean, deviation : sequence of n_channels numbers, optional
        Mean and deviation of each channel, to standardise images with.

    Examples
    --------
    >>> import torch
    >>> from cceclust.torch import build_network
    >>> build_network("vgg4-28", 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    if name not in NETWORKS:
        raise InputError(f"network={name!r}; expected one of {', '.join(NETWORKS)}")
    form = NETWORKS[name]
    backbone = form.build(form.size)
    standardize = nn.Identity() if mean is None or deviation is None else Standardize(mean, deviation)
    return ClusterNetwork(standardize, backbone, backbone.n_features, n_clusters)


def choose_network(name: str, size: int, *, is_grey: bool) -> str:
    """Return the network for images of this size: VGG-4 for ``auto``, and the right variant of ``resnet18``."""
    for_size = 32 if size <= LARGEST_FOR_32 else 96
    if name == "resnet18":
        return f"resnet18-{for_size}"
    if name != "auto":
        return name
    return "vgg4-28" if is_grey and size <= LARGEST_GREY else f"vgg4-{for_size}"
