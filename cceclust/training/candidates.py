"""Clusterings to choose from: heads that differ, partitions of the graph, and K-means; and the choice by the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.training.choosing import are_whole, choose, even_rival
from cceclust.training.curves import Lift, are_curved, curve_heads, find_lift
from cceclust.training.directions import evened_rows
from cceclust.training.graph_partition import (
    Graph,
    fine_parts,
    improved_labels,
    partition_graph,
    partition_unevenly,
    resolution_for,
    symmetric_graph,
)
from cceclust.training.head import Head
from cceclust.training.heads import HeadStack
from cceclust.training.label_heads import FitToLabels, fit_heads_to_labels, heads_around_means, widened
from cceclust.training.logits import row_logits
from cceclust.training.modularity import Links, links_of, neighbor_modularity
from cceclust.training.neighbors import nearest_neighbors
from cceclust.training.robustness import without_far_rows
from cceclust.training.rows import ArrayRows, Rows, SparseRows, in_memory
from cceclust.training.selection import adjusted_rand_index, mean_pairwise_ari
from cceclust.training.settings import FitSettings
from cceclust.training.space import TrainingSpace
from cceclust.training.spectrum import Spectrum, measure_spectrum, sample_rows
from cceclust.training.standardization import Standardization, fold
from cceclust.training.starts import head_around, heads_around_centres, kmeans_centres, random_heads

__all__ = [
    "Arena",
    "Choice",
    "HeadPlan",
    "Partitions",
    "choose_head",
    "find_arena",
    "find_graph",
    "modularity_of_rows",
    "partitions_of",
    "plan_heads",
    "rows_to_judge",
    "start_heads",
]


FLOOR_NAME = "K-means"


@dataclass(frozen=True)
class HeadPlan:
    """How one head is trained.

    Attributes
    ----------
    start : {"random", "k-means", "graph"}
        Where it starts.
    fairness : float or None
        λ; None for a method that has none.
    prior : ndarray of shape (n_clusters,)
        Expected part of each cluster.
    weight_decay : float
        Its weight decay.
    """

    start: str
    fairness: float | None
    prior: NDArray[Any]
    weight_decay: float

    @property
    def fairness_or_usual(self) -> float:
        """The fairness, where there must be one."""
        return choices.FAIRNESS if self.fairness is None else self.fairness

    @property
    def name(self) -> str:
        """What to call its clusters."""
        return f"{self.start} start" + ("" if self.fairness is None else f", fairness {self.fairness:g}")


@dataclass(frozen=True)
class Arena:
    """The rows on which candidates are made and judged, with the graph of their neighbours.

    Attributes
    ----------
    space : TrainingSpace
        All rows or a sample of them, dense and in memory.
    sample_weight : ndarray of shape (n_rows,)
        Weight of each.
    neighbors : ndarray of shape (n_rows, n_neighbors)
        Their nearest neighbours.
    graph : Graph
        The same, made symmetric.
    resolution : float
        That of the modularity by which candidates are judged.
    """

    space: TrainingSpace
    sample_weight: NDArray[Any]
    neighbors: NDArray[Any]
    graph: Graph
    resolution: float = 1.0

    def links_of(self, labels: NDArray[Any], n_nearest: int | None = None, *, n_clusters: int = 1) -> Links:
        """Count the links of several labelings, to all neighbours or to so many of the nearest."""
        return links_of(labels, self.neighbors[:, :n_nearest], self.sample_weight, n_clusters=n_clusters)

    def scores_of(self, labels: NDArray[Any], n_nearest: int | None = None) -> NDArray[np.float64]:
        """Return the modularity of several labelings at the resolution, on all neighbours or so many of the nearest."""
        return self.links_of(labels, n_nearest).modularities_at(self.resolution)

    @property
    def joins_copies(self) -> bool:
        """Whether most rows have only copies of themselves for neighbours, so that the graph says nothing of others."""
        matrix, numbers = self.space.rows.matrix, np.arange(len(self.neighbors))
        tolerance = choices.SAME_ROW * self.space.standardization.scale
        is_copy, has_other = np.ones(len(matrix), np.bool_), np.zeros(len(matrix), np.bool_)
        # From the farthest on, which nearly always ends it: most rows differ in their first column already.
        for others in self.neighbors.T[::-1]:
            is_other = others != numbers
            has_other |= is_other
            compared = np.flatnonzero(is_copy & is_other)
            compared = compared[np.abs(matrix[compared, 0] - matrix[others[compared], 0]) <= tolerance]
            differs = np.ones(len(matrix), np.bool_)
            differs[compared] = (np.abs(matrix[compared] - matrix[others[compared]]) > tolerance).any(axis=1)
            is_copy &= ~(is_other & differs)
            if is_copy.sum() <= choices.MOST_COPIES * len(matrix):
                return False
        return int((is_copy & has_other).sum()) > choices.MOST_COPIES * len(matrix)


class Partitions(NamedTuple):
    """Partitions of the graph.

    Attributes
    ----------
    labels : ndarray of shape (n_partitions, n_rows)
        The partitions, the best first.
    resolution : float
        That of the modularity by which they were made, and by which all candidates are judged.
    """

    labels: NDArray[np.int32]
    resolution: float


@dataclass(frozen=True)
class Candidates:
    """Heads to choose from.

    Attributes
    ----------
    names : list of str
        What they are.
    weights, biases : ndarray of shape (n_candidates, n_clusters, n_columns) and (n_candidates, n_clusters)
        For the rows of the training space, lifted if they are curved.
    lift : Lift or None
        The further columns of curved heads; None for linear ones.
    wanted : ndarray of shape (n_candidates, n_rows) or None
        The clusters on the graph that each was fitted to; None for heads as they were trained.
    floor : int or None
        Number of the head with K-means' own clusters; None if there is none.
    """

    names: list[str]
    weights: NDArray[Any]
    biases: NDArray[Any]
    lift: Lift | None = None
    wanted: NDArray[np.integer[Any]] | None = None
    floor: int | None = None


@dataclass(frozen=True)
class Choice:
    """The head that was chosen.

    Attributes
    ----------
    weights, biases : ndarray
        Of the chosen head, for the rows of the training space, lifted if it is curved.
    names : list of str
        What the candidates are.
    modularities : ndarray of shape (n_candidates,)
        That of each, at a resolution of 1.
    best : int
        Number of the chosen one.
    agreement : float or None
        Mean adjusted Rand index between every two candidates.
    n_agreeing : int
        Number of candidates that found the chosen one's clusters, itself included.
    closest : float or None
        Adjusted Rand index between the chosen one and the candidate most like it; None without any other.
    even_rival : int or None
        Number of a candidate with clusters of about equal size, if the chosen one's differ and it is hardly worse.
    lift : Lift or None
        The further columns of a curved head; None for a linear one.
    """

    weights: NDArray[Any]
    biases: NDArray[Any]
    names: list[str]
    modularities: NDArray[np.float64]
    best: int
    agreement: float | None
    n_agreeing: int
    closest: float | None
    even_rival: int | None = None
    lift: Lift | None = None

    @property
    def is_floor(self) -> bool:
        """Whether K-means' own clusters were kept."""
        return self.names[self.best] == FLOOR_NAME

    @property
    def scores(self) -> dict[str, float]:
        """The modularity of each candidate by its name."""
        return dict(zip(self.names, self.modularities.tolist(), strict=True))


