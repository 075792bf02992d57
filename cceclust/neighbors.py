"""Nearest neighbours of every row by the cosine of centred rows.

Up to some hundred dimensions the search is exact. Wider rows are first projected onto their leading principal
components, where most of the distances live: neighbours are found there, exactly, by blocks of matrix products.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from cceclust.compiled import compiled
from cceclust.errors import InputError

__all__ = ["as_neighbors", "nearest_neighbors"]

# Wider rows are projected onto principal components, which are found on a sample of the rows: onto as many as keep
# the search of all pairs affordable.
FEWEST_COMPONENTS, MOST_COMPONENTS = 64, 256
AFFORDABLE_PRODUCTS = 64 * 50_000**2
ROWS_FOR_COMPONENTS = 2000
# A thread holds the similarities of so many rows to so many others at once: few enough to stay in its cache.
ROWS_AT_ONCE = 256
OTHERS_AT_ONCE = 1024


def nearest_neighbors(
    X: Any,
    n_neighbors: int = 10,
    *,
    n_components: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> NDArray[np.int32]:
    """Find the rows whose centred direction is closest to that of each row.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Features.
    n_neighbors : int, default=10
        Neighbours a row; the row itself is not one of them.
    n_components : int, optional
        Rows with more features than this are projected onto so many principal components first. By default 256 for
        up to 25,000 rows, and fewer for more, down to 64.
    random_state : int, default=0
        Decides the sample that the components are found on.
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
    n_samples = X.shape[0]
    if not 1 <= n_neighbors < n_samples:
        raise InputError(f"n_neighbors={n_neighbors}; expected at least 1 and fewer than the {n_samples} rows")
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_jobs or os.cpu_count()) as pool:
        directions = unit_rows(X, n_components or affordable_components(n_samples), random_state)
        # Compiled code finds no neighbour of NaN, and would leave its place to chance.
        if not np.isfinite(directions).all():
            raise InputError("features contain NaN or infinity; remove or impute these rows")
        neighbors = np.empty((n_samples, n_neighbors), np.int32)

        def search(start: int) -> int:
            block, found = directions[start : start + ROWS_AT_ONCE], neighbors[start : start + ROWS_AT_ONCE]
            best = np.full(found.shape, -np.inf, np.float32)
            for first in range(0, n_samples, OTHERS_AT_ONCE):
                similarities = block @ directions[first : first + OTHERS_AT_ONCE].T
                keep_most_similar(similarities, start, first, best, found)
            return start + len(block)

        for done in pool.map(search, range(0, n_samples, ROWS_AT_ONCE)):
            if on_block is not None:
                on_block(done, n_samples)
    return neighbors


def affordable_components(n_samples: int) -> int:
    """Return how many components to search among so many rows."""
    return int(np.clip(AFFORDABLE_PRODUCTS // n_samples**2, FEWEST_COMPONENTS, MOST_COMPONENTS))


def unit_rows(X: Any, n_components: int, random_state: int) -> NDArray[np.float32]:
    """Return the rows centred, projected if they are wide, and scaled to length 1."""
    n_samples, n_features = X.shape
    if n_features > n_components:
        # The sample's mean stands for that of all rows, too, as its components do.
        sample = np.random.default_rng(random_state).permutation(n_samples)[:ROWS_FOR_COMPONENTS]
        sampled = X[np.sort(sample)]
        dense = (sampled.toarray() if sparse.issparse(sampled) else sampled).astype(np.float64)
        mean = dense.mean(axis=0)
        centred = dense - mean
        spread = np.abs(centred).max() or 1.0
        n_kept = min(n_components, len(sample))
        axes = randomized_svd((centred / spread).astype(np.float32), n_kept, n_iter=2, random_state=random_state)[2]
        rows = np.asarray(X @ axes.T.astype(X.dtype), np.float64) - axes @ mean
    else:
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        rows = dense - dense.mean(axis=0, dtype=np.float64)
    # Scaled by the largest value first, squares neither overflow nor vanish.
    rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(rows.dtype).tiny)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(rows.dtype).tiny)
    return np.asarray(rows, np.float32)


@compiled(error_model="numpy")
def keep_most_similar(
    similarities: NDArray[np.float32],
    first_row: int,
    first_other: int,
    best: NDArray[np.float32],
    neighbors: NDArray[np.int32],
) -> None:
    """Merge rows' similarities to some others into the best so far (IN and OUT), passing over each row itself."""
    n_neighbors = neighbors.shape[1]
    for i in range(similarities.shape[0]):
        row, highest, found = similarities[i], best[i], neighbors[i]
        lowest = highest[n_neighbors - 1]
        for j in range(row.shape[0]):
            if row[j] > lowest and first_other + j != first_row + i:
                place = n_neighbors - 1
                while place > 0 and row[j] > highest[place - 1]:
                    highest[place] = highest[place - 1]
                    found[place] = found[place - 1]
                    place -= 1
                highest[place] = row[j]
                found[place] = first_other + j
                lowest = highest[n_neighbors - 1]


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
