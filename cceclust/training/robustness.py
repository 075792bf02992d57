"""What real tables hold: columns of different scale, rows far away from all others, and rows that fit in nowhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.kernels import mean_distances, row_distances
from cceclust.training.rows import ArrayRows, Rows, SparseRows, in_memory
from cceclust.training.spectrum import sample_rows

__all__ = [
    "Middle",
    "are_few",
    "columns_to_divide_by",
    "distances_from_the_middle",
    "distances_of",
    "find_middle",
    "outlier_scores",
    "scaled_columns",
    "without_far_rows",
]


def columns_to_divide_by(deviations: NDArray[np.float64], scale: str, *, is_dense: bool) -> NDArray[np.float64] | None:
    """Return what each column is divided by, if the setting or their deviations ask for it; constant ones stay."""
    if scale == "columns" or (scale == "auto" and is_dense and choices.needs_column_scaling(deviations)):
        return np.where(deviations > 0, deviations, 1.0)
    return None


def scaled_columns(rows: Rows, deviations: NDArray[np.float64]) -> ArrayRows | SparseRows:
    """Return the rows with each column divided by its standard deviation; constant columns stay as they are.

    Parameters
    ----------
    rows : Rows
        In memory.
    deviations : ndarray of shape (n_features,)
        Standard deviation of each column.
    """
    if not isinstance(rows, ArrayRows | SparseRows):
        raise InputError("columns can be scaled in memory only; allow more memory or set scale='overall'")
    factors = (1 / np.where(deviations > 0, deviations, 1.0)).astype(rows.dtype)
    if isinstance(rows, SparseRows):
        return in_memory((rows.matrix @ sparse.diags_array(factors)).tocsr().astype(rows.dtype))
    matrix = np.empty(rows.shape, rows.dtype)
    for where, block in rows.blocks():
        np.multiply(block, factors, out=matrix[where])
    return ArrayRows(matrix)


@dataclass(frozen=True)
class Middle:
    """The middle of the rows, and how far from it most of them are.

    Attributes
    ----------
    point : ndarray of shape (n_features,)
        The median of each column.
    largest : float
        The largest difference from it in any column.
    usual : float
        The median distance from it, divided by `largest`.
    """

    point: NDArray[np.float64]
    largest: float
    usual: float


# What is not finite is found later, by the pass that measures the features.
@np.errstate(over="ignore", invalid="ignore")
def find_middle(sample: NDArray[np.float64]) -> Middle:
    """Return the middle of a sample of rows."""
    # Columns in the order of memory are several times faster.
    point = np.median(np.ascontiguousarray(sample.T), axis=1)
    # Scaled by the largest value first, squares neither overflow nor vanish.
    largest = float(np.abs(sample - point).max()) or 1.0
    usual = float(np.median(np.linalg.norm((sample - point) / largest, axis=1)))
    return Middle(point, largest, usual)


def distances_of(block: NDArray[Any], *, middle: Middle) -> NDArray[np.float64]:
    """Return each row's distance from the middle, in multiples of the usual distance."""
    if not middle.usual > 0:
        return np.ones(len(block))
    distances = np.empty(len(block))
    row_distances(block, middle.point, middle.largest, distances)
    return distances / middle.usual


def distances_from_the_middle(
    rows: Rows, sample_weight: NDArray[Any], *, seed: int, n_threads: int = 1
) -> NDArray[np.float64]:
    """Return each row's distance from the median of a sample, in multiples of the sample's median distance.

    Parameters
    ----------
    rows : ArrayRows
        Dense rows in memory.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row; the sample has rows with weight only.
    seed : int
        Decides the sample.
    n_threads : int
        Number of threads. It does not change the result.
    """
    middle = find_middle(sample_rows(rows, sample_weight, seed, most=choices.ROWS_FOR_MIDDLE)[0])
    distances = np.empty(rows.shape[0])
    for where, found in rows.map_blocks(partial(distances_of, middle=middle), n_threads=n_threads):
        distances[where] = found
    return distances


def are_few(is_far: NDArray[np.bool_]) -> bool:
    """Tell whether there are far rows, but not so many that they are a cluster of their own."""
    return 0 < int(is_far.sum()) <= max(1, choices.MOST_FAR * len(is_far))


def without_far_rows(
    rows: Rows, sample_weight: NDArray[Any], *, seed: int, n_threads: int = 1
) -> tuple[NDArray[Any], int]:
    """Return the weights with 0 for rows that are very far from all others, and the number of these rows.

    One row at a thousand times the usual distance would decide mean and scale alone. It takes no part in the fit, but
    gets a label. Only dense rows in memory are looked at.
    """
    if not isinstance(rows, ArrayRows):
        return sample_weight, 0
    distances = distances_from_the_middle(rows, sample_weight, seed=seed, n_threads=n_threads)
    far = (distances > choices.FAR) & (sample_weight > 0)
    if not are_few(far):
        return sample_weight, 0
    return np.where(far, sample_weight.dtype.type(0), sample_weight), int(far.sum())


def outlier_scores(
    matrix: NDArray[Any],
    neighbors: NDArray[np.integer[Any]],
    *,
    n_threads: int,
    scale: float = 1.0,
    order: NDArray[np.intp] | None = None,
) -> NDArray[np.float64]:
    """Return how much farther each row is from its neighbours than they are from theirs: about 1 for most rows.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_features)
        The rows.
    neighbors : ndarray of shape (n_samples, n_neighbors)
        Their nearest neighbours.
    n_threads : int
        Number of threads. It does not change the result.
    scale : float
        By what rows vary; distances of very large or small rows would not be finite without it.
    order : ndarray of shape (n_samples,), optional
        The order in which rows are measured. It does not change the result, but is faster if neighbours come close to
        each other, as their rows are still in the cache then.

    Examples
    --------
    >>> import numpy as np
    >>> matrix = np.array([[0.0], [1.0], [2.0], [3.0], [30.0]])
    >>> neighbors = np.array([[1, 2], [0, 2], [1, 3], [2, 1], [3, 2]])
    >>> outlier_scores(matrix, neighbors, n_threads=1).round(1)
    array([ 1.5,  0.8,  0.8,  1.5, 22. ])
    """
    n_samples, step = len(matrix), choices.ROWS_FOR_OUTLIERS
    order = np.arange(n_samples) if order is None else order
    reach = np.empty(n_samples)
    # Its reciprocal must be finite, too.
    unit = max(scale, float(np.finfo(matrix.dtype).tiny))

    def measure_rows(start: int) -> None:
        mean_distances(matrix, neighbors, order[start : start + step], unit, reach)

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(measure_rows, range(0, n_samples, step)))
    usual = reach[neighbors].mean(axis=1)
    # Rows that repeat have neighbours at no distance: they fit in.
    scores = np.divide(reach, usual, out=np.ones(n_samples), where=usual > 0)
    return np.where((usual == 0) & (reach > 0), choices.FAR, scores)
