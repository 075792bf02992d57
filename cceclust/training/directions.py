"""Rows whose principal directions are more alike in length, where the graph of neighbours speaks for it.

Columns that measure nearly the same add up to one long direction. Distances along it hide the shorter ones, in which
classes may differ more. Dividing each direction by the root of its deviation brings these out, but also noise. Which of
the two it is can be seen without labels: noise has no clusters, so the graph would fall into less clear parts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.training.choosing import standard_error
from cceclust.training.graph_partition import grown_parts, symmetric_graph
from cceclust.training.modularity import neighbor_modularity
from cceclust.training.neighbors import nearest_neighbors
from cceclust.training.rows import ArrayRows
from cceclust.training.space import TrainingSpace, project_block
from cceclust.training.spectrum import measure_spectrum, sample_rows
from cceclust.training.standardization import Standardization, measure
from cceclust.validation import thread_count

__all__ = ["are_as_clear", "even_out", "evened_rows", "evening_map"]


def even_out(
    space: TrainingSpace,
    sample_weight: NDArray[Any],
    *,
    seed: int,
    n_jobs: int | None,
    is_certain: bool = False,
    in_place: bool = False,
) -> TrainingSpace:
    """Return the space with its directions evened out if clusters are as clear then, or else the space as it is.

    Parameters
    ----------
    space : TrainingSpace
        Holds dense rows in memory.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    seed : int
        Decides the sample on which both are compared.
    n_jobs : int, optional
        Number of threads. It does not change the result.
    is_certain : bool
        Whether to even them out without comparing.
    in_place : bool
        Whether the rows may be overwritten.
    """
    rows = space.rows
    assert isinstance(rows, ArrayRows)
    sample, weights = sample_rows(rows, sample_weight, seed, most=choices.ROWS_TO_COMPARE_DIRECTIONS)
    sample = (sample - space.standardization.mean) / space.standardization.scale
    sample -= weights @ sample
    to_even = evening_map((sample * weights[:, None]).T @ sample)
    if not is_certain and not are_as_clear(sample @ to_even, sample, seed=seed, n_jobs=n_jobs):
        return space
    axes = to_even.astype(rows.dtype)
    matrix = rows.matrix if in_place else np.empty(rows.shape, rows.dtype)
    along_axes = partial(project_block, standardization=space.standardization, axes=axes)
    for where, block in rows.map_blocks(along_axes, n_threads=thread_count(n_jobs)):
        matrix[where] = block
    done = Standardization(np.zeros(rows.shape[1], rows.dtype), 1.0)
    whole = axes if space.axes is None else axes @ space.axes
    return TrainingSpace(ArrayRows(matrix), done, space.origin, whole, evened_by=axes)


def evened_rows(rows: ArrayRows, sample_weight: NDArray[Any], *, is_certain: bool = False) -> NDArray[Any]:
    """Return rows with their directions evened out if a fit would do so, or surely; else as they are."""
    space = TrainingSpace.of_rows(rows, measure(rows, sample_weight, standardize=True))
    spectrum = measure_spectrum(rows, space.standardization, sample_weight, seed=0)
    is_narrow = rows.shape[1] <= choices.MOST_COLUMNS_TO_EVEN_OUT
    if is_certain or (is_narrow and choices.may_even_out(spectrum.variances)):
        return even_out(space, sample_weight, seed=0, n_jobs=None, is_certain=is_certain).rows.matrix
    return rows.matrix


def evening_map(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the symmetric matrix that divides each principal direction by the root of its deviation.

    Then all are multiplied by one number, for a mean variance of 1.

    Parameters
    ----------
    covariance : ndarray of shape (n_columns, n_columns)
        Of the rows that are to be multiplied by the matrix.

    Examples
    --------
    Deviations of 4 and 1 become 4/2 and 1, times one number:

    >>> import numpy as np
    >>> evening_map(np.diag([16.0, 1.0])).round(3)
    array([[0.316, 0.   ],
           [0.   , 0.632]])
    """
    variances, axes = np.linalg.eigh(covariance)
    # Much shorter directions are rounding; they are lengthened no further.
    least = choices.LEAST_DEVIATION**2 * variances.max()
    factors = np.maximum(variances, least or 1.0) ** -0.25
    spread = np.mean(np.maximum(variances, 0.0) * factors**2)
    return np.asarray((axes * (factors / np.sqrt(spread or 1.0))) @ axes.T)


def are_as_clear(changed: NDArray[np.float64], plain: NDArray[np.float64], *, seed: int, n_jobs: int | None) -> bool:
    """Tell whether the graph of changed points falls into parts as clear as those of the points as they were.

    In more directions, a cloud without clusters falls into less clear parts; so to be as clear speaks for clusters.
    """
    if len(plain) < choices.LEAST_ROWS_TO_EVEN_OUT:
        return False
    before, after = (modularity_of_parts(points, seed=seed, n_jobs=n_jobs) for points in (plain, changed))
    return after >= before - choices.AS_CLEAR_ERRORS * standard_error(before, len(plain))


def modularity_of_parts(points: NDArray[np.float64], *, seed: int, n_jobs: int | None) -> float:
    """Return the mean modularity of a few partitions of the graph of points, into as many parts as it falls."""
    count = choices.JUDGE_NEIGHBORS
    neighbors = nearest_neighbors(points, count, metric="euclidean", n_compared=len(points), n_jobs=n_jobs)
    graph = symmetric_graph(neighbors)
    parts = np.stack([grown_parts(graph, 1.0, seed + number) for number in range(choices.PARTITIONS)])
    return float(np.mean(neighbor_modularity(parts, neighbors)))
