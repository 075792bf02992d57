"""Speed of training beside K-means and beside the bare products, as ratios between runs in one process.

A ratio is the median over rounds in which all runs take turns, so that a machine's changing load hits them alike.
An epoch is one of a single restart; the bare loop gathers batches and does two products of that size, on one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paper.tables import print_table, read_labelled
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from cceclust import CCEClusterer, choices
from cceclust.errors import ClusteringWarning

BATCH = 250
# As many as the default has for this many rows.
EPOCHS = choices.epochs_for(50_000, BATCH)
# Told apart from the epochs themselves: measuring the data, evaluating the restarts, predicting.
AROUND_THE_EPOCHS = "CCE, one restart, one epoch"
RUNS: dict[str, Callable[[NDArray[Any], int], object]] = {
    "K-means, one start": lambda features, k: KMeans(k, n_init=1, random_state=0).fit(features),
    "CCE, ten restarts": lambda features, k: cce(k, 10).fit(features),
    "CCE, ten restarts, with neighbours": lambda features, k: cce(k, 10, n_neighbors=10).fit(features),
    "CCE, defaults": lambda features, k: CCEClusterer(k, random_state=0).fit(features),
    "CCE, one restart": lambda features, k: cce(k, 1).fit(features),
    AROUND_THE_EPOCHS: lambda features, k: cce(k, 1, epochs=1).fit(features),
    "bare loop": lambda features, k: bare_loop(features, k),
}


def measure_speed(features: NDArray[Any], n_clusters: int, n_rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Run everything in turns, several rounds; return ratios of times, "A / B", and the median seconds of each run."""
    seconds: dict[str, list[float]] = {name: [] for name in RUNS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusteringWarning)
        # Compiling is not what is measured.
        cce(n_clusters, 2, epochs=1, n_neighbors=10).fit(features[: 4 * BATCH])
        cce(n_clusters, 1, epochs=1).fit(features[: 4 * BATCH])
        for _ in range(n_rounds):
            for name, run in RUNS.items():
                started = time.perf_counter()
                run(features, n_clusters)
                seconds[name].append(time.perf_counter() - started)
                print(f"{name}: {seconds[name][-1]:.2f} s", file=sys.stderr)
    times = {name: np.array(values) for name, values in seconds.items()}
    times["an epoch"] = (times["CCE, one restart"] - times[AROUND_THE_EPOCHS]) / (EPOCHS - 1)
    compared = [
        ("CCE, ten restarts", "K-means, one start"),
        ("CCE, ten restarts", "CCE, one restart"),
        ("CCE, ten restarts, with neighbours", "CCE, ten restarts"),
        ("CCE, defaults", "K-means, one start"),
        ("an epoch", "bare loop"),
    ]
    ratios = {f"{one} / {other}": float(np.median(times[one] / times[other])) for one, other in compared}
    return ratios, {name: float(np.median(values)) for name, values in times.items()}


def cce(n_clusters: int, n_restarts: int, *, epochs: int = EPOCHS, n_neighbors: int = 0) -> CCEClusterer:
    """Return a clusterer that only trains: a fixed number of epochs, equal sizes given, so that no graph is needed."""
    return CCEClusterer(
        n_clusters,
        fairness=100.0,
        prior=np.full(n_clusters, 1 / n_clusters),
        n_init=n_restarts,
        max_epochs=epochs,
        n_neighbors=n_neighbors,
        batch_size=BATCH,
        tol=0.0,
        random_state=0,
    )


def bare_loop(features: NDArray[Any], n_clusters: int) -> None:
    """Gather every row once, in random batches, and do the two products that training cannot avoid."""
    generator = np.random.default_rng(0)
    weights = np.zeros((n_clusters, features.shape[1]), features.dtype)
    with threadpool_limits(1, user_api="blas"):
        for batch in np.array_split(generator.permutation(len(features)), len(features) // BATCH):
            rows = features[batch]
            logits = weights @ rows.T
            np.matmul(logits, rows, out=weights)


def make_blobs(n_samples: int, n_features: int, n_clusters: int, seed: int = 0) -> NDArray[np.float32]:
    """Return clusters that overlap, in a few of many dimensions, as those of real embeddings do."""
    generator = np.random.default_rng(seed)
    # Like the spectrum of ResNet-50's features: few directions hold most of the variance.
    deviations = (1 + np.arange(min(50, n_features))) ** -0.5
    centres = 1.2 * generator.normal(0, deviations, (n_clusters, len(deviations)))
    hidden = generator.normal(0, deviations, (n_samples, len(deviations)))
    hidden += centres[generator.integers(0, n_clusters, n_samples)]
    mixing = generator.standard_normal((len(deviations), n_features), np.float32)
    rows = generator.standard_normal((n_samples, n_features), np.float32)
    rows += hidden.astype(np.float32) @ mixing
    return rows


def features_for(path: Path | None, n_samples: int, n_features: int, n_clusters: int) -> NDArray[np.float32]:
    """Return the rows of a file, over and over, with a little noise; synthetic ones without a file."""
    if path is None:
        return make_blobs(n_samples, n_features, n_clusters)
    rows = read_labelled(path)[0].astype(np.float32)
    rows = rows[np.arange(n_samples) % len(rows)]
    rows += np.float32(0.05) * np.random.default_rng(0).standard_normal(rows.shape, np.float32)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "file", nargs="?", type=Path, help="features to repeat, with noise of 0.05; else synthetic ones"
    )
    parser.add_argument("--samples", type=int, default=50_000, help="number of rows (%(default)s)")
    parser.add_argument("--dimensions", type=int, default=2048, help="columns of the synthetic features (%(default)s)")
    parser.add_argument("-k", "--k", type=int, default=10, help="number of clusters (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which all run in turns (%(default)s)")
    options = parser.parse_args()
    features = features_for(options.file, options.samples, options.dimensions, options.k)
    ratios, seconds = measure_speed(features, options.k, options.rounds)
    print(f"{features.shape[0]:,} × {features.shape[1]:,} float32")
    print_table(["ratio of times", ""], ((name, f"{value:.2f}") for name, value in ratios.items()))
    print("Median seconds: " + "; ".join(f"{name} {value:.2f}" for name, value in seconds.items()))


if __name__ == "__main__":
    main()
