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
from cceclust.torch.objectives import CCE, Objective, SelfLabeling, make_objective
from cceclust.torch.pixels import make_augmentation
from cceclust.torch.runs import channel_statistics
from cceclust.torch.weights import load_weights


class LabelsOnly(Objective):
    """A loss of 0, which leaves the trainer's loss of labelled images: the paper's "only seeds"."""

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Return the loss."""
        return {"loss": logits.new_zeros(())}


class CCEByPGD(CCE):
    """Mean of H₂(y, σ) + λ KL(ȳ ‖ u) + w · mean of H₂(y, σ_view), with y found by projected gradient descent.

    A step that would raise the loss is not taken, and later steps are half as long: unlike the fixed step sizes of
    the paper's Table 1, this needs no tuning and cannot diverge.
    """

    max_iter = 200

    @torch.no_grad()
    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        probabilities = logits.softmax(dim=1)
        n_clusters = probabilities.shape[1]
        smallest = torch.finfo(probabilities.dtype).tiny
        labels, loss = probabilities, self._value(probabilities, probabilities)
        # Multiplied by the number of samples, like all steps here: a step size that suits the term of one point.
        step = torch.ones_like(loss)
        for _ in range(self.max_iter):
            collision = (labels * probabilities).sum(dim=1, keepdim=True).clamp_min(smallest)
            pull = self.fairness * (n_clusters * labels.mean(dim=0)).clamp_min(smallest).log()
            moved = project_to_simplex(labels - step * (pull - probabilities / collision))
            value = self._value(moved, probabilities)
            # Decided on the device, so that nothing waits for it.
            lower = value < loss
            labels, loss = torch.where(lower, moved, labels), torch.where(lower, value, loss)
            step = torch.where(lower, 1.2 * step, 0.5 * step)
        return labels

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return KL(ȳ ‖ u)."""
        return SelfLabeling.unfairness(self, labels)

    def _value(self, labels: Tensor, probabilities: Tensor) -> Tensor:
        collision = (labels * probabilities).sum(dim=1).clamp_min(torch.finfo(labels.dtype).tiny)
        return -collision.log().mean() + self.fairness * self.unfairness(labels)


def project_to_simplex(rows: Tensor) -> Tensor:
    """Return the nearest points (n, k) whose entries are not negative and sum to 1.

    J. Duchi et al., "Efficient projections onto the l1-ball for learning in high dimensions", ICML 2008.
    """
    # A shift of a row along (1, …, 1) does not change its projection, and keeps the digits of small numbers.
    rows = rows - rows.amax(dim=1, keepdim=True)
    largest = rows.sort(dim=1, descending=True).values
    excess = largest.cumsum(dim=1) - 1
    count = torch.arange(1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype)
    n_positive = (largest * count > excess).sum(dim=1, keepdim=True)
    shift = excess.gather(1, n_positive - 1) / n_positive
    return (rows - shift).clamp_min(0)


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
    if isinstance(objective, str):
        own = {"cce-pgd": CCEByPGD}.get(objective)
        objective = own(**parameters or {}) if own is not None else make_objective(objective, **parameters or {})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mean, deviation = statistics or channel_statistics(pixels)
        network = build_network(name, n_clusters, mean=mean, deviation=deviation)
        objective.start_head(network.head)
    if weights is not None:
        load_weights(network.backbone, weights)
    kind = "digits" if pixels.shape[1] == 1 else "photos"
    trainer = DeepTrainer(
        network,
        make_augmentation(kind, pixels.shape[2], pixels.shape[1]),
        objective,
        learning_rate=options.learning_rate,
        weight_decay=weight_decay,
        batch_size=options.batch_size,
        device=options.device,
        seed=seed,
    )
    if head_learning_rate is not None:
        head = {id(parameter) for parameter in network.head.parameters()}
        body = [parameter for parameter in network.parameters() if id(parameter) not in head]
        groups: list[dict[str, Any]] = [
            {"params": body},
            {"params": network.head.parameters(), "lr": head_learning_rate},
        ]
        trainer.optimizer = torch.optim.Adam(groups, lr=options.learning_rate, weight_decay=weight_decay)
    return trainer
