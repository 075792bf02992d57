"""Predictions of a head for raw rows: the one place where both meet, so that a fit and a prediction agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from cceclust.errors import InputError
from cceclust.fit.head import Head
from cceclust.fit.progress import OnProgress, Progress, silent
from cceclust.fit.source import Source

__all__ = ["Prediction", "all_logits", "block_logits", "predict_source", "probabilities_of"]


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

    def mean_confidence(self, sample_weight: NDArray[Any] | None = None) -> float:
        """Return the mean of each row's largest probability."""
        return float(np.average(self.probabilities.max(axis=1).astype(np.float64), weights=sample_weight))


@np.errstate(over="ignore", invalid="ignore")
def block_logits(head: Head, block: Any) -> NDArray[Any]:
    """Return the logits of a block of rows."""
    # Contiguous, otherwise each sparse block would copy them.
    by_feature = np.ascontiguousarray(head.coef.T)
    logits = np.asarray(np.asarray(block @ by_feature) + head.intercept)
    return logits if head.curves is None else logits + head.curves.logits(block)


def logits_of_blocks(head: Head, source: Source) -> Iterator[tuple[slice, Any, NDArray[Any]]]:
    """Yield each block of rows with its place and its logits; refuse what is not finite."""
    with threadpool_limits(1, user_api="blas"):
        for where, block in source.blocks():
            logits = block_logits(head, block)
            is_finite = np.isfinite(logits).all(axis=1)
            if not is_finite.all():
                row = where.start + int(np.argmin(is_finite))
                raise InputError(
                    f"row {row} contains NaN, infinity or values too large for the model; remove or impute such rows"
                )
            yield where, block, logits


def all_logits(head: Head, source: Source) -> NDArray[Any]:
    """Return the logits of all rows, shape (n_samples, n_clusters)."""
    return np.concatenate([logits for _, _, logits in logits_of_blocks(head, source)])


def probabilities_of(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the softmax of each row of logits."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def predict_source(
    head: Head, source: Source, *, sample_weight: NDArray[Any] | None = None, on_progress: OnProgress = silent
) -> Prediction:
    """Predict all rows in one pass; given the weight of each row, also find the mean of each cluster."""
    n_samples, n_features = source.shape
    probabilities = np.empty((n_samples, head.n_clusters), np.float32)
    labels = np.empty(n_samples, np.int64)
    sums, sizes = np.zeros((head.n_clusters, n_features)), np.zeros(head.n_clusters)
    # Weights that sum to 1 keep sums of the largest numbers finite.
    shares = None if sample_weight is None else sample_weight / sample_weight.sum(dtype=np.float64)
    for where, block, logits in logits_of_blocks(head, source):
        labels[where] = logits.argmax(axis=1)
        probabilities[where] = probabilities_of(logits)
        if shares is not None:
            places = (shares[where], (labels[where], np.arange(block.shape[0])))
            members = sparse.csr_array(places, (head.n_clusters, block.shape[0]))
            total = members @ block
            sums += total.toarray() if sparse.issparse(total) else total
            sizes += np.bincount(labels[where], shares[where], head.n_clusters)
        on_progress(Progress("Predicting rows", where.stop, n_samples))
    if shares is None:
        return Prediction(labels, probabilities)
    has_members = sizes > 0
    centers = np.where(has_members[:, None], sums / np.where(has_members, sizes, 1.0)[:, None], sums.sum(axis=0))
    return Prediction(labels, probabilities, centers.astype(source.dtype))
