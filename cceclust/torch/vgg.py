"""VGG-4: four convolutions, adapted to three kinds of images (Table 7 in the supplement of arXiv:2303.07321).

The architecture comes from X. Ji, J. F. Henriques, A. Vedaldi, "Invariant information clustering for unsupervised image
classification and segmentation", ICCV 2019 (arXiv:1807.06653).
"""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

__all__ = ["COLUMNS", "VGG4"]

N_CONVOLUTIONS = 4


class Column(NamedTuple):
    """A column of the table: channels of the images, width of the first convolution, stride of all of them."""

    n_channels: int
    first_width: int
    stride: int
    last_side: int


# By the side of the images: MNIST, CIFAR, STL-10.
COLUMNS = {28: Column(1, 64, 1, 3), 32: Column(3, 32, 1, 4), 96: Column(3, 128, 2, 1)}


class VGG4(nn.Sequential):
    """The four convolutions of VGG-4, each with batch norm and ReLU, with max pooling between them.

    `size` is the side of the images and chooses the column of the table. `narrowing` divides the widths of all
    convolutions: 8 makes a network that learns in minutes without a GPU.
    """

    def __init__(self, size: int, narrowing: int = 1) -> None:
        n_in, first_width, stride, last_side = COLUMNS[size]
        width = first_width // narrowing
        layers: list[nn.Module] = []
        for number in range(N_CONVOLUTIONS):
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
