"""Choosing defaults by a protocol: candidates over several labelled files and seeds, ranked on each file.

Accuracies are those of the restart that was chosen without labels. Defaults are chosen by mean rank and worst case.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.cluster import KMeans

from cceclust import CCEClusterer
from cceclust.bench.files import read_labelled
from cceclust.bench.suitable_decay import suitable_weight_decay
from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import results
from cceclust.errors import ClusteringWarning
from cceclust.scoring import clustering_accuracy

# Each is a change of CCEClusterer's defaults; "default" is none, and K-means is there to be beaten.
CANDIDATES: dict[str, dict[str, Any]] = {
    "default": {},
    "no neighbours": {"n_neighbors": 0},
    "20 neighbours": {"n_neighbors": 20},
    "fairness 3": {"fairness": 3.0},
    "fairness 10": {"fairness": 10.0},
    "fairness 30": {"fairness": 30.0},
    "0.7 of the weight decay": {"weight_decay": 0.7},
    "1.4 of the weight decay": {"weight_decay": 1.4},
    "rate 0.25": {"learning_rate": 0.25},
    "rate 1": {"learning_rate": 1.0},
    "10 iterations": {"max_iter": 10},
    "50 iterations": {"max_iter": 50},
    "3 restarts": {"n_init": 3},
    "one start": {"n_init": 1},
    "one start, no neighbours": {"n_init": 1, "n_neighbors": 0},
    "batches of 500": {"batch_size": 500},
    "random start": {"init": "random"},
    "k-means start": {"init": "k-means"},
    "64 components": {"n_components": 64},
    "all features": {"n_components": 0},
}
KMEANS = "K-means"


@dataclass(frozen=True)
class CandidateOnFile:
    """How a candidate did on a file: the accuracy with each seed."""

    candidate: str
    file: str
    accuracies: list[float]


@dataclass(frozen=True)
class Ranking:
    """How a candidate did over all files."""

    candidate: str
    # By mean accuracy on each file; 1 is best.
    mean_rank: float
    mean_accuracy: float
    # The smallest lead on any file; negative where K-means is ahead.
    worst_against_kmeans: float


def compare_defaults(
    files: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], candidates: Mapping[str, Mapping[str, Any]], n_seeds: int
) -> list[CandidateOnFile]:
    """Fit every candidate, and K-means with ten starts, to every file with every seed.

    The number of clusters is that of the classes. A candidate's `weight_decay` is a multiple of the automatic one.
    """
    outcomes = []
    for name, (features, labels) in files.items():
        n_clusters = len(np.unique(labels))
        estimators: dict[str, Callable[..., Any]] = {KMEANS: partial(KMeans, n_clusters, n_init=10)}
        for candidate, change in candidates.items():
            parameters = dict(change)
            if "weight_decay" in parameters:
                parameters["weight_decay"] *= suitable_weight_decay(features, n_clusters)
            estimators[candidate] = partial(CCEClusterer, n_clusters, **parameters)
        for candidate, make in estimators.items():
            started = time.perf_counter()
            accuracies = [accuracy(make(random_state=seed), features, labels) for seed in range(n_seeds)]
            outcomes.append(CandidateOnFile(candidate, name, accuracies))
            seconds = (time.perf_counter() - started) / n_seeds
            print(f"{name}, {candidate}: ACC {np.mean(accuracies):.3f}, {seconds:.1f} s a fit", file=sys.stderr)
    return outcomes


def accuracy(estimator: Any, features: NDArray[Any], labels: NDArray[Any]) -> float:
    """Fit, and compare with the labels."""
    with warnings.catch_warnings():
        # Candidates that go wrong are part of the comparison.
        warnings.simplefilter("ignore", ClusteringWarning)
        return clustering_accuracy(labels, estimator.fit(features).labels_)


def rank(outcomes: list[CandidateOnFile]) -> list[Ranking]:
    """Rank the candidates on each file and average; the best comes first."""
    files = list(dict.fromkeys(outcome.file for outcome in outcomes))
    candidates = list(dict.fromkeys(outcome.candidate for outcome in outcomes))
    means = {(outcome.candidate, outcome.file): np.mean(outcome.accuracies) for outcome in outcomes}
    table = np.array([[means[candidate, file] for file in files] for candidate in candidates])
    # Differences below a tenth of a point are ties.
    ranks = np.apply_along_axis(lambda column: rankdata(-column.round(3)), 0, table)
    lead = table - table[candidates.index(KMEANS)]
    rankings = [
        Ranking(candidate, float(ranks[i].mean()), float(table[i].mean()), float(lead[i].min()))
        for i, candidate in enumerate(candidates)
    ]
    return sorted(rankings, key=lambda ranking: ranking.mean_rank)


def print_outcomes(outcomes: list[CandidateOnFile], n_seeds: int) -> None:
    """Print a row for each candidate, the best first, and a column for each file."""
    files = list(dict.fromkeys(outcome.file for outcome in outcomes))
    cells = {(outcome.candidate, outcome.file): mean_and_deviation(outcome.accuracies) for outcome in outcomes}
    headers = ["candidate", "mean rank", "mean ACC", "worst lead over K-means"]
    table = plain_table(f"ACC over {n_seeds} seeds", *headers, *files)
    for ranking in rank(outcomes):
        table.add_row(
            ranking.candidate,
            f"{ranking.mean_rank:.2f}",
            f"{ranking.mean_accuracy:.4f}",
            f"{ranking.worst_against_kmeans:+.3f}",
            *(cells[ranking.candidate, file] for file in files),
        )
    results().print(table)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="labelled features")
    parser.add_argument(
        "--candidate",
        action="append",
        choices=CANDIDATES,
        metavar="NAME",
        help="may be repeated; all by default: " + "; ".join(CANDIDATES),
    )
    parser.add_argument("--seeds", type=int, default=3, help="fits of each candidate to each file (%(default)s)")
    options = parser.parse_args()
    chosen = {name: CANDIDATES[name] for name in options.candidate or CANDIDATES}
    files = {path.stem: read_labelled(path) for path in options.files}
    print_outcomes(compare_defaults(files, chosen, options.seeds), options.seeds)


if __name__ == "__main__":
    main()
