"""Linear heads that reproduce given clusters, such as the parts of a graph or those of K-means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.training.heads import HeadStack, batch_for, softmax_stack
from cceclust.training.kernels import add_by_label, subtract_labels
from cceclust.training.rows import ArrayRows
from cceclust.training.space import TrainingSpace
from cceclust.training.spectrum import Spectrum, longest_stable_step
from cceclust.training.starts import head_around

__all__ = ["FitToLabels", "fit_heads_to_labels", "heads_around_means", "widened"]

# Fits heads to the labels of weighted rows of a space, from a start: :func:`fit_heads_to_labels`, but for its settings.
FitToLabels = Callable[[HeadStack, TrainingSpace, NDArray[Any], NDArray[Any]], HeadStack]


def heads_around_means(
    space: TrainingSpace,
    labels: NDArray[np.integer[Any]],
    n_clusters: int,
    spectrum: Spectrum,
    sample_weight: NDArray[Any],
) -> HeadStack:
    """Return heads that assign rows to the nearest mean of given clusters.

    Parameters
    ----------
    space : TrainingSpace
        Holds the rows, in memory.
    labels : ndarray of shape (n_heads, n_samples)
        The cluster of each row, for each head.
    n_clusters : int
        Number of clusters. The mean of an empty one is that of all rows.
    spectrum : Spectrum
        The variances of the rows.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    """
    assert isinstance(space.rows, ArrayRows)
    weights = sample_weight.astype(np.float64) / sample_weight.sum(dtype=np.float64)
    n_heads, n_features = len(labels), space.rows.shape[1]
    sums, masses = np.zeros((n_heads, n_clusters, n_features)), np.zeros((n_heads, n_clusters))
    squares = 0.0
    for where, block in space.rows.blocks():
        squares += add_by_label(
            block,
            labels[:, where],
            weights[where],
            space.standardization.mean,
            space.standardization.scale,
            sums,
            masses,
        )
    heads = []
    for head in range(n_heads):
        centre = sums[head].sum(axis=0)
        filled = masses[head, :, None] > 0
        means = np.where(filled, sums[head] / np.where(filled, masses[head, :, None], 1.0), centre)
        inertia = max(squares - float(masses[head] @ (means**2).sum(axis=1)), 0.0)
        heads.append(head_around(means, inertia, spectrum))
    dtype = space.rows.dtype
    stacked, biases = (np.concatenate(parts).astype(dtype) for parts in zip(*heads, strict=True))
    return HeadStack(n_heads, stacked, biases)


@np.errstate(over="ignore", invalid="ignore")
def fit_heads_to_labels(
    start: HeadStack,
    space: TrainingSpace,
    labels: NDArray[np.integer[Any]],
    sample_weight: NDArray[Any],
    *,
    weight_decay: float | NDArray[np.float64],
    learning_rate: float,
    seed: int,
) -> HeadStack:
    """Train heads to predict given clusters: a few hundred steps of cross-entropy, without pseudo-labels.

    Parameters
    ----------
    start : HeadStack
        The initial heads, such as :func:`heads_around_means`. Weights of columns that they do not know begin at 0.
    space : TrainingSpace
        Holds the rows, in memory.
    labels : ndarray of shape (n_heads, n_samples)
        The cluster of each row, for each head.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row. Rows with a weight of 0 are skipped.
    weight_decay : float or ndarray of shape (n_heads,)
        One for all heads, or one for each.
    learning_rate : float
        Initial step size, if it is stable. It falls to a fifth along half a cosine.
    seed : int
        Seed of the order of rows.
    """
    assert isinstance(space.rows, ArrayRows)
    heads = widened(start, space.rows.shape[1])
    longest = longest_stable_step(space.rows, start.n_clusters, space.standardization, sample_weight, seed=seed)
    learning_rate = min(learning_rate, longest)
    generator = np.random.default_rng(seed)
    rows = np.flatnonzero(sample_weight > 0)
    size = min(choices.REFIT_BATCH, len(rows))
    batch = batch_for(space.rows.matrix, size)
    codes = np.ascontiguousarray(labels, np.int32)
    order, done = generator.permutation(rows), 0
    for number in range(choices.REFIT_STEPS):
        if done + size > len(order):
            order, done = generator.permutation(rows), 0
        drawn = order[done : done + size]
        done += size
        batch.load(space.rows.matrix, drawn, space.standardization)
        probabilities = softmax_stack(heads.logits(batch))
        weights = sample_weight[drawn]
        subtract_labels(probabilities, codes, drawn, weights / weights.sum())
        fall = 0.5 * (1 + np.cos(np.pi * number / choices.REFIT_STEPS))
        rate = float(learning_rate * (choices.FINAL_RATE + (1 - choices.FINAL_RATE) * fall))
        heads.descend(batch, probabilities, rate=rate, weight_decay=weight_decay)
    return heads


def widened(heads: HeadStack, n_columns: int) -> HeadStack:
    """Return a copy of heads with weights of 0 for columns that they do not know."""
    missing = n_columns - heads.weights.shape[1]
    return HeadStack(heads.n_restarts, np.pad(heads.weights, ((0, 0), (0, missing))), heads.biases.copy())
