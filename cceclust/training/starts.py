"""Where heads start: with random weights, or around rows that lie far apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics.pairwise import euclidean_distances

from cceclust.training.components import TrainingSpace
from cceclust.training.heads import HeadStack
from cceclust.training.spectrum import ROWS_FOR_SPECTRUM, Spectrum, sample_rows

__all__ = ["heads_around_rows", "random_heads"]

# Rows are drawn from a sample, which needs a few for every cluster.
SAMPLE_PER_CLUSTER = 4
# Softer than the clusters probably are, so that training can still move them.
SOFTNESS = 0.5
# Where rows repeat, clusters have no width.
STEEPEST = 100.0


def random_heads(
    n_restarts: int, generator: np.random.Generator, *, space: TrainingSpace, n_clusters: int, size: float = 1.0
) -> HeadStack:
    """Draw weights as He et al. (2015) do, for as many features as the original rows have, with zero biases."""
    size *= float(np.sqrt(space.rows.shape[1] / space.n_features))
    return HeadStack.random(n_restarts, n_clusters, space.rows.shape[1], space.rows.dtype, generator, size=size)


def heads_around_rows(
    n_restarts: int,
    generator: np.random.Generator,
    *,
    space: TrainingSpace,
    n_clusters: int,
    spectrum: Spectrum,
    sample_weight: NDArray[Any],
) -> HeadStack:
    """Draw rows by k-means++ and return heads that assign points to the nearest of them.

    Where many clusters share few directions, most lie between others. Random heads cut the plane into slices, from
    which training does not find the clusters in the middle.

    Parameters
    ----------
    n_restarts : int
        Number of heads.
    generator : numpy.random.Generator
        Decides what is drawn.
    space : TrainingSpace
        Holds the rows.
    n_clusters : int
        Number of clusters.
    spectrum : Spectrum
        How the rows vary.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    """
    seed = int(generator.integers(np.iinfo(np.int32).max))
    most = max(ROWS_FOR_SPECTRUM, SAMPLE_PER_CLUSTER * n_clusters)
    sample, weights = sample_rows(space.rows, sample_weight, seed, most=most)
    # In an order that is the rows' own, a row that is repeated is drawn as one of twice the weight would be.
    order = np.argsort(sample @ generator.standard_normal(sample.shape[1]))
    sample, weights = sample[order], weights[order]
    stacked, biases = [], []
    for _ in range(n_restarts):
        state = int(generator.integers(np.iinfo(np.int32).max))
        centres, _ = kmeans_plusplus(sample, n_clusters, sample_weight=weights, random_state=state)
        distances = euclidean_distances(sample, centres, squared=True).min(axis=1) @ weights
        width = distances / space.standardization.scale**2 / spectrum.n_directions
        steepness = min(SOFTNESS / width, STEEPEST) if width > 0 else STEEPEST
        dense = centres.toarray() if sparse.issparse(centres) else centres
        points = (dense - space.standardization.mean) / space.standardization.scale
        # −steepness ‖x − c‖² / 2, without the part that all clusters share.
        stacked.append(steepness * points)
        biases.append(-steepness * (points**2).sum(axis=1) / 2)
    dtype = space.rows.dtype
    return HeadStack(n_restarts, np.concatenate(stacked).astype(dtype), np.concatenate(biases).astype(dtype))
