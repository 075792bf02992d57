"""Signs of a bad clustering that need no true labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["HEAD_ADVICE", "NETWORK_ADVICE", "Advice", "find_problems"]

# A cluster with fewer rows than this is tiny.
TINY_ROWS = 5
# With a mean confidence this part of the way from a guess (1/K) to certainty, the prediction ignores the features.
LOW_CONFIDENCE = 0.1


@dataclass(frozen=True)
class Advice:
    """Advice for clusters that are empty, that are tiny, or that hardly depend on the features."""

    empty: str
    tiny: str
    unsure: str


HEAD_ADVICE = Advice(
    empty="ask for fewer clusters",
    tiny="ask for fewer clusters",
    unsure="check that the features vary at all",
)
NETWORK_ADVICE = Advice(
    empty="train for longer, try another fairness, a lower learning rate, or another seed",
    tiny="train for longer, try another fairness, or ask for fewer clusters",
    unsure="train for longer, or raise the learning rate",
)


def find_problems(
    sizes: NDArray[Any],
    mean_confidence: float,
    prior: NDArray[Any] | None = None,
    *,
    advice: Advice = HEAD_ADVICE,
) -> list[str]:
    """Return a sentence for everything that makes a clustering doubtful.

    Parameters
    ----------
    sizes : ndarray of shape (n_clusters,)
        Number of rows in each cluster.
    mean_confidence : float
        Mean of the largest probability of each row.
    prior : ndarray of shape (n_clusters,), optional
        Expected share of each cluster; one of 0 may be empty.
    advice : Advice
        What to suggest.

    Examples
    --------
    >>> import numpy as np
    >>> find_problems(np.array([9, 0]), 0.9)
    ['1 of 2 clusters is empty; ask for fewer clusters']
    """
    problems = []
    n_clusters, n_samples = len(sizes), sizes.sum()
    expected = np.ones(n_clusters, bool) if prior is None else prior > 0
    empty = int(((sizes == 0) & expected).sum())
    tiny = int(((sizes > 0) & (sizes < TINY_ROWS)).sum()) if n_samples > TINY_ROWS * n_clusters else 0
    if empty:
        problems.append(f"{empty} of {n_clusters} clusters {'is' if empty == 1 else 'are'} empty; {advice.empty}")
    if tiny:
        verb = "holds" if tiny == 1 else "hold"
        problems.append(f"{tiny} of {n_clusters} clusters {verb} less than {TINY_ROWS} rows; {advice.tiny}")
    if mean_confidence < 1 / n_clusters + LOW_CONFIDENCE * (1 - 1 / n_clusters):
        problems.append(
            f"the mean confidence is {mean_confidence:.2f}, hardly above the {1 / n_clusters:.2f} of a guess: the "
            f"prediction ignores the features; {advice.unsure}"
        )
    return problems
