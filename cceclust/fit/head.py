"""A head for raw rows: linear, or with borders that curve along a few directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FARTHEST", "Curves", "Head", "products_of_pairs"]

FARTHEST = 1e4


@dataclass(frozen=True)
class Curves:
    """The quadratic part of a head.

    With t = x · axesᵀ + offsets, it adds the weighted sum of all products t_i t_j, i ≤ j, to the logit of each cluster.
    Of the rows that were fitted, t has a variance of 1; it is held to ±10⁴, so that squares of absurd rows stay finite.

    Attributes
    ----------
    axes : ndarray of shape (n_axes, n_features)
        Directions along which borders may curve, for raw rows.
    offsets : ndarray of shape (n_axes,)
        What is added to a row's place along each of them.
    weights : ndarray of shape (n_clusters, n_axes * (n_axes + 1) / 2)
        Weights of the products, in the order of ``numpy.triu_indices``.
    """

    axes: NDArray[Any]
    offsets: NDArray[Any]
    weights: NDArray[Any]

    def logits(self, block: Any) -> NDArray[Any]:
        """Return what is added to the logits of a block of rows."""
        places = np.clip(np.asarray(block @ self.axes.T) + self.offsets, -FARTHEST, FARTHEST)
        return np.asarray(products_of_pairs(places) @ self.weights.T)


@dataclass(frozen=True)
class Head:
    """The logits of raw rows are ``x · coefᵀ + intercept``, and those of the curves if there are any.

    Attributes
    ----------
    coef : ndarray of shape (n_clusters, n_features)
    intercept : ndarray of shape (n_clusters,)
    curves : Curves or None
    """

    coef: NDArray[Any]
    intercept: NDArray[Any]
    curves: Curves | None = None

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.intercept)


def products_of_pairs(places: NDArray[Any]) -> NDArray[Any]:
    """Return the products of every two columns, squares included.

    Examples
    --------
    >>> import numpy as np
    >>> products_of_pairs(np.array([[2, 3]]))
    array([[4, 6, 9]])
    """
    first, second = np.triu_indices(places.shape[1])
    return np.asarray(places[:, first] * places[:, second])
