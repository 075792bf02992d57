"""Figure 2 of arXiv:2303.07321: accuracy with noisy labels, by collision cross-entropy and by Shannon's.

python benchmarks/paper/figure2.py IMAGES [--out noisy-labels.png]
python benchmarks/paper/figure2.py FEATURES.h5 --features

A part η of the labels is replaced by random ones, and both losses learn the soft targets η·u + (1 − η)·label. The paper
trains a ResNet-18 from random weights and gives no settings; with --features a linear head learns instead. A fifth of
each class is held out, with its true labels.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from tables import add_options, print_table, read_labelled, spread

from cceclust import CCEClassifier
from cceclust.errors import ClusteringWarning

NAMES = {"cce": "collision cross-entropy", "ce": "Shannon's cross-entropy"}

# Takes the loss, the rows to learn from, their noisy labels, the noise and a seed; predicts all rows.
Learner = Callable[[str, NDArray[np.intp], NDArray[np.intp], float, int], NDArray[Any]]


def corrupt(labels: NDArray[np.intp], noise: float, seed: int) -> NDArray[np.intp]:
    """Replace a random part of the labels by random labels."""
    generator = np.random.default_rng(seed)
    replaced = generator.random(len(labels)) < noise
    return np.where(replaced, generator.choice(np.unique(labels), len(labels)), labels)


def linear_learner(features: NDArray[Any]) -> Learner:
    """Return a learner of a linear head."""

    def predict(loss: str, train: NDArray[np.intp], noisy: NDArray[np.intp], noise: float, seed: int) -> NDArray[Any]:
        classifier = CCEClassifier(curved=False, loss=loss, label_noise=noise, self_labeling=False, random_state=seed)
        with warnings.catch_warnings():
            # Hardly any confidence is right where nearly all labels are noise.
            warnings.simplefilter("ignore", ClusteringWarning)
            return classifier.fit(features[train], noisy).predict(features)

    return predict


def deep_learner(options: argparse.Namespace) -> tuple[Learner, NDArray[np.intp]]:
    """Return a learner of a ResNet-18, and the labels of the images."""
    import torch
    from networks import read_images
    from torch.optim.swa_utils import update_bn

    from cceclust.torch import CollisionCrossEntropy, resnet18
    from cceclust.torch.runs import channel_statistics

    pixels, labels = read_images(options, options.size)
    mean, deviation = (torch.tensor(each).reshape(3, 1, 1) for each in channel_statistics(pixels))
    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    losses = {"cce": CollisionCrossEntropy(), "ce": torch.nn.CrossEntropyLoss()}

    def as_input(rows: Any) -> Any:
        return ((pixels[rows].float() / 255 - mean) / deviation).to(device)

    def predict(loss: str, train: NDArray[np.intp], noisy: NDArray[np.intp], noise: float, seed: int) -> NDArray[Any]:
        torch.manual_seed(seed)
        n_classes = int(labels.max()) + 1
        network = resnet18(n_classes).to(device)
        targets = (noise / n_classes + (1 - noise) * torch.eye(n_classes)[torch.from_numpy(noisy)]).to(device)
        optimizer = torch.optim.Adam(network.parameters(), lr=options.learning_rate)
        n_steps = -(-len(train) // options.batch_size)
        for _ in range(options.epochs):
            for rows in torch.randperm(len(train)).tensor_split(n_steps):
                optimizer.zero_grad()
                losses[loss](network(as_input(train[rows])), targets[rows]).backward()
                optimizer.step()
        # The statistics of batch norms lag behind the weights.
        update_bn((as_input(rows) for rows in np.array_split(train, n_steps)), network)
        network.eval()
        with torch.inference_mode():
            blocks = np.array_split(np.arange(len(pixels)), -(-len(pixels) // 500))
            return torch.cat([network(as_input(rows)).argmax(dim=1).cpu() for rows in blocks]).numpy()

    return predict, labels


def compare(
    learner: Learner, labels: NDArray[np.intp], options: argparse.Namespace, curves: dict[str, list[list[float]]]
) -> Iterator[list[str]]:
    """Yield a row of the table for each noise, and keep the accuracies of all draws."""
    for noise in options.noise:
        found: dict[str, list[float]] = {loss: [] for loss in NAMES}
        for seed in range(options.seed, options.seed + options.draws):
            train, test = train_test_split(np.arange(len(labels)), test_size=0.2, random_state=seed, stratify=labels)
            noisy = corrupt(labels[train], noise, seed)
            for loss in NAMES:
                predicted = learner(loss, train, noisy, noise, seed)
                found[loss].append(float((predicted == labels)[test].mean()))
        for loss in NAMES:
            curves[loss].append(found[loss])
        yield [f"{noise:g}", *(spread(found[loss]) for loss in NAMES)]


def draw(noises: list[float], curves: dict[str, list[list[float]]], path: Path) -> None:
    """Plot accuracy against noise."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for (loss, draws), style in zip(curves.items(), ("-o", "--s"), strict=True):
        axes.errorbar(noises, np.mean(draws, axis=1), np.std(draws, axis=1), fmt=style, capsize=3, label=NAMES[loss])
    axes.set(xlabel="part of the labels that is random (η)", ylabel="accuracy on held-out rows")
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Print the accuracies and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, epochs=10, batch_size=100, rate=1e-3)
    parser.add_argument("--features", action="store_true", help="IMAGES is a feature file")
    parser.add_argument("--noise", type=float, nargs="+", default=[round(0.1 * step, 1) for step in range(10)])
    parser.add_argument("--draws", type=int, default=5, help="of the held-out rows and the noise")
    parser.add_argument("--size", type=int, default=32, help="side of the images in pixels")
    parser.add_argument("--out", type=Path, default=Path("noisy-labels.png"), help=".png, .svg or .pdf")
    options = parser.parse_args()
    if options.features:
        features, labels = read_labelled(options.images)
        learner = linear_learner(features)
    else:
        learner, labels = deep_learner(options)
    curves: dict[str, list[list[float]]] = {loss: [] for loss in NAMES}
    print_table(["noise", *NAMES.values()], compare(learner, labels, options, curves))
    draw(options.noise, curves, options.out)


if __name__ == "__main__":
    main()
