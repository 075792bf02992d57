"""The networks of ``cceclust deep``: a backbone, a linear head, and the images they accept.

VGG-4 is four convolutions, adapted to three kinds of images (Table 7 in the supplement of arXiv:2303.07321). It comes
from X. Ji, J. F. Henriques, A. Vedaldi, "Invariant information clustering for unsupervised image classification and
segmentation", ICCV 2019 (arXiv:1807.06653).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cceclust.errors import InputError
from cceclust.torch.resnet import small_resnet18

__all__ = ["NETWORKS", "VGG4", "ClusterNetwork", "Standardize", "build_network", "choose_network"]

# Images larger than this use the network for the next size.
LARGEST_GREY = 30
LARGEST_FOR_32 = 64
# The widths of the small variants of VGG-4 are divided by this, so that they learn in minutes without a GPU.
NARROWING = 8


# The columns of the table by the side of the images (MNIST, CIFAR, STL-10): channels of the images, width of the first
# convolution, stride of all four, side of the last one's output.
COLUMNS = {28: (1, 64, 1, 3), 32: (3, 32, 1, 4), 96: (3, 128, 2, 1)}


class VGG4(nn.Sequential):
    """The four convolutions of VGG-4 for images of a size, their widths divided by `narrowing`."""

    def __init__(self, size: int, narrowing: int = 1) -> None:
        n_in, first_width, stride, last_side = COLUMNS[size]
        width = first_width // narrowing
        layers: list[nn.Module] = []
        for number in range(4):
            if number:
                layers.append(nn.MaxPool2d(2))
            # The batch norm would remove a bias.
            layers += [
                nn.Conv2d(n_in, width, 5, stride, padding=2, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            n_in, width = width, 2 * width
        super().__init__(*layers, nn.Flatten())
        self.n_features = n_in * last_side**2
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")


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

    def forward(self, images: Tensor) -> Tensor:
        """Map images to logits (n, n_clusters)."""
        result: Tensor = self.head(self.backbone(self.standardize(images)))
        return result


class Form(NamedTuple):
    """The input of a network, and how its backbone is built."""

    size: int
    n_channels: int
    build: Callable[[int], Any]


NETWORKS = {
    **{f"vgg4-{size}": Form(size, COLUMNS[size][0], VGG4) for size in COLUMNS},
    **{f"vgg4-{size}-small": Form(size, COLUMNS[size][0], partial(VGG4, narrowing=NARROWING)) for size in COLUMNS},
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
        The network and the size of its images: grey for ``vgg4-28``, RGB for the others.
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
