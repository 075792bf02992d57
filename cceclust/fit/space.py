"""The space in which points are compared: along its axes, neighbours differ by about the same.

Principal components weigh directions by how much all rows differ, whether by their clusters or by the light on a face,
the length of a text or the depth of sequencing. Neighbours mostly share their cluster, so a direction along which they
differ much does not tell clusters apart. With T the covariance of all points and L that of the differences between
neighbours, the axes v are those of linear discriminant analysis, with neighbours in the place of labels:

    T v = λ (L + r I) v,   vᵀ (L + r I) v = 1.

The more of r, the more the axes are principal components as they were.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from cceclust.fit.neighbors import Metric, find_neighbors
from cceclust.fit.sample import ROWS_FOR_AXES, Projection, Sample

__all__ = ["sharpened"]

# Neighbours that a point is compared with.
NEAREST = 5
# r, beside the mean variance of the differences: with less, axes that hold nothing but noise count as much as others.
SHRINKAGE = 3.0


def sharpened(sample: Sample, metric: Metric, seed: int, n_threads: int) -> Sample:
    """Return the sample with its points on axes along which neighbours differ by about the same.

    The leading axis is the one that tells most points from their neighbours. The scale stays.
    """
    chosen = np.arange(len(sample.points))
    if len(chosen) > ROWS_FOR_AXES:
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, ROWS_FOR_AXES, replace=False))
    points, weights = sample.points[chosen], sample.weights[chosen].astype(np.float64)
    neighbors = find_neighbors(points, min(NEAREST, len(points) - 1), metric, seed, n_threads)
    points = points.astype(np.float64)
    total = covariance(points - np.average(points, axis=0, weights=weights), weights)
    local = np.zeros_like(total)
    for others in neighbors.T:
        local += covariance(points - points[others], weights) / (2 * neighbors.shape[1])
    # Where every row repeats, neighbours do not differ at all.
    spread = np.trace(local) or np.trace(total)
    if spread == 0:
        return sample
    local[np.diag_indices_from(local)] += SHRINKAGE * spread / len(local)
    _, axes = eigh(total, local)
    axes = axes[:, ::-1]
    axes *= np.sqrt(np.trace(total) / np.trace(axes.T @ total @ axes))
    # Of the two directions of an axis, the one of its largest entry: libraries differ in which one they return.
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    axes *= np.where(largest < 0, -1.0, 1.0)
    projection = Projection(sample.projection.mean, sample.projection.matrix @ axes)
    return replace(sample, points=sample.points @ axes.astype(np.float32), projection=projection)


def covariance(differences: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean product of every two columns."""
    return np.asarray(differences.T @ (differences * (weights / weights.sum())[:, None]))
