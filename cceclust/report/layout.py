"""Places for points on a plane, so that neighbours lie close together.

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

from cceclust.compiled import compiled
from cceclust.fit.graph import symmetric_graph

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


def lay_out(neighbors: NDArray[np.int32], start: NDArray[Any], n_threads: int) -> NDArray[np.float64]:
    """Return a place for each point by its nearest neighbours; how groups lie to each other depends on the start."""
    n_points, n_neighbors = neighbors.shape
    graph = symmetric_graph(neighbors)
    # Those of a point sum to 1 on average.
    attractions = graph.weights / (2 * n_neighbors)
    places: NDArray[np.float64] = start - start.mean(axis=0, dtype=np.float64)
    places *= START_WIDTH / (float(places.std(axis=0).max()) or 1.0)
    places += np.random.default_rng(0).normal(0, START_NOISE, start.shape)
    moved, moves = np.empty_like(places), np.zeros_like(places)
    growth = min(MOST_REPULSION, max(LEAST_REPULSION, n_points / ROWS_FOR_REPULSION)) / FIRST_REPULSION
    cuts = np.linspace(0, n_points, n_threads + 1).astype(np.intp).tolist()
    with ThreadPoolExecutor(n_threads) as pool:
        for step in range(STEPS):
            # Repulsion grows through the first half. Shorter steps in the second average the noise of the samples out.
            half = 2 * step / STEPS
            rate, repulsion = min(1.0, 2 - half), FIRST_REPULSION * growth ** min(1.0, half)
            forces: tuple[Any, ...] = (graph.starts, graph.others, attractions, rate, repulsion)
            parts = [pool.submit(move, places, moves, moved, step, *ends, *forces) for ends in pairwise(cuts)]
            for part in parts:
                part.result()
            places, moved = moved, places
    return places


@compiled(error_model="numpy")
def move(
    places: NDArray[np.float64],
    moves: NDArray[np.float64],
    moved: NDArray[np.float64],
    step: int,
    first: int,
    last: int,
    starts: NDArray[np.int64],
    others: NDArray[np.int32],
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
        longer = np.sqrt(push_x * push_x + push_y * push_y) / LONGEST_PUSH
        if longer > 1:
            push_x /= longer
            push_y /= longer
        moves[i, 0] = MOMENTUM * moves[i, 0] + rate * push_x
        moves[i, 1] = MOMENTUM * moves[i, 1] + rate * push_y
        moved[i, 0] = x + moves[i, 0]
        moved[i, 1] = y + moves[i, 1]
