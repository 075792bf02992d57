"""The sample: the one matrix in memory that training, graph, choice and the search for a number of clusters see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust.errors import InputError
from cceclust.fit.source import Source, block_slices

__all__ = ["Projection", "Sample", "take_sample"]

Scale = Literal["auto", "overall", "columns"]

# Columns are in different units, and each is divided by its deviation, where the largest deviation is more than this
# many times the median: 388 for wine and 7829 for breast cancer; at most 9 for pixels, digits and embeddings.
UNLIKE_COLUMNS = 20.0
# One row at a thousand times the usual distance would decide mean and scale alone. Rows at more than this many times
# the median distance from the middle (15 is the most on clean data) take no part in the fit,
FAR = 30.0
# unless they are more than this part of the rows, and so perhaps a cluster of their own.
MOST_FAR = 0.01
# Mean, scale and axes are found on this many rows, the middle on a tenth; clusters were the same with more.
ROWS_FOR_AXES = 4000
# Directions beyond those that hold this part of the variance are noise.
PART_THAT_COUNTS = 0.95


@dataclass(frozen=True)
class Projection:
    """What makes a point of a raw row x: ``(x − mean) · matrix``."""

    mean: NDArray[np.float64]
    # (n_features, n_components)
    matrix: NDArray[np.float64]

    def apply(self, rows: Any) -> NDArray[np.float32]:
        """Return the points of rows, block by block."""
        points = np.empty((rows.shape[0], self.matrix.shape[1]), np.float32)
        matrix, mean = self.matrix.astype(rows.dtype), self.mean.astype(rows.dtype)
        for where in block_slices(rows.shape, rows.dtype):
            block = rows[where]
            # Sparse rows are mostly 0: subtracting their mean from them would make them dense.
            points[where] = block @ matrix - mean @ matrix if sparse.issparse(block) else (block - mean) @ matrix
        return points


@dataclass(frozen=True)
class Sample:
    """Rows to learn from: centred, on one scale, and on their leading principal components.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_components), float32
    weights : ndarray of shape (n_points,), float32
        The weight of each, 1 on average.
    which : ndarray of shape (n_points,)
        Their numbers among all rows, ascending.
    n_directions : int
        Number of directions that hold nearly all of the variance.
    projection : Projection
    n_far : int
        Number of rows that were left out because they are far from all others.
    columns_scaled : bool
        Whether each column was divided by its own deviation.
    """

    points: NDArray[np.float32]
    weights: NDArray[np.float32]
    which: NDArray[np.intp]
    n_directions: int
    projection: Projection
    n_far: int
    columns_scaled: bool

    def part(self, chosen: NDArray[np.intp]) -> Sample:
        """Return the sample of some of its points."""
        weights = self.weights[chosen] / self.weights[chosen].mean()
        return Sample(
            self.points[chosen],
            weights,
            self.which[chosen],
            self.n_directions,
            self.projection,
            self.n_far,
            self.columns_scaled,
        )


def take_sample(
    source: Source,
    sample_weight: NDArray[Any],
    *,
    first: NDArray[np.intp],
    scale: Scale,
    n_components: int,
    max_rows: int,
    seed: int,
) -> Sample:
    """Take the rows to learn from; those in `first` come before others, and none of them counts as far."""
    generator = np.random.default_rng(seed)
    which = choose_rows(sample_weight, first, max_rows, generator)
    rows = source.take(which)
    far = np.zeros(len(which), bool) if sparse.issparse(rows) else far_rows(rows, generator)
    refuse_what_is_not_finite(rows, which)
    far &= ~np.isin(which, first)
    n_far = int(far.sum()) if far.mean() <= MOST_FAR or far.sum() == 1 else 0
    weights = np.where(far, 0.0, sample_weight[which]) if n_far else sample_weight[which].astype(np.float64)
    looked_at = np.flatnonzero(weights > 0)
    if len(looked_at) > ROWS_FOR_AXES:
        looked_at = np.sort(generator.choice(looked_at, ROWS_FOR_AXES, replace=False))
    looked_at_weights = weights[looked_at] / weights[looked_at].sum()
    projection, n_directions, columns_scaled = find_projection(
        rows[looked_at], looked_at_weights, scale, n_components, generator
    )
    kept = np.flatnonzero(weights > 0)
    # Points rather than rows are left out: these are most of the memory of a fit, and would be copied.
    with np.errstate(over="ignore", invalid="ignore"):
        points = projection.apply(rows)[kept] if n_far else projection.apply(rows)
    relative = (weights[kept] / weights[kept].mean()).astype(np.float32)
    return Sample(points, relative, which[kept], n_directions, projection, n_far, columns_scaled)


def choose_rows(
    sample_weight: NDArray[Any], first: NDArray[np.intp], max_rows: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Return the numbers of all rows with weight, or of so many at random after those that come first."""
    candidates = np.flatnonzero(sample_weight > 0)
    if len(candidates) <= max_rows:
        return candidates
    is_first = np.isin(candidates, first)
    order = generator.permutation(len(candidates))
    return np.sort(candidates[order[np.argsort(~is_first[order], kind="stable")[:max_rows]]])


