"""Table 2 of arXiv:2303.07321, clusters of fixed features, and the supplement's L_CCE beside L_CCE+.

python benchmarks/paper/table2.py features.h5 [--method kmeans migd sela miadm cce cce-pgd] [--trials 6]

The paper's settings are the defaults: raw features, one random start, ten epochs, solvers that nearly converge.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from tables import print_table, read_labelled, scores, spread

from cceclust.estimators import CCE, MIADM, MIGD, CCEByPGD, SeLa

METHODS: dict[str, Any] = {
    "kmeans": KMeans,
    "migd": MIGD,
    "sela": SeLa,
    "miadm": MIADM,
    "cce": CCE,
    "cce-pgd": CCEByPGD,
}
# After so many iterations, both losses of collision cross-entropy are about a hundredth above their minimum at λ = 100.
ITERATIONS = {"cce": 1000, "cce-pgd": 5000, "sela": 200, "miadm": 200}


def settings_of(method: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that differ from the paper's."""
    if method == "kmeans":
        return {"n_init": 1}
    given = {
        "fairness": options.fairness,
        "weight_decay": options.weight_decay,
        "max_epochs": options.epochs,
        "max_iter": options.max_iter or ITERATIONS.get(method),
    }
    return {name: value for name, value in given.items() if value is not None}


def compare(features: NDArray[Any], labels: NDArray[Any], options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield a row of the table for each method."""
    n_clusters = options.k or len(np.unique(labels))
    for method in options.method:
        trials, begin = [], time.perf_counter()
        for seed in range(options.seed, options.seed + options.trials):
            estimator = METHODS[method](n_clusters, random_state=seed, **settings_of(method, options))
            trials.append(scores(labels, estimator.fit_predict(features)))
        seconds = (time.perf_counter() - begin) / options.trials
        yield [method, *(spread(values) for values in zip(*trials, strict=True)), f"{seconds:.1f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, help="a feature file with labels")
    parser.add_argument("-k", type=int, help="number of clusters; by default the number of classes")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS)[:-1])
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")
    parser.add_argument("--standardize", action="store_true", help="centre the features, and scale them by one number")
    parser.add_argument("--fairness", type=float, help="by default 100 for cce and cce-pgd, 1.3 for migd, 1 for miadm")
    parser.add_argument("--weight-decay", type=float, help="the paper: 0.02, 0.009 for CIFAR-100, 0.001 for MNIST")
    parser.add_argument("--epochs", type=int, help="10 by default")
    parser.add_argument("--max-iter", type=int, help=f"iterations of the solver for a batch; by default {ITERATIONS}")
    options = parser.parse_args()
    features, labels = read_labelled(options.features)
    if options.standardize:
        features = (features - features.mean(axis=0)) / features.std()
    rows = compare(features, labels, options)
    print_table(["method", "ACC", "NMI", "ARI", "seconds"], rows)


if __name__ == "__main__":
    main()
