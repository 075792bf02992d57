"""Nearest neighbours of every row by the cosine of centred rows, or by distance.

Wide rows are first projected onto their leading principal components, which hold most of the distances. For a few
thousand rows, all pairs are compared. Larger data are sorted into cells around centres, and the rows of a cell are
compared with those of the cells nearest to it, so that the time grows with the number of rows and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.compiled import compiled
from cceclust.errors import InputError
from cceclust.training.rows import in_memory
from cceclust.training.spectrum import leading_axes
from cceclust.validation import check_count, thread_count

__all__ = ["as_neighbors", "nearest_neighbors"]

# Similarities that are compared at once with the lowest that counts: as many as the widest registers hold.
LOOKED_AT_ONCE = 16


def nearest_neighbors(
    X: Any,
    n_neighbors: int = 10,
    *,
    metric: Literal["cosine", "euclidean"] = "cosine",
    n_components: int = choices.COMPONENTS,
    n_compared: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    on_block: Callable[[int, int], None] | None = None,
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
        are up to 10,000, otherwise 1,500, which misses few of the nearest (benchmarks/neighbors.py measures how many).
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
        if n_compared is None:
            n_compared = n_samples if n_samples <= choices.MOST_ROWS_FOR_ALL_PAIRS else choices.ROWS_COMPARED
        # Each row is also compared with itself.
        n_compared = max(n_compared, n_neighbors + 1)
        if n_compared >= n_samples:
            cells = consecutive_cells(n_samples)
        else:
            cells = cells_around_centres(directions, random_state, pool, metric)
        put_in_order(directions, cells.order)
        found = search_cells(directions, cells, n_neighbors, n_compared, metric, pool, on_block)
        neighbors = np.empty_like(found)
        neighbors[cells.order] = cells.order[found]
    return neighbors


def put_in_order(rows: NDArray[Any], order: NDArray[np.integer[Any]]) -> None:
    """Sort rows in place, a few columns at a time, as a copy of all could be too large."""
    for start in range(0, rows.shape[1], choices.COLUMNS_SORTED_AT_ONCE):
        columns = slice(start, start + choices.COLUMNS_SORTED_AT_ONCE)
        rows[:, columns] = rows[order, columns]


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


def as_targets(rows: NDArray[np.float32], metric: str) -> NDArray[np.float32]:
    """Return the factors of the rows: for distances ``y, −‖y‖²/2``, so that x, 1 gives −‖x − y‖²/2 + ‖x‖²/2."""
    if metric == "cosine":
        return rows
    targets = rows.copy()
    targets[:, -1] = -0.5 * (rows[:, :-1] ** 2).sum(axis=1)
    return targets


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


def as_unit_length(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows divided by their lengths; zeros stay zeros."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(rows.dtype).tiny))


@dataclass(frozen=True)
class Cells:
    """Rows sorted into cells of a few hundred rows.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Row numbers, cell by cell.
    starts : ndarray of shape (n_cells + 1,)
        Where in `order` each cell starts, and where the last ends.
    centres : ndarray of shape (n_cells, n_components) or None
        Used to find the nearest cells; None if each cell is compared with all.
    targets : ndarray of shape (n_cells, n_components) or None
        Vectors that a centre is multiplied with to compare it with the others.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    centres: NDArray[np.float32] | None = None
    targets: NDArray[np.float32] | None = None

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.starts) - 1

    def pairs(self, n_rows: int) -> NDArray[np.intp]:
        """Return which cells to compare: each with the nearest that together hold enough rows, or all with all.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Each pair once, the smaller number first. Each cell with itself comes first, then the nearest ones: once
            good neighbours are known, few rows are worth keeping.
        """
        if self.centres is None or self.targets is None:
            one, other = np.triu_indices(self.count)
            return np.column_stack([one, other])[np.argsort(other - one, kind="stable")]
        sizes = np.diff(self.starts)
        owners, partners, nearness = [], [], []
        for cell, centre in enumerate(self.centres):
            similarities = self.targets @ centre
            # A cell that is cut up has several equal centres, and must still be compared with itself.
            similarities[cell] = np.inf
            others = np.argsort(-similarities, kind="stable")
            others = others[: np.searchsorted(np.cumsum(sizes[others]), n_rows) + 1]
            owners.append(np.minimum(cell, others))
            partners.append(np.maximum(cell, others))
            nearness.append(similarities[others])
        pairs = np.column_stack([np.concatenate(owners), np.concatenate(partners)])
        pairs = pairs[np.argsort(-np.concatenate(nearness), kind="stable")]
        first = np.unique(pairs @ [self.count, 1], return_index=True)[1]
        return np.asarray(pairs[np.sort(first)])


