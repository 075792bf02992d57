"""Where heads start: with random weights, or around the centres that K-means finds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust import choices
from cceclust.training.heads import HeadStack, batch_for
from cceclust.training.kmeans import kmeans
from cceclust.training.labels import Supervision
from cceclust.training.space import TrainingSpace
from cceclust.training.spectrum import Spectrum, sample_rows

__all__ = ["head_around", "heads_around_centres", "in_order_of_classes", "kmeans_centres", "random_heads"]


def random_heads(
    n_restarts: int, generator: np.random.Generator, *, space: TrainingSpace, n_clusters: int, size: float = 1.0
) -> HeadStack:
    """Draw weights as He et al. (2015) do, for as many features as the original rows have, with zero biases."""
    size *= float(np.sqrt(space.rows.shape[1] / space.n_features))
    return HeadStack.random(n_restarts, n_clusters, space.rows.shape[1], space.rows.dtype, generator, size=size)


def heads_around_centres(
    n_restarts: int,
    generator: np.random.Generator,
    *,
    space: TrainingSpace,
    n_clusters: int,
    spectrum: Spectrum,
    sample_weight: NDArray[Any],
) -> HeadStack:
    """Return heads that assign points to the nearest centre, each with the centres of its own run of K-means.

    Where many clusters share few directions, most lie between others. Random heads cut the space into slices, from
    which training does not find the clusters in the middle.

    Parameters
    ----------
    n_restarts : int
        Number of heads.
    generator : numpy.random.Generator
        Generator of all random numbers.
    space : TrainingSpace
        Holds the rows, of which at least `n_clusters` have a positive weight.
    n_clusters : int
        Number of clusters.
    spectrum : Spectrum
        The variances of the rows.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    """
    seed = int(generator.integers(np.iinfo(np.int32).max))
    most = choices.sample_for_kmeans(space.rows.shape[1], n_clusters)
    sample, weights = sample_rows(space.rows, sample_weight, seed, most=most)
    # Sorted by a projection, so that a repeated row is drawn like a single row of twice the weight.
    order = np.argsort(sample @ generator.standard_normal(sample.shape[1]))
    sample, weights = sample[order], weights[order]
    stacked, biases = [], []
    for _ in range(n_restarts):
        seed = int(generator.integers(np.iinfo(np.int32).max))
        head, bias = head_around(*kmeans_centres(sample, weights, space, n_clusters, n_init=1, seed=seed), spectrum)
        stacked.append(head)
        biases.append(bias)
    dtype = space.rows.dtype
    return HeadStack(n_restarts, np.concatenate(stacked).astype(dtype), np.concatenate(biases).astype(dtype))


def kmeans_centres(
    sample: Any, weights: NDArray[np.float64], space: TrainingSpace, n_clusters: int, *, n_init: int, seed: int
) -> tuple[NDArray[np.float64], float]:
    """Return the centres that K-means finds for raw rows, in standardised space, and the mean squared distance to them.

    Parameters
    ----------
    sample : {ndarray, sparse matrix} of shape (n_rows, n_features)
        Some rows of the space.
    weights : ndarray of shape (n_rows,)
        Their weights, which sum to 1.
    space : TrainingSpace
        How they are standardised, and the type to compute in.
    n_clusters, n_init, seed
        Of K-means.
    """
    mean, scale = space.standardization.mean.astype(np.float64), space.standardization.scale
    # Sparse rows stay sparse: their centres are moved instead.
    is_sparse = sparse.issparse(sample)
    scaled = ((sample if is_sparse else sample - mean) / scale).astype(space.rows.dtype)
    places, inertia = kmeans(scaled, weights, n_clusters, n_init=n_init, seed=seed)
    centres = places.astype(np.float64)
    return centres - mean / scale if is_sparse else centres, inertia


def head_around(
    centres: NDArray[np.float64], inertia: float, spectrum: Spectrum
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights and biases that assign standardised rows to the nearest centre.

    Parameters
    ----------
    centres : ndarray of shape (n_clusters, n_features)
        The centres, in standardised space.
    inertia : float
        Mean squared distance of standardised rows from their centre.
    spectrum : Spectrum
        The variances of the rows.
    """
    steepness = choices.steepness_for(inertia, spectrum.n_directions)
    # −steepness ‖x − c‖² / 2, without the part that all clusters share.
    return steepness * centres, -steepness * (centres**2).sum(axis=1) / 2


def in_order_of_classes(heads: HeadStack, space: TrainingSpace, supervision: Supervision) -> HeadStack:
    """Return the heads with their clusters ordered by the classes of the labelled rows in them."""
    # Few fits need it, and it takes long to load.
    from scipy.optimize import linear_sum_assignment

    rows = space.rows.take(supervision.rows).astype(space.rows.dtype)
    batch = batch_for(rows, len(supervision.rows))
    batch.load(rows, np.arange(len(supervision.rows)), space.standardization)
    nearest = heads.logits(batch).argmax(axis=1)
    order = []
    for restart, clusters in enumerate(nearest):
        held = supervision.targets.T @ np.eye(heads.n_clusters)[clusters]
        order.append(restart * heads.n_clusters + linear_sum_assignment(-held)[1])
    chosen = np.concatenate(order)
    return HeadStack(heads.n_restarts, heads.weights[chosen], heads.biases[chosen])
