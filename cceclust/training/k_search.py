"""How many clusters there are, from a graph of nearest neighbours: no labels, no training.

Borders between clusters cut few pairs of neighbours. How few must be compared with something, as any cloud of points
can be cut: a graph in two dimensions is a mesh that falls into pieces easily. So borders are compared with those of
parts of the same sizes in a cloud without clusters that has as many rows and the same intrinsic dimension. The share
of pairs that is cut less is *saved*. With f(p) the pairs that a part with a share p of the rows cuts off in the cloud,

    saved(K) = Σ_k f(p_k) − cut.

(For f(p) = p − p² this is Newman's modularity.) Parts are joined so that most is saved, down to a single one, and
every number of clusters on the way is judged by what it saves beyond a cloud that is treated alike, less a cost. A
single Gaussian of any shape is a cloud, too: where borders through one with the covariance of the rows are hardly
longer, nothing speaks for clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.graph_partition import (
    Graph,
    graph_of_parts,
    grown_parts,
    improved_labels,
    in_order,
    symmetric_graph,
)
from cceclust.training.neighbors import as_neighbors, nearest_neighbors, project, refuse_what_is_not_finite
from cceclust.training.rows import Rows, in_memory
from cceclust.training.spectrum import leading_axes
from cceclust.validation import thread_count

__all__ = ["Cloud", "JoinedParts", "KSearch", "intrinsic_dimension", "join_parts", "search_k", "search_rows"]

# Pairs that parts of some shares of the rows cut off, each with those around it.
Borders = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class KSearch:
    """What was found for every candidate.

    Attributes
    ----------
    ks : ndarray of shape (n_candidates,)
        The candidates, from the smallest.
    scores : ndarray of shape (n_candidates,)
        What decides: the saved pairs, a little less for more clusters.
    saved : ndarray of shape (n_candidates,)
        The share of pairs of neighbours that is cut less than in a cloud without clusters.
    modularity : ndarray of shape (n_candidates,)
        Newman's modularity of the clusters.
    lengths : ndarray of shape (n_candidates,)
        Pairs that are cut, beside those of a cloud without clusters.
    lengths_of_one : ndarray of shape (n_candidates,)
        The same of a single Gaussian with the covariance of the rows.
    chosen : int
        The number of clusters: one of the candidates, or 1.
    levels : ndarray of shape (n_levels,)
        The chosen number and the others worth a look, from the smallest; empty if 1 was chosen.
    labels : ndarray of shape (n_levels, n_rows)
        The part of each row that was searched, for each of `levels`.
    rows : ndarray of shape (n_rows,)
        The numbers of these rows.
    """

    ks: NDArray[np.intp]
    scores: NDArray[np.float64]
    saved: NDArray[np.float64]
    modularity: NDArray[np.float64]
    lengths: NDArray[np.float64]
    lengths_of_one: NDArray[np.float64]
    chosen: int
    levels: NDArray[np.intp]
    labels: NDArray[np.int32]
    rows: NDArray[np.intp]

    @property
    def score_of(self) -> dict[int, float]:
        """The score of each candidate."""
        return dict(zip(self.ks.tolist(), self.scores.tolist(), strict=True))

    @property
    def runners_up(self) -> list[int]:
        """Candidates that are about as good as the chosen one, the best first."""
        if self.chosen == 1:
            return []
        order = np.argsort(-self.scores, kind="stable")
        good = self.scores >= (1 - choices.NEARLY_AS_GOOD) * self.scores.max()
        return [int(self.ks[i]) for i in order if good[i] and self.ks[i] != self.chosen]

    def in_words(self) -> str:
        """Say what was chosen, and how clearly."""
        if self.chosen == 1:
            return NOTHING_SPEAKS_FOR_CLUSTERS
        score = self.score_of
        text = f"{self.chosen} clusters (score {score[self.chosen]:.3f})"
        close = self.runners_up[: choices.RUNNERS_UP_NAMED]
        if close:
            listed = join_words([f"{k} ({score[k]:.3f})" for k in close])
            text += f"; {listed} {'is' if len(close) == 1 else 'are'} about as good"
        others = [int(k) for k in self.levels if k != self.chosen and k not in close]
        if others:
            text += f"; {join_words([f'{k} ({score[k]:.3f})' for k in others])} may be worth a look as well"
        return text


NOTHING_SPEAKS_FOR_CLUSTERS = (
    "nothing in the graph of neighbours speaks for clusters, so all rows are in one; give a number to divide them "
    "all the same"
)


def join_words(words: list[str]) -> str:
    """Return "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def search_rows(
    rows: Rows,
    candidates: Sequence[int] | None = None,
    *,
    sample_weight: NDArray[Any] | None = None,
    neighbors: Any = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> KSearch:
    """Search the number of clusters of rows of any kind, on a sample if there are many.

    Parameters
    ----------
    rows : Rows
        The features.
    candidates : sequence of int, optional
        Numbers of clusters; by default, all from 2 to 100 with at least five rows for each cluster.
    sample_weight : ndarray of shape (n_samples,), optional
        Weight of each row.
    neighbors : array-like or sparse matrix, optional
        Nearest neighbours of each row; used unless rows are sampled.
    seed : int
        Decides all random numbers.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    """
    kept = np.arange(rows.shape[0]) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    # One cluster is always possible.
    ks = sorted(set(choices.candidates_for(len(kept)) if candidates is None else candidates) - {1})
    if ks and ks[-1] > len(kept):
        raise InputError(f"n_clusters goes up to {ks[-1]}, but there are {len(kept)} rows; expected no more than these")
    is_sample = len(kept) > choices.rows_for_search(ks[-1] if ks else 1)
    if is_sample:
        count = choices.rows_for_search(ks[-1])
        kept = np.sort(np.random.default_rng(seed).choice(kept, count, replace=False))
    points = narrow_rows(rows.take(kept), seed)
    if len(kept) < choices.LEAST_ROWS_FOR_SEARCH or not points.any():
        # Too few to tell, or all alike.
        return nothing_found(ks, kept)
    given = None
    if neighbors is not None and len(kept) == rows.shape[0]:
        given = as_neighbors(neighbors, rows.shape[0])
        # The distance to a single neighbour tells nothing of the dimension.
        given = given if given.shape[1] > 1 else None
    weights = None if sample_weight is None else sample_weight[kept]
    found = search_k(points, ks, neighbors=given, sample_weight=weights, seed=seed, n_jobs=n_jobs)
    return replace(found, rows=kept)


