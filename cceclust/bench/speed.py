"""Speed of training beside K-means and beside the bare products, as ratios between runs in one process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from cceclust.errors import ClusteringWarning
from cceclust.estimators import CCEClusterer

__all__ = ["RUNS", "SpeedRatios", "make_blobs", "measure_speed"]

EPOCHS = 10
BATCH = 250


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


@dataclass(frozen=True)
class SpeedRatios:
    """Times of one thing over another, the median of several rounds in which all ran in turns.

    Attributes
    ----------
    shape : tuple of int
        Of the features.
    ratios : dict
        "A / B" to the ratio of their times. An epoch is one of a single restart; the bare loop gathers batches and
        does two products of that size, on one thread.
    seconds : dict
        Median seconds of each, for orientation.
    """

    shape: tuple[int, int]
    ratios: dict[str, float]
    seconds: dict[str, float]


def measure_speed(
    features: NDArray[Any],
    n_clusters: int = 10,
    *,
    n_rounds: int = 3,
    on_run: Callable[[str], None] | None = None,
) -> SpeedRatios:
    """Run everything in turns, several rounds. Restarts train for ten epochs.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        What to cluster; see :func:`make_blobs`.
    n_clusters : int
        Number of clusters.
    n_rounds : int
        Rounds.
    on_run : callable, optional
        Told the name of each run when it is done.
    """
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
                if on_run is not None:
                    on_run(name)
    times = {name: np.array(values) for name, values in seconds.items()}
    times["an epoch"] = (times["CCE, one restart"] - times[AROUND_THE_EPOCHS]) / (EPOCHS - 1)
    compared = [
        ("CCE, ten restarts", "K-means, one start"),
        ("CCE, ten restarts", "CCE, one restart"),
        ("CCE, ten restarts, with neighbours", "CCE, ten restarts"),
        ("CCE, defaults", "K-means, one start"),
        ("an epoch", "bare loop"),
    ]
    return SpeedRatios(
        features.shape,
        {f"{one} / {other}": float(np.median(times[one] / times[other])) for one, other in compared},
        {name: float(np.median(values)) for name, values in times.items()},
    )


def cce(n_clusters: int, n_restarts: int, *, epochs: int = EPOCHS, n_neighbors: int = 0) -> CCEClusterer:
    """Return a clusterer that trains for a fixed number of epochs."""
    return CCEClusterer(
        n_clusters,
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
