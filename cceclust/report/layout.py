"""Places for rows on a plane, so that neighbours lie close together.

Neighbours attract each other, and all points repel each other, with the forces of t-SNE (van der Maaten and Hinton,
2008). As in UMAP (McInnes, Healy and Melville, 2018), the repulsion is estimated from a few random points in each step.
It is weak in the first steps, in which groups find their places, and grows until points of a group spread out.

Each step moves every point by the forces at the places of the step before. Points can so be divided among threads
without a change of a single bit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust.compiled import compiled
from cceclust.validation import thread_count

__all__ = ["lay_out", "move", "repulsion_of", "symmetric_graph"]

STEPS = 500
# Random points that repel each point in a step; fewer leave the edges of groups frayed.
SAMPLES = 50
# Standard deviation of the wider axis at the start, and of the noise that separates points at the same place.
START_WIDTH, START_NOISE = 2.5, 1e-3
# The force of all other points, relative to that of the neighbours: at first, and at the end for few and many points.
FIRST_REPULSION, LEAST_REPULSION, MOST_REPULSION = 5.0, 60.0, 160.0
ROWS_FOR_REPULSION = 125
# Part of its last move that a point keeps, and the longest push of a step.
MOMENTUM, LONGEST_PUSH = 0.5, 4.0


def lay_out(
    neighbors: NDArray[Any], start: NDArray[Any], *, n_steps: int = STEPS, n_jobs: int | None = None
) -> NDArray[np.float64]:
    """Place points on a plane by their neighbours.

    Parameters
    ----------
    neighbors : ndarray of shape (n_points, n_neighbors)
        Row numbers of the nearest neighbours of each point.
    start : ndarray of shape (n_points, 2)
        Where points start, such as their first two principal components; it decides how groups lie to each other.
    n_steps : int
        Number of steps.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    ndarray of shape (n_points, 2)

    Examples
    --------
    Two pairs of neighbours that start side by side:

    >>> import numpy as np
    >>> from cceclust.report.layout import lay_out
    >>> places = lay_out(np.array([[1], [0], [3], [2]]), np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]))
    >>> nearest = np.linalg.norm(places[:, None] - places, axis=-1) + 100 * np.eye(4)
    >>> nearest.argmin(axis=1)
    array([1, 0, 3, 2])
    """
    graph = symmetric_graph(neighbors)
    n_points, n_threads = len(neighbors), thread_count(n_jobs)
    places = scaled_start(start)
    moved, moves = np.empty_like(places), np.zeros_like(places)
    cuts = np.linspace(0, n_points, n_threads + 1).astype(np.intp)
    with ThreadPoolExecutor(n_threads) as pool:
        for step in range(n_steps):
            done = step / n_steps
            # Shorter steps in the second half let the noise of the samples average out.
            rate, repulsion = min(1.0, 2 * (1 - done)), repulsion_of(done, n_points)
            forces: tuple[Any, ...] = (graph.indptr, graph.indices, graph.data, rate, repulsion)
            parts = [pool.submit(move, places, moves, moved, step, *ends, *forces) for ends in pairwise(cuts.tolist())]
            for part in parts:
                part.result()
            places, moved = moved, places
    return places


def symmetric_graph(neighbors: NDArray[Any]) -> sparse.csr_array:
    """Return who attracts whom how much: pairs that are neighbours of each other twice as much as others.

    The attractions of a point sum to 1 on average.
    """
    n_points, n_neighbors = neighbors.shape
    ends = np.arange(0, neighbors.size + 1, n_neighbors)
    one_way = sparse.csr_array((np.full(neighbors.size, 0.5 / n_neighbors), neighbors.ravel(), ends), (n_points,) * 2)
    graph = sparse.csr_array(one_way + one_way.T)
    graph.sort_indices()
    return graph


def scaled_start(start: NDArray[Any]) -> NDArray[np.float64]:
    """Return the start in the scale of the forces, with points at the same place separated."""
    centred = start - start.mean(axis=0, dtype=np.float64)
    width = float(centred.std(axis=0).max(initial=0)) or 1.0
    noise = np.random.default_rng(0).normal(0, START_NOISE, start.shape)
    return np.ascontiguousarray(START_WIDTH / width * centred + noise)


def repulsion_of(done: float, n_points: int) -> float:
    """Return the repulsion after a part of the steps: it grows through the first half and then stays."""
    last = min(MOST_REPULSION, max(LEAST_REPULSION, n_points / ROWS_FOR_REPULSION))
    return float(FIRST_REPULSION * (last / FIRST_REPULSION) ** min(1.0, 2 * done))


@compiled(error_model="numpy")
def move(
    places: NDArray[np.float64],
    moves: NDArray[np.float64],
    moved: NDArray[np.float64],
    step: int,
    first: int,
    last: int,
    starts: NDArray[np.integer[Any]],
    others: NDArray[np.integer[Any]],
    attractions: NDArray[np.float64],
    rate: float,
    repulsion: float,
) -> None:
    """Move the points from `first` to `last` (`moved` is OUT, their `moves` are IN and OUT).

    With d the difference of two places and q = 1 / (1 + d²), the push of a point is the sum of −a q d over its
    neighbours, plus the mean of q² d over random points, times `repulsion` and the sum of its attractions a.
    """
    n_points = places.shape[0]
    for i in range(first, last):
        x, y = places[i]
        push_x = push_y = total = 0.0
        for entry in range(starts[i], starts[i + 1]):
            dx, dy = x - places[others[entry], 0], y - places[others[entry], 1]
            force = attractions[entry] / (1.0 + dx * dx + dy * dy)
            push_x -= force * dx
            push_y -= force * dy
            total += attractions[entry]
        away_x = away_y = 0.0
        # SplitMix64 (Steele, Lea and Flood, 2014), started by point and step: no draw depends on another point's.
        state = np.uint64(i) * np.uint64(0xD1B54A32D192ED03) + np.uint64(step) * np.uint64(0x8CB92BA72F3D8DD7)
        for _ in range(SAMPLES):
            state += np.uint64(0x9E3779B97F4A7C15)
            bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(32)
            other = np.int64((bits * np.uint64(n_points)) >> np.uint64(32))
            dx, dy = x - places[other, 0], y - places[other, 1]
            closeness = 1.0 / (1.0 + dx * dx + dy * dy)
            away_x += closeness * closeness * dx
            away_y += closeness * closeness * dy
        scale = repulsion * total / SAMPLES
        push_x += scale * away_x
        push_y += scale * away_y
        length = np.sqrt(push_x * push_x + push_y * push_y)
        if length > LONGEST_PUSH:
            push_x *= LONGEST_PUSH / length
            push_y *= LONGEST_PUSH / length
        moves[i, 0] = MOMENTUM * moves[i, 0] + rate * push_x
        moves[i, 1] = MOMENTUM * moves[i, 1] + rate * push_y
        moved[i, 0] = x + moves[i, 0]
        moved[i, 1] = y + moves[i, 1]
