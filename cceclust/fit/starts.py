"""Starts: clusters from which heads are trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust.fit.cells import as_unit_length
from cceclust.fit.graph import Graph, components_of, improved_labels, in_order, partition_graph, symmetric_graph
from cceclust.fit.heads import EM_ITERATIONS
from cceclust.fit.neighbors import Metric
from cceclust.fit.objectives import SelfLabeling
from cceclust.fit.sample import ROWS_FOR_AXES
from cceclust.fit.trainer import train_head
from cceclust.pseudo_labels import EMSolver

__all__ = ["COMPONENTS", "KMEANS", "MOST_POINTS", "Start", "centroid_head", "find_starts"]

COMPONENTS, KMEANS = "separate parts of the graph", "K-means"
# Graphs of so many neighbours, and how many partitions of each that differ by their seed: wider graphs suit large
# clusters, narrow ones clusters of ten to sixty rows.
WIDTHS = ((15, 3), (5, 2))
# A partition that prefers large parts.
LOW_RESOLUTION = 0.5
# Heads are made and judged on so many points, and the chosen one goes on with the whole sample.
MOST_POINTS = 20_000
# With so many clusters, a mini-batch holds too few points of each, and one start of K-means takes long enough.
MANY_CLUSTERS = 30
# Heads are trained around K-means' centres, with each λ of the loss: they pay on features of natural images.
TRAINED_FAIRNESS = (100.0, 10.0)
# Their rate falls to 0: where it ends at a fifth, the accuracy on features of CIFAR-10 varies by 0.03 between seeds.
TRAINING_STEPS, LEARNING_RATE = 800, 0.5
# Weight decay for each standard deviation along the leading axes, of which so many tell K clusters apart: K − 1.
DECAY_PER_DEVIATION = 0.045

Labels = NDArray[np.int32]
Start = tuple[str, Labels]


def find_starts(
    points: NDArray[np.float32],
    neighbors: NDArray[np.int32],
    weights: NDArray[np.float32],
    metric: Metric,
    n_clusters: int,
    *,
    seed: int,
    n_threads: int,
) -> list[Start]:
    """Return clusters from partitions of the graph of neighbours and from K-means, the most useful first."""
    tasks: list[tuple[str, Callable[[], Labels]]] = []
    graphs = {width: symmetric_graph(neighbors[:, :width], weights) for width, _ in WIDTHS}
    # Heads take 4 · points · columns · clusters operations a step: where that is long, one start of each width must do.
    is_long = len(points) * n_clusters > MOST_POINTS * MANY_CLUSTERS
    for width, n_seeds in WIDTHS:
        grow, name = partial(partition_graph, graphs[width], n_clusters), f"graph of {width} neighbours"
        tasks += [(f"{name}, {i + 1}", partial(grow, seed=seed + i)) for i in range(1 if is_long else n_seeds)]
    wide = graphs[WIDTHS[0][0]]
    if not is_long:
        coarse = partial(partition_graph, wide, n_clusters, seed=seed, resolution=LOW_RESOLUTION)
        tasks.append(("graph of 15 neighbours, coarse", coarse))
    # Directions are compared here, too: as places, the few points of great length would draw the centres.
    kmeans = run_kmeans(as_unit_length(points) if metric == "cosine" else points, weights, n_clusters, seed=seed)
    around = centroid_head(*centres_of(points, weights, kmeans, n_clusters))
    for fairness in TRAINED_FAIRNESS if n_clusters < MANY_CLUSTERS else ():
        make = partial(train, points, weights, neighbors, around, wide, fairness=fairness, seed=seed)
        tasks.append((f"trained in mini-batches, fairness {fairness:g}", make))
    components = components_of(wide)
    with ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(lambda task: (task[0], task[1]()), tasks))
    if components.max() + 1 == n_clusters:
        found.append((COMPONENTS, components))
    # Trained heads may leave clusters empty. Clusters that were found before need no second head.
    found = [(name, labels) for name, labels in found if len(np.unique(labels)) == n_clusters]
    different = {in_order(labels).tobytes(): (name, labels) for name, labels in found}
    return [*different.values(), (KMEANS, kmeans)]


def train(
    points: NDArray[np.float32],
    weights: NDArray[np.float32],
    neighbors: NDArray[np.int32],
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    graph: Graph,
    *,
    fairness: float,
    seed: int,
) -> Labels:
    """Return the clusters of a head that was trained as in the paper, with nodes moved where the graph gains by it."""
    n_clusters = len(start[1])
    variances = points[:, : n_clusters - 1].var(axis=0)
    trained = train_head(
        points,
        n_clusters,
        SelfLabeling(EMSolver(fairness=fairness, max_iter=EM_ITERATIONS, tol=0.0)),
        sample_weight=weights,
        learning_rate=LEARNING_RATE,
        final_rate=0.0,
        weight_decay=DECAY_PER_DEVIATION * float(np.sqrt(variances.mean())),
        max_steps=TRAINING_STEPS,
        start=start,
        neighbors=neighbors,
        generator=np.random.default_rng(seed),
    )
    labels = (points @ trained.coef.T + trained.intercept).argmax(axis=1).astype(np.int32)
    return improved_labels(graph, labels, n_clusters)


def centres_of(
    points: NDArray[np.float32], weights: NDArray[np.float32], labels: Labels, n_clusters: int
) -> tuple[NDArray[np.float32], float]:
    """Return the centres of clusters, and the mean squared distance from them."""
    shares = np.zeros((n_clusters, len(points)), np.float32)
    shares[labels, np.arange(len(points))] = weights
    centres = shares @ points / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return centres, float(np.average(((points - centres[labels]) ** 2).sum(axis=1), weights=weights))


def centroid_head(centres: NDArray[np.float32], inertia: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the linear head whose clusters are those of the nearest centres, given the mean squared distance to them.

    Round clusters of variance v in every direction would have a steepness of 1/v. But there are many directions, and
    clusters are not round: probabilities would be too sure.
    """
    # Where rows repeat, clusters have no width.
    steepness = np.sqrt(centres.shape[1]) / max(inertia, 0.01)
    coef = steepness * centres.astype(np.float64)
    return coef, -0.5 * (coef * centres).sum(axis=1)


def run_kmeans(points: NDArray[np.float32], weights: NDArray[np.float32], n_clusters: int, *, seed: int) -> Labels:
    """Return K-means' clusters: it starts several times, on a part of very many points, and goes on with all."""
    # It takes a second to load.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    part = np.arange(len(points))
    if len(points) > ROWS_FOR_AXES and n_clusters < MANY_CLUSTERS:
        part = np.sort(np.random.default_rng(seed).choice(part, ROWS_FOR_AXES, replace=False))
    kmeans = KMeans(n_clusters, n_init=10 if n_clusters < MANY_CLUSTERS else 1, random_state=seed)
    # OpenMP's threads add up in another order for every number of them.
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        # Of fewer different points than clusters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(points[part], sample_weight=weights[part])
        if len(part) < len(points):
            kmeans = KMeans(n_clusters, init=kmeans.cluster_centers_, n_init=1).fit(points, sample_weight=weights)
    return np.asarray(kmeans.labels_, np.int32)
