"""Nearest neighbours of every row by the cosine of centred rows, or by distance.

Wide rows are first projected onto their leading principal components, which hold most of the distances. For a few
thousand rows, all pairs are compared. Larger data are sorted into cells around centres, and the rows of a cell are
compared with those of the cells nearest to it, so that the time grows with the number of rows and not with its square.

The more rows there are, the more cells a row's neighbours are spread over. Very many rows are therefore sorted several
times, into different cells, with fewer comparisons each; and then each row is compared with the neighbours of its
neighbours (as in NN-descent), which are spread over the cells of all sortings.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.neighbor_cells import (
    Cells,
    as_targets,
    as_unit_length,
    cells_around_centres,
    cells_in_groups,
    consecutive_cells,
    put_in_order,
)
from cceclust.training.neighbor_lists import Lists, compare_with_links, keep_most_similar, merge_lists
from cceclust.training.rows import in_memory
from cceclust.training.spectrum import leading_axes
from cceclust.validation import check_count, thread_count

__all__ = ["as_neighbors", "nearest_neighbors", "neighbors_and_recall"]

OnBlock = Callable[[int, int], None] | None


def nearest_neighbors(
    X: Any,
    n_neighbors: int = 10,
    *,
    metric: Literal["cosine", "euclidean"] = "cosine",
    n_components: int = choices.COMPONENTS,
    n_compared: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    on_block: OnBlock = None,
) -> NDArray[np.int32]:
    """Find the nearest neighbours of each row: by the direction of the centred rows, or by distance.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Features.
    n_neighbors : int, default=10
        Number of neighbours of each row, without the row itself.
    metric : {"cosine", "euclidean"}, default="cosine"
        A similar direction from the mean of all rows, or a small distance. In a few dimensions, where
        most clusters lie between others and share their direction, only the distance separates them.
    n_components : int, default=256
        Rows with more features than this are first projected onto this many principal components.
    n_compared : int, optional
        Each row is compared with at least this many rows, those of the nearest cells. By default all rows if there
        are up to 10,000; otherwise 1,200 to 4,000, enough to find 0.85 of the nearest in a million rows, and more in
        fewer rows (benchmarks/neighbor_libraries.py measures it). Above 50,000 rows, these are the rows of the
        cells of six sortings, and the neighbours of neighbours are compared as well.
    random_state : int, default=0
        Seed of the row samples that components and cells are found on.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    on_block : callable, optional
        Called with the number of rows done and the number of all rows.

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
    return neighbors_and_recall(
        X,
        n_neighbors,
        metric=metric,
        n_components=n_components,
        n_compared=n_compared,
        random_state=random_state,
        n_jobs=n_jobs,
        on_block=on_block,
        rows_for_recall=0,
    )[0]


def neighbors_and_recall(
    X: Any,
    n_neighbors: int,
    *,
    metric: Literal["cosine", "euclidean"],
    n_components: int,
    n_compared: int | None = None,
    random_state: int,
    n_jobs: int | None = None,
    on_block: OnBlock = None,
    rows_for_recall: int = choices.ROWS_FOR_RECALL,
) -> tuple[NDArray[np.int32], float]:
    """Return what :func:`nearest_neighbors` does, and the part of the nearest rows that was found.

    It is measured on a sample of rows, compared with all in the components of the search, unless all pairs are
    compared anyway; NaN if no rows are to be sampled.
    """
    X = X if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] == 0:
        raise InputError(f"X has shape {X.shape}; expected (n_samples, n_features) with at least one feature")
    # Components of whole numbers are fractions, too.
    rows = in_memory(X)
    X = rows.matrix.astype(rows.dtype, copy=False)
    n_samples = X.shape[0]
    check_count(n_components, "n_components", 1)
    check_count(n_neighbors, "n_neighbors", 1)
    if n_neighbors >= n_samples:
        raise InputError(f"n_neighbors={n_neighbors}; expected fewer than the {n_samples} rows")
    if n_compared is not None:
        check_count(n_compared, "n_compared", 1)
    if metric not in ("cosine", "euclidean"):
        raise InputError(f"metric={metric!r}; expected 'cosine' or 'euclidean'")
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(thread_count(n_jobs)) as pool:
        directions = comparable_rows(X, n_components, random_state, metric)
        # Compiled code finds no neighbours of NaN, and would leave their entries undefined.
        refuse_what_is_not_finite(directions)
        # Each row is also compared with itself.
        n_compared = max(choices.rows_compared(n_samples) if n_compared is None else n_compared, n_neighbors + 1)
        search = search_often if n_samples > choices.MOST_ROWS_FOR_ONE_SORTING else search_once
        if n_compared >= n_samples:
            search = search_once
        order, found = search(directions, n_neighbors, n_compared, metric, random_state, pool, on_block)
        recall = 1.0
        if n_compared < n_samples:
            recall = recall_on_sample(directions, found, metric, rows_for_recall, random_state)
        neighbors = np.empty_like(found)
        neighbors[order] = order[found]
    return neighbors, recall


