"""Weak supervision on fixed features: Table 5 of arXiv:2303.07321, on any labelled file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from cceclust.errors import ClusteringWarning, InputError
from cceclust.estimators import MIADM, MIGD, CCEClassifier, CCEClusterer, SeLa
from cceclust.estimators.softmax_clusterer import SoftmaxClusterer
from cceclust.training.candidates import HeadPlan
from cceclust.training.neighbors import nearest_neighbors
from cceclust.training.objectives import Objective

__all__ = ["METHODS", "WeakResult", "compare_weak", "draw_labels"]

N_NEIGHBORS = 10
# The paper's λ.
FAIRNESS = 100.0


class BesideClusterer(CCEClassifier):
    """CCEClassifier that adds the loss of any clusterer to the loss of the labels."""

    def __init__(
        self, clusterer: SoftmaxClusterer, *, n_neighbors: int = 0, n_init: int = 2, random_state: int | None = None
    ) -> None:
        # The classifier chooses λ for collision cross-entropy only; the other losses keep their own.
        super().__init__(fairness=FAIRNESS, n_neighbors=n_neighbors, n_init=n_init, random_state=random_state)
        self.clusterer = clusterer

    def _make_objective(self, plans: Sequence[HeadPlan]) -> Objective:
        """Return the clusterer's objective."""
        return self.clusterer._make_objective(plans)


def self_training(random_state: int) -> Any:
    """Return scikit-learn's self-training around logistic regression, on standardised features."""
    return make_pipeline(
        StandardScaler(), SelfTrainingClassifier(LogisticRegression(C=0.01, random_state=random_state))
    )


def label_spreading(random_state: int) -> LabelSpreading:
    """Return scikit-learn's label spreading on the graph of nearest neighbours; it uses no random numbers."""
    return LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS)


# Factories of the methods, called with random_state. Losses of unlabelled rows use the defaults of their clusterers,
# so the two rows of a loss differ only in the neighbours. Methods whose names end in "neighbours" get the same graph.
METHODS: dict[str, Callable[..., Any]] = {
    "only seeds": partial(CCEClassifier, self_labeling=False),
    "+ MI": partial(BesideClusterer, clusterer=MIGD()),
    "+ SeLa": partial(BesideClusterer, clusterer=SeLa()),
    "+ MIADM": partial(BesideClusterer, clusterer=MIADM()),
    "+ CCE": partial(BesideClusterer, clusterer=CCEClusterer()),
    "+ SeLa, neighbours": partial(BesideClusterer, clusterer=SeLa(), n_neighbors=N_NEIGHBORS),
    "+ MIADM, neighbours": partial(BesideClusterer, clusterer=MIADM(), n_neighbors=N_NEIGHBORS),
    "+ CCE, neighbours": partial(BesideClusterer, clusterer=CCEClusterer(), n_neighbors=N_NEIGHBORS),
    "label spreading": label_spreading,
    "self-training": self_training,
}


@dataclass(frozen=True)
class WeakResult:
    """Scores of one method with a fraction of the labels.

    Attributes
    ----------
    method : str
        Its name.
    ratio : float
        Fraction of the rows that had a label.
    accuracies : list of float
        Accuracy on the rows without a label, one value per draw of the labelled rows.
    seconds : float
        Mean time of a fit.
    """

    method: str
    ratio: float
    accuracies: list[float]
    seconds: float


def compare_weak(
    features: NDArray[Any],
    labels: NDArray[np.intp],
    *,
    ratios: Sequence[float] = (0.1, 0.05, 0.01),
    methods: Sequence[str] | None = None,
    n_draws: int = 5,
    n_restarts: int = 1,
    seed: int = 0,
    on_fit: Callable[[str], None] | None = None,
) -> list[WeakResult]:
    """Fit every method to the same features with the same few labels.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        The features.
    labels : ndarray of shape (n_samples,)
        True labels as numbers from 0.
    ratios : sequence of float
        Fractions of the rows that have a label.
    methods : sequence of str, optional
        Names in :data:`METHODS`; by default all.
    n_draws : int
        Number of draws of the labelled rows per ratio.
    n_restarts : int
        Number of restarts per fit, for the methods that have restarts.
    seed : int
        Seed of the first draw.
    on_fit : callable, optional
        Called after each fit with the name of the method.

    Returns
    -------
    list of WeakResult
    """
    names = list(METHODS) if methods is None else list(methods)
    for name in names:
        if name not in METHODS:
            raise InputError(f"method {name!r} is none of {', '.join(METHODS)}")
    graph = nearest_neighbors(features, N_NEIGHBORS) if any(name.endswith("neighbours") for name in names) else None
    results = []
    for ratio in ratios:
        for name in names:
            accuracies, started = [], time.perf_counter()
            for draw in range(seed, seed + n_draws):
                given = draw_labels(labels, ratio, draw)
                estimator = METHODS[name](random_state=draw)
                settings = {"neighbors": graph} if name.endswith("neighbours") else {}
                if isinstance(estimator, CCEClassifier):
                    estimator.set_params(n_init=n_restarts)
                accuracies.append(fit_and_score(estimator, features, labels, given, settings))
                if on_fit is not None:
                    on_fit(name)
            results.append(WeakResult(name, ratio, accuracies, (time.perf_counter() - started) / n_draws))
    return results


def draw_labels(labels: NDArray[np.intp], ratio: float, seed: int) -> NDArray[np.intp]:
    """Keep a fraction of the labels, at least one per class, and set the others to −1.

    Examples
    --------
    >>> import numpy as np
    >>> (draw_labels(np.repeat([0, 1], 50), 0.1, seed=0) >= 0).sum()
    np.int64(10)
    """
    if not 0 < ratio < 1:
        raise InputError(f"ratio={ratio!r}; expected a part of the labels, between 0 and 1")
    generator = np.random.default_rng(seed)
    given = np.full_like(labels, -1)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        kept = generator.choice(members, max(1, round(ratio * len(members))), replace=False)
        given[kept] = label
    if (given >= 0).all():
        raise InputError(f"ratio={ratio!r} leaves none of {len(labels):,} rows without a label to judge by; lower it")
    return given


def fit_and_score(
    estimator: Any,
    features: NDArray[Any],
    labels: NDArray[np.intp],
    given: NDArray[np.intp],
    settings: dict[str, Any],
) -> float:
    """Return the accuracy on the rows without a label."""
    with warnings.catch_warnings():
        # Methods that go wrong are part of the comparison.
        for category in (ClusteringWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        estimator.fit(features, given, **settings)
    hidden = given < 0
    # Label spreading has already labelled the hidden rows in fit; predict would search for neighbours again.
    found = getattr(estimator, "transduction_", None)
    predicted = estimator.predict(features[hidden]) if found is None else found[hidden]
    return float((predicted == labels[hidden]).mean())
