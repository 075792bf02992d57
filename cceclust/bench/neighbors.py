"""How good neighbours are that are not searched for exactly, what they cost, and what they do for the clusters."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.errors import ClusteringWarning
from cceclust.estimators import CCEClusterer
from cceclust.neighbors import nearest_neighbors
from cceclust.scoring import clustering_accuracy

__all__ = ["GraphResult", "compare_graphs"]

ROWS_FOR_RECALL = 2000


@dataclass(frozen=True)
class GraphResult:
    """A neighbour graph and what comes of it.

    Attributes
    ----------
    graph : str
        "none", "exact", or how it was searched for.
    recall : float or None
        Part of the exact neighbours that were found, on a sample of rows.
    purity : float or None
        Part of the neighbours that have the row's own label.
    seconds : float
        Time to find the neighbours.
    accuracies : list of float
        Of fits that use them, one a seed.
    agreement : float or None
        Mean agreement of the restarts of these fits.
    """

    graph: str
    recall: float | None
    purity: float | None
    seconds: float
    accuracies: list[float]
    agreement: float | None


def compare_graphs(
    features: NDArray[Any],
    labels: NDArray[Any],
    *,
    n_neighbors: int = 10,
    components: tuple[int, ...] = (32, 64, 128, 256),
    n_seeds: int = 3,
    on_graph: Callable[[str], None] | None = None,
) -> list[GraphResult]:
    """Find neighbours in several ways and fit with each.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        The features.
    labels : ndarray of shape (n_samples,)
        True labels, for scoring.
    n_neighbors : int
        Neighbours a row.
    components : tuple of int
        Numbers of principal components to search in; those that are no fewer than the features are left out. The
        largest is also searched in cells.
    n_seeds : int
        Fits a graph.
    on_graph : callable, optional
        Told the name of each graph when it is done.
    """
    n_samples, n_features = features.shape
    searches = {"exact": {"n_components": n_features, "n_compared": n_samples}}
    for n in components:
        if n < n_features:
            searches[f"{n} components"] = {"n_components": n, "n_compared": n_samples}
    if n_samples > choices.ROWS_COMPARED:
        most = min(max(components), n_features)
        searches[f"{most} components, cells"] = {"n_components": most, "n_compared": choices.ROWS_COMPARED}
    sample = np.random.default_rng(0).permutation(len(features))[:ROWS_FOR_RECALL]
    exact: NDArray[Any] | None = None
    results = []
    for name in ["none", *searches]:
        graph, recall, purity, seconds = None, None, None, 0.0
        if name != "none":
            started = time.perf_counter()
            graph = nearest_neighbors(features, n_neighbors, **searches[name])
            seconds = time.perf_counter() - started
            exact = graph if exact is None else exact
            recall = float(np.mean([np.isin(graph[row], exact[row]).mean() for row in sample]))
            purity = float((labels[graph] == labels[:, None]).mean())
        fits = [fit(features, len(np.unique(labels)), graph, seed) for seed in range(n_seeds)]
        accuracies = [clustering_accuracy(labels, estimator.labels_) for estimator in fits]
        agreement = float(np.mean([estimator.restart_agreement_ for estimator in fits]))
        results.append(GraphResult(name, recall, purity, seconds, accuracies, agreement))
        if on_graph is not None:
            on_graph(name)
    return results


def fit(features: NDArray[Any], n_clusters: int, graph: NDArray[Any] | None, seed: int) -> CCEClusterer:
    """Fit with the given graph, or without any."""
    estimator = CCEClusterer(n_clusters, n_neighbors=0, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusteringWarning)
        return estimator.fit(features, neighbors=graph)
