"""Clustering of fixed features: Table 2 of the paper, and the supplement's L_CCE against L_CCE+, on any file."""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.bench.suitable_decay import suitable_weight_decay
from cceclust.errors import ClusteringWarning, InputError
from cceclust.estimators.methods import METHODS
from cceclust.presets import PAPER_FEATURES
from cceclust.scoring import score_clusters

__all__ = ["PRESETS", "MethodResult", "compare_methods"]

PRESETS = ("default", "paper", "best")

# Extra steps that an estimator takes by default besides minimising its loss. A comparison of losses needs them
# switched on for all methods or for none.
ALIKE = {"n_neighbors": "auto", "prior": None, "graph_candidates": False}
# λ in the preset "default", where an estimator would otherwise choose it from the data.
DEFAULT_FAIRNESS = {"cce": 100.0}

# Section "Experimental settings" of the supplement.
PAPER_FAIRNESS = {"cce": 100.0, "cce-pgd": 100.0, "migd": 1.3, "miadm": 1.0}
# The paper's solvers run until they converge. After this many iterations, both losses of collision cross-entropy are
# about one hundredth above their minimum at a fairness of 100.
PAPER_ITERATIONS = {"cce": 1000, "cce-pgd": 5000, "sela": 200, "miadm": 200}

# The grid of "best": multiples of the automatic weight decay, learning rates, and each method's own parameters.
BEST_WEIGHT_DECAYS = (0.5, 1.0, 2.0)
BEST_LEARNING_RATES = (0.1, 0.5)
BEST_PARAMETERS: dict[str, dict[str, tuple[float, ...]]] = {
    "cce": {"fairness": (10.0, 100.0), "n_neighbors": (0, 10)},
    "cce-pgd": {"fairness": (1.0, 10.0), "n_neighbors": (0, 10)},
    "migd": {"fairness": (1.3, 2.0, 4.0)},
    "sela": {"sharpness": (10.0, 25.0), "n_neighbors": (0, 10)},
    "miadm": {"fairness": (1.0, 3.0, 10.0), "n_neighbors": (0, 10)},
}


@dataclass(frozen=True)
class MethodResult:
    """Scores of one method over several trials.

    Attributes
    ----------
    method : str
        Its name.
    settings : dict
        Parameters that differ from the estimator's defaults.
    accuracies, nmis, aris : list of float
        One value per trial.
    picked_accuracy : float
        Accuracy of the trial with the lowest loss; choosing it needs no labels.
    seconds : float
        Mean time of a trial.
    """

    method: str
    settings: dict[str, Any]
    accuracies: list[float]
    nmis: list[float]
    aris: list[float]
    picked_accuracy: float
    seconds: float

    @property
    def mean_accuracy(self) -> float:
        """Mean accuracy of the trials."""
        return float(np.mean(self.accuracies))


