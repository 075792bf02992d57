"""ResNet-18 for small images, as SCAN uses it for CIFAR and STL-10.

W. Van Gansbeke, S. Vandenhende, S. Georgoulis, M. Proesmans, L. Van Gool, "SCAN: Learning to classify images without
labels", ECCV 2020 (arXiv:2005.12320).
"""

from __future__ import annotations

from torch import nn

from cceclust.errors import InputError
from cceclust.torch.resnet import ResNet, convolution, resnet18

__all__ = ["small_resnet18"]


def small_resnet18(size: int = 32) -> ResNet:
    """Return a ResNet-18 that begins with a 3 × 3 convolution at full resolution and ends in 512 features.

    Parameters
    ----------
    size : {32, 96}
        Side length of the images. The variant for CIFAR has no pooling at its start, the one for STL-10 has.

    Examples
    --------
    >>> import torch
    >>> from cceclust.torch.small_resnet import small_resnet18
    >>> small_resnet18(32)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    """
    if size not in (32, 96):
        raise InputError(f"size={size}; the small ResNet-18 is made for images of 32 or 96 px")
    network = resnet18(n_classes=None)
    network.conv1 = convolution(3, 64, 3)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.maxpool = nn.Identity() if size == 32 else nn.MaxPool2d(2, padding=1)  # type: ignore[assignment]
    return network
