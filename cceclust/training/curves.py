"""Clusters whose borders curve: heads that are linear in the rows and in products of their leading directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.training.choosing import standard_error
from cceclust.training.head import Curves, products_of_pairs
from cceclust.training.heads import HeadStack
from cceclust.training.label_heads import FitToLabels, heads_around_means
from cceclust.training.rows import ArrayRows
from cceclust.training.space import TrainingSpace
from cceclust.training.spectrum import Spectrum, leading_axes, sample_rows
from cceclust.training.standardization import Standardization, fold

__all__ = ["Lift", "are_curved", "curve_heads", "find_lift"]


@dataclass(frozen=True)
class Lift:
    """Further columns for rows of the training space: products of their leading directions.

    Attributes
    ----------
    axes : ndarray of shape (n_axes, n_columns)
        Leading principal directions of standardised rows, such that the variance along each is 1.
    offsets : ndarray of shape (n_axes,)
        Minus the mean along each.
    means : ndarray of shape (n_products,)
        Mean of each product, which is taken off.
    """

    axes: NDArray[Any]
    offsets: NDArray[Any]
    means: NDArray[Any]

    def lifted(self, space: TrainingSpace, which: NDArray[np.intp]) -> TrainingSpace:
        """Return some rows of a space, standardised, with the products as further columns."""
        straight = standardized(space, which)
        products = products_of_pairs(straight @ self.axes.T + self.offsets) - self.means
        return space_of(np.concatenate([straight, products], axis=1))

    def split(self, weights: NDArray[Any], biases: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Divide weights of lifted rows (…, n_columns + n_products) into linear ones, biases, and those of products."""
        n_columns = self.axes.shape[1]
        straight, curved = weights[..., :n_columns], weights[..., n_columns:]
        return straight, biases - curved @ self.means, curved

    def curves(self, space: TrainingSpace, curved: NDArray[Any]) -> Curves:
        """Return the quadratic part of heads for rows of the training space as they are, not standardised."""
        axes, offsets = fold(self.axes, self.offsets, space.standardization)
        return Curves(axes, offsets, curved.reshape(-1, curved.shape[-1]))


def standardized(space: TrainingSpace, which: NDArray[np.intp]) -> NDArray[Any]:
    """Return some rows of a space as heads see them."""
    rows: Any = space.rows.take(which)
    done = space.standardization
    return np.asarray((rows - done.mean) / rows.dtype.type(done.scale))


def space_of(matrix: NDArray[Any]) -> TrainingSpace:
    """Return the space of rows that are standardised already."""
    return TrainingSpace.of_rows(ArrayRows(matrix), Standardization(np.zeros(matrix.shape[1], matrix.dtype), 1.0))


def find_lift(space: TrainingSpace, sample_weight: NDArray[Any], *, seed: int) -> Lift | None:
    """Find the leading directions of the rows on a sample; None for rows that do not vary."""
    sample, weights = sample_rows(space.rows, sample_weight, seed, most=choices.ROWS_FOR_COMPONENTS)
    sample = (sample - space.standardization.mean) / space.standardization.scale
    centre = weights @ sample
    centred = sample - centre
    axes = leading_axes(centred * np.sqrt(weights)[:, None], choices.CURVED_AXES, seed).astype(np.float64)
    deviations = np.sqrt(weights @ (centred @ axes.T) ** 2)
    # Beside large numbers and beside large deviations, small deviations are rounding.
    kept = deviations > choices.LEAST_DEVIATION * max(deviations.max(initial=0.0), float(np.abs(centre).max()))
    if not kept.any():
        return None
    axes = axes[kept] / deviations[kept, None]
    means = weights @ products_of_pairs(centred @ axes.T)
    dtype = space.rows.dtype
    return Lift(axes.astype(dtype), (-axes @ centre).astype(dtype), means.astype(dtype))


def are_curved(
    lift: Lift,
    space: TrainingSpace,
    labels: NDArray[np.integer[Any]],
    spectrum: Spectrum,
    sample_weight: NDArray[Any],
    n_clusters: int,
    fit: FitToLabels,
    *,
    seed: int,
) -> bool:
    """Tell whether curved borders predict the clusters of rows that they were not fitted to clearly better.

    A curved head always fits more closely, also to noise. So both kinds are fitted to one half of the rows, and what
    counts is how much of the other half they predict.

    Parameters
    ----------
    lift : Lift
        Makes the columns of curved heads.
    space : TrainingSpace
        Holds the rows, in memory.
    labels : ndarray of shape (n_samples,)
        The cluster of each row.
    spectrum : Spectrum
        How the rows vary.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    n_clusters : int
        Number of clusters.
    fit : callable
        Fits heads to labels.
    seed : int
        Decides the halves.
    """
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(np.flatnonzero(sample_weight > 0))[: choices.ROWS_TO_TEST_CURVES]
    taught, held = np.sort(drawn[::2]), np.sort(drawn[1::2])
    straight = [space_of(standardized(space, which)) for which in (taught, held)]
    curved = [lift.lifted(space, which) for which in (taught, held)]
    weights = sample_weight[taught]
    start = heads_around_means(straight[0], labels[None, taught], n_clusters, spectrum, weights)
    parts = []
    for known, unknown in (straight, curved):
        heads = fit(start, known, labels[None, taught], weights)
        assert isinstance(unknown.rows, ArrayRows)
        found = (unknown.rows.matrix @ heads.weights.T + heads.biases).argmax(axis=1)
        parts.append(float((found == labels[held]).mean()))
    return parts[1] - parts[0] > choices.CURVED_ERRORS * standard_error(parts[0], len(held))


def curve_heads(
    lift: Lift,
    space: TrainingSpace,
    start: HeadStack,
    labels: NDArray[np.integer[Any]],
    sample_weight: NDArray[Any],
    fit: FitToLabels,
    *,
    seed: int,
) -> HeadStack:
    """Return curved heads, fitted to the clusters that straight ones were fitted to, on a sample of very many rows.

    Parameters
    ----------
    lift, space, sample_weight, fit
        As in :func:`are_curved`.
    start : HeadStack
        The straight heads.
    labels : ndarray of shape (n_heads, n_samples)
        The cluster of each row, for each head.
    seed : int
        Decides the sample.
    """
    which = np.flatnonzero(sample_weight > 0)
    if len(which) > choices.ROWS_FOR_CURVES:
        which = np.sort(np.random.default_rng(seed).choice(which, choices.ROWS_FOR_CURVES, replace=False))
    return fit(start, lift.lifted(space, which), labels[:, which], sample_weight[which])
