"""Nearest neighbours of every row, by the cosine of centred rows or by distance.

For a few thousand rows, all pairs are compared. More rows are sorted into cells around centres, and the rows of a cell
are compared with those of the cells nearest to it, so that the time grows with the number of rows and not its square.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from cceclust.compiled import compiled
from cceclust.errors import InputError
from cceclust.fit.cells import Cells, as_targets, as_unit_length, cells_around_centres, consecutive_cells
from cceclust.fit.sample import take_sample
from cceclust.fit.source import as_source
from cceclust.validation import check_count, thread_count

__all__ = ["Metric", "as_neighbors", "find_neighbors", "nearest_neighbors"]

Metric = Literal["cosine", "euclidean"]

# Up to this many rows, all pairs are compared; of more, each row is compared with this many in nearby cells, which
# finds 0.92 of the nearest fifteen among 50,000 rows.
MOST_ROWS_FOR_ALL_PAIRS, ROWS_COMPARED = 10_000, 1500


def nearest_neighbors(
    X: Any,
    n_neighbors: int = 10,
    *,
    metric: Metric = "cosine",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> NDArray[np.int32]:
    """Find the nearest neighbours of each row: by the direction of the centred rows, or by distance.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Features.
    n_neighbors : int, default=10
        Number of neighbours of each row, without the row itself.
    metric : {"cosine", "euclidean"}, default="cosine"
        A similar direction from the mean of all rows, or a small distance. In a few dimensions, where clusters lie
        behind each other, only the distance separates them.
    random_state : int, default=0
        Decides the samples of rows that components and cells are found on.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors)
        Row numbers, the nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from cceclust import nearest_neighbors
    >>> X = np.array([[1.0, 0.1], [1.0, -0.1], [-1.0, 0.2], [-1.0, -0.2]])
    >>> nearest_neighbors(X, 1).ravel()
    array([1, 0, 3, 2], dtype=int32)
    """
    source = as_source(X)
    n_samples = source.shape[0]
    check_count(n_neighbors, "n_neighbors", 1)
    if n_neighbors >= n_samples:
        raise InputError(f"n_neighbors={n_neighbors}; expected fewer than the {n_samples} rows")
    if metric not in ("cosine", "euclidean"):
        raise InputError(f"metric={metric!r}; expected 'cosine' or 'euclidean'")
    every = np.arange(n_samples)
    with threadpool_limits(1, user_api="blas"):
        sample = take_sample(
            source,
            np.ones(n_samples),
            first=every,
            scale="overall",
            n_components=100,
            max_rows=n_samples,
            seed=random_state,
        )
        return find_neighbors(sample.points, n_neighbors, metric, random_state, thread_count(n_jobs))


def find_neighbors(
    points: NDArray[np.float32], n_neighbors: int, metric: Metric, seed: int, n_threads: int
) -> NDArray[np.int32]:
    """Return the numbers of the nearest points of each centred point, the nearest first."""
    n_points = len(points)
    rows = as_unit_length(points) if metric == "cosine" else with_ones(points)
    with ThreadPoolExecutor(n_threads) as pool:
        is_small = n_points <= MOST_ROWS_FOR_ALL_PAIRS
        cells = consecutive_cells(n_points) if is_small else cells_around_centres(rows, seed, pool.map, metric)
        found = search_cells(rows[cells.order], cells, n_neighbors, metric, pool)
    neighbors = np.empty_like(found)
    neighbors[cells.order] = cells.order[found]
    return neighbors


def with_ones(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the points with a last column of ones, for distances; see :func:`~cceclust.fit.cells.as_targets`."""
    return np.hstack([points, np.ones((len(points), 1), np.float32)])


def search_cells(
    rows: NDArray[np.float32], cells: Cells, n_neighbors: int, metric: Metric, pool: ThreadPoolExecutor
) -> NDArray[np.int32]:
    """Compare rows, sorted by their cells, with those of near cells; return where in this order the nearest ones are.

    Threads may work on any pair of cells in any order, which does not change the result.
    """
    targets = as_targets(rows, metric)
    # What products lack to be the same in both directions.
    offsets = targets[:, -1].copy() if metric == "euclidean" else np.zeros(len(rows), np.float32)
    best = np.full((len(rows), n_neighbors), -np.inf, np.float32)
    found = np.full((len(rows), n_neighbors), len(rows), np.int32)
    locks = [Lock() for _ in range(cells.count)]

    def compare(pair: tuple[int, int]) -> None:
        cell, other = pair
        own, its = slice(*cells.starts[cell : cell + 2]), slice(*cells.starts[other : other + 2])
        similarities = rows[own] @ targets[its].T
        with locks[cell], locks[other] if other != cell else nullcontext():
            keep_most_similar(similarities, offsets[own], own.start, its.start, best, found)

    n_compared = max(ROWS_COMPARED, n_neighbors + 1)
    list(pool.map(compare, cells.pairs(n_compared).tolist()))
    return found


