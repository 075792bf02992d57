"""What the trainer costs beside a bare loop over the same network and views."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from cceclust.torch.deep import DeepTrainer, as_input

__all__ = ["TrainingSpeed", "measure_overhead"]


@dataclass(frozen=True)
class TrainingSpeed:
    """The trainer's speed beside that of a bare loop.

    Attributes
    ----------
    ratio : float
        The trainer's images a second over the bare loop's: the median of pairs of epochs that took turns.
    images_per_second : float
        The trainer's: images, each with its view.
    bare_images_per_second : float
        Those of the loop.
    """

    ratio: float
    images_per_second: float
    bare_images_per_second: float


def measure_overhead(trainer: DeepTrainer, pixels: Tensor, *, n_rounds: int = 3) -> TrainingSpeed:
    """Time epochs of the trainer and of a loop of nothing but forward, backward and step, in turns.

    The loop goes through the same network and optimizer with the same number of images, but without augmentation,
    pseudo-labels, random batches or metrics: its views and batches are ready before, and its loss is the logits' sum.

    Parameters
    ----------
    trainer : DeepTrainer
        Its network is trained on, and spoiled.
    pixels : tensor (n, …)
        The images.
    n_rounds : int
        Pairs of epochs; a first one is not counted.
    """
    # Pieces of the very sizes that the trainer makes.
    n_steps = -(-len(pixels) // trainer.batch_size)
    batches = [as_input(batch, trainer.device) for batch in pixels.tensor_split(n_steps)]
    pairs = [torch.cat([batch, batch]) for batch in batches]
    ours, bare = [], []
    for number in range(n_rounds + 1):
        ours.append(trainer.fit(pixels, len(trainer.history) + 1)[-1].images_per_second)
        bare.append(len(pixels) / time_bare_loop(trainer, pairs))
        if number == 0:
            ours, bare = [], []
    ratio = median(mine / theirs for mine, theirs in zip(ours, bare, strict=True))
    return TrainingSpeed(ratio, median(ours), median(bare))


def time_bare_loop(trainer: DeepTrainer, pairs: list[Tensor]) -> float:
    """Return the seconds that an epoch of forward, backward and step takes."""
    trainer.network.train()
    started = time.perf_counter()
    for pair in pairs:
        loss = trainer.network(pair).square().mean()
        trainer.optimizer.zero_grad()
        loss.backward()
        trainer.optimizer.step()
    # A device works on after its commands were given; reading a value waits for it.
    loss.item()
    return time.perf_counter() - started
