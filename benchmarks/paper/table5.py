"""Table 5 of arXiv:2303.07321: classification with few labels.

python benchmarks/paper/table5.py IMAGES [--network vgg4-32]
python benchmarks/paper/table5.py FEATURES.h5 --features

The paper trains VGG-4 from random weights with its settings of Table 3, which are the defaults; with --features a
linear head learns instead. Accuracy is that on the rows without a label; nothing is matched, as the labels name the
clusters.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tables import NETWORKS, add_options, print_table, read_labelled, spread

from cceclust import CCEClassifier

Method = Callable[[NDArray[np.int64], int], NDArray[Any]]

OBJECTIVES = {"+ IMSAT": "imsat", "+ IIC": "iic", "+ SeLa": "sela", "+ MIADM": "miadm", "+ CCE": "cce"}


def draw_labels(labels: NDArray[np.intp], ratio: float, seed: int) -> NDArray[np.int64]:
    """Keep a part of the labels, at least one of each class, and set the others to −1."""
    generator = np.random.default_rng(seed)
    given = np.full(len(labels), -1, np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        given[generator.choice(members, max(1, round(ratio * len(members))), replace=False)] = label
    if (given >= 0).all():
        raise SystemExit(f"a ratio of {ratio:g} leaves none of {len(labels):,} rows without a label; lower it")
    return given


def methods_for_features(features: NDArray[Any]) -> dict[str, Method]:
    """Return the methods for a linear head: each takes the given labels and a seed, and predicts all rows."""

    def fitted(**settings: Any) -> Method:
        return lambda given, seed: (
            CCEClassifier(curved=False, random_state=seed, **settings).fit(features, given).predict(features)
        )

    return {"only seeds": fitted(self_labeling=False), "+ CCE": fitted(self_labeling=True)}


def methods_for_images(options: argparse.Namespace) -> tuple[dict[str, Method], NDArray[np.intp]]:
    """Return the methods for a network, and the labels of the images; all take the same steps on the same batches."""
    from networks import LabelsOnly, make_trainer, read_for

    pixels, labels = read_for(options.network, options)
    n_classes = int(labels.max()) + 1

    def trained(objective: str | None) -> Method:
        def predict(given: NDArray[np.int64], seed: int) -> NDArray[Any]:
            trainer = make_trainer(options.network, pixels, n_classes, objective or LabelsOnly(), options, seed=seed)
            trainer.fit(pixels, options.epochs, given=given)
            return trainer.predict(pixels)

        return predict

    return {"only seeds": trained(None), **{name: trained(each) for name, each in OBJECTIVES.items()}}, labels


def compare(methods: dict[str, Method], labels: NDArray[np.intp], options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield a row of the table for each method."""
    for name, method in methods.items():
        if options.method and name not in options.method:
            continue
        columns = []
        for ratio in options.ratio:
            accuracies = []
            for seed in range(options.seed, options.seed + options.draws):
                given = draw_labels(labels, ratio, seed)
                hidden = given < 0
                accuracies.append(float((method(given, seed) == labels)[hidden].mean()))
            columns.append(spread(accuracies))
        yield [name, *columns]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, epochs=50, batch_size=250, rate=1e-4)
    parser.add_argument("--features", action="store_true", help="IMAGES is a feature file")
    parser.add_argument("--network", choices=NETWORKS, default="vgg4-32")
    parser.add_argument("--method", nargs="+", choices=("only seeds", *OBJECTIVES), help="by default all")
    parser.add_argument("--ratio", type=float, nargs="+", default=[0.1, 0.05, 0.01], help="parts of rows with a label")
    parser.add_argument("--draws", type=int, default=5, help="of the labelled rows")
    options = parser.parse_args()
    if options.features:
        features, labels = read_labelled(options.images)
        methods = methods_for_features(features)
    else:
        methods, labels = methods_for_images(options)
    print_table(["method", *(f"{ratio:g}" for ratio in options.ratio)], compare(methods, labels, options))


if __name__ == "__main__":
    main()