def nothing_found(ks: list[int], rows: NDArray[np.intp]) -> KSearch:
    """Return the result where there is nothing to search."""
    none = np.zeros(len(ks))
    no_levels = np.empty(0, np.intp), np.empty((0, len(rows)), np.int32)
    return KSearch(np.array(ks, np.intp), none, none, none, none, none, 1, *no_levels, rows)


def narrow_rows(taken: Any, seed: int) -> NDArray[np.float64]:
    """Return rows centred, along their principal components if they are wide."""
    matrix: Any = in_memory(taken).matrix
    sample: Any = matrix[: choices.ROWS_FOR_COMPONENTS]
    dense = (sample.toarray() if sparse.issparse(sample) else sample).astype(np.float64)
    refuse_what_is_not_finite(dense)
    if matrix.shape[1] > choices.COMPONENTS:
        mean = dense.mean(axis=0)
        narrow, _ = project(matrix, leading_axes(dense - mean, choices.COMPONENTS, seed), mean)
    else:
        narrow = matrix.toarray() if sparse.issparse(matrix) else matrix
    centred = narrow.astype(np.float64) - narrow.mean(axis=0, dtype=np.float64)
    # Only ratios of distances matter, and squares of huge or tiny numbers would leave the range of floats.
    return np.asarray(centred / (np.abs(centred).max() or 1.0))


