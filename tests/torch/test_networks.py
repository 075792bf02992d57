"""The networks: shapes and parameter counts as in the paper's table."""

from __future__ import annotations

import pytest
import torch

from cceclust.torch import build_network
from cceclust.torch.networks import NETWORKS, choose_network


def conv(n_in: int, n_out: int) -> int:
    """Count the parameters of a 5 × 5 convolution without bias and of its batch norm."""
    return 25 * n_in * n_out + 2 * n_out


# Written out from Table 7 of the supplement; the ResNet's is torchvision's without fc, with a 3 × 3 first convolution.
BACKBONES = {
    "vgg4-28": (512 * 3 * 3, conv(1, 64) + conv(64, 128) + conv(128, 256) + conv(256, 512)),
    "vgg4-32": (256 * 4 * 4, conv(3, 32) + conv(32, 64) + conv(64, 128) + conv(128, 256)),
    "vgg4-96": (1024, conv(3, 128) + conv(128, 256) + conv(256, 512) + conv(512, 1024)),
    "vgg4-28-small": (64 * 3 * 3, conv(1, 8) + conv(8, 16) + conv(16, 32) + conv(32, 64)),
    "vgg4-32-small": (32 * 4 * 4, conv(3, 4) + conv(4, 8) + conv(8, 16) + conv(16, 32)),
    "vgg4-96-small": (128, conv(3, 16) + conv(16, 32) + conv(32, 64) + conv(64, 128)),
    "resnet18-32": (512, 11_689_512 - 513_000 - 3 * 64 * 49 + 3 * 64 * 9),
    "resnet18-96": (512, 11_689_512 - 513_000 - 3 * 64 * 49 + 3 * 64 * 9),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_shapes_and_parameter_counts_are_those_of_the_table(name: str) -> None:
    n_features, n_parameters = BACKBONES[name]
    network = build_network(name, 7)
    images = torch.rand(2, NETWORKS[name].n_channels, NETWORKS[name].size, NETWORKS[name].size)
    assert network.backbone(images).shape == (2, n_features)
    assert network(images).shape == (2, 7)
    counted = sum(parameter.numel() for parameter in network.parameters())
    assert counted == n_parameters + 7 * n_features + 7


def test_images_are_standardised_by_channel() -> None:
    network = build_network("vgg4-32", 3, mean=[0.5, 0.4, 0.3], deviation=[0.1, 0.2, 0.3])
    images = torch.tensor([0.6, 0.8, 0.0])[None, :, None, None].expand(1, 3, 4, 4)
    expected = torch.tensor([1.0, 2.0, -1.0])[None, :, None, None].expand(1, 3, 4, 4)
    torch.testing.assert_close(network.standardize(images), expected)


@pytest.mark.parametrize(
    ("size", "is_grey", "wanted", "chosen"),
    [
        (28, True, "auto", "vgg4-28"),
        (28, False, "auto", "vgg4-32"),
        (32, True, "auto", "vgg4-32"),
        (96, False, "auto", "vgg4-96"),
        (32, False, "resnet18", "resnet18-32"),
        (96, False, "resnet18", "resnet18-96"),
        (28, True, "vgg4-96", "vgg4-96"),
    ],
)
def test_the_network_is_chosen_by_size_and_colour(size: int, is_grey: bool, wanted: str, chosen: str) -> None:
    assert choose_network(wanted, size, is_grey=is_grey) == chosen