def search_cells(
    directions: NDArray[np.float32],
    cells: Cells,
    n_neighbors: int,
    n_compared: int,
    metric: str,
    pool: ThreadPoolExecutor,
    on_block: Callable[[int, int], None] | None,
) -> NDArray[np.int32]:
    """Compare the rows of near cells, each pair of cells once, for the neighbours of both.

    Parameters
    ----------
    directions : ndarray of shape (n_samples, n_components)
        The rows, cell by cell.
    cells : Cells
        Where each cell starts, and which cells are near.
    n_neighbors, n_compared, metric, on_block
        As for :func:`nearest_neighbors`.
    pool : ThreadPoolExecutor
        Its threads may work on any pair of cells in any order, which does not change the result.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors)
        Positions in `directions`, the nearest first.
    """
    n_samples = len(directions)
    targets = as_targets(directions, metric)
    # What is missing in the products to be the same in both directions.
    offsets = targets[:, -1] if metric == "euclidean" else np.zeros(n_samples, np.float32)
    best = np.full((n_samples, n_neighbors), -np.inf, np.float32)
    found = np.full((n_samples, n_neighbors), n_samples, np.int32)
    locks = [Lock() for _ in range(cells.count)]

    def compare(pair: tuple[int, int]) -> None:
        cell, other = pair
        own, its = slice(*cells.starts[cell : cell + 2]), slice(*cells.starts[other : other + 2])
        similarities = directions[own] @ targets[its].T
        with locks[cell], locks[other] if other != cell else nullcontext():
            keep_most_similar(similarities, offsets[own], own.start, its.start, best, found)

    pairs = cells.pairs(n_compared)
    for number, _ in enumerate(pool.map(compare, pairs.tolist()), start=1):
        if on_block is not None:
            on_block(n_samples * number // len(pairs), n_samples)
    return found


def consecutive_cells(n_samples: int) -> Cells:
    """Return cells of successive rows, each to be compared with all."""
    return Cells(np.arange(n_samples), np.append(np.arange(0, n_samples, choices.ROWS_IN_CELL), n_samples))


def cells_around_centres(
    directions: NDArray[np.float32], random_state: int, pool: ThreadPoolExecutor, metric: str
) -> Cells:
    """Sort rows by the nearest of some centres, which a few rounds of K-means find on a sample."""
    n_samples, n_centres = len(directions), max(1, len(directions) // choices.ROWS_IN_CELL)
    drawn = np.random.default_rng(random_state).permutation(n_samples)[: choices.SAMPLE_IN_CELL * n_centres]
    sample = directions[drawn]
    centres = sample[:n_centres]
    for _ in range(choices.ROUNDS_FOR_CELLS):
        members = (nearest_centres(sample, as_targets(centres, metric), pool), np.arange(len(sample)))
        sums = sparse.csr_array((np.ones(len(sample), np.float32), members), (n_centres, len(sample))) @ sample
        centres = as_unit_length(sums) if metric == "cosine" else as_means(sums, centres)
    centre_of_row = nearest_centres(directions, as_targets(centres, metric), pool)
    order = np.argsort(centre_of_row, kind="stable")
    ends = np.cumsum(np.bincount(centre_of_row, minlength=n_centres))
    # Many equal rows share a centre; such a cell is cut up, so that it needs no more memory than others.
    starts = np.concatenate(
        [np.arange(start, end, choices.LARGEST_CELL) for start, end in zip(np.append(0, ends[:-1]), ends, strict=True)]
    )
    chosen = centres[centre_of_row[order[starts]]]
    return Cells(order, np.append(starts, n_samples), chosen, as_targets(chosen, metric))


def as_means(sums: NDArray[np.float32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the means of cells, whose last column counts their rows; an empty cell stays where it was."""
    counts = sums[:, -1:]
    return np.where(counts > 0, sums / np.maximum(counts, 1), before).astype(np.float32)


def nearest_centres(
    rows: NDArray[np.float32], centres: NDArray[np.float32], pool: ThreadPoolExecutor
) -> NDArray[np.intp]:
    """Return for each row the index of the centre in the most similar direction."""

    def nearest(start: int) -> NDArray[np.intp]:
        return np.asarray((rows[start : start + choices.ROWS_IN_CELL] @ centres.T).argmax(axis=1))

    return np.concatenate(list(pool.map(nearest, range(0, len(rows), choices.ROWS_IN_CELL))))


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
    neighbors: NDArray[np.int32],
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
        for start in range(0, n_others, LOOKED_AT_ONCE):
            stop = min(start + LOOKED_AT_ONCE, n_others)
            # Most similarities are too low for both; a loop without branches finds out for many at once.
            n_high = 0
            for j in range(start, stop):
                n_high += (row[j] + offset >= own) | (row[j] + offset >= lowest[j])
            if n_high == 0:
                continue
            for j in range(start, stop):
                similarity = row[j] + offset
                if similarity >= own and not (is_same and i == j):
                    insert(similarity, first_other + j, best[first_row + i], neighbors[first_row + i])
                    own = best[first_row + i, last]
                if similarity >= lowest[j]:
                    insert(similarity, first_row + i, best[first_other + j], neighbors[first_other + j])
                    lowest[j] = best[first_other + j, last]


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