@np.errstate(over="ignore", invalid="ignore")
def far_rows(rows: NDArray[Any], generator: np.random.Generator) -> NDArray[np.bool_]:
    """Tell which rows are far from the middle, beside the usual distance from it."""
    drawn = np.sort(generator.permutation(len(rows))[: ROWS_FOR_AXES // 10])
    middle = np.median(rows[drawn].astype(np.float64), axis=0)
    # Divided by the largest value first, squares neither overflow nor vanish.
    largest = float(np.abs(rows[drawn] - middle).max()) or 1.0
    distances = np.empty(len(rows))
    for where in block_slices(rows.shape, rows.dtype):
        away = ((rows[where] - middle) / largest).astype(np.float32)
        distances[where] = np.sqrt(np.einsum("ij,ij->i", away, away))
    usual = np.median(distances[drawn])
    return np.asarray(distances > FAR * usual) if usual > 0 else np.zeros(len(rows), bool)


def refuse_what_is_not_finite(rows: Any, which: NDArray[np.intp]) -> None:
    """Raise if a row contains NaN or infinity, and say which."""
    for where in block_slices(rows.shape, rows.dtype):
        block = rows[where]
        values = block.data if sparse.issparse(block) else block
        if not np.isfinite(values).all():
            bad = int(np.argmin(np.isfinite(values).reshape(-1)))
            row = np.searchsorted(block.indptr, bad, "right") - 1 if sparse.issparse(block) else bad // block.shape[1]
            raise InputError(
                f"row {which[where.start + row]} contains NaN or infinity; remove such rows, or fill in their values"
            )


def find_projection(
    rows: Any, weights: NDArray[np.float64], scale: Scale, n_components: int, generator: np.random.Generator
) -> tuple[Projection, int, bool]:
    """Find mean, scale and axes on some rows; also return how many directions count, and if columns were scaled."""
    if sparse.issparse(rows) and rows.shape[1] <= 10 * n_components:
        rows = rows.toarray()
    rows = rows.astype(np.float64)
    mean = np.asarray(weights @ rows).ravel()
    if sparse.issparse(rows):
        centred = rows
        variances = np.maximum(np.asarray(weights @ rows.multiply(rows)).ravel() - mean**2, 0.0)
    else:
        # The mean of equal values differs from them by rounding, which must not be scaled up.
        mean = np.where((rows == rows[0]).all(axis=0), rows[0], mean)
        centred = rows - mean
    # Values near the limits of float64 must not overflow when they are squared.
    unit = 1.0 if sparse.issparse(rows) else float(np.abs(centred).max()) or 1.0
    if not sparse.issparse(rows):
        centred /= unit
        variances = weights @ centred**2
    deviations = np.sqrt(variances)
    columns_scaled = scale == "columns" or (scale == "auto" and needs_column_scaling(deviations))
    factors = np.ones(len(mean))
    if columns_scaled:
        factors = np.where(deviations > 0, 1 / np.where(deviations > 0, deviations, 1.0), 1.0)
        variances = variances * factors**2
    overall = float(np.sqrt(variances.mean())) or 1.0
    factors /= overall * unit
    scaled = centred @ sparse.diags_array(factors) if sparse.issparse(rows) else centred * (factors * unit)
    axes, along = principal_axes(scaled, mean * factors, weights, n_components, generator)
    total = variances.sum() / overall**2
    reached = np.searchsorted(np.cumsum(along), PART_THAT_COUNTS * total * (1 - 1e-9))
    return Projection(mean, axes * factors[:, None]), int(reached) + 1, columns_scaled


def needs_column_scaling(deviations: NDArray[np.float64]) -> bool:
    """Tell whether columns seem to be in different units.

    Examples
    --------
    >>> needs_column_scaling(np.array([1.0, 2.0, 300.0])), needs_column_scaling(np.array([1.0, 2.0, 3.0]))
    (True, False)
    """
    varying = deviations[deviations > 0]
    return len(varying) > 1 and bool(varying.max() > UNLIKE_COLUMNS * np.median(varying))


def principal_axes(
    rows: Any, mean: NDArray[np.float64], weights: NDArray[np.float64], count: int, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the axes (n_features, count or fewer) along which rows vary most, and the variances along them.

    Dense rows are centred, sparse ones are not. At least one axis is returned, even if nothing varies.
    """
    roots = np.sqrt(weights)
    # Where there are far more directions than are wanted, products with a few random ones are faster.
    if sparse.issparse(rows) or min(rows.shape) > 10 * count:
        axes, variances = axes_of_products(rows, mean if sparse.issparse(rows) else 0 * mean, roots, count, generator)
    elif rows.shape[1] <= rows.shape[0]:
        scaled = rows * roots[:, None]
        variances, axes = np.linalg.eigh(scaled.T @ scaled)
    else:
        _, singular, transposed = np.linalg.svd(rows * roots[:, None], full_matrices=False)
        variances, axes = singular**2, transposed.T
    order = np.argsort(-variances, kind="stable")[:count]
    # Of less variance, directions are the rounding of float32.
    least = np.finfo(np.float32).eps * max(variances[order[0]], np.finfo(np.float64).tiny)
    kept = order[variances[order] > least]
    kept = kept if len(kept) else order[:1]
    axes = axes[:, kept]
    # Libraries differ in which of the two directions of an axis they return: take the one of the largest entry.
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0)), np.maximum(variances[kept], 0.0)


def axes_of_products(
    rows: Any, mean: NDArray[np.float64], roots: NDArray[np.float64], count: int, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return leading axes and variances from products with random directions (Halko, Martinsson and Tropp, 2011)."""

    def times(directions: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(roots[:, None] * (rows @ directions - mean @ directions))

    span = generator.normal(size=(rows.shape[1], min(count + 20, *rows.shape)))
    for _ in range(4):
        places = roots[:, None] * times(np.linalg.qr(span)[0])
        span = rows.T @ places - mean[:, None] * places.sum(axis=0)
    basis = np.linalg.qr(span)[0]
    places = times(basis)
    variances, turn = np.linalg.eigh(places.T @ places)
    return basis @ turn, variances