def compare_methods(
    features: NDArray[Any],
    labels: NDArray[Any],
    *,
    n_clusters: int | None = None,
    methods: list[str] | None = None,
    preset: str = "default",
    weight_decay: float | None = None,
    changes: Mapping[str, Any] | None = None,
    n_trials: int = 6,
    n_restarts: int = 1,
    seed: int = 0,
    on_fit: Callable[[str], None] | None = None,
) -> list[MethodResult]:
    """Cluster the same features with every method, several times.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        The features.
    labels : ndarray of shape (n_samples,)
        True labels, for scoring, and with the preset "best" for choosing each method's settings.
    n_clusters : int, optional
        Number of clusters; by default the number of classes.
    methods : list of str, optional
        Names in :data:`cceclust.estimators.methods.METHODS`; by default all.
    preset : {"default", "paper", "best"}
        "default" takes each estimator's defaults, but all methods use neighbours and none uses clusters of the graph;
        "paper" takes the paper's settings on raw features, with solvers that nearly converge; "best" takes the settings
        of a small grid with the highest mean accuracy. "best" uses the true labels, for every method alike.
    weight_decay : float, optional
        Only for the preset "paper": the paper uses 0.001 for MNIST, 0.009 for CIFAR-100 and 0.02 otherwise.
    changes : mapping of str to object, optional
        Parameters that replace those of the preset, for the methods that have them.
    n_trials : int
        Number of trials per method, with the seeds `seed`, `seed` + 1, …
    n_restarts : int
        Number of restarts per trial, the same for K-means.
    seed : int
        First seed.
    on_fit : callable, optional
        Called after each fit with the name of the method.

    Returns
    -------
    list of MethodResult
    """
    if preset not in PRESETS:
        raise InputError(f"preset={preset!r}; expected one of {', '.join(PRESETS)}")
    n_clusters = n_clusters or len(np.unique(labels))
    suitable = suitable_weight_decay(features, n_clusters) if preset == "best" else 0.0
    results = []
    for method in methods or list(METHODS):
        known = inspect.signature(METHODS[method]).parameters
        own = {name: value for name, value in (changes or {}).items() if name in known}
        candidates = [
            run_trials(features, labels, n_clusters, method, settings | own, n_trials, n_restarts, seed, on_fit)
            for settings in settings_of(method, preset, weight_decay, suitable)
        ]
        results.append(max(candidates, key=lambda result: result.mean_accuracy))
    return results


def settings_of(
    method: str, preset: str, weight_decay: float | None, suitable_decay: float
) -> Iterator[dict[str, Any]]:
    """Yield the settings to try; an extra step that several methods support is on for all of them or for none."""
    known = inspect.signature(METHODS[method]).parameters
    alike = {name: value for name, value in ALIKE.items() if name in known}
    if method == "kmeans":
        yield {}
    elif preset == "default":
        own_fairness = method in DEFAULT_FAIRNESS and "fairness" in known
        yield alike | ({"fairness": DEFAULT_FAIRNESS[method]} if own_fairness else {})
    elif preset == "paper":
        shared = known.keys() - {"fairness", "n_init"}
        settings = {name: value for name, value in PAPER_FEATURES.items() if name in shared}
        if weight_decay is not None:
            settings["weight_decay"] = weight_decay
        if method in PAPER_FAIRNESS:
            settings["fairness"] = PAPER_FAIRNESS[method]
        if method in PAPER_ITERATIONS:
            settings["max_iter"] = PAPER_ITERATIONS[method]
        yield settings
    else:
        own = BEST_PARAMETERS[method]
        for factor, rate, *values in itertools.product(BEST_WEIGHT_DECAYS, BEST_LEARNING_RATES, *own.values()):
            decay = round(factor * suitable_decay, 4)
            yield alike | {"weight_decay": decay, "learning_rate": rate, **dict(zip(own, values, strict=True))}


def run_trials(
    features: NDArray[Any],
    labels: NDArray[Any],
    n_clusters: int,
    method: str,
    settings: dict[str, Any],
    n_trials: int,
    n_restarts: int,
    seed: int,
    on_fit: Callable[[str], None] | None,
) -> MethodResult:
    """Fit a method several times and score each fit."""
    scores, losses, seconds = [], [], 0.0
    for trial in range(n_trials):
        estimator = METHODS[method](n_clusters, n_init=n_restarts, random_state=seed + trial, **settings)
        started = time.perf_counter()
        with warnings.catch_warnings():
            # Bad settings are part of the comparison: their scores already show what the warnings would say.
            warnings.simplefilter("ignore", ClusteringWarning)
            estimator.fit(features)
        seconds += time.perf_counter() - started
        scores.append(score_clusters(labels, estimator.labels_))
        losses.append(estimator.inertia_ if method == "kmeans" else estimator.loss_)
        if on_fit is not None:
            on_fit(method)
    return MethodResult(
        method,
        settings,
        [score.accuracy for score in scores],
        [score.nmi for score in scores],
        [score.ari for score in scores],
        picked_accuracy=scores[int(np.argmin(losses))].accuracy,
        seconds=seconds / n_trials,
    )
