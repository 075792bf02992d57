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
# K-means is kept where its modularity is at most this many standard errors below the best,
FLOOR_ERRORS = 0.25
# or where it cuts fewer neighbours apart for clusters of its sizes, by this many standard errors.
UNEVEN_ERRORS = 0.5
# A head may leave this part of the clusters empty.
MOST_MISSING = 0.05
# A head draws the separate parts of the graph if it agrees with them on this part of the points.
DRAWN = 0.99


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
        if name == COMPONENTS and (candidates[i] == starts[i]).mean() >= DRAWN:
            return Choice(i, by_name, f"the graph of neighbours falls into exactly {n_clusters} separate parts")
    n_heads = len(names) - keeps_kmeans
    n_filled = np.array([len(np.unique(labels)) for labels in candidates[:n_heads]])
    # Of a hundred clusters, a few may be missing.
    is_whole = n_filled >= min((1 - MOST_MISSING) * n_clusters, n_filled.max())
    best = int(np.where(is_whole, scores[:n_heads], -np.inf).argmax())
    chosen = f"its clusters keep neighbours together best of {len(names)} clusterings (modularity {scores[best]:.3f})"
    if not keeps_kmeans:
        return Choice(best, by_name, chosen)
    n_filled_by_kmeans = len(np.unique(candidates[-1]))
    if n_filled_by_kmeans > n_filled[best] < (1 - MOST_MISSING) * n_clusters:
        return Choice(n_heads, by_name, f"{KMEANS} is kept, as all heads leave clusters empty")
    if n_filled_by_kmeans >= n_filled[best]:
        error = np.sqrt(max(scores[best] * (1 - scores[best]), 0.0) / len(weights))
        comparison = f"modularity {scores[-1]:.3f}, the best head {scores[best]:.3f}"
        if scores[-1] >= scores[best] - FLOOR_ERRORS * error:
            return Choice(n_heads, by_name, f"{KMEANS} is kept, as no head is clearly better ({comparison})")
        kappa = scores / np.maximum(1 - evenness, 1e-12)
        if kappa[-1] > kappa[best] + UNEVEN_ERRORS * error:
            reason = f"{KMEANS} is kept, as it cuts fewer neighbours apart for clusters of its sizes ({comparison})"
            return Choice(n_heads, by_name, reason)
    return Choice(best, by_name, chosen)
