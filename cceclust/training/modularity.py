"""How well labels fit a graph of nearest neighbours: a score of clusters that needs no true labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.compiled import compiled
from cceclust.errors import InputError
from cceclust.training.neighbors import as_neighbors
from cceclust.validation import as_weights

__all__ = ["neighbor_modularity"]


def neighbor_modularity(
    labels: ArrayLike, neighbors: ArrayLike | Any, sample_weight: ArrayLike | None = None
) -> float | NDArray[np.float64]:
    """Return how much more often neighbours share a cluster than random pairs of rows would.

    With J(a, b) the share of all pairs of neighbours that have the labels a and b, made symmetric, and p its marginals,
    this is Newman's modularity of the labels on the graph::

        Q = Σ_k J(k, k) − Σ_k p_k².

    It is 0 for a single cluster and for random labels, and nearly 1 for many clusters without a pair of neighbours
    between them. It compares labels of any origin and any number of clusters on the same graph.

    Parameters
    ----------
    labels : array-like of shape (n_samples,) or (n_labelings, n_samples)
        Clusters of the rows, as whole numbers from 0; several labelings of the same rows may be scored at once.
    neighbors : array-like of shape (n_samples, n_neighbors) or sparse matrix of shape (n_samples, n_samples)
        Nearest neighbours of each row, such as those of :func:`cceclust.nearest_neighbors`.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row. A pair of neighbours is weighted by the product of its two weights.

    Returns
    -------
    float or ndarray of shape (n_labelings,)

    Examples
    --------
    Two pairs of neighbours, divided correctly and wrongly:

    >>> from cceclust.training.modularity import neighbor_modularity
    >>> graph = [[1], [0], [3], [2]]
    >>> neighbor_modularity([0, 0, 1, 1], graph)
    0.5
    >>> neighbor_modularity([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], graph)
    array([ 0.5, -0.5,  0. ])
    """
    codes = checked_labels(labels)
    graph = as_neighbors(neighbors, codes.shape[-1])
    stack = np.ascontiguousarray(np.atleast_2d(codes), np.int32)
    if sample_weight is None:
        weights = np.ones(graph.shape[0])
    else:
        # Scaled to a mean of 1, so that products of weights neither overflow nor underflow.
        weights = as_weights(sample_weight, graph.shape[0], np.dtype(np.float64)) * graph.shape[0]
    scores = np.empty(len(stack))
    judge(stack, int(stack.max()) + 1, graph, weights, scores)
    return scores if codes.ndim == 2 else float(scores[0])


def checked_labels(labels: ArrayLike) -> NDArray[Any]:
    """Return labels as an array of one or two dimensions of whole numbers from 0."""
    codes = np.asarray(labels)
    if codes.ndim not in (1, 2) or codes.size == 0 or codes.dtype.kind not in "iu":
        raise InputError(
            f"labels have shape {codes.shape} and type {codes.dtype}; expected whole numbers of shape (n_samples,) or "
            "(n_labelings, n_samples)"
        )
    if codes.min() < 0 or codes.max() > np.iinfo(np.int32).max - 1:
        raise InputError(
            f"labels go from {codes.min()} to {codes.max()}; expected numbers from 0, such as np.unique's inverse"
        )
    return codes


@compiled(error_model="numpy")
def judge(
    stack: NDArray[np.int32],
    n_clusters: int,
    neighbors: NDArray[np.integer[Any]],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Write the modularity of every row of labels into `scores` (OUT). Sums are exact without weights."""
    n_samples, n_neighbors = neighbors.shape
    strengths = np.zeros(n_samples)
    total = 0.0
    for i in range(n_samples):
        own = 0.0
        for j in range(n_neighbors):
            other = neighbors[i, j]
            pair = weights[i] * weights[other]
            own += pair
            strengths[other] += pair
        strengths[i] += own
        total += own
    margins = np.empty(n_clusters)
    for s in range(stack.shape[0]):
        labels = stack[s]
        margins[:] = 0.0
        within = 0.0
        for i in range(n_samples):
            label = labels[i]
            margins[label] += strengths[i]
            same = 0.0
            for j in range(n_neighbors):
                other = neighbors[i, j]
                if labels[other] == label:
                    same += weights[other]
            within += weights[i] * same
        expected = 0.0
        for k in range(n_clusters):
            expected += (margins[k] / (2 * total)) ** 2
        scores[s] = within / total - expected