def directions_of(rows: Rows, sample_weight: NDArray[Any]) -> int:
    """Return the number of directions that hold nearly all variance of raw rows."""
    as_it_is = Standardization(np.zeros(rows.shape[1], rows.dtype), 1.0)
    return measure_spectrum(rows, as_it_is, sample_weight, seed=0).n_directions


def metric_for(n_directions: int) -> Literal["cosine", "euclidean"]:
    """Return how neighbours are compared: by distance where there are few directions and else by cosine."""
    return "euclidean" if n_directions < choices.LEAST_DIRECTIONS_FOR_COSINE else "cosine"


def find_graph(
    matrix: Any,
    n_neighbors: int,
    n_directions: int,
    *,
    n_jobs: int | None,
    on_block: Callable[[int, int], None] | None = None,
) -> NDArray[np.int32]:
    """Return the nearest neighbours of each row."""
    metric = metric_for(n_directions)
    return nearest_neighbors(matrix, n_neighbors, metric=metric, n_jobs=n_jobs, on_block=on_block)


def find_arena(
    space: TrainingSpace,
    sample_weight: NDArray[Any],
    spectrum: Spectrum,
    settings: FitSettings,
    neighbors: NDArray[Any] | None,
    *,
    seed: int,
) -> Arena | None:
    """Return the rows to judge on, with their graph; None where there are too few, or too wide ones.

    Parameters
    ----------
    space : TrainingSpace
        Holds all rows.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each.
    spectrum : Spectrum
        How they vary.
    settings : FitSettings
        How to fit.
    neighbors : ndarray of shape (n_samples, n_neighbors) or None
        Neighbours that were given or found already.
    seed : int
        Decides the sample.
    """
    kept = np.flatnonzero(sample_weight > 0)
    if len(kept) < choices.LEAST_ROWS_PER_CLUSTER * settings.n_clusters or settings.n_clusters < 2:
        return None
    says_enough = neighbors is not None and neighbors.shape[1] >= choices.LEAST_JUDGE_NEIGHBORS
    if isinstance(space.rows, ArrayRows) and neighbors is not None and says_enough:
        return arena_of_rows(space, space.rows, sample_weight, neighbors, kept)
    if not isinstance(space.rows, ArrayRows) or len(kept) > choices.MOST_ROWS:
        affordable = choices.BYTES_TO_JUDGE // (space.rows.shape[1] * space.rows.dtype.itemsize)
        n_rows = min(choices.ROWS_TO_JUDGE, affordable, len(kept))
        if n_rows < choices.LEAST_ROWS_PER_CLUSTER * settings.n_clusters:
            return None
        kept = np.sort(np.random.default_rng(seed).choice(kept, n_rows, replace=False))
    n_neighbors = min(choices.JUDGE_NEIGHBORS, len(kept) - 1)
    taken: Any = space.rows.take(kept)
    dense = (taken.toarray() if isinstance(space.rows, SparseRows) else np.asarray(taken)).astype(space.rows.dtype)
    part = replace(space, rows=in_memory(dense))
    found = find_graph(dense, n_neighbors, spectrum.n_directions, n_jobs=settings.n_jobs)
    return arena_of(part, sample_weight[kept], found)


