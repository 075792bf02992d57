"""Compiled inner loops of training. Heads and probabilities are K-major: (n_restarts, n_clusters, n_points)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.compiled import compiled

__all__ = ["add_moments", "gather_standardized", "step", "write_collision_gradient", "write_shannon_gradient"]

FloatArray = NDArray[np.floating[Any]]


@compiled(error_model="numpy")
def gather_standardized(
    matrix: FloatArray, indices: NDArray[np.intp], mean: FloatArray, scale: float, rows: FloatArray
) -> None:
    """Copy the chosen rows, centred and scaled, into `rows` (OUT, one a chosen index)."""
    inverse = rows.dtype.type(1 / scale)
    for i in range(indices.shape[0]):
        source = matrix[indices[i]]
        target = rows[i]
        for j in range(target.shape[0]):
            target[j] = (source[j] - mean[j]) * inverse


@compiled(error_model="numpy")
def add_moments(
    matrix: FloatArray,
    weights: FloatArray,
    shift: FloatArray,
    sums: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Add the weighted column sums of ``x − shift`` and of its square to `sums` and `squares` (IN and OUT)."""
    for i in range(matrix.shape[0]):
        row = matrix[i]
        weight = np.float64(weights[i])
        for j in range(row.shape[0]):
            value = np.float64(row[j]) - shift[j]
            sums[j] += weight * value
            squares[j] += weight * value * value


@compiled(reorder_sums=True, error_model="numpy")
def write_collision_gradient(
    probabilities: FloatArray, pseudo_labels: FloatArray, weights: FloatArray, factor: float, gradient: FloatArray
) -> None:
    """Write ``factor · w · (σ − q)``, q ∝ y·σ, into `gradient` (OUT, may be `probabilities`).

    This is collision cross-entropy by the logits. Where y and σ share no class, the gradient is taken to be zero: no
    direction is better than another.
    """
    n_restarts, n_clusters, n_points = probabilities.shape
    zero, one = probabilities.dtype.type(0), probabilities.dtype.type(1)
    scale = probabilities.dtype.type(factor)
    collision = np.empty(n_points, probabilities.dtype)
    for r in range(n_restarts):
        collision[:] = zero
        for k in range(n_clusters):
            for i in range(n_points):
                collision[i] += probabilities[r, k, i] * pseudo_labels[r, k, i]
        for k in range(n_clusters):
            for i in range(n_points):
                share = pseudo_labels[r, k, i] / collision[i] if collision[i] > zero else one
                gradient[r, k, i] = scale * weights[i] * probabilities[r, k, i] * (one - share)


@compiled(reorder_sums=True, error_model="numpy")
def write_shannon_gradient(
    probabilities: FloatArray, pseudo_labels: FloatArray, weights: FloatArray, factor: float, gradient: FloatArray
) -> None:
    """Write ``factor · w · (σ − y)`` into `gradient` (OUT): Shannon's cross-entropy by the logits."""
    n_restarts, n_clusters, n_points = probabilities.shape
    scale = probabilities.dtype.type(factor)
    for r in range(n_restarts):
        for k in range(n_clusters):
            for i in range(n_points):
                difference = probabilities[r, k, i] - pseudo_labels[r, k, i]
                gradient[r, k, i] = scale * weights[i] * difference


@compiled(error_model="numpy")
def step(weights: FloatArray, gradient: FloatArray, rate: float, decay: float) -> None:
    """Gradient descent with weight decay, in place: ``W ← W − rate (gradient + decay W)``."""
    keep = weights.dtype.type(1 - rate * decay)
    length = weights.dtype.type(rate)
    for h in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            weights[h, j] = keep * weights[h, j] - length * gradient[h, j]
