"""How many clusters there are: the partition of the graph that random halves of the points reproduce best.

The graph is clustered at many resolutions. A level counts by how well clusterings of random halves repeat it, beyond
what halves of a structureless cloud with the same covariance do at the same number of clusters. The partition that
agrees most with all others, each weighted by how reproducible it is, is the answer; or a finer one that hardly differs
from it, if that is more reproducible.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust.fit.diagnosis import TINY_ROWS
from cceclust.fit.graph import Graph, grown_parts, partition_graph, symmetric_graph
from cceclust.fit.neighbors import Metric, find_neighbors
from cceclust.fit.sample import ROWS_FOR_AXES

__all__ = ["Levels", "find_levels"]

# From 0.05 on, the same two coarse parts are found again and again and outvote all others (features of CIFAR-10: 2
# clusters, with this start 6 to 19); from 0.3 on, small numbers are missed (breast cancer: 13 clusters).
RESOLUTIONS = np.geomspace(0.125, 40, 20)
# Halves are drawn so many times, but fewer times of many points, as large ones vary less.
MOST_SPLITS = 10
# Neighbours of each point. With 15, clusters of 10 to 20 points melt together: with 7, the adjusted Rand index is 0.03
# (± 0.02) higher on the mean of 20 sets, most of all on few wide rows. Halves keep those of the nearest 10 that they
# have, 5 on average, which is as good as a search of their own.
N_NEIGHBORS, N_NEIGHBORS_BEFORE_HALVING = 7, 10
# Partitions of at least this adjusted Rand index hardly differ, as small clusters count little: of 40 unequal topics,
# the partition that agrees most with all others misses some ten, and the most reproducible near it has 39 to 41.
HARDLY_DIFFERENT = 0.9
# Levels whose excess is at least this part of the chosen one's are about as reproducible; and with an adjusted Rand
# index of at least this, they are the same clusters with other borders.
ABOUT_AS_GOOD = 0.75
# Below this much more than by chance, no number of clusters stands out,
WEAK = 0.25
# and below this, so many points are one cluster: of 108 clouds and cubes of 2 to 50 dimensions 96 %, of real sets none
# (0.115 is the lowest). Few points reach 0.6 by chance; an exponential cloud has 0.25 and is not recognised.
STRUCTURELESS = 0.1
# A cluster of so many points looks like several where every half repeats its parts this much better than by chance;
# parts of at least a tenth of it count. All 16 clusters named so on 20 sets held several classes; with the mean of the
# halves and clusters of 20 points, it was half of 129.
LEAST_POINTS_TO_SPLIT, CLEARLY_SPLIT = 100, 0.5

Parts = list[NDArray[np.int32]]


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
    range : tuple of int
        The smallest and the largest number with nearly the same clusters, about as reproducible.
    further : dict
        Up to two other numbers, a smaller and a larger one, about as reproducible but with other clusters, and the
        sizes of these, the largest first.
    splits : dict
        For each of the chosen clusters that looks like several: like how many.
    is_weak : bool
        Whether no number stands out.
    at_edge : bool
        Whether a number beyond those that were allowed is more reproducible.
    """

    counts: NDArray[np.intp]
    excess: NDArray[np.float64]
    chosen: int
    range: tuple[int, int]
    further: dict[int, NDArray[np.intp]]
    splits: dict[int, int]
    is_weak: bool
    at_edge: bool


