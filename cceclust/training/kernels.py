"""Compiled inner loops of training. Heads and probabilities are K-major: (n_restarts, n_clusters, n_points)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.compiled import compiled
from cceclust.pseudo_labels.summation import sum_in_pairs

__all__ = [
    "add_by_label",
    "add_moments",
    "add_rows",
    "gather_standardized",
    "mean_distances",
    "row_distances",
    "step",
    "subtract_labels",
    "to_collision_gradient",
    "to_shannon_gradient",
]

FloatArray = NDArray[np.floating[Any]]


@compiled(error_model="numpy")
def gather_standardized(
    matrix: FloatArray, indices: NDArray[np.intp], mean: FloatArray, scale: float, rows: FloatArray
) -> None:
    """Copy the chosen rows, centred and scaled, into `rows` (OUT, one row per chosen index)."""
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


@compiled(error_model="numpy")
def add_rows(
    matrix: FloatArray, labels: NDArray[np.integer[Any]], weights: FloatArray, sums: NDArray[np.float64]
) -> None:
    """Add each weighted row to the sum of its cluster in `sums` (n_clusters, n_features; IN and OUT)."""
    for i in range(matrix.shape[0]):
        row, target = matrix[i], sums[labels[i]]
        weight = np.float64(weights[i])
        for j in range(row.shape[0]):
            target[j] += weight * np.float64(row[j])


@compiled(error_model="numpy")
def add_by_label(
    matrix: FloatArray,
    labels: NDArray[np.integer[Any]],
    weights: NDArray[np.float64],
    shift: FloatArray,
    scale: float,
    sums: NDArray[np.float64],
    masses: NDArray[np.float64],
) -> float:
    """Add each weighted row ``(x − shift) / scale`` to the sum of its cluster, for each labeling.

    `labels` has shape (n_labelings, n_rows), `sums` (n_labelings, n_clusters, n_features) and `masses` (n_labelings,
    n_clusters); the last two are IN and OUT. Return the weighted sum of the rows' squared lengths.
    """
    row, squares = np.empty(matrix.shape[1], np.float64), np.zeros(matrix.shape[1], np.float64)
    inverse = 1 / scale
    for i in range(matrix.shape[0]):
        weight = weights[i]
        # A sum for each column, as one running sum would wait for each addition.
        for j in range(row.shape[0]):
            value = (np.float64(matrix[i, j]) - shift[j]) * inverse
            row[j] = weight * value
            squares[j] += weight * value * value
        for r in range(labels.shape[0]):
            target = sums[r, labels[r, i]]
            for j in range(row.shape[0]):
                target[j] += row[j]
            masses[r, labels[r, i]] += weight
    return float(sum_in_pairs(squares))


@compiled(error_model="numpy")
def row_distances(
    matrix: FloatArray, middle: NDArray[np.float64], scale: float, distances: NDArray[np.float64]
) -> None:
    """Write the distance of each row from `middle`, divided by `scale` first, into `distances` (OUT)."""
    squares = np.empty(matrix.shape[1], np.float64)
    # Its reciprocal must be finite.
    inverse = 1 / max(scale, np.finfo(np.float64).tiny)
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(row.shape[0]):
            away = (np.float64(row[j]) - middle[j]) * inverse
            squares[j] = away * away
        distances[i] = np.sqrt(sum_in_pairs(squares))


@compiled(error_model="numpy")
def mean_distances(
    matrix: FloatArray,
    neighbors: NDArray[np.integer[Any]],
    rows: NDArray[np.intp],
    scale: float,
    distances: NDArray[np.float64],
) -> None:
    """Write the mean distance of some rows to their neighbours, divided by `scale`, to their places in `distances`.

    Squares are summed in the type of the matrix, in which they neither overflow nor vanish if its rows vary by `scale`.
    """
    squares = np.empty(matrix.shape[1], matrix.dtype)
    inverse = matrix.dtype.type(1 / scale)
    for i in rows:
        own, summed = matrix[i], 0.0
        for m in range(neighbors.shape[1]):
            other = matrix[neighbors[i, m]]
            for j in range(own.shape[0]):
                away = (other[j] - own[j]) * inverse
                squares[j] = away * away
            summed += np.sqrt(np.float64(sum_in_pairs(squares)))
        distances[i] = summed / neighbors.shape[1]


@compiled(error_model="numpy")
def to_collision_gradient(
    stack: FloatArray, first: int, pseudo_labels: FloatArray, weights: FloatArray, factor: float
) -> None:
    """Replace the probabilities σ of the points from `first` on by ``factor · w · (σ − q)``, q ∝ y·σ (IN and OUT).

    This is the gradient of collision cross-entropy with respect to the logits. Where y and σ share no class, it is set
    to 0: no direction is better than another. The number of points is that of `pseudo_labels`.
    """
    n_restarts, n_clusters, n_points = pseudo_labels.shape
    zero, one = stack.dtype.type(0), stack.dtype.type(1)
    # Below this, a reciprocal would overflow.
    smallest = stack.dtype.type(np.finfo(stack.dtype).tiny)
    scale = stack.dtype.type(factor)
    inverse = np.empty(n_points, stack.dtype)
    for r in range(n_restarts):
        inverse[:] = zero
        for k in range(n_clusters):
            row, labels = stack[r, k], pseudo_labels[r, k]
            for i in range(n_points):
                inverse[i] += row[first + i] * labels[i]
        for i in range(n_points):
            inverse[i] = one / inverse[i] if inverse[i] >= smallest else zero
        for k in range(n_clusters):
            row, labels = stack[r, k], pseudo_labels[r, k]
            for i in range(n_points):
                share = labels[i] * inverse[i] if inverse[i] > zero else one
                row[first + i] *= scale * weights[i] * (one - share)


@compiled(error_model="numpy")
def to_shannon_gradient(
    stack: FloatArray, first: int, pseudo_labels: FloatArray, weights: FloatArray, factor: float
) -> None:
    """Replace the probabilities σ of the points from `first` on by ``factor · w · (σ − y)`` (IN and OUT).

    This is the gradient of Shannon's cross-entropy. The number of points is that of `pseudo_labels`.
    """
    n_restarts, n_clusters, n_points = pseudo_labels.shape
    scale = stack.dtype.type(factor)
    for r in range(n_restarts):
        for k in range(n_clusters):
            row, labels = stack[r, k], pseudo_labels[r, k]
            for i in range(n_points):
                row[first + i] = scale * weights[i] * (row[first + i] - labels[i])


@compiled(error_model="numpy")
def subtract_labels(stack: FloatArray, labels: NDArray[np.int32], rows: NDArray[np.intp], weights: FloatArray) -> None:
    """Replace probabilities σ by ``w · (σ − y)`` with one-hot labels y (IN and OUT): the gradient of cross-entropy.

    `labels` holds the labels of all rows for each head, `rows` the row number of each point.
    """
    n_heads, n_clusters, n_points = stack.shape
    one = stack.dtype.type(1)
    for r in range(n_heads):
        for i in range(n_points):
            stack[r, labels[r, rows[i]], i] -= one
        for k in range(n_clusters):
            for i in range(n_points):
                stack[r, k, i] *= weights[i]


@compiled(error_model="numpy")
def step(weights: FloatArray, gradient: FloatArray, rate: float, decays: NDArray[np.float64]) -> None:
    """Gradient descent in place: ``W ← W − rate (gradient + decay W)``, with a weight decay for each row of weights."""
    length = weights.dtype.type(rate)
    for h in range(weights.shape[0]):
        keep = weights.dtype.type(1 - rate * decays[h])
        for j in range(weights.shape[1]):
            weights[h, j] = keep * weights[h, j] - length * gradient[h, j]
