"""Hundreds of clusters: time and adjusted Rand index of the default fit beside one start of K-means.

The rows are round clusters in 256 dimensions. Times are of all cores together (CPU seconds), so that a busy machine
changes their ratio little. The two take turns; the ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from cceclust import CCEClusterer
from cceclust.cli.bench.tables import plain_table
from cceclust.cli.console import results
from cceclust.errors import ClusteringWarning


def timed(fit_predict: Callable[[], NDArray[Any]], classes: NDArray[Any]) -> tuple[float, float]:
    """Return CPU seconds and the adjusted Rand index."""
    started = time.process_time()
    labels = fit_predict()
    return time.process_time() - started, float(adjusted_rand_score(classes, labels))


def compare(n_samples: int, n_clusters: int, width: float, n_rounds: int) -> tuple[float, float, float]:
    """Return the ratio of times, and the mean adjusted Rand indices of this tool and of K-means."""
    X, classes = datasets.make_blobs(
        n_samples, 256, centers=n_clusters, cluster_std=width, center_box=(-2, 2), random_state=0
    )
    X = X.astype(np.float32)
    own, plain = [], []
    for seed in range(n_rounds):
        plain.append(timed(lambda s=seed: KMeans(n_clusters, n_init=1, random_state=s).fit_predict(X), classes))
        own.append(timed(lambda s=seed: CCEClusterer(n_clusters, random_state=s).fit_predict(X), classes))
    ratios = [one[0] / other[0] for one, other in zip(own, plain, strict=True)]
    return float(np.median(ratios)), float(np.mean(own, axis=0)[1]), float(np.mean(plain, axis=0)[1])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", "--k", type=int, nargs="+", default=[100, 300, 1000], help="numbers of clusters")
    parser.add_argument("--samples", type=int, default=50_000, help="(%(default)s)")
    parser.add_argument("--width", type=float, default=2.0, help="standard deviation of a cluster (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ClusteringWarning)
    # Compiling is not what is measured.
    CCEClusterer(5, random_state=0).fit(np.random.default_rng(0).normal(size=(1000, 256)).astype(np.float32))
    table = plain_table(f"{options.samples:,} × 256 float32", "clusters", "time / K-means'", "ARI", "K-means' ARI")
    for n_clusters in options.k:
        ratio, own, plain = compare(options.samples, n_clusters, options.width, options.rounds)
        table.add_row(str(n_clusters), f"{ratio:.2f}", f"{own:.3f}", f"{plain:.3f}")
    results().print(table)


if __name__ == "__main__":
    main()
