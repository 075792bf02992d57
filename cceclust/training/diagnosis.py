"""One pass over the rows for labels and probabilities, and signs of a bad clustering that need no true labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.head import Curves, Head
from cceclust.training.kernels import add_rows
from cceclust.training.logits import block_logits, head_on_blocks
from cceclust.training.progress import OnProgress, counting_rows, silent
from cceclust.training.rows import LazyRows, Rows

__all__ = [
    "HEAD_ADVICE",
    "NETWORK_ADVICE",
    "STILL_FALLING",
    "Advice",
    "Prediction",
    "find_problems",
    "predict_block",
    "predict_blocks",
    "predict_rows",
]


@dataclass(frozen=True)
class Advice:
    """Advice for clusters that are empty, that are tiny, or that hardly depend on the features."""

    empty: str
    tiny: str
    unsure: str


HEAD_ADVICE = Advice(
    empty="try another fairness, a lower weight_decay, or fewer clusters",
    tiny="try another fairness, ask for fewer clusters, or pass the proportions you expect as prior",
    unsure="lower weight_decay, or check that the features vary at all",
)
NETWORK_ADVICE = Advice(
    empty="train for longer, try another fairness, a lower learning rate, or another seed",
    tiny="train for longer, try another fairness, or ask for fewer clusters",
    unsure="train for longer, or raise the learning rate",
)
STILL_FALLING = "the loss was still falling when training stopped; raise max_epochs"


@dataclass(frozen=True)
class Prediction:
    """The predictions of a head.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The cluster of each row.
    probabilities : ndarray of shape (n_samples, n_clusters), float32
        The probability of each cluster.
    centers : ndarray of shape (n_clusters, n_features) or None
        The mean of the rows of each cluster; the mean of all rows for an empty one. None if it was not asked for.
    """

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    centers: NDArray[Any] | None = None

    def sizes(self, sample_weight: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the number of rows in each cluster, or their weight."""
        return np.bincount(self.labels, sample_weight, minlength=self.probabilities.shape[1])

    def shares(self, sample_weight: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return the share of the rows in each cluster."""
        sizes = self.sizes(sample_weight).astype(np.float64)
        return np.asarray(sizes / sizes.sum())

    def mean_confidence(self, sample_weight: NDArray[Any] | None = None) -> float:
        """Return the mean of each row's largest probability."""
        return float(np.average(self.probabilities.max(axis=1).astype(np.float64), weights=sample_weight))


def predict_rows(
    head: Head,
    rows: Rows,
    *,
    sample_weight: NDArray[Any] | None = None,
    n_threads: int = 1,
    on_progress: OnProgress = silent,
) -> Prediction:
    """Predict all rows in one pass; given the weight of each row, also find the mean of each cluster.

    Raises
    ------
    InputError
        If a logit is not finite, with the number of the first such row.
    """
    if isinstance(rows, LazyRows):
        return rows.predict(head, sample_weight=sample_weight, on_progress=on_progress)
    probabilities = np.empty((rows.shape[0], head.n_clusters), np.float32)
    labels = np.empty(rows.shape[0], np.int64)

    def keep(where: slice, block_labels: NDArray[Any], block_probabilities: NDArray[Any]) -> None:
        labels[where], probabilities[where] = block_labels, block_probabilities

    predict = head_on_blocks(predict_block, head)
    centers = predict_blocks(
        predict, rows, head.n_clusters, keep, sample_weight=sample_weight, n_threads=n_threads, on_progress=on_progress
    )
    return Prediction(labels, probabilities, centers)


def predict_blocks(
    predict: Callable[..., tuple[NDArray[Any], ...]],
    rows: Rows,
    n_clusters: int,
    keep: Callable[[slice, NDArray[Any], NDArray[Any]], None],
    *,
    sample_weight: NDArray[Any] | None,
    n_threads: int = 1,
    on_progress: OnProgress,
) -> NDArray[Any] | None:
    """Predict all rows in one pass, and return the mean of each cluster if the weight of each row is given.

    Parameters
    ----------
    predict : callable
        Of a block of rows and perhaps their weights; it returns what :func:`predict_block` does.
    rows : Rows
        What to predict.
    n_clusters : int
        Number of clusters.
    keep : callable
        Called with the position of each block and the first two results.
    sample_weight : ndarray of shape (n_samples,) or None
        Weight of each row.
    n_threads : int
        Number of blocks that are worked on at the same time.
    on_progress : callable
        Called with a :class:`~cceclust.training.progress.Progress` after each block.
    """
    sums, sizes = np.zeros((n_clusters, rows.shape[1])), np.zeros(n_clusters)
    # Weights that sum to 1 keep sums of the largest numbers finite.
    columns = [] if sample_weight is None else [sample_weight / sample_weight.sum(dtype=np.float64)]
    with threadpool_limits(1, user_api="blas"):
        results = rows.map_blocks(predict, *columns, n_outputs=n_clusters, n_threads=n_threads)
        counted = counting_rows(results, "Predicting rows", rows.shape[0], on_progress)
        for where, (labels, probabilities, is_finite, *block_sums) in counted:
            if not is_finite.all():
                row = where.start + int(np.argmin(is_finite))
                raise InputError(
                    f"row {row} contains NaN, infinity or values too large for the model; remove or impute such rows"
                )
            keep(where, labels, probabilities)
            if block_sums:
                sums += block_sums[0]
                sizes += block_sums[1]
    return centers_of(sums, sizes).astype(rows.dtype) if columns else None


@np.errstate(over="ignore", invalid="ignore")
def predict_block(
    block: Any,
    weights: NDArray[Any] | None = None,
    *,
    by_feature: NDArray[Any],
    intercept: NDArray[Any],
    curves: Curves | None = None,
) -> tuple[NDArray[Any], ...]:
    """Return labels and probabilities of a block of rows, and whether the logits of each are finite.

    Given the weight of each row, also return the sum of the rows of each cluster, and of their weights.
    """
    logits = block_logits(block, by_feature=by_feature, intercept=intercept, curves=curves)
    is_finite = np.isfinite(logits).all(axis=1)
    labels = logits.argmax(axis=1)
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    predicted = labels, logits.astype(np.float32, copy=False), is_finite
    if weights is None:
        return predicted
    sizes = np.bincount(labels, weights, minlength=len(intercept))
    return *predicted, sums_of_clusters(block, labels, weights, len(intercept)), sizes


def sums_of_clusters(
    block: Any, labels: NDArray[np.int64], weights: NDArray[np.float64], n_clusters: int
) -> NDArray[np.float64]:
    """Return the weighted sum of the rows of each cluster."""
    if sparse.issparse(block):
        members = sparse.csr_array((weights, (labels, np.arange(len(labels)))), (n_clusters, len(labels)))
        return np.asarray((members @ block).toarray())
    sums = np.zeros((n_clusters, block.shape[1]))
    add_rows(block, labels, weights, sums)
    return sums


def centers_of(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each cluster; that of an empty one is the mean of all rows, as no number may be undefined."""
    has_members = sizes > 0
    return np.where(has_members[:, None], sums / np.where(has_members, sizes, 1.0)[:, None], sums.sum(axis=0))


def find_problems(
    sizes: NDArray[Any],
    prior: NDArray[Any] | None,
    mean_confidence: float,
    *,
    agreement: float | None,
    converged: bool,
    n_candidates: int = 1,
    closest: float | None = None,
    advice: Advice = HEAD_ADVICE,
) -> list[str]:
    """Return a sentence for everything that makes a clustering doubtful.

    Parameters
    ----------
    sizes : ndarray of shape (n_clusters,)
        Number of rows in each cluster, or their weight.
    prior : ndarray of shape (n_clusters,) or None
        Expected share of each cluster; None if it is left to the data.
    mean_confidence : float
        Mean of the largest probability of each row.
    agreement : float or None
        Mean adjusted Rand index between the restarts.
    converged : bool
        Whether the loss had stopped falling.
    n_candidates : int
        Number of candidates.
    closest : float or None
        Adjusted Rand index between the chosen clusters and those of the candidate that is most like them.
    advice : Advice
        What to suggest.

    Examples
    --------
    >>> import numpy as np
    >>> find_problems(np.array([9, 0]), np.array([0.5, 0.5]), 0.9, agreement=None, converged=True)
    ['1 of 2 clusters is empty; try another fairness, a lower weight_decay, or fewer clusters']
    """
    problems = []
    n_clusters, n_samples = len(sizes), sizes.sum()
    if prior is None:
        empty, expected = int((sizes == 0).sum()), f"{choices.TINY_ROWS} rows"
        tiny = (
            int(((sizes > 0) & (sizes < choices.TINY_ROWS)).sum()) if n_samples > choices.TINY_ROWS * n_clusters else 0
        )
    else:
        empty, expected = int(((sizes == 0) & (prior > 0)).sum()), f"{choices.TINY_PART:.0%} of the expected rows"
        tiny = int(((sizes > 0) & (sizes < choices.TINY_PART * prior * n_samples)).sum())
    if empty:
        verb = "is" if empty == 1 else "are"
        problems.append(f"{empty} of {n_clusters} clusters {verb} empty; {advice.empty}")
    if tiny:
        verb = "holds" if tiny == 1 else "hold"
        problems.append(f"{tiny} of {n_clusters} clusters {verb} less than {expected}; {advice.tiny}")
    if mean_confidence < 1 / n_clusters + choices.LOW_CONFIDENCE * (1 - 1 / n_clusters):
        problems.append(
            f"the mean confidence is {mean_confidence:.2f}, hardly above the {1 / n_clusters:.2f} of a guess: the "
            f"prediction ignores the features; {advice.unsure}"
        )
    if agreement is not None and agreement < choices.LOW_AGREEMENT:
        problems.append(
            f"the restarts disagree (mean pairwise ARI {agreement:.2f}): these clusters are one of many possible "
            "answers; try another number of clusters, more restarts, or better features"
        )
    elif closest is not None and closest < choices.SIMILAR_CLUSTERS and n_candidates >= choices.FEW_AGREE:
        problems.append(
            f"no other of {n_candidates} candidates found similar clusters (the closest has an ARI of {closest:.2f}): "
            "look at a report before you rely on them, or try another number of clusters"
        )
    if not converged:
        problems.append(STILL_FALLING)
    return problems
