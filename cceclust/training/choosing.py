"""Choosing among clusterings without labels: the best by modularity, those not clearly worse, and their agreement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.training.selection import adjusted_rand_index

__all__ = ["choose", "standard_error"]


def standard_error(modularity: float, n_samples: int) -> float:
    """Return the standard error of the modularity on this many rows, as for a mean of values that are 0 or 1.

    Examples
    --------
    >>> round(standard_error(0.8, 10_000), 4)
    0.004
    """
    inside = min(max(modularity, 0.0), 1.0)
    return float(np.sqrt(inside * (1 - inside) / n_samples))


def choose(
    labels: NDArray[np.integer[Any]],
    modularities: NDArray[np.float64],
    n_clusters: int,
    *,
    floor: int | None = None,
) -> int:
    """Return the index of the labeling to keep.

    If the plain one (`floor`) is within two standard errors of the best, it is kept. Otherwise, of those within a
    standard error of the best, the one that agrees most with the others is kept, by adjusted Rand index.

    Parameters
    ----------
    labels : ndarray of shape (n_labelings, n_samples)
        The candidates.
    modularities : ndarray of shape (n_labelings,)
        Their :func:`cceclust.training.modularity.neighbor_modularity`.
    n_clusters : int
        Number of clusters.
    floor : int, optional
        The index of the plain candidate, which has no vote.

    Examples
    --------
    The second is best by a small margin, but two others agree on something else:

    >>> import numpy as np
    >>> labels = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 1, 0, 1, 0]])
    >>> choose(labels, np.array([0.40, 0.41, 0.40, -0.30]), 2)
    0
    >>> choose(labels, np.array([0.40, 0.41, 0.40, 0.38]), 2, floor=3)
    3
    """
    best = float(modularities.max())
    error = standard_error(best, labels.shape[1])
    if floor is not None and modularities[floor] >= best - choices.FLOOR_ERRORS * error:
        return floor
    near = np.flatnonzero(modularities >= best - choices.TIE_ERRORS * error)
    votes = [sum(adjusted_rand_index(labels[i], labels[j], n_clusters) for j in near) for i in near]
    return int(near[np.argmax(votes)])