def find_levels(
    points: NDArray[np.float32],
    weights: NDArray[np.float32],
    neighbors: NDArray[np.int32],
    metric: Metric,
    allowed: NDArray[np.intp] | None,
    *,
    seed: int,
    n_threads: int,
) -> tuple[Levels, NDArray[np.int32]]:
    """Return the levels, and the chosen partition; `allowed` limits the numbers of clusters."""
    n_points, generator = len(points), np.random.default_rng(seed)
    if n_points < 2 * TINY_ROWS:
        return without_levels(neighbors, weights, allowed, seed)
    n_splits = int(np.clip(3 * ROWS_FOR_AXES // n_points, 1, MOST_SPLITS))
    n_in_cloud = min(n_points, ROWS_FOR_AXES)
    cloud = (generator.standard_normal((n_in_cloud, points.shape[1])) * points.std(axis=0)).astype(np.float32)
    near = find_neighbors(cloud, min(N_NEIGHBORS_BEFORE_HALVING, n_in_cloud - 1), metric, seed, n_threads)
    # Of a few numbers, some may not come up at any resolution.
    listed = np.empty(0, np.intp)
    if allowed is not None and len(allowed) <= len(RESOLUTIONS):
        listed = allowed[allowed <= n_points / TINY_ROWS]

    def grow(graph: Graph) -> Parts:
        at_resolutions = [grown_parts(graph, float(resolution), seed) for resolution in RESOLUTIONS]
        return at_resolutions + [partition_graph(graph, int(number), seed=seed) for number in listed]

    with ThreadPoolExecutor(n_threads) as pool:
        real = compare_halves(neighbors, weights, n_splits, generator, grow, pool)
        by_chance = compare_halves(near, None, n_splits, generator, grow, pool)
    full, counts = real.full, real.counts
    excess = np.maximum(real.repeated - by_chance.at(counts), 0.0)
    usable = (counts >= 2) & (counts <= n_points / TINY_ROWS)
    likeness = np.array([[adjusted_rand(one, other) for other in full] for one in full])
    agreement = likeness @ (excess**2 * usable)

    def best_of(levels: NDArray[np.bool_]) -> int:
        best = int(np.where(levels, agreement, -1.0).argmax())
        finer = levels & (counts >= counts[best]) & (likeness[best] >= HARDLY_DIFFERENT)
        return int(np.where(finer, excess, -1.0).argmax())

    best = best_of(usable) if usable.any() else int(counts.argmin())
    labels, at_edge = full[best], False
    if allowed is not None:
        free, possible = int(counts[best]), usable & np.isin(counts, allowed)
        if possible.any():
            best = best_of(possible)
            labels = full[best]
        else:
            nearest = int(allowed[np.abs(allowed - free).argmin()])
            best = int(np.abs(counts - nearest).argmin())
            labels = partition_graph(graph_of(neighbors, weights), min(nearest, n_points), seed=seed)
        at_edge = not allowed.min() <= free <= allowed.max()
    elif not usable.any() or (n_points >= ROWS_FOR_AXES // 4 and excess[usable].max() < STRUCTURELESS):
        labels = np.zeros(n_points, np.int32)
    chosen = int(labels.max()) + 1
    shown = np.flatnonzero(usable)[np.argsort(counts[usable], kind="stable")]
    good = usable & (excess >= ABOUT_AS_GOOD * excess[best])
    alike = np.array([adjusted_rand(one, labels) for one in full]) >= ABOUT_AS_GOOD
    plateau = [chosen, *counts[good & alike].tolist()]
    further, worth_naming = {}, good & ~alike & (excess >= WEAK)
    for others in (counts < chosen, counts > chosen):
        if (worth_naming & others).any():
            level = int(np.where(worth_naming & others, excess, -1.0).argmax())
            further[int(counts[level])] = -np.sort(-np.bincount(full[level]))
    return (
        Levels(
            counts[shown],
            excess[shown],
            chosen,
            (min(plateau), max(plateau)),
            further,
            clusters_to_split(labels, real, by_chance),
            not usable.any() or bool(excess[best] < WEAK),
            at_edge,
        ),
        labels,
    )


def without_levels(
    neighbors: NDArray[np.int32], weights: NDArray[np.float32], allowed: NDArray[np.intp] | None, seed: int
) -> tuple[Levels, NDArray[np.int32]]:
    """Return one cluster, or the smallest number that is allowed, for points too few to compare numbers on."""
    number = 1 if allowed is None else min(int(allowed.min()), len(neighbors))
    labels = partition_graph(graph_of(neighbors, weights), number, seed=seed)
    return Levels(np.empty(0, np.intp), np.empty(0), number, (number, number), {}, {}, True, False), labels


@dataclass(frozen=True)
class Halves:
    """Partitions of a graph at all levels, and those of its halves."""

    full: Parts
    halves: list[NDArray[np.intp]]
    of_halves: list[Parts]

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """The number of parts at each level."""
        return np.array([int(labels.max()) + 1 for labels in self.full])

    @cached_property
    def repeated(self) -> NDArray[np.float64]:
        """How well halves repeat the partition at each level."""
        return np.asarray(self.agreements().mean(axis=0))

    def agreements(self, inside: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return how well each half repeats each level (n_halves, n_levels), on all points or on those `inside`."""
        return np.array(
            [
                [adjusted_rand(one[half][kept], other[kept]) for one, other in zip(self.full, parts, strict=True)]
                for half, parts in zip(self.halves, self.of_halves, strict=True)
                for kept in [slice(None) if inside is None else inside[half]]
            ]
        )

    def at(self, counts: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return how well halves repeat partitions into so many parts."""
        order = np.argsort(self.counts, kind="stable")
        return np.asarray(np.interp(np.log(counts), np.log(self.counts[order]), self.repeated[order]))


def compare_halves(
    neighbors: NDArray[np.int32],
    weights: NDArray[np.float32] | None,
    n_splits: int,
    generator: np.random.Generator,
    grow: Callable[[Graph], Parts],
    pool: ThreadPoolExecutor,
) -> Halves:
    """Partition the graph of all points, and those of random halves, at all levels."""
    wide = symmetric_graph(neighbors[:, :N_NEIGHBORS_BEFORE_HALVING], weights)
    n_points, halves = len(neighbors), []
    for _ in range(n_splits):
        order = generator.permutation(n_points)
        halves += [np.sort(order[: n_points // 2]), np.sort(order[n_points // 2 :])]
    graphs = [graph_of(neighbors, weights), *(graph_among(wide, half) for half in halves)]
    full, *of_halves = pool.map(grow, graphs)
    return Halves(full, halves, of_halves)


def graph_of(neighbors: NDArray[np.int32], weights: NDArray[np.float32] | None) -> Graph:
    """Return the graph of the nearest neighbours."""
    return symmetric_graph(neighbors[:, :N_NEIGHBORS], weights)


def graph_among(graph: Graph, nodes: NDArray[np.intp]) -> Graph:
    """Return the graph of some nodes, with the pairs among them."""
    shape = (graph.n_nodes, graph.n_nodes)
    pairs = sparse.csr_array((graph.weights, graph.others, graph.starts), shape)[nodes][:, nodes]
    pairs.sort_indices()
    strengths = np.asarray(pairs.sum(axis=1))
    return Graph(pairs.indptr.astype(np.int64), pairs.indices.astype(np.int32), pairs.data, strengths)


def clusters_to_split(labels: NDArray[np.int32], real: Halves, by_chance: Halves) -> dict[int, int]:
    """Return which clusters every half divides into the same parts, beyond chance, and into how many."""
    found = {}
    for cluster, size in enumerate(np.bincount(labels)):
        if size < LEAST_POINTS_TO_SPLIT:
            continue
        inside = labels == cluster
        counts = np.array([int((10 * np.bincount(one[inside]) >= size).sum()) for one in real.full])
        excess = real.agreements(inside).min(axis=0) - by_chance.at(np.maximum(counts, 1))
        excess[counts < 2] = 0.0
        if excess.max() >= CLEARLY_SPLIT:
            found[cluster] = int(counts[excess.argmax()])
    return found


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
