"""What the scripts share: options, labelled features, scores over trials, and tables as Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from cceclust import clustering_accuracy
from cceclust.io import open_features

NETWORKS = ("vgg4-28", "vgg4-32", "vgg4-96", "vgg4-28-small", "vgg4-32-small", "vgg4-96-small")


def add_options(parser: argparse.ArgumentParser, *, epochs: int, batch_size: int, rate: float) -> None:
    """Add the options that the scripts share."""
    parser.add_argument("images", type=Path, help="labelled images, as for `cceclust deep`")
    parser.add_argument("--limit", type=int, help="use the first images only")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch-size", type=int, default=batch_size)
    parser.add_argument("--learning-rate", type=float, default=rate, help="of Adam")
    parser.add_argument("--device", default="auto", help="auto, cpu, mps, cuda or cuda:N")
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")


def read_labelled(path: Path) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the features of a file, and its labels as numbers from 0."""
    with open_features(path) as file:
        if file.labels is None:
            raise SystemExit(f"{path} has no labels to compare with; add a dataset `labels`")
        return np.asarray(file.array(), np.float32), np.unique(file.labels, return_inverse=True)[1]


def scores(labels: NDArray[Any], found: NDArray[Any]) -> tuple[float, float, float]:
    """Return accuracy under the best matching, NMI and ARI."""
    return (
        clustering_accuracy(labels, found),
        float(normalized_mutual_info_score(labels, found)),
        float(adjusted_rand_score(labels, found)),
    )


def spread(values: Sequence[float]) -> str:
    """Return mean and standard deviation, as the paper prints them."""
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table as Markdown, each row as soon as it is known."""
    print("|", " | ".join(header), "|")
    print("|" + "---|" * len(header))
    for row in rows:
        print("|", " | ".join(map(str, row)), "|", flush=True)