def arena_of_rows(
    space: TrainingSpace,
    rows: ArrayRows,
    sample_weight: NDArray[Any],
    neighbors: NDArray[Any],
    kept: NDArray[np.intp],
) -> Arena:
    """Return the arena of all rows that have weight; without any, a row would be a part of the graph of its own."""
    if len(kept) == rows.shape[0]:
        return arena_of(space, sample_weight, neighbors)
    part = replace(space, rows=ArrayRows(rows.matrix[kept]))
    return arena_of(part, sample_weight[kept], np.searchsorted(kept, neighbors[kept]))


def arena_of(space: TrainingSpace, sample_weight: NDArray[Any], neighbors: NDArray[Any]) -> Arena:
    """Put rows and their graph together; equal weights need not be multiplied."""
    graph = symmetric_graph(neighbors, None if np.ptp(sample_weight) == 0 else sample_weight)
    return Arena(space, sample_weight, neighbors, graph)


def modularity_of_rows(
    rows: Rows, labels: NDArray[np.integer[Any]], sample_weight: NDArray[Any], *, n_jobs: int | None = None
) -> float:
    """Return the modularity of labels on the graph of the rows themselves, or of a fixed sample of very many.

    As in a fit, rows far from all others take no part, and directions are evened out where that is as clear.

    Parameters
    ----------
    rows : Rows
        The features.
    labels : ndarray of shape (n_samples,)
        The cluster of each row.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    n_jobs : int, optional
        Number of threads.
    """
    sample_weight, _ = without_far_rows(rows, sample_weight, seed=0)
    kept = rows_to_judge(rows, sample_weight)
    if len(kept) < 2:
        # One row has no neighbours, and one cluster has a modularity of 0.
        return 0.0
    taken = in_memory(rows.take(kept).astype(rows.dtype))
    sample = evened_rows(taken, sample_weight[kept]) if isinstance(taken, ArrayRows) else taken.matrix
    directions = directions_of(in_memory(sample), sample_weight[kept])
    found = find_graph(sample, min(choices.JUDGE_NEIGHBORS, len(kept) - 1), directions, n_jobs=n_jobs)
    return float(neighbor_modularity(labels[kept], found, sample_weight[kept]))


