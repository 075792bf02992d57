"""Table 3 of arXiv:2303.07321: clusters by networks that start from random weights.

python benchmarks/paper/table3.py IMAGES [--network vgg4-28] [--out FOLDER]

The paper's settings are the defaults: Adam at 1e-4, weight decay 0.01, batches of 250 (160 for STL-10), 50 epochs, six
trials, VGG-4 (vgg4-28 for MNIST, vgg4-32 for CIFAR-10 and CIFAR-100, vgg4-96 for STL-10).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from networks import make_trainer, read_for
from numpy.typing import NDArray
from tables import NETWORKS, add_options, print_table, scores, spread
from torch import Tensor

from cceclust.errors import ClusteringWarning
from cceclust.torch import DeepTrainer

OBJECTIVES = ("imsat", "iic", "sela", "miadm", "cce-pgd", "cce")


def compare(
    pixels: Tensor,
    labels: NDArray[np.intp],
    trainer_of: Callable[[str, int], DeepTrainer],
    options: argparse.Namespace,
) -> Iterator[list[str]]:
    """Yield a row of the table for each objective; finished trials are read from the folder, if there is one."""
    for objective in options.objective:
        trials = []
        for seed in range(options.seed, options.seed + options.trials):
            kept = None if options.out is None else options.out / f"{objective}-{seed}.json"
            if kept is not None and kept.exists():
                trials.append(json.loads(kept.read_text()))
                continue
            begin, trainer = time.perf_counter(), trainer_of(objective, seed)
            with warnings.catch_warnings():
                # Objectives that collapse are part of the comparison.
                warnings.simplefilter("ignore", ClusteringWarning)
                trainer.fit(pixels, options.epochs)
            trials.append([*scores(labels, trainer.predict(pixels)), time.perf_counter() - begin])
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(trials[-1]))
        *columns, seconds = zip(*trials, strict=True)
        yield [objective, *map(spread, columns), f"{np.mean(seconds):.0f}"]


HEADER = ["objective", "ACC", "NMI", "ARI", "seconds"]


def add_trials(parser: argparse.ArgumentParser, objectives: tuple[str, ...]) -> None:
    """Add the options on what is compared."""
    parser.add_argument("--objective", nargs="+", choices=objectives, default=list(objectives))
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--out", type=Path, help="folder for the scores of each trial; the same command goes on there")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, epochs=50, batch_size=250, rate=1e-4)
    add_trials(parser, OBJECTIVES)
    parser.add_argument("--network", choices=NETWORKS, default="vgg4-28")
    options = parser.parse_args()
    pixels, labels = read_for(options.network, options)
    n_clusters = int(labels.max()) + 1

    def trainer_of(objective: str, seed: int) -> DeepTrainer:
        return make_trainer(options.network, pixels, n_clusters, objective, options, seed=seed)

    print_table(HEADER, compare(pixels, labels, trainer_of, options))


if __name__ == "__main__":
    main()
