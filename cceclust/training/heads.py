"""A stack of linear softmax heads, trained in parallel on the same batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust.training.head import Curves, Head
from cceclust.training.kernels import gather_standardized, step
from cceclust.training.logits import row_logits
from cceclust.training.rows import Rows
from cceclust.training.standardization import Standardization

__all__ = [
    "Batch",
    "DenseBatch",
    "HeadStack",
    "SparseBatch",
    "batch_for",
    "softmax_stack",
    "stack_probabilities",
]


class HeadStack:
    """Weights and biases of ``n_restarts`` heads, stacked, so that one matrix product computes all of them.

    Attributes
    ----------
    weights : ndarray of shape (n_restarts * n_clusters, n_features)
        For standardised features.
    biases : ndarray of shape (n_restarts * n_clusters,)
        For standardised features.
    """

    def __init__(self, n_restarts: int, weights: NDArray[Any], biases: NDArray[Any]) -> None:
        self.n_restarts = n_restarts
        self.n_clusters = len(weights) // n_restarts
        self.weights = weights
        self.biases = biases
        self._gradient = np.empty_like(weights)

    @classmethod
    def random(
        cls,
        n_restarts: int,
        n_clusters: int,
        n_features: int,
        dtype: np.dtype[Any],
        generator: np.random.Generator,
        *,
        size: float = 1.0,
    ) -> HeadStack:
        """Draw weights as He et al. (2015) do, times `size`, with zero biases."""
        deviation = size * np.sqrt(2 / n_features)
        weights = generator.normal(0, deviation, (n_restarts * n_clusters, n_features)).astype(dtype)
        return cls(n_restarts, weights, np.zeros(n_restarts * n_clusters, dtype))

    @classmethod
    def of_raw(cls, coef: NDArray[Any], intercept: NDArray[Any], standardization: Standardization) -> HeadStack:
        """Convert one head for raw features to standardised features."""
        # In float64, because the two parts of the bias may nearly cancel.
        weights = coef * np.float64(standardization.scale)
        biases = intercept + coef.astype(np.float64) @ standardization.mean.astype(np.float64)
        return cls(1, weights.astype(coef.dtype), biases.astype(coef.dtype))

    def logits(self, batch: Batch) -> NDArray[Any]:
        """Return the logits of a batch, of shape (n_restarts, n_clusters, n_points)."""
        logits = batch.products(self.weights)
        logits += self.biases[:, None]
        return logits.reshape(self.n_restarts, self.n_clusters, -1)

    def descend(
        self, batch: Batch, logit_gradient: NDArray[Any], *, rate: float, weight_decay: float | NDArray[np.float64]
    ) -> None:
        """Take one step of gradient descent, given the gradient with respect to the logits. Biases do not decay.

        Parameters
        ----------
        batch : Batch
            The rows.
        logit_gradient : ndarray of shape (n_restarts, n_clusters, n_points)
            The gradient with respect to the logits.
        rate : float
            Length of the step.
        weight_decay : float or ndarray of shape (n_restarts,)
            One for all heads, or one for each.
        """
        flat = logit_gradient.reshape(len(self.weights), -1)
        batch.weight_gradient(flat, self._gradient)
        decays = np.repeat(np.broadcast_to(np.asarray(weight_decay, np.float64), self.n_restarts), self.n_clusters)
        step(self.weights, self._gradient, rate, decays)
        self.biases -= self.biases.dtype.type(rate) * flat.sum(axis=1)

    def unstacked(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return weights (n_restarts, n_clusters, n_features) and biases (n_restarts, n_clusters)."""
        shape = (self.n_restarts, self.n_clusters)
        return self.weights.reshape(*shape, -1), self.biases.reshape(shape)


class DenseBatch:
    """Standardised rows of a dense matrix, in memory that is allocated once."""

    def __init__(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> None:
        self._memory = np.empty((capacity, n_features), dtype)
        self._rows = self._memory

    def load(self, matrix: NDArray[Any], indices: NDArray[np.intp], standardization: Standardization) -> None:
        """Fill the batch with the chosen rows."""
        self._rows = self._memory[: len(indices)]
        gather_standardized(matrix, indices, standardization.mean, standardization.scale, self._rows)

    def products(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return ``weights · rowsᵀ``."""
        return np.asarray(weights @ self._rows.T)

    def weight_gradient(self, logit_gradient: NDArray[Any], out: NDArray[Any]) -> None:
        """Write ``logit_gradient · rows`` into `out`."""
        np.matmul(logit_gradient, self._rows, out=out)


class SparseBatch:
    """Rows of a CSR matrix; centring and scaling are applied to the products instead of the rows."""

    def __init__(self) -> None:
        self._rows: Any = None
        self._standardization = Standardization(np.zeros(0), 1.0)

    def load(self, matrix: Any, indices: NDArray[np.intp], standardization: Standardization) -> None:
        """Fill the batch with the chosen rows."""
        self._rows = matrix[indices]
        self._standardization = standardization

    def products(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return ``weights · rowsᵀ``."""
        centre = weights @ self._standardization.mean
        products = (self._rows @ weights.T - centre).T / weights.dtype.type(self._standardization.scale)
        return np.ascontiguousarray(products)

    def weight_gradient(self, logit_gradient: NDArray[Any], out: NDArray[Any]) -> None:
        """Write ``logit_gradient · rows`` into `out`."""
        out[:] = (self._rows.T @ logit_gradient.T).T
        out -= np.outer(logit_gradient.sum(axis=1), self._standardization.mean)
        out /= out.dtype.type(self._standardization.scale)


Batch = DenseBatch | SparseBatch


def batch_for(matrix: Any, capacity: int) -> Batch:
    """Return an empty batch for rows of a matrix."""
    if sparse.issparse(matrix):
        return SparseBatch()
    return DenseBatch(capacity, matrix.shape[1], matrix.dtype)


def softmax_stack(logits: NDArray[Any]) -> NDArray[Any]:
    """Turn logits (n_restarts, n_clusters, n_points) into probabilities over the clusters, in place."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def stack_probabilities(
    coef: NDArray[Any], intercept: NDArray[Any], rows: Rows, curves: Curves | None = None
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield the probabilities of all heads for successive blocks of raw rows, with their position.

    Parameters
    ----------
    coef : ndarray of shape (n_restarts, n_clusters, n_features)
        Weights for raw features.
    intercept : ndarray of shape (n_restarts, n_clusters)
        Biases for raw features.
    rows : Rows
        What to predict.
    curves : Curves, optional
        The quadratic part of all heads.

    Yields
    ------
    where : slice
        The position of the block.
    probabilities : ndarray of shape (n_restarts, n_clusters, n_points)
    """
    n_restarts, n_clusters, n_features = coef.shape
    for where, logits in row_logits(Head(coef.reshape(-1, n_features), intercept.reshape(-1), curves), rows):
        yield where, softmax_stack(np.ascontiguousarray(logits.T).reshape(n_restarts, n_clusters, -1))
