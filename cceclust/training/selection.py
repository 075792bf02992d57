"""Choosing among restarts without labels: the lowest loss on all the data, and how much the restarts agree."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.scoring import adjusted_rand_of_counts
from cceclust.training.head import Curves
from cceclust.training.heads import stack_probabilities
from cceclust.training.labels import Supervision
from cceclust.training.objectives import Objective
from cceclust.training.rows import Rows, in_memory

__all__ = ["Evaluation", "evaluate", "mean_pairwise_ari"]


@dataclass(frozen=True)
class Evaluation:
    """Comparison of the restarts.

    Attributes
    ----------
    losses : ndarray of shape (n_restarts,)
        The loss of each restart on all the data (a sample of it, if it is very large); infinite if it diverged.
    agreement : float or None
        Mean adjusted Rand index between the labels of every two restarts; None for a single restart.
    n_agreeing : int
        Number of restarts that found the clusters of the best one, including itself.
    """

    losses: NDArray[np.float64]
    agreement: float | None
    n_agreeing: int


def evaluate(
    coef: NDArray[Any],
    intercept: NDArray[Any],
    rows: Rows,
    make_objective: Callable[[NDArray[np.intp]], Objective | None],
    *,
    sample_weight: NDArray[Any],
    seed: int,
    curves: Curves | None = None,
    supervision: Supervision | None = None,
    n_threads: int | None = None,
) -> Evaluation:
    """Compute every restart's loss, and the agreement of their labels.

    Parameters
    ----------
    coef : ndarray of shape (n_restarts, n_clusters, n_features)
        Weights for raw features.
    intercept : ndarray of shape (n_restarts, n_clusters)
        Biases for raw features.
    rows : Rows
        The features.
    make_objective : callable
        Returns an objective for the restarts with the given numbers, or None if there is only `supervision`.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    seed : int
        Seed of the sample, which is drawn if there are very many rows.
    curves : Curves, optional
        The quadratic part of all restarts.
    supervision : Supervision, optional
        The loss of labelled rows, which is added.
    n_threads : int, optional
        Number of restarts that are evaluated at the same time.
    """
    n_restarts, n_clusters, _ = coef.shape
    wanted = rows_to_evaluate(rows, sample_weight, n_restarts, n_clusters, seed)
    probabilities = np.empty((n_restarts, n_clusters, len(wanted)), rows.dtype)
    for start in range(0, len(wanted), choices.EVALUATION_PIECE):
        piece = in_memory(rows.take(wanted[start : start + choices.EVALUATION_PIECE]))
        for where, block in stack_probabilities(coef, intercept, piece, curves):
            probabilities[:, :, start + where.start : start + where.stop] = block
    weights = sample_weight[wanted] / sample_weight[wanted].sum()

    def loss(restart: int) -> float:
        predicted, objective = probabilities[restart : restart + 1], make_objective(np.array([restart]))
        own = 0.0 if objective is None else objective.losses(predicted, weights)[0]
        of_labels = 0.0 if supervision is None else supervision.losses(predicted, wanted, weights)[0]
        return float(own + of_labels)

    with ThreadPoolExecutor(n_threads) as pool:
        losses = np.array(list(pool.map(loss, range(n_restarts))))
    # NaN would count as the lowest loss.
    losses = np.where(np.isnan(losses), np.inf, losses)
    labels = probabilities.argmax(axis=1)
    best = labels[np.argmin(losses)]
    n_agreeing = sum(adjusted_rand_index(best, other, n_clusters) >= choices.SAME_CLUSTERS for other in labels)
    return Evaluation(losses, mean_pairwise_ari(labels, n_clusters), n_agreeing)


def rows_to_evaluate(
    rows: Rows, sample_weight: NDArray[Any], n_restarts: int, n_clusters: int, seed: int
) -> NDArray[np.intp]:
    """Return the rows with a positive weight, or a random sample of them if they would take too much memory or time."""
    wanted = np.flatnonzero(sample_weight > 0)
    affordable = min(
        choices.EVALUATION_BYTES // (n_restarts * n_clusters * rows.dtype.itemsize),
        max(choices.EVALUATION_WORK // n_clusters**2, choices.LEAST_EVALUATION_ROWS),
        choices.EVALUATION_ROWS,
    )
    if len(wanted) > affordable:
        wanted = np.sort(np.random.default_rng(seed).choice(wanted, affordable, replace=False))
    return wanted


def mean_pairwise_ari(labels: NDArray[np.intp], n_clusters: int) -> float | None:
    """Return the mean adjusted Rand index between every two rows of labels.

    Examples
    --------
    >>> import numpy as np
    >>> mean_pairwise_ari(np.array([[0, 0, 1, 1], [1, 1, 0, 0]]), 2)
    1.0
    """
    if len(labels) < 2:
        return None
    indices = [adjusted_rand_index(one, other, n_clusters) for one, other in combinations(labels, 2)]
    return float(np.mean(indices))


def adjusted_rand_index(one: NDArray[np.intp], other: NDArray[np.intp], n_clusters: int) -> float:
    """Return the adjusted Rand index of labels from 0: faster than a general function that must sort labels."""
    cells = one * n_clusters + other
    # With very many clusters, the table would be larger than the labels and nearly empty.
    if n_clusters**2 > max(len(one), 1000):
        counts = np.unique(cells, return_counts=True)[1]
        return adjusted_rand_of_counts(counts, np.bincount(one), np.bincount(other))
    table = np.bincount(cells, minlength=n_clusters**2).reshape(n_clusters, n_clusters)
    return adjusted_rand_of_counts(table, table.sum(axis=1), table.sum(axis=0))
