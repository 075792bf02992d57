"""How good neighbours are that are not searched for exactly, what they cost, and what they do for the clusters."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import CCEClusterer, choices, nearest_neighbors
from cceclust.bench.files import read_labelled
from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import results
from cceclust.errors import ClusteringWarning
from cceclust.scoring import clustering_accuracy

ROWS_FOR_RECALL = 2000


@dataclass(frozen=True)
class GraphResult:
    """A neighbour graph and what comes of it."""

    # "none", "exact", or how it was searched for.
    graph: str
    # Part of the exact neighbours that were found, on a sample of rows.
    recall: float | None
    # Part of the neighbours that have the row's own label.
    purity: float | None
    # Time to find the neighbours.
    seconds: float
    # Of fits that use them, one for each seed.
    accuracies: list[float]
    # Mean agreement of the restarts of these fits.
    agreement: float


def compare_graphs(
    features: NDArray[Any],
    labels: NDArray[Any],
    *,
    n_neighbors: int = 10,
    components: tuple[int, ...] = (32, 64, 128, 256),
    n_seeds: int = 3,
) -> list[GraphResult]:
    """Find neighbours in several ways and fit with each.

    Numbers of components that are no fewer than the features are left out; the largest is also searched in cells.
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
        print(f"{name}: done", file=sys.stderr)
    return results


def fit(features: NDArray[Any], n_clusters: int, graph: NDArray[Any] | None, seed: int) -> CCEClusterer:
    """Fit with the given graph, or without any."""
    estimator = CCEClusterer(n_clusters, n_neighbors=0, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusteringWarning)
        return estimator.fit(features, neighbors=graph)


def print_graphs(outcomes: list[GraphResult], title: str) -> None:
    """Print the table; times are given as a ratio to the exact search."""
    exact = next(outcome.seconds for outcome in outcomes if outcome.graph == "exact")
    table = plain_table(title, "search", "recall", "same class", "time / exact", "ACC", "agreement")
    for outcome in outcomes:
        table.add_row(
            outcome.graph,
            "–" if outcome.recall is None else f"{outcome.recall:.3f}",
            "–" if outcome.purity is None else f"{outcome.purity:.3f}",
            "–" if outcome.graph == "none" else f"{outcome.seconds / exact:.2f}",
            mean_and_deviation(outcome.accuracies),
            f"{outcome.agreement:.2f}",
        )
    results().print(table)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="labelled features")
    parser.add_argument("-n", "--neighbors", type=int, default=10, help="neighbours of each row (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="fits with each graph (%(default)s)")
    options = parser.parse_args()
    features, labels = read_labelled(options.file)
    outcomes = compare_graphs(features, labels, n_neighbors=options.neighbors, n_seeds=options.seeds)
    print_graphs(outcomes, f"{options.file.name}: {options.neighbors} neighbours, {options.seeds} fits each")


if __name__ == "__main__":
    main()