def rows_to_judge(rows: Rows, sample_weight: NDArray[Any]) -> NDArray[np.intp]:
    """Return the numbers of the rows that have weight, or of a fixed sample of very many."""
    kept = np.flatnonzero(sample_weight > 0)
    affordable = choices.BYTES_TO_JUDGE // (rows.shape[1] * rows.dtype.itemsize)
    n_rows = min(choices.ROWS_TO_JUDGE, max(affordable, choices.JUDGE_NEIGHBORS))
    if len(kept) > n_rows:
        kept = np.sort(np.random.default_rng(0).choice(kept, n_rows, replace=False))
    return kept


def plan_heads(
    settings: FitSettings, decay: float, prior: NDArray[Any], partition: NDArray[Any] | None, *, crowded: bool
) -> list[HeadPlan]:
    """Return how each head is trained: what is fixed by the settings, and else a mix.

    Parameters
    ----------
    settings : FitSettings
        What is fixed.
    decay : float
        The weight decay that suits the data, or the one given.
    prior : ndarray of shape (n_clusters,)
        Expected part of each cluster where the settings do not leave it to the data.
    partition : ndarray of shape (n_rows,) or None
        The best partition of the graph, for heads that start from it; without one they start from K-means.
    crowded : bool
        Whether clusters share directions, so that no head starts at random unless told to.
    """
    if not settings.mixes_heads:
        alike: str = settings.init if settings.init != "auto" else ("k-means" if crowded else "random")
        alike = "k-means" if alike == "graph" else alike
        plan = HeadPlan(alike, settings.fixed_fairness, prior, decay)
        return [plan] * settings.n_init
    plans = []
    mix = list(islice(cycle(choices.HEAD_MIX), settings.n_init))
    if settings.n_clusters >= choices.MANY_CLUSTERS and settings.init == "auto" and partition is not None:
        mix = [kind for kind in mix if kind[0] == "graph"][:1] or mix[:1]
    for usual_start, fairness, own_prior, factor in mix:
        start: str = settings.init
        if start == "auto":
            start = "k-means" if usual_start == "random" and crowded else usual_start
        if start == "graph" and partition is None:
            start = "k-means"
        expected = prior
        if own_prior and start == "graph" and partition is not None and settings.has_free_prior:
            expected = np.bincount(partition, minlength=settings.n_clusters).astype(prior.dtype)
            expected /= expected.sum()
        plans.append(
            HeadPlan(
                start,
                fairness if settings.fixed_fairness is None else settings.fixed_fairness,
                expected,
                decay * (factor if settings.weight_decay == "auto" else 1.0),
            )
        )
    return plans


def start_heads(
    plans: Sequence[HeadPlan],
    generator: np.random.Generator,
    *,
    space: TrainingSpace,
    spectrum: Spectrum,
    sample_weight: NDArray[Any],
    arena: Arena | None,
    partition: NDArray[Any] | None,
) -> HeadStack:
    """Return a head for each plan, at its start."""
    n_clusters = len(plans[0].prior)
    stacks = []
    # Heads with the same start are drawn together, as K-means shares its sample of rows between them.
    for start in dict.fromkeys(plan.start for plan in plans):
        count = sum(plan.start == start for plan in plans)
        if start == "random":
            stack = random_heads(count, generator, space=space, n_clusters=n_clusters)
        elif start == "k-means":
            stack = heads_around_centres(
                count, generator, space=space, n_clusters=n_clusters, spectrum=spectrum, sample_weight=sample_weight
            )
        else:
            assert arena is not None
            assert partition is not None
            labels = np.broadcast_to(partition, (count, len(partition)))
            stack = heads_around_means(arena.space, labels, n_clusters, spectrum, arena.sample_weight)
        weights, biases = stack.unstacked()
        stacks.append((start, iter(zip(weights, biases, strict=True))))
    drawn = dict(stacks)
    heads = [next(drawn[plan.start]) for plan in plans]
    return HeadStack(
        len(plans), np.concatenate([weights for weights, _ in heads]), np.concatenate([biases for _, biases in heads])
    )


