"""What heads are trained on: the rows themselves, their leading principal components, or another linear map of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.rows import ArrayRows, SparseRows
from cceclust.training.spectrum import leading_axes, sample_rows
from cceclust.training.standardization import Standardization, fold

__all__ = ["TrainingSpace", "component_count", "find_axes", "project", "training_space"]


@dataclass(frozen=True)
class TrainingSpace:
    """Rows to train on, and the conversion of their heads to heads for the original rows.

    Attributes
    ----------
    rows : ArrayRows or SparseRows
        The rows to train on.
    standardization : Standardization
        Applied to these rows, batch by batch.
    origin : Standardization
        Applied to the original rows, before `axes` if there are any.
    axes : ndarray of shape (n_components, n_features) or None
        What the standardised original rows were multiplied by: the directions onto which they were projected, or the
        map that evened out their directions.
    evened_by : ndarray of shape (n_columns, n_columns) or None
        The symmetric matrix that rows were multiplied by last, to even out their directions; None if they were not.
    """

    rows: ArrayRows | SparseRows
    standardization: Standardization
    origin: Standardization
    axes: NDArray[Any] | None = None
    evened_by: NDArray[Any] | None = None

    @classmethod
    def of_rows(cls, rows: ArrayRows | SparseRows, standardization: Standardization) -> TrainingSpace:
        """Return the space of the rows themselves."""
        return cls(rows, standardization, standardization)

    @property
    def n_features(self) -> int:
        """Number of features of the original rows."""
        return len(self.origin.mean)

    def raw_heads(self, weights: NDArray[Any], biases: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Convert weights and biases of heads that were trained in this space to the original rows."""
        return fold(weights if self.axes is None else weights @ self.axes, biases, self.origin)

    def before_evening(self) -> tuple[TrainingSpace, NDArray[Any]]:
        """Return the space before directions were evened out, and what its heads are multiplied by for this one.

        That is the inverse of the matrix, for rows and heads alike, as it is symmetric.
        """
        assert self.evened_by is not None
        assert isinstance(self.rows, ArrayRows)
        back = np.linalg.inv(self.evened_by.astype(np.float64)).astype(self.rows.dtype)
        axes = back if self.axes is None else back @ self.axes
        return TrainingSpace(ArrayRows(self.rows.matrix @ back), self.standardization, self.origin, axes), back


def training_space(
    rows: ArrayRows | SparseRows,
    standardization: Standardization,
    sample_weight: NDArray[Any],
    n_components: int | Literal["auto"],
    n_clusters: int,
    *,
    is_centred: bool,
    seed: int,
    n_threads: int,
) -> TrainingSpace:
    """Return the rows, or their leading principal components if requested or worthwhile."""
    if isinstance(rows, SparseRows) and n_components == "auto":
        n_components = 0
    n_components = component_count(rows.shape[1], n_components, n_clusters, is_centred=is_centred)
    if n_components == 0:
        return TrainingSpace.of_rows(rows, standardization)
    if not isinstance(rows, ArrayRows):
        raise InputError("components need dense features; set n_components=0, or convert them")
    return project(rows, standardization, sample_weight, n_components, seed=seed, n_threads=n_threads)


def component_count(n_features: int, n_components: int | Literal["auto"], n_clusters: int, *, is_centred: bool) -> int:
    """Return the number of components to project dense rows onto; 0 if they stay as they are."""
    if n_components == "auto":
        # Without centring, the mean of the rows would be the first component.
        return choices.components_for(n_features, n_clusters) if is_centred else 0
    return n_components if n_components < n_features else 0


def find_axes(
    sample: NDArray[np.float64], weights: NDArray[np.float64], mean: NDArray[Any], count: int, seed: int
) -> NDArray[np.float32]:
    """Return the leading principal components of a sample of rows, which is overwritten; its weights sum to 1."""
    # In place: the sample of a small file is as large as the file.
    sample -= mean
    sample *= np.sqrt(weights)[:, None]
    return leading_axes(sample, count, seed)


def project(
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
        Applied to the features before the projection.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    n_components : int
        Number of components; at most the number of rows.
    seed : int
        Seed of the sample of rows on which the components are found.
    n_threads : int
        Number of blocks of rows that are projected at the same time. It does not change the result.
    """
    sample, weights = sample_rows(rows, sample_weight, seed, most=choices.ROWS_FOR_COMPONENTS)
    axes = find_axes(sample, weights, standardization.mean, n_components, seed).astype(rows.dtype)
    matrix = np.empty((rows.shape[0], len(axes)), rows.dtype)

    onto_axes = partial(project_block, standardization=standardization, axes=axes)
    for where, projected in rows.map_blocks(onto_axes, n_threads=n_threads):
        matrix[where] = projected
    done = Standardization(np.zeros(len(axes), rows.dtype), 1.0)
    return TrainingSpace(ArrayRows(matrix), done, standardization, axes)


def project_block(block: NDArray[Any], *, standardization: Standardization, axes: NDArray[Any]) -> NDArray[Any]:
    """Return the standardised rows of a block along some axes."""
    centred = block - standardization.mean
    centred /= block.dtype.type(standardization.scale)
    return np.asarray(centred @ axes.T)
