"""The choice among heads and K-means, by the graph of nearest neighbours and without labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.fit.modularity import links_of
from cceclust.fit.starts import COMPONENTS, KMEANS

__all__ = ["Choice", "choose"]

# Modularity on the three nearest neighbours ranks clusterings best; on fifteen it prefers clusters of even size.
NEAREST = 3
# K-means is kept where its modularity is at most this many standard errors below the best, or where it cuts fewer
# neighbours apart for clusters of its sizes, by as many.
ERRORS = 0.25


@dataclass(frozen=True)
class Choice:
    """Which candidate was chosen, and why.

    Attributes
    ----------
    best : int
        Number of the chosen candidate.
    scores : dict of str to float
        The modularity of each by its name.
    reason : str
        In one sentence.
    """

    best: int
    scores: dict[str, float]
    reason: str


def choose(
    names: list[str],
    candidates: NDArray[np.int32],
    starts: list[NDArray[np.int32]],
    neighbors: NDArray[np.int32],
    weights: NDArray[Any],
    n_clusters: int,
    *,
    keeps_kmeans: bool,
) -> Choice:
    """Choose among candidate clusterings, of which the last may be K-means as it is.

    Parameters
    ----------
    names : list of str
        The candidates' names.
    candidates : ndarray of shape (n_candidates, n_points)
        Their clusters.
    starts : list of ndarray
        The clusters that they were trained towards.
    neighbors, weights : ndarray
        Of the points.
    n_clusters : int
        Number of clusters.
    keeps_kmeans : bool
        Whether the last candidate is K-means as it is.
    """
    links = links_of(candidates, neighbors[:, :NEAREST], weights, n_clusters=n_clusters)
    scores, evenness = links.modularities, (links.ends**2).sum(axis=1)
    by_name = dict(zip(names, scores.round(6).tolist(), strict=True))
    for i, name in enumerate(names):
        if name == COMPONENTS and np.array_equal(candidates[i], starts[i]):
            return Choice(i, by_name, f"the graph of neighbours falls into exactly {n_clusters} separate parts")
    n_heads = len(names) - keeps_kmeans
    n_filled = np.array([len(np.unique(labels)) for labels in candidates])
    # Of twenty clusters, one may be missing.
    least = n_filled[:n_heads].max() - n_clusters // 20
    best = int(np.where(n_filled[:n_heads] >= least, scores[:n_heads], -np.inf).argmax())
    if keeps_kmeans and n_filled[-1] > n_filled[best] + n_clusters // 20:
        return Choice(n_heads, by_name, f"{KMEANS} is kept, as all others leave clusters empty")
    if keeps_kmeans and n_filled[-1] >= n_filled[best]:
        margin = ERRORS * np.sqrt(max(scores[best] * (1 - scores[best]), 0.0) / len(weights))
        comparison = f"modularity {scores[-1]:.3f}, the best of the others {scores[best]:.3f}"
        if scores[-1] >= scores[best] - margin:
            return Choice(
                n_heads, by_name, f"{KMEANS} is kept, as no other clustering is clearly better ({comparison})"
            )
        kappa = scores / np.maximum(1 - evenness, 1e-12)
        if kappa[-1] > kappa[best] + margin:
            reason = f"{KMEANS} is kept, as it cuts fewer neighbours apart for clusters of its sizes ({comparison})"
            return Choice(n_heads, by_name, reason)
    reason = f"of {len(names)} clusterings, it keeps neighbours together best (modularity {scores[best]:.3f})"
    return Choice(best, by_name, reason)
