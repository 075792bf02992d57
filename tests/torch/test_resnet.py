"""The ResNets against a plain functional forward pass by torchvision's names."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from cceclust.torch import resnet18, resnet50
from cceclust.torch.resnet import ResNet, fuse_batch_norms


def randomise_batch_norms(network: ResNet) -> ResNet:
    """Give the statistics values with which leaving one of them out would show."""
    for name, values in network.state_dict().items():
        if "running_mean" in name or name.endswith("bias"):
            values.uniform_(-0.2, 0.2)
        elif "running_var" in name:
            values.uniform_(0.5, 1.5)
    return network.eval()


def forward_by_names(state: dict[str, Tensor], x: Tensor, depths: tuple[int, ...], strides: dict[str, int]) -> Tensor:
    """Compute a ResNet from its state dict alone; ``strides`` names the convolutions that shrink the image."""

    def conv_norm(conv: str, norm: str, x: Tensor, stride: int) -> Tensor:
        weight = state[f"{conv}.weight"]
        x = functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
        statistics = (state[f"{norm}.{name}"] for name in ("running_mean", "running_var", "weight", "bias"))
        return functional.batch_norm(x, *statistics)

    x = functional.max_pool2d(conv_norm("conv1", "bn1", x, 2).relu(), 3, stride=2, padding=1)
    for stage, depth in enumerate(depths, 1):
        for number in range(depth):
            block = f"layer{stage}.{number}"
            shrinks = stage > 1 and number == 0
            y = x
            convolutions = [name for name in ("conv1", "conv2", "conv3") if f"{block}.{name}.weight" in state]
            for name in convolutions:
                y = conv_norm(f"{block}.{name}", f"{block}.bn{name[-1]}", y, strides.get(name, 1) if shrinks else 1)
                y = y if name == convolutions[-1] else y.relu()
            if f"{block}.downsample.0.weight" in state:
                x = conv_norm(f"{block}.downsample.0", f"{block}.downsample.1", x, 2 if shrinks else 1)
            x = (x + y).relu()
    return functional.linear(x.mean(dim=(2, 3)), state["fc.weight"], state["fc.bias"])


@pytest.mark.parametrize(
    ("network", "depths", "strides"),
    [
        (resnet18(), (2, 2, 2, 2), {"conv1": 2}),
        (resnet50(), (3, 4, 6, 3), {"conv2": 2}),
    ],
    ids=["resnet18", "resnet50"],
)
def test_outputs_equal_a_plain_functional_forward_pass(
    network: ResNet, depths: tuple[int, ...], strides: dict[str, int]
) -> None:
    torch.manual_seed(0)
    randomise_batch_norms(network)
    x = torch.randn(2, 3, 64, 96)
    with torch.inference_mode():
        expected = forward_by_names(network.state_dict(), x, depths, strides)
        torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def test_fusing_batch_norms_keeps_the_outputs_and_leaves_none() -> None:
    torch.manual_seed(0)
    network = randomise_batch_norms(resnet50(n_classes=None))
    x = torch.randn(2, 3, 64, 64)
    with torch.inference_mode():
        before = network(x)
        after = fuse_batch_norms(network)(x)
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5 * float(before.abs().max()))
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in network.modules())
