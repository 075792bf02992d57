"""How many clusters there are: the partition of the graph that random halves of the points reproduce best.

The graph is clustered at many resolutions. A level counts by how well clusterings of random halves repeat it, beyond
what halves of a structureless cloud with the same covariance do at the same number of clusters. The partition that
agrees most with all others, each weighted by how reproducible it is, is the answer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cceclust.fit.graph import Graph, grown_parts, partition_graph, symmetric_graph
from cceclust.fit.neighbors import Metric, find_neighbors

__all__ = ["Levels", "find_levels"]

RESOLUTIONS = np.geomspace(0.05, 40, 30)
# Halves are drawn so many times; those of the cloud, which vary less, fewer times.
SPLITS, SPLITS_OF_CLOUD = 3, 2
N_NEIGHBORS = 15
# Clusters have at least this many points on average, and are at most so many.
LEAST_POINTS, MOST_CLUSTERS = 5, 160
# Levels whose weight is at least this part of the largest are about as reproducible as the best.
ABOUT_AS_GOOD = 0.75
# Below this much more than by chance, no number of clusters stands out.
WEAK = 0.25


@dataclass(frozen=True)
class Levels:
    """The numbers of clusters that were compared.

    Attributes
    ----------
    counts : ndarray of shape (n_levels,)
        Numbers of clusters, ascending.
    excess : ndarray of shape (n_levels,)
        How much better halves repeat each than by chance, from 0 to 1.
    chosen : int
        The chosen number.
    is_weak : bool
        Whether no number stands out.
    at_edge : bool
        Whether it is the smallest or largest number that was allowed, though others beyond are more reproducible.
    """

    counts: NDArray[np.intp]
    excess: NDArray[np.float64]
    chosen: int
    is_weak: bool
    at_edge: bool

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest number that is about as reproducible as the best."""
        if not len(self.counts):
            return self.chosen, self.chosen
        good = self.counts[self.excess >= ABOUT_AS_GOOD * self.excess.max()]
        return int(min(good.min(), self.chosen)), int(max(good.max(), self.chosen))


def find_levels(
    points: NDArray[np.float32],
    weights: NDArray[np.float32],
    metric: Metric,
    allowed: NDArray[np.intp] | None,
    *,
    seed: int,
    n_threads: int,
) -> tuple[Levels, NDArray[np.int32]]:
    """Return the levels, and the chosen partition; `allowed` limits the numbers of clusters."""
    n_points = len(points)

    def graph_of(rows: NDArray[np.float32], row_weights: NDArray[np.float32] | None) -> Graph:
        neighbors = find_neighbors(rows, min(N_NEIGHBORS, len(rows) - 1), metric, seed, 1)
        return symmetric_graph(neighbors, row_weights)

    def partitions(which: NDArray[np.intp], of: NDArray[np.float32], of_weights: NDArray[np.float32] | None) -> Parts:
        graph = graph_of(of[which], None if of_weights is None else of_weights[which])
        return [grown_parts(graph, float(resolution), seed) for resolution in RESOLUTIONS]

    generator = np.random.default_rng(seed)
    everything = np.arange(n_points)
    cloud = (generator.standard_normal(points.shape) * points.std(axis=0)).astype(np.float32)
    halves = []
    for _ in range(SPLITS):
        order = generator.permutation(n_points)
        halves += [np.sort(order[: n_points // 2]), np.sort(order[n_points // 2 :])]
    halves_of_cloud = halves[: 2 * SPLITS_OF_CLOUD]
    tasks = [(everything, points, weights), *((half, points, weights) for half in halves)]
    tasks += [(everything, cloud, None), *((half, cloud, None) for half in halves_of_cloud)]
    with ThreadPoolExecutor(n_threads) as pool:
        results = list(pool.map(lambda task: partitions(*task), tasks))
    full, of_cloud = results[0], results[1 + len(halves)]
    counts = np.array([labels.max() + 1 for labels in full])
    counts_of_cloud = np.array([labels.max() + 1 for labels in of_cloud])
    by_chance = repeated(of_cloud, halves_of_cloud, results[2 + len(halves) :])
    order = np.argsort(counts_of_cloud, kind="stable")
    expected = np.interp(np.log(counts), np.log(counts_of_cloud[order]), by_chance[order])
    excess = np.maximum(repeated(full, halves, results[1 : 1 + len(halves)]) - expected, 0.0)
    usable = (counts >= 2) & (counts <= min(n_points / LEAST_POINTS, MOST_CLUSTERS))
    agreement = np.array([[adjusted_rand(one, other) for other in full] for one in full]) @ (excess**2 * usable)
    best = int(np.where(usable, agreement, -1.0).argmax()) if usable.any() else 0
    chosen = full[best]
    at_edge = False
    if allowed is not None:
        possible = usable & np.isin(counts, allowed)
        free = int(counts[best])
        if possible.any():
            chosen = full[int(np.where(possible, agreement, -1.0).argmax())]
        else:
            nearest = int(allowed[np.abs(allowed - free).argmin()])
            chosen = partition_graph(graph_of(points, weights), min(nearest, n_points), seed=seed)
        number = int(chosen.max()) + 1
        at_edge = not allowed.min() <= free <= allowed.max() and number in (allowed.min(), allowed.max())
    elif not usable.any():
        chosen = np.zeros(n_points, np.int32)
    shown = np.flatnonzero(usable)
    order = shown[np.argsort(counts[shown], kind="stable")]
    is_weak = len(order) == 0 or bool(excess[order].max() < WEAK)
    return Levels(counts[order], excess[order], int(chosen.max()) + 1, is_weak, at_edge), chosen


Parts = list[NDArray[np.int32]]


def repeated(full: Parts, halves: list[NDArray[np.intp]], parts_of_halves: list[Parts]) -> NDArray[np.float64]:
    """Return how well the partitions of halves agree with that of all points, for each level."""
    agreements = [
        [adjusted_rand(labels[half], again) for labels, again in zip(full, parts, strict=True)]
        for half, parts in zip(halves, parts_of_halves, strict=True)
    ]
    return np.asarray(np.mean(agreements, axis=0))


def adjusted_rand(one: NDArray[np.int32], other: NDArray[np.int32]) -> float:
    """Return the adjusted Rand index of two partitions, whose parts are numbered from 0."""
    n_columns = int(other.max()) + 1
    together = np.bincount(one.astype(np.int64) * n_columns + other).astype(np.float64)

    def pairs(counts: NDArray[np.float64]) -> float:
        return float((counts * (counts - 1)).sum() / 2)

    both = pairs(together)
    of_one, of_other = (pairs(np.bincount(labels).astype(np.float64)) for labels in (one, other))
    expected = of_one * of_other / max(len(one) * (len(one) - 1) / 2, 1.0)
    most = (of_one + of_other) / 2
    return (both - expected) / (most - expected) if most > expected else 1.0