def partitions_of(arena: Arena, n_clusters: int, *, seed: int, n_threads: int) -> Partitions:
    """Return several partitions of the graph, the best first.

    Modularity prefers a number of parts of its own, and of more parts than that it would rather have small ones beside
    large ones than even ones. So for many clusters, its resolution is that at which the graph falls into as many.
    """
    graph, fine = arena.graph, None
    ways = [partition_graph] * choices.PARTITIONS + [partition_unevenly] * choices.UNEVEN_PARTITIONS
    if graph.n_nodes > choices.ROWS_TO_SHARE_PARTS:
        ways, fine = [partition_graph, partition_unevenly], fine_parts(graph, n_clusters, seed=seed)
    is_many = n_clusters >= choices.MANY_CLUSTERS
    resolution = resolution_for(graph, n_clusters, seed=seed, fine=fine) if is_many else 1.0
    with ThreadPoolExecutor(n_threads) as pool:
        jobs = [
            pool.submit(way, graph, n_clusters, seed=seed + number, fine=fine, resolution=resolution)
            for number, way in enumerate(ways)
        ]
        found = np.stack([job.result() for job in jobs])
    scores = arena.links_of(found).modularities_at(resolution)
    return Partitions(found[np.argsort(-scores, kind="stable")], resolution)


def choose_head(
    arena: Arena,
    plans: Sequence[HeadPlan],
    weights: NDArray[Any],
    biases: NDArray[Any],
    partitions: Partitions | None,
    spectrum: Spectrum,
    settings: FitSettings,
    decay: float,
    *,
    seed: int,
) -> Choice:
    """Judge the trained heads, and with them the partitions of the graph and K-means.

    Without partitions, the choice is between the heads as they are. With them, every labeling is first improved on the
    graph, and a head is fitted to it.

    Parameters
    ----------
    arena : Arena
        Where they are judged.
    plans : sequence of HeadPlan
        Of the trained heads.
    weights, biases : ndarray of shape (n_heads, n_clusters, n_features) and (n_heads, n_clusters)
        The trained heads, for standardised rows.
    partitions : Partitions or None
        Partitions of the graph.
    spectrum : Spectrum
        How the rows vary.
    settings : FitSettings
        How to fit.
    decay : float
        The weight decay that suits the data.
    seed : int
        Decides the order of rows, and K-means' starts.
    """
    names = [f"head {number + 1} ({plan.name})" for number, plan in enumerate(plans)]
    candidates = Candidates(names, weights, biases)
    if partitions is not None:
        arena = replace(arena, resolution=partitions.resolution)
        candidates = refitted(candidates, arena, partitions.labels, spectrum, settings, decay, seed=seed)
    n_clusters, wanted = settings.n_clusters, candidates.wanted
    labels = labels_of(arena, candidates.weights, candidates.biases, candidates.lift, n_threads=settings.n_threads)
    links = arena.links_of(labels, n_clusters=n_clusters)
    modularities = links.modularities
    if candidates.floor is not None and arena.joins_copies:
        best = candidates.floor
    else:
        best = choose(
            labels,
            links.modularities_at(arena.resolution),
            links.cuts,
            n_clusters,
            floor=candidates.floor,
            is_whole=are_whole(labels, links),
            on_graph=None if wanted is None else arena.scores_of(wanted),
            on_nearest=None if wanted is None else arena.scores_of(wanted, choices.NEAREST_TO_DECIDE),
        )
    codes = labels.astype(np.intp)
    agreeing = [adjusted_rand_index(codes[best], other, n_clusters) for other in codes]
    # At a higher resolution, clusters of equal size were preferred anyway.
    may_have_rival = partitions is not None and best != candidates.floor and arena.resolution == 1
    return Choice(
        candidates.weights[best],
        candidates.biases[best],
        candidates.names,
        modularities,
        best,
        mean_pairwise_ari(codes, n_clusters),
        sum(index >= choices.SAME_CLUSTERS for index in agreeing),
        max((index for number, index in enumerate(agreeing) if number != best), default=None),
        even_rival(labels, modularities, n_clusters, best) if may_have_rival else None,
        candidates.lift,
    )


