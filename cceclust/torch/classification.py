"""Supervised training of a network on soft labels, with any loss of logits and targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from cceclust.torch.deep import PREDICTION_BATCH, as_input, check_at_least_one, exact_convolutions, seeded
from cceclust.torch.devices import resolve_device
from cceclust.torch.losses import collision_cross_entropy
from cceclust.torch.networks import Standardize
from cceclust.torch.resnet import resnet18
from cceclust.validation import check_positive

__all__ = ["LOSSES", "predict_classes", "soft_targets", "standard_resnet18", "train_classifier"]

# The losses that Figure 2 compares, averaged over samples; logits and soft targets are both (n, n_classes).
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cce": lambda logits, targets: collision_cross_entropy(logits, targets).mean(),
    "ce": nn.functional.cross_entropy,
}


def standard_resnet18(n_classes: int, mean: list[float], deviation: list[float], seed: int) -> nn.Sequential:
    """Return torchvision's ResNet-18 with random weights, behind a layer that standardises RGB images."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return nn.Sequential(Standardize(mean, deviation), resnet18(n_classes))


def soft_targets(labels: NDArray[Any], n_classes: int, noise: float) -> Tensor:
    """Return η·u + (1 − η)·label (n, n_classes) for labels of which a fraction η, the noise, is random.

    Examples
    --------
    >>> soft_targets(np.array([1, 0]), 2, noise=0.5)
    tensor([[0.2500, 0.7500],
            [0.7500, 0.2500]])
    """
    return noise / n_classes + (1 - noise) * torch.eye(n_classes)[torch.from_numpy(labels)]


def train_classifier(
    network: nn.Module,
    images: Tensor,
    targets: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    n_epochs: int,
    learning_rate: float = 1e-3,
    batch_size: int = 100,
    device: str = "auto",
    seed: int = 0,
) -> None:
    """Train a network with Adam.

    After the last epoch, the statistics of batch norms are computed again with the trained network.

    Parameters
    ----------
    network : nn.Module
        Maps images to logits (n, n_classes). Its weights are changed.
    images : tensor (n, …)
        Input of the network; uint8 is divided by 255.
    targets : tensor (n, n_classes)
        Soft labels.
    loss : callable
        Function of logits and targets; see :data:`LOSSES`.
    n_epochs, batch_size : int
        Number of passes over all images, and maximum number of images per batch.
    learning_rate : float
        Learning rate of Adam.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    seed : int
        Seed of the order of the batches.

    Examples
    --------
    >>> network = nn.Linear(3, 2)
    >>> train_classifier(network, torch.randn(20, 3), torch.full((20, 2), 0.5), LOSSES["cce"], n_epochs=1, device="cpu")
    """
    check_positive(learning_rate, "learning_rate")
    for value, name in ((n_epochs, "n_epochs"), (batch_size, "batch_size")):
        check_at_least_one(value, name)
    place = resolve_device(device)
    network.to(place).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    n_steps = math.ceil(len(images) / batch_size)
    for epoch in range(1, n_epochs + 1):
        with seeded(seed, epoch, place), exact_convolutions():
            for rows in torch.randperm(len(images)).tensor_split(n_steps):
                step_loss = loss(network(as_input(images[rows], place)), targets[rows].to(place))
                optimizer.zero_grad()
                torch.autograd.backward(step_loss)
                optimizer.step()
    update_bn((as_input(batch, place) for batch in images.tensor_split(n_steps)), network)


def predict_classes(network: nn.Module, images: Tensor) -> NDArray[np.int64]:
    """Return the most probable class of each image (n, …)."""
    network.eval()
    place = next(network.parameters()).device
    with torch.inference_mode(), exact_convolutions():
        found = [network(as_input(batch, place)).argmax(dim=1).cpu() for batch in torch.split(images, PREDICTION_BATCH)]
    classes: NDArray[np.int64] = torch.cat(found).numpy()
    return classes
