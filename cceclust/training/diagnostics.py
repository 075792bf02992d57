"""No silent collapse: what can be seen of a bad clustering without labels, and what to try about it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["STILL_FALLING", "find_problems"]

TINY_PART = 0.05
LOW_AGREEMENT = 0.4
STILL_FALLING = "the loss was still falling when training stopped; raise max_epochs"


def find_problems(
    sizes: NDArray[Any],
    prior: NDArray[Any],
    mean_confidence: float,
    *,
    agreement: float | None,
    converged: bool,
) -> list[str]:
    """Return a sentence for everything that makes a clustering doubtful.

    Parameters
    ----------
    sizes : ndarray of shape (n_clusters,)
        Number of rows in each cluster, or their weight.
    prior : ndarray of shape (n_clusters,)
        Expected part of each cluster.
    mean_confidence : float
        Mean of the largest probability of each row.
    agreement : float or None
        Mean adjusted Rand index between the restarts.
    converged : bool
        Whether the loss had stopped falling.

    Examples
    --------
    >>> import numpy as np
    >>> find_problems(np.array([9, 0]), np.array([0.5, 0.5]), 0.9, agreement=None, converged=True)
    ['1 of 2 clusters is empty; try another fairness, a lower weight_decay, or fewer clusters']
    """
    problems = []
    n_clusters, n_samples = len(sizes), sizes.sum()
    empty = int(((sizes == 0) & (prior > 0)).sum())
    tiny = int(((sizes > 0) & (sizes < TINY_PART * prior * n_samples)).sum())
    if empty:
        verb = "is" if empty == 1 else "are"
        problems.append(
            f"{empty} of {n_clusters} clusters {verb} empty; "
            "try another fairness, a lower weight_decay, or fewer clusters"
        )
    if tiny:
        verb = "holds" if tiny == 1 else "hold"
        problems.append(
            f"{tiny} of {n_clusters} clusters {verb} less than {TINY_PART:.0%} of the expected rows; "
            "try another fairness, ask for fewer clusters, or pass the proportions you expect as prior"
        )
    if mean_confidence < 1 / n_clusters + 0.1 * (1 - 1 / n_clusters):
        problems.append(
            f"the mean confidence is {mean_confidence:.2f}, hardly above the {1 / n_clusters:.2f} of a guess: the "
            "prediction ignores the features; lower weight_decay, or check that the features vary at all"
        )
    if agreement is not None and agreement < LOW_AGREEMENT:
        problems.append(
            f"the restarts disagree (mean pairwise ARI {agreement:.2f}): these clusters are one of many possible "
            "answers; try another number of clusters, more restarts, or better features"
        )
    if not converged:
        problems.append(STILL_FALLING)
    return problems
