"""K-means on rows in memory: where heads start, and what they must beat.

scikit-learn's takes a second to load, which is longer than a fit of a small file, and sums in an order that depends on
the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust import choices

__all__ = ["first_places", "kmeans", "move_centres"]


def kmeans(
    rows: Any, weights: NDArray[np.float64], n_clusters: int, *, n_init: int, seed: int
) -> tuple[NDArray[Any], float]:
    """Return the centres of the best of several starts, and the mean squared distance of rows to the nearest.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_rows, n_features)
        Standardised rows, of a size around 1.
    weights : ndarray of shape (n_rows,)
        Their weights, which sum to 1.
    n_clusters : int
        Number of clusters, at most that of the rows.
    n_init : int
        Number of starts.
    seed : int
        Decides them.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> centres, inertia = kmeans(rows, np.full(4, 0.25), 2, n_init=1, seed=0)
    >>> sorted(centres.ravel().tolist()), inertia
    ([0.5, 10.5], 0.25)
    """
    generator = np.random.RandomState(seed)
    # First places need fewer rows, but double precision: distances between rows that are close decide.
    step = max(1, len(weights) // max(choices.ROWS_FOR_FIRST_PLACES, choices.FIRST_PLACES_PER_CLUSTER * n_clusters))
    drawn, drawn_weights = rows[::step].astype(np.float64), weights[::step]
    squares = squared_lengths(drawn)
    best: tuple[NDArray[Any], float] | None = None
    for _ in range(n_init):
        places = first_places(drawn, squares, drawn_weights, n_clusters, generator)
        found = move_centres(rows, weights, dense_rows(drawn[places]).astype(rows.dtype))
        if best is None or found[1] < best[1]:
            best = found
    assert best is not None
    return best


def first_places(
    rows: Any,
    squares: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_clusters: int,
    generator: np.random.RandomState,
) -> NDArray[np.intp]:
    """Draw rows far from each other (k-means++): of a few rows drawn each time, the one that leaves others nearest.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_rows, n_features)
        In double precision.
    squares : ndarray of shape (n_rows,)
        Their squared lengths.
    weights : ndarray of shape (n_rows,)
        Their weights.
    n_clusters : int
        Number of rows to draw.
    generator : RandomState
        Draws them.
    """
    n_tries = 2 + int(np.log(n_clusters))
    places = [int(generator.choice(len(weights), p=weights / weights.sum()))]
    nearest = squared_distances(rows, squares, places)[0]
    for _ in range(n_clusters - 1):
        parts = np.cumsum(weights * nearest)
        tries = np.searchsorted(parts, generator.uniform(size=n_tries) * parts[-1])
        tries = np.minimum(tries, len(weights) - 1)
        left = np.minimum(squared_distances(rows, squares, tries), nearest)
        best = int(np.argmin(left @ weights))
        nearest = left[best]
        places.append(int(tries[best]))
    return np.array(places)


def move_centres(rows: Any, weights: NDArray[np.float64], centres: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Move centres to the means of the rows that are nearest to them, until no row changes its centre (Lloyd, 1982).

    A centre without rows moves to one of the rows that are farthest from theirs.

    Returns
    -------
    centres : ndarray of shape (n_clusters, n_features)
    inertia : float
        Mean squared distance of the rows to the nearest.
    """
    n_rows = rows.shape[0]
    squares = squared_lengths(rows)
    # The weight of each row in the place of its centre; only these places change.
    places = np.zeros(n_rows, np.int32)
    members = sparse.csc_array((weights.astype(rows.dtype), places, np.arange(n_rows + 1)), (len(centres), n_rows))
    spread = float(squares @ weights - ((rows.T @ weights) ** 2).sum())
    labels, inertia = np.full(n_rows, -1), np.inf
    for _ in range(choices.MOST_ROUNDS):
        before, (labels, closeness) = labels, nearest_centres(rows, centres)
        away = squares - 2 * closeness
        inertia = max(float(away @ weights), 0.0)
        if np.array_equal(labels, before):
            break
        masses = np.bincount(labels, weights, len(centres))
        members.indices[:] = labels
        moved = dense_rows(members @ rows) / np.where(masses > 0, masses, 1.0)[:, None].astype(rows.dtype)
        if not masses.all():
            empty = np.flatnonzero(masses == 0)
            moved[empty] = dense_rows(rows[np.argsort(-away, kind="stable")[: len(empty)]])
        step, centres = float(((moved - centres) ** 2).sum()), moved
        if step <= choices.LEAST_MOVE * spread / rows.shape[1]:
            break
    return centres, inertia


def nearest_centres(rows: Any, centres: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the nearest centre c of each row x, and ``x · c − ‖c‖² / 2``: the larger, the nearer."""
    closeness = np.asarray(rows @ centres.T) - (centres**2).sum(axis=1) / 2
    labels = closeness.argmax(axis=1)
    return labels, np.take_along_axis(closeness, labels[:, None], axis=1)[:, 0]


def squared_lengths(rows: Any) -> NDArray[np.float64]:
    """Return the squared length of each row, sparse or not."""
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def squared_distances(rows: Any, squares: NDArray[np.float64], places: Any) -> NDArray[np.float64]:
    """Return the squared distances of all rows from some of them: one row of results for each of these."""
    found = squares + squares[places][:, None] - 2 * dense_rows(rows[places] @ rows.T)
    return np.asarray(np.maximum(found, 0.0))


def dense_rows(rows: Any) -> NDArray[Any]:
    """Return rows, sparse or not, as an array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)
