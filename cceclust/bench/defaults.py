"""Choosing defaults by a protocol: candidates over several labelled files and seeds, ranked on each file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.cluster import KMeans

from cceclust.bench.suitable_decay import suitable_weight_decay
from cceclust.errors import ClusteringWarning
from cceclust.estimators import CCEClusterer
from cceclust.scoring import clustering_accuracy

__all__ = ["CANDIDATES", "CandidateOnFile", "Ranking", "compare_defaults", "rank"]

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
    "10 iterations": {"solver_iterations": 10},
    "50 iterations": {"solver_iterations": 50},
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
    """How a candidate did on a file.

    Attributes
    ----------
    candidate, file : str
        Their names.
    accuracies : list of float
        Accuracy of the restart that was chosen without labels, one a seed.
    agreement : float or None
        Mean agreement of the restarts.
    seconds : float
        Mean time of a fit.
    """

    candidate: str
    file: str
    accuracies: list[float]
    agreement: float | None
    seconds: float

    @property
    def mean(self) -> float:
        """Mean accuracy over the seeds."""
        return float(np.mean(self.accuracies))


@dataclass(frozen=True)
class Ranking:
    """How a candidate did over all files.

    Attributes
    ----------
    candidate : str
        Its name.
    mean_rank : float
        Its mean rank by mean accuracy on each file; 1 is best.
    mean_accuracy : float
        Its mean accuracy over the files.
    worst_against_kmeans : float
        Its smallest lead over K-means on any file; negative where it is behind.
    """

    candidate: str
    mean_rank: float
    mean_accuracy: float
    worst_against_kmeans: float


def compare_defaults(
    files: Mapping[str, tuple[NDArray[Any], NDArray[Any]]],
    *,
    candidates: Mapping[str, Mapping[str, Any]] | None = None,
    n_seeds: int = 3,
    on_fit: Callable[[str, str], None] | None = None,
) -> list[CandidateOnFile]:
    """Fit every candidate, and K-means with ten starts, to every file with every seed.

    Parameters
    ----------
    files : mapping of str to (features, labels)
        The files. The number of clusters is that of the classes.
    candidates : mapping of str to dict, optional
        Changes of the defaults of :class:`cceclust.CCEClusterer`; :data:`CANDIDATES` by default. A `weight_decay`
        here is a multiple of the automatic one.
    n_seeds : int
        Seeds 0, 1, …
    on_fit : callable, optional
        Told the candidate and the file after each fit.

    Returns
    -------
    list of CandidateOnFile
    """
    outcomes = []
    for name, (features, labels) in files.items():
        n_clusters = len(np.unique(labels))
        estimators: dict[str, Callable[..., Any]] = {KMEANS: partial(KMeans, n_clusters, n_init=10)}
        for candidate, change in (candidates or CANDIDATES).items():
            parameters = dict(change)
            if "weight_decay" in parameters:
                parameters["weight_decay"] *= suitable_weight_decay(features, n_clusters)
            estimators[candidate] = partial(CCEClusterer, n_clusters, **parameters)
        for candidate, make in estimators.items():
            outcomes.append(run(candidate, name, make, features, labels, n_seeds))
            if on_fit is not None:
                on_fit(candidate, name)
    return outcomes


def run(
    candidate: str,
    file: str,
    make: Callable[..., Any],
    features: NDArray[Any],
    labels: NDArray[Any],
    n_seeds: int,
) -> CandidateOnFile:
    """Fit a candidate with every seed."""
    accuracies, agreements, started = [], [], time.perf_counter()
    with warnings.catch_warnings():
        # Candidates that go wrong are part of the comparison.
        warnings.simplefilter("ignore", ClusteringWarning)
        for seed in range(n_seeds):
            estimator = make(random_state=seed).fit(features)
            accuracies.append(clustering_accuracy(labels, estimator.labels_))
            agreements.append(getattr(estimator, "restart_agreement_", None))
    known = [agreement for agreement in agreements if agreement is not None]
    seconds = (time.perf_counter() - started) / n_seeds
    return CandidateOnFile(candidate, file, accuracies, float(np.mean(known)) if known else None, seconds)


def rank(outcomes: list[CandidateOnFile]) -> list[Ranking]:
    """Rank the candidates on each file and average; the best comes first."""
    files = list(dict.fromkeys(outcome.file for outcome in outcomes))
    candidates = list(dict.fromkeys(outcome.candidate for outcome in outcomes))
    means = {(outcome.candidate, outcome.file): outcome.mean for outcome in outcomes}
    table = np.array([[means[candidate, file] for file in files] for candidate in candidates])
    # Differences below a tenth of a point are ties.
    ranks = np.apply_along_axis(lambda column: rankdata(-column.round(3)), 0, table)
    lead = table - table[candidates.index(KMEANS)]
    rankings = [
        Ranking(candidate, float(ranks[i].mean()), float(table[i].mean()), float(lead[i].min()))
        for i, candidate in enumerate(candidates)
    ]
    return sorted(rankings, key=lambda ranking: ranking.mean_rank)