def search_once(
    directions: NDArray[np.float32],
    n_neighbors: int,
    n_compared: int,
    metric: str,
    random_state: int,
    pool: ThreadPoolExecutor,
    on_block: OnBlock,
) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Sort rows into cells (in place) and compare the rows of near ones, or all with all.

    Returns
    -------
    order : ndarray of shape (n_samples,)
        The rows as they are sorted.
    found : ndarray of shape (n_samples, n_neighbors)
        Where in this order the neighbours are, the nearest first.
    """
    if n_compared >= len(directions):
        cells = consecutive_cells(len(directions))
    else:
        cells = cells_around_centres(directions, random_state, pool.map, metric)
    put_in_order(directions, cells.order)
    lists = Lists.without_rows(len(directions), n_neighbors)
    search_cells(directions, cells, lists, n_compared, metric, pool, on_block)
    return cells.order, lists.found


def search_often(
    directions: NDArray[np.float32],
    n_neighbors: int,
    n_compared: int,
    metric: str,
    random_state: int,
    pool: ThreadPoolExecutor,
    on_block: OnBlock,
) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Sort rows into cells several times (in place), each time comparing the rows of near ones; then follow links.

    Returns the same as :func:`search_once`.
    """
    n_samples = len(directions)
    n_kept = min(max(n_neighbors, choices.LEAST_LINKS), n_samples - 1)
    n_compared = max(n_compared // choices.SORTINGS, n_kept + 1)
    n_steps = choices.SORTINGS + choices.ROUNDS_OF_LINKS
    order, lists = np.arange(n_samples), Lists.without_rows(n_samples, n_kept)
    for sorting in range(choices.SORTINGS):
        cells = cells_in_groups(directions, (random_state, sorting), pool, metric)
        put_in_order(directions, cells.order)
        order = order[cells.order]
        if sorting > 0:
            lists = lists.in_order(cells.order)
        # Lists of their own, as it must not matter which of two equal pairs comes first; but no row that is too far.
        further = Lists.without_rows(n_samples, n_kept, lists.best[:, -1])
        search_cells(directions, cells, further, n_compared, metric, pool, part_of(on_block, sorting, n_steps))
        in_blocks(merge_lists, n_samples, pool, None, further.best, further.found, lists.best, lists.found)
    follow_links(directions, lists, metric, pool, lambda step: part_of(on_block, choices.SORTINGS + step, n_steps))
    return order, np.ascontiguousarray(lists.found[:, :n_neighbors])


def follow_links(
    directions: NDArray[np.float32],
    lists: Lists,
    metric: str,
    pool: ThreadPoolExecutor,
    on_round: Callable[[int], OnBlock],
) -> None:
    """Compare each row with the neighbours of its neighbours, round by round, and improve the lists (in place)."""
    targets, offsets = factors(directions, metric)
    n_links = min(lists.found.shape[1], choices.MOST_LINKS)
    is_new = np.ones(lists.found.shape, bool)
    for step in range(choices.ROUNDS_OF_LINKS):
        # Copies: all rows follow the links of the round before, however far other threads are.
        links, was_new = lists.found[:, :n_links].copy(), is_new[:, :n_links].copy()
        arguments = (directions, targets, offsets, links, was_new, lists.best, lists.found, is_new)
        in_blocks(compare_with_links, len(directions), pool, on_round(step), *arguments)


def in_blocks(
    function: Callable[..., None], n_samples: int, pool: ThreadPoolExecutor, on_block: OnBlock, *arguments: Any
) -> None:
    """Call a function with the first and the last of some rows, and the arguments, until it had all rows."""
    starts = range(0, n_samples, choices.ROWS_AT_ONCE)
    calls = pool.map(lambda start: function(start, min(start + choices.ROWS_AT_ONCE, n_samples), *arguments), starts)
    for start, _ in zip(starts, calls, strict=True):
        if on_block is not None:
            on_block(min(start + choices.ROWS_AT_ONCE, n_samples), n_samples)


def part_of(on_block: OnBlock, step: int, n_steps: int) -> OnBlock:
    """Return a callback for one of several steps over all rows, which counts the steps before as done."""
    if on_block is None:
        return None
    return lambda done, total: on_block((step * total + done) // n_steps, total)


def recall_on_sample(
    directions: NDArray[np.float32], found: NDArray[np.int32], metric: str, n_rows: int, random_state: int
) -> float:
    """Compare some rows with all, and return the part of what was found for them that is among the nearest."""
    if n_rows == 0:
        return float("nan")
    targets = as_targets(directions, metric)
    n_samples, n_neighbors = found.shape
    shares = []
    for row in np.random.default_rng(random_state).permutation(n_samples)[:n_rows]:
        similarities = targets @ directions[row]
        similarities[row] = -np.inf
        # Of equally near rows, any will do.
        farthest = np.partition(similarities, n_samples - n_neighbors)[n_samples - n_neighbors]
        shares.append(np.mean(similarities[found[row]] >= farthest))
    return float(np.mean(shares))


def search_cells(
    directions: NDArray[np.float32],
    cells: Cells,
    lists: Lists,
    n_compared: int,
    metric: str,
    pool: ThreadPoolExecutor,
    on_block: OnBlock,
) -> None:
    """Compare the rows of near cells, each pair of cells once, for the neighbours of both.

    Parameters
    ----------
    directions : ndarray of shape (n_samples, n_components)
        The rows, cell by cell.
    cells : Cells
        Where each cell starts, and which cells are near.
    lists : Lists
        The most similar rows so far, as positions in `directions` (IN and OUT).
    n_compared, metric, on_block
        As for :func:`nearest_neighbors`.
    pool : ThreadPoolExecutor
        Its threads may work on any pair of cells in any order, which does not change the result.
    """
    n_samples = len(directions)
    targets, offsets = factors(directions, metric)
    locks = [Lock() for _ in range(cells.count)]

    def compare(pair: tuple[int, int]) -> None:
        cell, other = pair
        own, its = slice(*cells.starts[cell : cell + 2]), slice(*cells.starts[other : other + 2])
        similarities = directions[own] @ targets[its].T
        with locks[cell], locks[other] if other != cell else nullcontext():
            keep_most_similar(similarities, offsets[own], own.start, its.start, lists.best, lists.found)

    pairs = cells.pairs(n_compared)
    for number, _ in enumerate(pool.map(compare, pairs.tolist()), start=1):
        if on_block is not None:
            on_block(n_samples * number // len(pairs), n_samples)


def factors(directions: NDArray[np.float32], metric: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return what rows are multiplied with, and what the products lack to be the same in both directions."""
    targets = as_targets(directions, metric)
    return targets, targets[:, -1].copy() if metric == "euclidean" else np.zeros(len(directions), np.float32)


def comparable_rows(X: Any, n_components: int, random_state: int, metric: str) -> NDArray[np.float32]:
    """Return the rows centred, projected if they are wide, and scaled: to length 1, or all by one number.

    For distances, a last column of ones is added; see :func:`as_targets`.
    """
    n_samples, n_features = X.shape
    if n_features > n_components:
        # The mean of the sample stands in for that of all rows, as its components do.
        sample = np.random.default_rng(random_state).permutation(n_samples)[: choices.ROWS_FOR_COMPONENTS]
        sampled = X[np.sort(sample)]
        dense = (sampled.toarray() if sparse.issparse(sampled) else sampled).astype(np.float64)
        refuse_what_is_not_finite(dense)
        mean = dense.mean(axis=0)
        rows, centre = project(X, leading_axes(dense - mean, n_components, random_state), mean)
    else:
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        centre = rows.mean(axis=0, dtype=np.float64)
    if metric == "euclidean":
        return np.hstack([as_one_scale(rows, centre), np.ones((n_samples, 1), np.float32)])
    directions = np.empty(rows.shape, np.float32)
    for start in range(0, n_samples, choices.ROWS_IN_CELL):
        block = rows[start : start + choices.ROWS_IN_CELL] - centre
        # Scaled by the largest value first, so that squares neither overflow nor underflow.
        block /= np.maximum(np.abs(block).max(axis=1, keepdims=True), np.finfo(block.dtype).tiny)
        directions[start : start + choices.ROWS_IN_CELL] = as_unit_length(block)
    return directions


def as_one_scale(rows: NDArray[Any], centre: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the rows centred and divided by the median of their largest values, so that squares stay in range."""
    scaled = rows - centre
    sizes = np.abs(scaled).max(axis=1)
    scaled /= np.median(sizes) or sizes.max() or 1.0
    return scaled.astype(np.float32)


def project(X: Any, axes: NDArray[np.float32], mean: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the rows projected onto the axes, and the offset that is still to be subtracted."""
    columns = axes.T.astype(X.dtype)
    if sparse.issparse(X):
        # Sparse rows are mostly 0, so their mean is small; centring would make them dense.
        return np.asarray(X @ columns), axes @ mean
    # Far from zero, rounding errors of sums would exceed the differences between rows.
    origin = mean.astype(X.dtype)
    rows = np.empty((X.shape[0], len(axes)), X.dtype)
    for where, block in in_memory(X).blocks():
        rows[where] = (block - origin) @ columns
    return rows, axes @ (mean - origin)


def refuse_what_is_not_finite(rows: NDArray[Any]) -> None:
    """Raise if rows contain NaN or infinity."""
    if not np.isfinite(rows).all():
        raise InputError("features contain NaN or infinity; remove or impute these rows")


def as_neighbors(graph: ArrayLike | Any, n_samples: int) -> NDArray[np.intp]:
    """Return a graph as an array of neighbours.

    Parameters
    ----------
    graph : array-like of shape (n_samples, n_neighbors) or sparse matrix of shape (n_samples, n_samples)
        Row numbers, or a graph like those of :func:`sklearn.neighbors.kneighbors_graph`.
    n_samples : int
        Number of rows.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors)
    """
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
