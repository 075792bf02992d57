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

__all__ = ["SpeedRatios", "make_blobs", "measure_speed"]

EPOCHS = 10
BATCH = 250


@dataclass(frozen=True)
class SpeedRatios:
    """Times of one thing over another, the median of several rounds in which all ran in turns.

    Attributes
    ----------
    shape : tuple of int
        Of the features.
    ten_restarts_over_kmeans : float
        Ten restarts over ten epochs, over one start of scikit-learn's K-means.
    ten_restarts_over_one : float
        Ten restarts over ten epochs, over one.
    epoch_over_bare_loop : float
        An epoch of one restart, over a loop that gathers batches and does two products of that size, on one thread.
    seconds : dict
        Median seconds of each, for orientation.
    """

    shape: tuple[int, int]
    ten_restarts_over_kmeans: float
    ten_restarts_over_one: float
    epoch_over_bare_loop: float
    seconds: dict[str, float]


def measure_speed(
    features: NDArray[Any],
    n_clusters: int = 10,
    *,
    n_rounds: int = 3,
    on_run: Callable[[str], None] | None = None,
) -> SpeedRatios:
    """Run everything in turns, several rounds.

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
    runs: dict[str, Callable[[], object]] = {
        "K-means, one start": lambda: KMeans(n_clusters, n_init=1, random_state=0).fit(features),
        "CCE, ten restarts": lambda: cce(n_clusters, 10).fit(features),
        "CCE, one restart": lambda: cce(n_clusters, 1).fit(features),
        "CCE, one restart, all but the epochs": lambda: cce(n_clusters, 1, epochs=1).fit(features),
        "bare loop": lambda: bare_loop(features, n_clusters),
    }
    # Compiling is not what is measured.
    cce(n_clusters, 1, epochs=1).fit(features[: 4 * BATCH])
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusteringWarning)
        for _ in range(n_rounds):
            for name, run in runs.items():
                started = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - started)
                if on_run is not None:
                    on_run(name)

    def ratio(numerator: str, denominator: str) -> float:
        return float(np.median(np.divide(seconds[numerator], seconds[denominator])))

    one, once = np.array(seconds["CCE, one restart"]), np.array(seconds["CCE, one restart, all but the epochs"])
    epoch = (one - once) / (EPOCHS - 1)
    return SpeedRatios(
        features.shape,
        ratio("CCE, ten restarts", "K-means, one start"),
        ratio("CCE, ten restarts", "CCE, one restart"),
        float(np.median(epoch / np.array(seconds["bare loop"]))),
        {name: float(np.median(values)) for name, values in seconds.items()},
    )


def cce(n_clusters: int, n_restarts: int, *, epochs: int = EPOCHS) -> CCEClusterer:
    """Return a clusterer that trains for a fixed number of epochs."""
    return CCEClusterer(n_clusters, n_init=n_restarts, max_epochs=epochs, batch_size=BATCH, tol=0.0, random_state=0)


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
    """Return clusters that overlap about as much as those of real embeddings."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(0, 3 / np.sqrt(n_features), (n_clusters, n_features)).astype(np.float32)
    rows = generator.standard_normal((n_samples, n_features), np.float32)
    rows += np.sqrt(np.float32(n_features)) * 0.5 * centres[generator.integers(0, n_clusters, n_samples)]
    return rows
