"""Where heads start: with random weights, or around the centres that K-means finds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cceclust.training.components import TrainingSpace
from cceclust.training.heads import HeadStack
from cceclust.training.spectrum import ROWS_FOR_SPECTRUM, Spectrum, sample_rows

__all__ = ["head_around", "heads_around_centres", "random_heads"]

# Centres are found in a sample: so many rows for every cluster, but not more in all than this many bytes hold,
SAMPLE_PER_CLUSTER = 50
SAMPLE_BYTES = 64 << 20
# unless they would be too few to choose from.
LEAST_PER_CLUSTER = 4
# Where rows repeat, clusters have no width.
STEEPEST = 100.0


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
    """Return heads that assign points to the nearest centre, each with centres of its own run of K-means.

    Where many clusters share few directions, most lie between others. Random heads cut the plane into slices, from
    which training does not find the clusters in the middle.

    Parameters
    ----------
    n_restarts : int
        Number of heads.
    generator : numpy.random.Generator
        Decides what is drawn.
    space : TrainingSpace
        Holds the rows, of which at least as many have weight as there are clusters.
    n_clusters : int
        Number of clusters.
    spectrum : Spectrum
        How the rows vary.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    """
    seed = int(generator.integers(np.iinfo(np.int32).max))
    affordable = SAMPLE_BYTES // (space.rows.shape[1] * np.dtype(np.float64).itemsize)
    most = max(ROWS_FOR_SPECTRUM, min(SAMPLE_PER_CLUSTER * n_clusters, affordable), LEAST_PER_CLUSTER * n_clusters)
    sample, weights = sample_rows(space.rows, sample_weight, seed, most=most)
    # In an order that is the rows' own, a row that is repeated is drawn as one of twice the weight would be.
    order = np.argsort(sample @ generator.standard_normal(sample.shape[1]))
    sample, weights = sample[order], weights[order]
    stacked, biases = [], []
    for _ in range(n_restarts):
        kmeans = KMeans(n_clusters, n_init=1, random_state=int(generator.integers(np.iinfo(np.int32).max)))
        # Its threads would add up in any order. With fewer different rows than clusters, centres coincide: never mind.
        with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            kmeans.fit(sample, sample_weight=weights)
        centres = (kmeans.cluster_centers_ - space.standardization.mean) / space.standardization.scale
        head, bias = head_around(centres, kmeans.inertia_ / space.standardization.scale**2, spectrum)
        stacked.append(head)
        biases.append(bias)
    dtype = space.rows.dtype
    return HeadStack(n_restarts, np.concatenate(stacked).astype(dtype), np.concatenate(biases).astype(dtype))


def head_around(
    centres: NDArray[np.float64], inertia: float, spectrum: Spectrum
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights and biases that assign standardised rows to the nearest centre.

    Parameters
    ----------
    centres : ndarray of shape (n_clusters, n_features)
        In standardised space.
    inertia : float
        Mean squared distance of standardised rows from their centre.
    spectrum : Spectrum
        How the rows vary.
    """
    width = inertia / spectrum.n_directions
    # Of round clusters of this width, 1 / width is right. Softer heads can still be moved by training; and the more
    # directions there are, the farther apart are the centres and the surer the heads.
    softness = float(np.sqrt(spectrum.n_directions))
    steepness = min(1 / (softness * width), STEEPEST) if width > 0 else STEEPEST
    # −steepness ‖x − c‖² / 2, without the part that all clusters share.
    return steepness * centres, -steepness * (centres**2).sum(axis=1) / 2