def refitted(
    trained: Candidates,
    arena: Arena,
    partitions: NDArray[np.int32],
    spectrum: Spectrum,
    settings: FitSettings,
    decay: float,
    *,
    seed: int,
) -> Candidates:
    """Improve the clusters of trained heads on the graph, and fit heads to them, to its partitions and by K-means."""
    n_clusters = settings.n_clusters
    found = labels_of(arena, trained.weights, trained.biases, n_threads=settings.n_threads)
    improved = [improved_labels(arena.graph, labels, n_clusters, resolution=arena.resolution) for labels in found]
    wanted = np.stack([*improved, *partitions])
    start = heads_around_means(arena.space, wanted, n_clusters, spectrum, arena.sample_weight)
    fit = partial(
        fit_heads_to_labels,
        weight_decay=choices.REFIT_DECAY * decay,
        learning_rate=settings.learning_rate,
        seed=seed,
    )
    lift = None
    # K-means does not depend on the heads, and each keeps one thread busy.
    with ThreadPoolExecutor(1) as beside:
        # Where directions are evened out on request, K-means is given the rows like this, too.
        find = kmeans_head if settings.scale == "directions" else kmeans_head_before_evening
        running = beside.submit(find, arena, n_clusters, spectrum, partitions, seed=seed)
        if settings.n_threads == 1:
            running.result()
        heads = fit(start, arena.space, wanted, arena.sample_weight)
        if settings.curved:
            lift = lift_for(arena, wanted, spectrum, n_clusters, fit, seed=seed, is_certain=settings.curved is True)
        if lift is not None:
            curved = curve_heads(lift, arena.space, heads, wanted, arena.sample_weight, fit, seed=seed)
            heads = closer_heads(arena, wanted, lift, heads, curved, n_threads=settings.n_threads)
        plain = running.result()
    weights, biases = (
        np.concatenate([one, other])
        for one, other in zip(heads.unstacked(), widened(plain, heads.weights.shape[1]).unstacked(), strict=True)
    )
    names = [*trained.names, *(f"graph partition {number + 1}" for number in range(len(partitions))), FLOOR_NAME]
    own = labels_of(arena, *plain.unstacked(), n_threads=settings.n_threads)
    return Candidates(names, weights, biases, lift, np.concatenate([wanted, own]), floor=len(names) - 1)


def lift_for(
    arena: Arena,
    wanted: NDArray[np.integer[Any]],
    spectrum: Spectrum,
    n_clusters: int,
    fit: FitToLabels,
    *,
    seed: int,
    is_certain: bool,
) -> Lift | None:
    """Return the columns of curved heads, if the clusters that are best on the graph have curved borders.

    If it is certain that heads are to be curved, that is not tested.
    """
    lift = find_lift(arena.space, arena.sample_weight, seed=seed)
    if lift is None or is_certain:
        return lift
    best = wanted[int(arena.scores_of(wanted).argmax())]
    curved = are_curved(lift, arena.space, best, spectrum, arena.sample_weight, n_clusters, fit, seed=seed)
    return lift if curved else None


