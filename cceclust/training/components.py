"""Wide rows in fewer dimensions: clusters are told apart along the directions of largest variance."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.training.rows import ArrayRows, Rows
from cceclust.training.spectrum import leading_axes, sample_rows
from cceclust.training.standardization import Standardization, fold

__all__ = ["TrainingSpace", "projected", "worthwhile_components"]

# See docs/defaults.md: more make no better clusters.
COMPONENTS = 256
COMPONENTS_PER_CLUSTER = 2
# Of narrower rows, the projection saves less time than it takes, and its memory begins to count.
LEAST_REDUCTION = 4
ROWS_FOR_COMPONENTS = 2000


@dataclass(frozen=True)
class TrainingSpace:
    """What heads are trained on: the rows themselves, or their leading principal components.

    Attributes
    ----------
    rows : Rows
        The rows to train on.
    standardization : Standardization
        What is done to these rows, batch by batch.
    origin : Standardization
        What is done to the original rows, before `axes` if there are any.
    axes : ndarray of shape (n_components, n_features) or None
        The directions onto which the standardised original rows were projected.
    """

    rows: Rows
    standardization: Standardization
    origin: Standardization
    axes: NDArray[Any] | None = None

    @classmethod
    def of_rows(cls, rows: Rows, standardization: Standardization) -> TrainingSpace:
        """Return the space of the rows themselves."""
        return cls(rows, standardization, standardization)

    @property
    def n_features(self) -> int:
        """Number of features of the original rows."""
        return len(self.origin.mean)

    def raw_heads(self, weights: NDArray[Any], biases: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the weights and biases for original rows of heads that were trained here."""
        return fold(weights if self.axes is None else weights @ self.axes, biases, self.origin)


def worthwhile_components(n_features: int, n_clusters: int) -> int:
    """Return how many components to train on; 0 if the rows are narrow enough as they are.

    Examples
    --------
    >>> worthwhile_components(2048, n_clusters=10), worthwhile_components(784, n_clusters=10)
    (256, 0)
    """
    count = max(COMPONENTS, COMPONENTS_PER_CLUSTER * n_clusters)
    return count if n_features >= LEAST_REDUCTION * count else 0


def projected(
    rows: ArrayRows,
    standardization: Standardization,
    sample_weight: NDArray[Any],
    n_components: int,
    *,
    seed: int,
    n_threads: int,
) -> TrainingSpace:
    """Project standardised rows onto their leading principal components.

    Parameters
    ----------
    rows : ArrayRows
        The features.
    standardization : Standardization
        Of the features.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    n_components : int
        How many components; there are at most as many as rows.
    seed : int
        Decides the sample of rows that the components are found on.
    n_threads : int
        How many blocks of rows are projected at the same time. It does not change the result.
    """
    sample, weights = sample_rows(rows, sample_weight, seed, most=ROWS_FOR_COMPONENTS)
    axes = leading_axes((sample - standardization.mean) * np.sqrt(weights)[:, None], n_components, seed)
    axes = axes.astype(rows.dtype)
    matrix = np.empty((rows.shape[0], len(axes)), rows.dtype)

    def project(block: tuple[slice, NDArray[Any]]) -> None:
        where, originals = block
        matrix[where] = ((originals - standardization.mean) / rows.dtype.type(standardization.scale)) @ axes.T

    with ThreadPoolExecutor(n_threads) as pool:
        for _ in pool.map(project, rows.blocks()):
            pass
    done = Standardization(np.zeros(len(axes), rows.dtype), 1.0)
    return TrainingSpace(ArrayRows(matrix), done, standardization, axes)
