"""ResNet-18 and ResNet-50 with torchvision's parameter names, so that its weight files load as they are.

K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition", CVPR 2016 (arXiv:1512.03385).
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

__all__ = ["ResNet", "fuse_batch_norms", "resnet18", "resnet50", "small_resnet18"]

IMAGENET_CLASSES = 1000


def convolution(n_in: int, n_out: int, size: int, stride: int = 1) -> nn.Conv2d:
    """Return a square convolution that keeps the size of the image if its stride is 1."""
    return nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions around a shortcut."""

    expansion = 1

    def __init__(self, n_in: int, width: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = convolution(n_in, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = convolution(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut: Tensor = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += shortcut
        result: Tensor = self.relu(y)
        return result


class Bottleneck(nn.Module):
    """A 3 × 3 convolution, which has the stride, between two 1 × 1 ones, around a shortcut."""

    expansion = 4

    def __init__(self, n_in: int, width: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = convolution(n_in, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = convolution(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = convolution(width, width * self.expansion, 1)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut: Tensor = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += shortcut
        result: Tensor = self.relu(y)
        return result


class ResNet(nn.Module):
    """A residual network with four stages of so many blocks; without ``fc`` it returns pooled features."""

    def __init__(self, block: type[BasicBlock | Bottleneck], depths: Sequence[int], n_classes: int | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = stage(block, 64, 64, depths[0], stride=1)
        self.layer2 = stage(block, 64 * block.expansion, 128, depths[1], stride=2)
        self.layer3 = stage(block, 128 * block.expansion, 256, depths[2], stride=2)
        self.layer4 = stage(block, 256 * block.expansion, 512, depths[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.n_features = 512 * block.expansion
        self.fc = nn.Identity() if n_classes is None else nn.Linear(self.n_features, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n, 3, height, width) to logits (n, n_classes), or to features (n, n_features) without ``fc``."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        result: Tensor = self.fc(self.avgpool(x).flatten(1))
        return result


def stage(block: type[BasicBlock | Bottleneck], n_in: int, width: int, depth: int, stride: int) -> nn.Sequential:
    """Return the blocks of one resolution; the first one changes size and width."""
    n_out = width * block.expansion
    downsample = None
    if stride != 1 or n_in != n_out:
        downsample = nn.Sequential(convolution(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))
    first = block(n_in, width, stride, downsample)
    return nn.Sequential(first, *(block(n_out, width, 1, None) for _ in range(depth - 1)))


def resnet18(n_classes: int | None = IMAGENET_CLASSES) -> ResNet:
    """Return a ResNet-18 with random weights.

    `n_classes` is the number of outputs of ``fc``, which None leaves out for the 512 pooled features.

    Examples
    --------
    >>> import torch
    >>> from cceclust.torch import resnet18
    >>> resnet18(n_classes=None).eval()(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 512])
    """
    return ResNet(BasicBlock, (2, 2, 2, 2), n_classes)


def resnet50(n_classes: int | None = IMAGENET_CLASSES) -> ResNet:
    """Return a ResNet-50 with random weights, as :func:`resnet18`, with 2048 features."""
    return ResNet(Bottleneck, (3, 4, 6, 3), n_classes)


def small_resnet18(size: int) -> ResNet:
    """Return the ResNet-18 of SCAN (arXiv:2005.12320), which begins with a 3 × 3 convolution at full resolution.

    The variant for images of 32 px, as in CIFAR, has no pooling at its start; the one for 96 px, as in STL-10, has.
    """
    network = resnet18(n_classes=None)
    network.conv1 = convolution(3, 64, 3)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.maxpool = nn.Identity() if size == 32 else nn.MaxPool2d(2, padding=1)  # type: ignore[assignment]
    return network


def fuse_batch_norms(network: ResNet) -> ResNet:
    """Fold every batch norm into the convolution before it, in place: the same outputs in evaluation, but faster."""
    network.eval()
    pairs = {"conv1": "bn1", "conv2": "bn2", "conv3": "bn3", "0": "1"}
    for module in list(network.modules()):
        for convolution_name, norm_name in pairs.items():
            norm = getattr(module, norm_name, None)
            if isinstance(norm, nn.BatchNorm2d):
                setattr(module, convolution_name, fuse_conv_bn_eval(getattr(module, convolution_name), norm))
                setattr(module, norm_name, nn.Identity())
    return network