def closer_heads(
    arena: Arena,
    wanted: NDArray[np.integer[Any]],
    lift: Lift,
    straight: HeadStack,
    curved: HeadStack,
    *,
    n_threads: int,
) -> HeadStack:
    """Return each curved head, or the straight one in its place if that gives fewer rows a wrong cluster.

    Of rows with very large values the products are larger still; training may then diverge.
    """
    straight = widened(straight, curved.weights.shape[1])
    stacks = straight.unstacked(), curved.unstacked()
    apart = [(labels_of(arena, *heads, lift, n_threads=n_threads) != wanted).mean(axis=1) for heads in stacks]
    is_straight = np.repeat(apart[0] < apart[1], curved.n_clusters)
    weights = np.where(is_straight[:, None], straight.weights, curved.weights)
    return HeadStack(len(wanted), weights, np.where(is_straight, straight.biases, curved.biases))


def labels_of(
    arena: Arena, weights: NDArray[Any], biases: NDArray[Any], lift: Lift | None = None, *, n_threads: int
) -> NDArray[np.int32]:
    """Return the labels that each head gives the rows of the arena."""
    n_heads, n_clusters, _ = weights.shape
    curves = None
    if lift is not None:
        weights, biases, curved = lift.split(weights, biases)
        curves = lift.curves(arena.space, curved)
    flat = weights.reshape(n_heads * n_clusters, -1), biases.reshape(-1)
    head = Head(*fold(*flat, arena.space.standardization), curves)
    labels = np.empty((n_heads, arena.space.rows.shape[0]), np.int32)
    for where, logits in row_logits(head, arena.space.rows, n_threads=n_threads):
        labels[:, where] = logits.reshape(len(logits), n_heads, n_clusters).argmax(axis=2).T
    return labels


def kmeans_head(
    arena: Arena, n_clusters: int, spectrum: Spectrum, partitions: NDArray[np.int32], *, seed: int
) -> HeadStack:
    """Return a head with K-means' own clusters: rounds on all rows from the best start on a sample of them.

    Many clusters start from the means of the graph's parts instead, all of them, and the judge decides: starts on a
    sample would take longer than all rounds, and end in worse clusters.
    """
    if n_clusters < choices.MANY_CLUSTERS:
        labels = labels_of(arena, *start_on_sample(arena, n_clusters, spectrum, seed).unstacked(), n_threads=1)
    else:
        labels = partitions
    for _ in range(choices.floor_repeats(*arena.space.rows.shape, n_clusters)):
        # The nearest mean of each row, and then the means of those that share one: one round of Lloyd's method.
        heads = heads_around_means(arena.space, labels, n_clusters, spectrum, arena.sample_weight)
        moved = labels_of(arena, *heads.unstacked(), n_threads=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
    best = int(arena.scores_of(labels).argmax())
    weights, biases = heads.unstacked()
    return HeadStack(1, weights[best], biases[best])


def kmeans_head_before_evening(
    arena: Arena, n_clusters: int, spectrum: Spectrum, partitions: NDArray[np.int32], *, seed: int
) -> HeadStack:
    """Return a head with the clusters that K-means finds in the rows before their directions were evened out."""
    if arena.space.evened_by is None:
        return kmeans_head(arena, n_clusters, spectrum, partitions, seed=seed)
    space, back = arena.space.before_evening()
    spectrum = measure_spectrum(space.rows, space.standardization, arena.sample_weight, seed=seed)
    heads = kmeans_head(replace(arena, space=space), n_clusters, spectrum, partitions, seed=seed)
    return HeadStack(1, heads.weights @ back, heads.biases)


def start_on_sample(arena: Arena, n_clusters: int, spectrum: Spectrum, seed: int) -> HeadStack:
    """Return a head around the centres of the best of several starts of K-means on a sample of rows."""
    n_rows, n_features = arena.space.rows.shape
    most = choices.floor_rows(n_rows, n_features, n_clusters)
    sample, weights = sample_rows(arena.space.rows, arena.sample_weight, seed, most=most)
    n_init, dtype = choices.floor_repeats(sample.shape[0], n_features, n_clusters), arena.space.rows.dtype
    head, bias = head_around(
        *kmeans_centres(sample, weights, arena.space, n_clusters, n_init=n_init, seed=seed), spectrum
    )
    return HeadStack(1, head.astype(dtype), bias.astype(dtype))