def as_neighbors(graph: ArrayLike | Any, n_samples: int) -> NDArray[np.intp]:
    """Return neighbours as an array of row numbers, given as one or as a sparse matrix with as many for each row."""
    if sparse.issparse(graph):
        matrix = sparse.csr_array(graph)
        counts = np.unique(np.diff(matrix.indptr))
        if matrix.shape != (n_samples, n_samples) or len(counts) != 1 or counts[0] == 0:
            raise InputError(
                f"neighbors is a sparse matrix of shape {matrix.shape} with {counts[0]} to {counts[-1]} entries a row; "
                f"expected ({n_samples}, {n_samples}) and the same number in each, at least 1"
            )
        graph = matrix.indices.reshape(n_samples, -1)
    neighbors = np.asarray(graph)
    if neighbors.ndim != 2 or len(neighbors) != n_samples or neighbors.shape[1] < 1 or neighbors.dtype.kind not in "iu":
        raise InputError(
            f"neighbors has shape {neighbors.shape} and type {neighbors.dtype}; expected whole numbers of shape "
            f"({n_samples}, n_neighbors)"
        )
    if neighbors.min() < 0 or neighbors.max() >= n_samples:
        raise InputError(
            f"neighbors contains row numbers from {neighbors.min()} to {neighbors.max()}; expected 0 to {n_samples - 1}"
        )
    return neighbors.astype(np.intp, copy=False)


@compiled(inline="always")
def insert(similarity: float, row: int, highest: NDArray[np.float32], found: NDArray[np.int32]) -> None:
    """Insert a row among the most similar ones if it is one of them; of equals, the first row counts as more similar.

    So the order in which rows come does not matter.
    """
    place = highest.shape[0]
    while place > 0 and (
        similarity > highest[place - 1] or (similarity == highest[place - 1] and row < found[place - 1])
    ):
        place -= 1
    for later in range(highest.shape[0] - 1, place, -1):
        highest[later] = highest[later - 1]
        found[later] = found[later - 1]
    if place < highest.shape[0]:
        highest[place] = similarity
        found[place] = row


@compiled(error_model="numpy")
def keep_most_similar(
    similarities: NDArray[np.float32],
    offsets: NDArray[np.float32],
    first_row: int,
    first_other: int,
    best: NDArray[np.float32],
    found: NDArray[np.int32],
) -> None:
    """Merge the similarities of two cells into the best so far of both (IN and OUT), skipping each row itself.

    `offsets` are added to the rows of `similarities`, one to each. Their columns are the rows from `first_other` on.
    """
    n_rows, n_others = similarities.shape
    last = best.shape[1] - 1
    is_same = first_row == first_other
    lowest = np.empty(n_others, np.float32)
    for j in range(n_others):
        # In a cell of its own, each pair comes twice, and one side is enough.
        lowest[j] = np.inf if is_same else best[first_other + j, last]
    for i in range(n_rows):
        row, offset = similarities[i], offsets[i]
        own = best[first_row + i, last]
        # As many at once as the widest registers hold.
        for start in range(0, n_others, 16):
            stop = min(start + 16, n_others)
            # Most similarities are too low for both; a loop without branches finds out for many at once.
            n_high = 0
            for j in range(start, stop):
                n_high += (row[j] + offset >= own) | (row[j] + offset >= lowest[j])
            if n_high == 0:
                continue
            for j in range(start, stop):
                similarity = row[j] + offset
                if similarity >= own and not (is_same and i == j):
                    insert(similarity, first_other + j, best[first_row + i], found[first_row + i])
                    own = best[first_row + i, last]
                if similarity >= lowest[j]:
                    insert(similarity, first_row + i, best[first_other + j], found[first_other + j])
                    lowest[j] = best[first_other + j, last]