def search_k(
    points: NDArray[np.float64],
    candidates: Sequence[int],
    *,
    neighbors: NDArray[np.integer[Any]] | None = None,
    sample_weight: NDArray[Any] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> KSearch:
    """Judge every candidate number of clusters.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_features)
        Some thousand rows at most, centred, with a few hundred features at most.
    candidates : sequence of int
        From 1 to the number of rows.
    neighbors : ndarray of shape (n_rows, n_neighbors), optional
        Neighbours of each row, at least 2; given these, none are searched for.
    sample_weight : ndarray of shape (n_rows,), optional
        Weight of each row.
    seed : int
        Decides all random numbers.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> rows, _ = make_blobs(600, 5, centers=4, random_state=0)
    >>> search_k(rows - rows.mean(axis=0), range(2, 31)).chosen
    4
    """
    ks = np.unique(np.asarray(candidates, np.intp))
    variances = np.maximum(np.linalg.eigvalsh(points.T @ points / len(points))[::-1], 0.0)
    by_angle = choices.directions_in(variances) >= choices.LEAST_DIRECTIONS_FOR_COSINE
    # One Gaussian with the covariance of the rows, along its own axes.
    twin = np.random.default_rng(seed).normal(size=points.shape) * np.sqrt(variances)
    own = neighborhood(unit_rows(points) if by_angle else points, neighbors, seed=seed, n_jobs=n_jobs)
    of_twin = neighborhood(
        unit_rows(twin) if by_angle else twin, n_neighbors=own.neighbors.shape[1], seed=seed, n_jobs=n_jobs
    )
    most = int(ks[-1])
    judged = judge_several(own, most, sample_weight, seed, n_jobs=n_jobs)
    cloud = Cloud.of_graphs(graphs_of_clouds(of_twin, of_twin.dimension, sample_weight, seed), most, seed)
    paths_of_twin = BestPaths.of_graph(symmetric_graph(of_twin.neighbors, sample_weight), cloud, most, seed)
    scores, lengths, lengths_of_one = (
        values[ks - 1] for values in (judged.scores, judged.lengths, paths_of_twin.lengths)
    )
    # Where scores hardly differ over a range, the middle of what each search would choose varies less than the highest.
    votes = np.sort(judged.of_each[:, ks - 1].argmax(axis=1))
    best = int(votes[len(votes) // 2])
    is_shorter = lengths[best] < choices.MOST_OF_ONE * lengths_of_one[best]
    # In few dimensions a cloud has short borders as well; but clusters without any are clusters.
    is_enough = scores[best] > choices.LEAST_SAVED or lengths[best] < choices.HARDLY_A_BORDER
    chosen = int(ks[best]) if is_shorter and is_enough else 1
    levels = good_levels(ks, scores, chosen)
    return KSearch(
        ks,
        scores,
        judged.saved[ks - 1],
        judged.modularity[ks - 1],
        lengths,
        lengths_of_one,
        chosen,
        levels,
        np.array([judged.labels_of(int(k)) for k in levels], np.int32).reshape(len(levels), len(points)),
        np.arange(len(points)),
    )


def good_levels(ks: NDArray[np.intp], scores: NDArray[np.float64], chosen: int) -> NDArray[np.intp]:
    """Return the chosen number and those after which the score rises much more slowly than before."""
    if chosen == 1:
        return np.empty(0, np.intp)
    rises = np.diff(np.concatenate([[0.0], scores, scores[-1:]])) / scores.max()
    bends = rises[:-1] - rises[1:]
    high = scores >= choices.LEAST_PART_OF_BEST * scores.max()
    bends[~high] = 0.0
    order = np.argsort(-bends, kind="stable")
    others = [i for i in order if bends[i] >= choices.LEAST_BEND and ks[i] != chosen][: choices.MOST_LEVELS - 1]
    return np.sort(np.append(ks[others], chosen)).astype(np.intp)


class Neighborhood(NamedTuple):
    """Neighbours of points, and the dimension of clouds to compare them with."""

    neighbors: NDArray[np.int32]
    dimension: float


@dataclass(frozen=True)
class Judged:
    """All numbers of parts from 1 to the largest, judged."""

    scores: NDArray[np.float64]
    saved: NDArray[np.float64]
    modularity: NDArray[np.float64]
    lengths: NDArray[np.float64]
    paths: BestPaths
    # The scores of each of several searches, of which these are the means.
    of_each: NDArray[np.float64]

    def labels_of(self, n_parts: int) -> NDArray[np.int32]:
        """Return the best partition into this many parts."""
        return self.paths.labels_of(n_parts)

    @classmethod
    def mean_of(cls, several: Sequence[Judged]) -> Judged:
        """Return the mean of several searches, with the partitions of the first."""
        scores, saved, modularity, lengths = (
            np.mean([getattr(judged, name) for judged in several], axis=0)
            for name in ("scores", "saved", "modularity", "lengths")
        )
        of_each = np.concatenate([judged.of_each for judged in several])
        return cls(scores, saved, modularity, lengths, several[0].paths, of_each)


def judge_several(
    points: Neighborhood, most: int, weights: NDArray[Any] | None, seed: int, *, n_jobs: int | None
) -> Judged:
    """Score all numbers of parts up to the largest, several times beside other clouds."""
    # Not numbers from the seed on, which searches with the next seed would share.
    seeds = np.random.default_rng(seed).integers(np.iinfo(np.int32).max, size=choices.SEARCHES + 1).tolist()
    # Limited here, as several threads that set and restore a limit would leave another one behind.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(thread_count(n_jobs)) as pool:
        # Each search measures borders in its own clouds, and chance in those of the next.
        # Of a dimension between two whole numbers, some have one and some the other.
        dimensions = points.dimension + np.linspace(-0.5, 0.5, len(seeds))
        clouds = list(pool.map(lambda d, own: graphs_of_clouds(points, d, weights, own), dimensions, seeds))
        jobs = [
            pool.submit(judge, points, measured, tried, own, most, weights)
            for measured, tried, own in zip(clouds, clouds[1:], seeds, strict=False)
        ]
        return Judged.mean_of([job.result() for job in jobs])


def judge(
    points: Neighborhood,
    measured: list[Graph],
    tried: list[Graph],
    seed: int,
    most: int,
    weights: NDArray[Any] | None,
) -> Judged:
    """Score all numbers of parts beside clouds whose borders are measured, and others that are divided alike."""
    cloud = Cloud.of_graphs(measured, most, seed)
    paths = BestPaths.of_graph(symmetric_graph(points.neighbors, weights), cloud, most, seed)
    # Joining parts saves some pairs by chance, also where there is nothing to find.
    by_chance = np.max([BestPaths.of_graph(graph, cloud, most, seed).saved for graph in tried], axis=0)
    saved = paths.saved - np.maximum(by_chance, 0.0)
    saved[0] = 0.0
    scores = saved * choices.worth_of(np.arange(1, most + 1), points.dimension)
    return Judged(scores, saved, paths.modularity, paths.lengths, paths, scores[None])


def graphs_of_clouds(points: Neighborhood, dimension: float, weights: NDArray[Any] | None, seed: int) -> list[Graph]:
    """Return the graphs of clouds with as many rows and neighbours as the points, in about so many dimensions."""
    n_points, n_neighbors = points.neighbors.shape
    clouds = clouds_of(n_points, between_dimensions(dimension), seed)
    return [symmetric_graph(nearest(cloud, n_neighbors, 1), weights) for cloud in clouds]


def clouds_of(n_points: int, dimension: int, seed: int) -> list[NDArray[np.float64]]:
    """Return points without clusters: dense in the middle, and evenly spread."""
    generator = np.random.default_rng(seed)
    shape = (n_points, dimension)
    return [generator.normal(size=shape), generator.uniform(size=shape)]


def unit_rows(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points scaled to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.maximum(lengths, np.finfo(np.float64).tiny))


def neighborhood(
    points: NDArray[np.float64],
    neighbors: NDArray[np.integer[Any]] | None = None,
    *,
    n_neighbors: int = choices.JUDGE_NEIGHBORS,
    seed: int,
    n_jobs: int | None,
) -> Neighborhood:
    """Return the neighbours of points, those given or those found, and the dimension of a cloud beside them."""
    if neighbors is None:
        neighbors = nearest(points, min(n_neighbors, len(points) - 1), n_jobs)
    dimension = dimension_of_cloud(
        measured_dimension(points, neighbors), len(points), neighbors.shape[1], seed=seed, n_jobs=n_jobs
    )
    return Neighborhood(neighbors.astype(np.int32), dimension)


def measured_dimension(points: NDArray[np.float64], neighbors: NDArray[np.integer[Any]]) -> float:
    """Return the dimension that the distances to neighbours tell."""
    return intrinsic_dimension(
        np.stack([np.linalg.norm(points[column] - points, axis=1) for column in neighbors.T], axis=1)
    )


def dimension_of_cloud(measured: float, n_points: int, n_neighbors: int, *, seed: int, n_jobs: int | None) -> float:
    """Return the dimension of a cloud of so many points in which the given dimension is measured.

    In many dimensions less is measured than there are, as neighbours of a sample are far: 18 of 23 in 3,000 points.
    """
    generator = np.random.default_rng(seed)
    estimate = measured
    for _ in range(choices.CLOUDS_FOR_DIMENSION):
        dimension = between_dimensions(estimate)
        cloud = generator.normal(size=(n_points, dimension))
        estimate = dimension * measured / measured_dimension(cloud, nearest(cloud, n_neighbors, n_jobs))
        if between_dimensions(estimate) == dimension:
            break
    return min(estimate, choices.MOST_DIMENSIONS)


def between_dimensions(dimension: float) -> int:
    """Return a whole number of dimensions that is not too large."""
    return round(min(max(dimension, 1.0), choices.MOST_DIMENSIONS))


def nearest(points: NDArray[np.float64], n_neighbors: int, n_jobs: int | None) -> NDArray[np.int32]:
    """Return the nearest others of each point."""
    return nearest_neighbors(points, n_neighbors, metric="euclidean", n_compared=len(points), n_jobs=n_jobs)


def random_borders(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the borders of Newman's modularity: those of parts of a graph whose pairs are drawn at random."""
    return np.asarray(shares - shares**2)


@dataclass(frozen=True)
class Cloud:
    """Borders of parts of clouds without clusters.

    Attributes
    ----------
    log_counts : ndarray of shape (n_points,)
        Logarithm of the number of parts of equal size, from 0 on.
    cuts : ndarray of shape (n_points,)
        The share of all pairs that is cut by each number of parts.
    """

    log_counts: NDArray[np.float64]
    cuts: NDArray[np.float64]

    def borders(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of all pairs that each part of a share of the rows cuts off."""
        counts = -np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        return np.asarray(shares * np.interp(counts, self.log_counts, self.cuts))

    @classmethod
    def of_graphs(cls, graphs: Sequence[Graph], most_parts: int, seed: int) -> Cloud:
        """Measure the borders; where clouds differ, the shortest count."""
        curves = [shortest_borders(graph, most_parts, seed) for graph in graphs]
        grid = np.linspace(0.0, max(counts[-1] for counts, _ in curves), choices.POINTS_OF_CLOUD)
        return cls(grid, np.min([np.interp(grid, *curve) for curve in curves], axis=0))


def shortest_borders(graph: Graph, most_parts: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return logarithms of numbers of parts of equal size, and the shares of pairs that they cut, as few as found."""
    levels = rising_levels(graph, most_parts, seed)
    finest = levels[-1].n_parts
    counts, cuts = [0.0], [0.0]
    for n_parts in np.unique(np.geomspace(2, finest, choices.BORDERS_MEASURED).astype(int)):
        level = next(level for level in levels if level.n_parts >= n_parts)
        joined = join_parts(graph, level.labels, random_borders).labels_of(n_parts)
        # Joined parts have ragged borders; moved rows shorten them, as far as a cloud allows.
        labels = in_order(improved_labels(graph, joined, n_parts, resolution=level.resolution))
        whole = graph_of_parts(graph, labels, int(labels.max()) + 1)
        shares = whole.strengths / whole.strengths.sum()
        counts.append(-np.log((shares**2).sum()))
        cuts.append(1 - within(whole) / whole.strengths.sum())
    order = np.argsort(counts)
    # Fewer parts never need longer borders: what more parts achieve bounds them.
    return np.array(counts)[order], np.minimum.accumulate(np.array(cuts)[order][::-1])[::-1]


def within(parts: Graph) -> float:
    """Return the weight of all pairs inside parts."""
    own = np.repeat(np.arange(parts.n_nodes), np.diff(parts.starts)) == parts.others
    return float(parts.weights[own].sum())


@dataclass(frozen=True)
class JoinedParts:
    """Parts of a graph and how they join, two at a time.

    Attributes
    ----------
    labels : ndarray of shape (n_nodes,)
        The part of each node at the start.
    joins : ndarray of shape (n_parts - 1, 2)
        Which part stays and which joins it, in order.
    cuts, borders, concentrations : ndarray of shape (n_parts,)
        For 1 part, 2 parts, …: the share of all pairs that is cut, the borders that were expected, and the sum of
        squares of the parts' shares.
    """

    labels: NDArray[np.int32]
    joins: NDArray[np.int32]
    cuts: NDArray[np.float64]
    borders: NDArray[np.float64]
    concentrations: NDArray[np.float64]

    @property
    def saved(self) -> NDArray[np.float64]:
        """The share of all pairs that is cut less than expected, for 1 part, 2 parts, …"""
        return self.borders - self.cuts

    def labels_of(self, n_parts: int) -> NDArray[np.int32]:
        """Return the part of each node when this many are left."""
        owner = np.arange(len(self.cuts), dtype=np.int32)
        for kept, joined in self.joins[: len(self.cuts) - n_parts]:
            owner[owner == joined] = kept
        return np.asarray(in_order(owner[self.labels]))


@dataclass(frozen=True)
class BestPaths:
    """Several ways to join the parts of a graph, and which of them saves most for each number of parts."""

    ways: list[JoinedParts]
    best: NDArray[np.intp]
    saved: NDArray[np.float64]

    @classmethod
    def of_graph(cls, graph: Graph, cloud: Cloud, most: int, seed: int) -> BestPaths:
        """Join parts of several resolutions so that most is saved."""
        ways = [join_parts(graph, level.labels, cloud.borders) for level in rising_levels(graph, most, seed)]
        saved = np.full((len(ways), most), -np.inf)
        for number, way in enumerate(ways):
            saved[number, : len(way.saved)] = way.saved[:most]
        return cls(ways, saved.argmax(axis=0), saved.max(axis=0))

    @property
    def lengths(self) -> NDArray[np.float64]:
        """How long the borders are beside those in a cloud, of the best partition into 1 part, 2 parts, …"""
        best = [self.ways[way] for way in self.best]
        return np.array([max(way.cuts[i], 0.0) / (way.borders[i] or 1.0) for i, way in enumerate(best)])

    @property
    def modularity(self) -> NDArray[np.float64]:
        """Newman's modularity of the best partition into 1 part, 2 parts, …"""
        best = [self.ways[way] for way in self.best]
        return np.array([1 - way.cuts[i] - way.concentrations[i] for i, way in enumerate(best)])

    def labels_of(self, n_parts: int) -> NDArray[np.int32]:
        """Return the best partition into this many parts."""
        way: JoinedParts = self.ways[int(self.best[n_parts - 1])]
        return way.labels_of(n_parts)


class Level(NamedTuple):
    """A partition and the resolution at which it was found."""

    labels: NDArray[np.int32]
    resolution: float

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return int(self.labels.max()) + 1


def rising_levels(graph: Graph, most_parts: int, seed: int) -> list[Level]:
    """Return partitions of rising resolution, the last one into clearly more parts than are asked for."""
    levels: list[Level] = []
    wanted = min(choices.FINEST_PARTS * most_parts, graph.n_nodes)
    while not levels or levels[-1].n_parts < wanted:
        resolution = choices.FINER_RESOLUTION ** len(levels)
        levels.append(Level(grown_parts(graph, resolution, seed + len(levels)), resolution))
    return levels


def join_parts(graph: Graph, labels: NDArray[np.int32], borders: Borders) -> JoinedParts:
    """Join the two parts whose union saves most pairs, again and again, until one is left."""
    n_parts = int(labels.max()) + 1
    coarse = graph_of_parts(graph, labels, n_parts)
    links = sparse.csr_array((coarse.weights, coarse.others, coarse.starts), (n_parts, n_parts)).toarray()
    total = coarse.strengths.sum()
    links, shares = links / total, coarse.strengths / total
    expected = borders(shares)
    gains = 2 * links - (expected[:, None] + expected - borders(shares[:, None] + shares))
    np.fill_diagonal(gains, -np.inf)
    joins = np.empty((n_parts - 1, 2), np.int32)
    cuts, sums, squares = (np.zeros(n_parts) for _ in range(3))
    cuts[-1], sums[-1], squares[-1] = 1 - np.trace(links), expected.sum(), (shares**2).sum()
    for step in range(n_parts - 1):
        kept, joined = sorted(divmod(int(gains.argmax()), n_parts))
        joins[step] = kept, joined
        left = n_parts - 2 - step
        cuts[left] = cuts[left + 1] - 2 * links[kept, joined]
        squares[left] = squares[left + 1] + 2 * shares[kept] * shares[joined]
        union = float(borders(shares[kept : kept + 1] + shares[joined])[0])
        sums[left] = sums[left + 1] + union - expected[kept] - expected[joined]
        links[kept] += links[joined]
        links[:, kept] = links[kept]
        shares[kept] += shares[joined]
        expected[kept] = union
        row = 2 * links[kept] - (union + expected - borders(shares[kept] + shares))
        # What has joined another is no part any more.
        row[np.isneginf(gains).all(axis=1)] = -np.inf
        row[[kept, joined]] = -np.inf
        gains[kept], gains[:, kept] = row, row
        gains[joined], gains[:, joined] = -np.inf, -np.inf
    return JoinedParts(labels, joins, cuts, sums, squares)


def intrinsic_dimension(distances: NDArray[np.floating[Any]]) -> float:
    """Return the dimension in which points with such distances to their neighbours lie, by maximum likelihood.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_neighbors)
        Of each row to its neighbours, in any order.
    """
    ordered = np.sort(distances.astype(np.float64), axis=1)
    ordered = ordered[ordered[:, 0] > 0]
    if not len(ordered) or ordered.shape[1] < 2:
        return 1.0
    mean = float(np.log(ordered[:, -1:] / ordered[:, :-1]).mean())
    return 1 / mean if mean > 0 else np.inf
