"""What the scripts that train networks share: images as their input, and trainers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

from cceclust.io.images import open_images
from cceclust.torch import DeepTrainer, build_network
from cceclust.torch.augmentation import make_augmentation
from cceclust.torch.objectives import Objective, make_objective
from cceclust.torch.weights import load_weights


class LabelsOnly(Objective):
    """A loss of 0, which leaves the trainer's loss of labelled images: the paper's "only seeds"."""

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Return the loss."""
        return {"loss": logits.new_zeros(())}


def read_images(options: argparse.Namespace, side: int, n_channels: int = 3) -> tuple[Tensor, NDArray[np.intp]]:
    """Return images (n, n_channels, side, side) of uint8, and their labels as numbers from 0."""
    images = open_images(options.images, limit=options.limit)
    if images.labels is None:
        raise SystemExit(f"{options.images} has no labels to compare with; use images in class folders, or with labels")
    pixels = torch.empty(len(images), n_channels, side, side, dtype=torch.uint8)
    for index in range(len(images)):
        image = ImageOps.fit(Image.fromarray(images.read(index)), (side, side), Image.Resampling.BILINEAR)
        rows = np.asarray(image.convert("L") if n_channels == 1 else image)
        pixels[index] = torch.from_numpy(rows.reshape(side, side, n_channels).transpose(2, 0, 1).copy())
    return pixels, np.unique(images.labels, return_inverse=True)[1]


def read_for(network: str, options: argparse.Namespace) -> tuple[Tensor, NDArray[np.intp]]:
    """Return images of the size and the channels that a network accepts, and their labels."""
    side = int(network.split("-")[1])
    return read_images(options, side, 1 if side == 28 else 3)


def channel_statistics(pixels: Tensor) -> tuple[list[float], list[float]]:
    """Return mean and deviation of each channel, of pixels from 0 to 1."""
    sums, squares = torch.zeros(2, pixels.shape[1], dtype=torch.float64)
    for block in pixels.split(1000):
        sums += (block.double() / 255).sum((0, 2, 3))
        squares += (block.double() / 255).square().sum((0, 2, 3))
    count = pixels[:, 0].numel()
    mean = sums / count
    # A constant channel is not scaled.
    deviation = (squares / count - mean.square()).clamp_min(0).sqrt()
    return mean.tolist(), torch.where(deviation > 0, deviation, 1.0).tolist()


def make_trainer(
    name: str,
    pixels: Tensor,
    n_clusters: int,
    objective: Any,
    options: argparse.Namespace,
    *,
    seed: int,
    weight_decay: float = 0.01,
    head_learning_rate: float | None = None,
    weights: Path | None = None,
    statistics: tuple[list[float], list[float]] | None = None,
    parameters: dict[str, float] | None = None,
) -> DeepTrainer:
    """Return a trainer of a network; a seed gives the same weights, batches and views for every objective."""
    chosen = make_objective(objective, **(parameters or {})) if isinstance(objective, str) else objective
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mean, deviation = statistics or channel_statistics(pixels)
        network = build_network(name, n_clusters, mean=mean, deviation=deviation)
        chosen.start_head(network.head)
    if weights is not None:
        load_weights(network.backbone, weights)
    kind = "digits" if pixels.shape[1] == 1 else "photos"
    return DeepTrainer(
        network,
        make_augmentation(kind, pixels.shape[2], pixels.shape[1]),
        chosen,
        learning_rate=options.learning_rate,
        head_learning_rate=head_learning_rate,
        weight_decay=weight_decay,
        batch_size=options.batch_size,
        device=options.device,
        seed=seed,
    )
