"""How well labels fit a graph of nearest neighbours: a score of clusters that needs no true labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.compiled import compiled
from cceclust.errors import InputError
from cceclust.fit.neighbors import as_neighbors
from cceclust.validation import as_weights

__all__ = ["Links", "links_of", "neighbor_modularity"]


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

    >>> from cceclust.fit.modularity import neighbor_modularity
    >>> graph = [[1], [0], [3], [2]]
    >>> neighbor_modularity([0, 0, 1, 1], graph)
    0.5
    >>> neighbor_modularity([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], graph)
    array([ 0.5, -0.5,  0. ])
    """
    scores = links_of(labels, neighbors, sample_weight).modularities
    return scores if np.ndim(labels) == 2 else float(scores[0])


@dataclass(frozen=True)
class Links:
    """Shares of all links from rows to their neighbours, for several labelings of the rows.

    Attributes
    ----------
    within : ndarray of shape (n_labelings, n_clusters)
        From a row of each cluster to another of it.
    leaving : ndarray of shape (n_labelings, n_clusters)
        From a row of each cluster to one of another.
    ends : ndarray of shape (n_labelings, n_clusters)
        Share of the two ends of all links that are in each cluster.
    """

    within: NDArray[np.float64]
    leaving: NDArray[np.float64]
    ends: NDArray[np.float64]

    @property
    def modularities(self) -> NDArray[np.float64]:
        """The modularity of each labeling."""
        return self.modularities_at(1.0)

    def modularities_at(self, resolution: float) -> NDArray[np.float64]:
        """Return the modularity of each labeling, with the links expected by chance multiplied by the resolution."""
        return np.asarray(self.within.sum(axis=1) - resolution * (self.ends**2).sum(axis=1))

    @property
    def cuts(self) -> NDArray[np.float64]:
        """The share of links that each labeling cuts."""
        return np.asarray(self.leaving.sum(axis=1))


def links_of(
    labels: ArrayLike, neighbors: ArrayLike | Any, sample_weight: ArrayLike | None = None, *, n_clusters: int = 1
) -> Links:
    """Count the links within and between clusters, in one pass for all labelings.

    Parameters and weights are those of :func:`neighbor_modularity`; `n_clusters` may exceed the largest label.
    """
    codes = checked_labels(labels)
    graph = as_neighbors(neighbors, codes.shape[-1])
    if sample_weight is None:
        weights = np.ones(graph.shape[0])
    else:
        # Scaled to a mean of 1, so that products of weights neither overflow nor underflow.
        weights = as_weights(sample_weight, graph.shape[0], np.dtype(np.float64)) * graph.shape[0]
    # The labels of one row side by side: each neighbour is looked up once for all labelings.
    by_row = np.ascontiguousarray(np.atleast_2d(codes).T, np.int32)
    shape = by_row.shape[1], max(n_clusters, int(codes.max()) + 1)
    within, leaving, ends = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    total = add_links_by_cluster(by_row, graph, weights, within, leaving, ends)
    return Links(within / total, leaving / total, ends / (2 * total))


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
def add_links_by_cluster(
    labels: NDArray[np.int32],
    neighbors: NDArray[np.integer[Any]],
    weights: NDArray[np.float64],
    within: NDArray[np.float64],
    leaving: NDArray[np.float64],
    ends: NDArray[np.float64],
) -> float:
    """Add up links by cluster (the last three, IN and OUT); return their sum. Sums are exact without weights.

    `labels` has shape (n_rows, n_labelings).
    """
    n_rows, n_neighbors = neighbors.shape
    n_labelings = labels.shape[1]
    strengths, same = np.zeros(n_rows), np.empty(n_labelings)
    total = 0.0
    for i in range(n_rows):
        own, around = labels[i], 0.0
        same[:] = 0.0
        for m in range(n_neighbors):
            other = neighbors[i, m]
            weight, theirs = weights[other], labels[other]
            around += weight
            strengths[other] += weights[i] * weight
            for s in range(n_labelings):
                same[s] += weight if theirs[s] == own[s] else 0.0
        strengths[i] += weights[i] * around
        total += weights[i] * around
        for s in range(n_labelings):
            within[s, own[s]] += weights[i] * same[s]
            leaving[s, own[s]] += weights[i] * (around - same[s])
    for i in range(n_rows):
        for s in range(n_labelings):
            ends[s, labels[i, s]] += strengths[i]
    return total
