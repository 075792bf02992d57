"""What the trainer costs beside a bare loop over the same network and views."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import get_args

import torch
from torch import Tensor

from cceclust.io.images import open_images
from cceclust.presets import NetworkName, ObjectiveName, RunSettings
from cceclust.torch.deep import DeepTrainer, as_input
from cceclust.torch.networks import NETWORKS
from cceclust.torch.pixels import load_pixels
from cceclust.torch.runs import make_trainer, resolve


@dataclass(frozen=True)
class TrainingSpeed:
    """The trainer's speed beside that of a bare loop: medians of pairs of epochs that took turns."""

    ratio: float
    images_per_second: float
    bare_images_per_second: float


def measure_overhead(trainer: DeepTrainer, pixels: Tensor, *, n_rounds: int) -> TrainingSpeed:
    """Time epochs of the trainer and of a loop of nothing but forward, backward and step, in turns.

    The loop goes through the same network and optimizer with the same number of images, but without augmentation,
    pseudo-labels, random batches or metrics: its views and batches are ready before, and its loss is the logits' sum.

    The network is trained on, and spoiled. A first pair of epochs is not counted.
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", type=Path, help="as for cceclust deep")
    parser.add_argument("-k", "--k", type=int, default=10, help="number of clusters (%(default)s)")
    parser.add_argument("--split", choices=["train", "test", "unlabeled"], help="which batches of a data set to read")
    parser.add_argument("--limit", type=int, help="read only the first images")
    parser.add_argument("--objective", choices=get_args(ObjectiveName), default="cce", help="(%(default)s)")
    parser.add_argument("--network", choices=get_args(NetworkName), default="auto", help="(%(default)s)")
    parser.add_argument("--batch-size", type=int, default=RunSettings.batch_size, help="(%(default)s)")
    parser.add_argument("--device", default="auto", help="auto, cpu, mps, cuda or cuda:N (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of epochs that take turns (%(default)s)")
    options = parser.parse_args()
    images = open_images(options.images, split=options.split, limit=options.limit)
    chosen = RunSettings(network=options.network, objective=options.objective, batch_size=options.batch_size)
    settings = resolve(chosen, images, options.k)
    form = NETWORKS[settings.network]
    pixels = load_pixels(images, form.size, form.n_channels).pixels
    trainer = make_trainer(settings, options.k, pixels, options.device)
    speed = measure_overhead(trainer, pixels, n_rounds=options.rounds)
    print(
        f"{options.objective}: {speed.ratio:.2f} of the bare loop's speed ({speed.images_per_second:.1f} against "
        f"{speed.bare_images_per_second:.1f} images a second, two views of each)"
    )


if __name__ == "__main__":
    main()
