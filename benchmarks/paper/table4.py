"""Table 4 of arXiv:2303.07321: clusters by a ResNet-18 that starts from a pretext task.

python benchmarks/paper/table4.py IMAGES --set cifar10 --init simclr_cifar-10.pth.tar [--out FOLDER]

The checkpoint is SCAN's (github.com/wvangansbeke/Unsupervised-Classification), which has to be brought; its own
clustering step, the table's first row, is in that repository.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from networks import make_trainer, read_for
from table3 import HEADER, add_trials, compare
from tables import add_options, print_table

from cceclust.torch import DeepTrainer

OBJECTIVES = ("imsat", "miadm", "cce")
# The network, the weight of the augmented views, and how the pretext task standardised the channels.
SETS = {
    "cifar10": ("resnet18-32", 0.2, ([0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010])),
    "cifar100-20": ("resnet18-32", 0.4, ([0.5071, 0.4867, 0.4408], [0.2675, 0.2565, 0.2761])),
    "stl10": ("resnet18-96", 0.5, ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, epochs=50, batch_size=200, rate=1e-5)
    add_trials(parser, OBJECTIVES)
    parser.add_argument("--set", choices=SETS, default="cifar10", help="whose settings to use")
    parser.add_argument("--init", type=Path, required=True, help="the checkpoint")
    options = parser.parse_args()
    network, view_weight, statistics = SETS[options.set]
    pixels, labels = read_for(network, options)
    n_clusters = int(labels.max()) + 1

    def trainer_of(objective: str, seed: int) -> DeepTrainer:
        return make_trainer(
            network,
            pixels,
            n_clusters,
            objective,
            options,
            seed=seed,
            weight_decay=1e-4,
            head_learning_rate=5e-2,
            weights=options.init,
            statistics=statistics,
            parameters={"augmentation_weight": view_weight},
        )

    print_table(HEADER, compare(pixels, labels, trainer_of, options))


if __name__ == "__main__":
    main()
