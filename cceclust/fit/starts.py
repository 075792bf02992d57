"""Starts: clusters from which heads are trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust.fit.graph import (
    Graph,
    components_of,
    improved_labels,
    partition_graph,
    partition_unevenly,
    symmetric_graph,
)
from cceclust.fit.objectives import SelfLabeling
from cceclust.fit.trainer import train_head
from cceclust.pseudo_labels import EMSolver

__all__ = ["COMPONENTS", "KMEANS", "Start", "centroid_head", "find_starts", "lloyd"]

COMPONENTS, KMEANS = "separate parts of the graph", "K-means"
# Graphs of so many neighbours, and how many partitions of each that differ by their seed: wider graphs suit large
# clusters, narrow ones clusters of ten to sixty rows.
WIDTHS = ((15, 3), (10, 2), (5, 2))
# A partition that prefers large parts.
LOW_RESOLUTION = 0.5
# Heads take 4 · points · columns · clusters operations a step: with more points times clusters than this in all, there
# are fewer starts,
POINTS_TIMES_CLUSTERS = 8_000_000
# but never fewer than this.
LEAST_STARTS = 3
# K-means starts so often, but fewer times with more points times clusters than this; on so many points at most, or so
# many for each cluster.
KMEANS_STARTS, KMEANS_WORK = 10, 1_000_000
KMEANS_POINTS, KMEANS_POINTS_PER_CLUSTER = 4000, 50
# Where rows repeat, clusters have no width; a head this steep is one-hot all the same.
STEEPEST = 100.0
# Heads are trained in mini-batches around K-means' centres, with each λ of the loss: they pay on features of natural
# images. With more clusters, a batch holds too few points of each.
TRAINED_FAIRNESS, MOST_TRAINED_CLUSTERS = (100.0, 10.0), 30
# About so many steps, but every point a few times; the rate falls along half a cosine to the second part of it.
TRAINING_STEPS, LEAST_EPOCHS, BATCH_SIZE, LEARNING_RATE, FINAL_RATE = 800, 4, 250, 0.5, 0.2
# Weight decay for each standard deviation along the leading axes that tell clusters apart.
DECAY_PER_DEVIATION, MOST_AXES = 0.045, 20
# One of so many neighbours shares each point's pseudo-label, found in so many iterations of EM.
COMPANIONS, EM_ITERATIONS = 10, 5

Labels = NDArray[np.int32]
Start = tuple[str, Labels]


def find_starts(
    points: NDArray[np.float32],
    neighbors: NDArray[np.int32],
    weights: NDArray[np.float32],
    n_clusters: int,
    *,
    seed: int,
    n_threads: int,
) -> list[Start]:
    """Return clusters from partitions of the graph of neighbours and from K-means, the most useful first."""
    tasks: list[tuple[str, Callable[[], Labels]]] = []
    graphs = {width: symmetric_graph(neighbors[:, :width], weights) for width, _ in WIDTHS}
    for width, n_seeds in WIDTHS:
        graph, name = graphs[width], f"graph of {width} neighbours"
        grow = partial(partition_graph, graph, n_clusters)
        tasks += [(f"{name}, {i + 1}", partial(grow, seed=seed + i)) for i in range(n_seeds)]
        tasks.append((f"{name}, uneven", partial(partition_unevenly, graph, n_clusters, seed=seed)))
    wide = graphs[WIDTHS[0][0]]
    coarse = partial(partition_graph, wide, n_clusters, seed=seed, resolution=LOW_RESOLUTION)
    tasks.append(("graph of 15 neighbours, coarse", coarse))
    n_starts = max(LEAST_STARTS, POINTS_TIMES_CLUSTERS // (len(points) * n_clusters))
    # One of each kind comes before more of the same.
    order = sorted(range(len(tasks)), key=lambda i: (not tasks[i][0].endswith("1"), i))
    tasks = [tasks[i] for i in order[:n_starts]]
    kmeans, centres, inertia = run_kmeans(points, weights, n_clusters, seed=seed)
    around = centroid_head(centres, inertia)
    for fairness in TRAINED_FAIRNESS if n_clusters < MOST_TRAINED_CLUSTERS else ():
        make = partial(train, points, weights, neighbors, around, wide, fairness=fairness, seed=seed)
        tasks.append((f"trained in mini-batches, fairness {fairness:g}", make))
    components = components_of(graphs[10])
    with ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(lambda task: (task[0], task[1]()), tasks))
    if components.max() + 1 == n_clusters:
        found.append((COMPONENTS, components))
    # Trained heads may leave clusters empty.
    found = [(name, labels) for name, labels in found if len(np.unique(labels)) == n_clusters]
    return [*found, (KMEANS, kmeans)]


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
    variances = points[:, : min(n_clusters - 1, MOST_AXES)].var(axis=0)
    trained = train_head(
        points,
        n_clusters,
        SelfLabeling(EMSolver(fairness=fairness, max_iter=EM_ITERATIONS, tol=0.0)),
        sample_weight=weights,
        learning_rate=LEARNING_RATE,
        final_rate=FINAL_RATE,
        weight_decay=DECAY_PER_DEVIATION * float(np.sqrt(variances.mean())) * min(1.0, 10 / n_clusters),
        batch_size=BATCH_SIZE,
        n_epochs=max(LEAST_EPOCHS, round(TRAINING_STEPS * BATCH_SIZE / max(len(points), BATCH_SIZE))),
        start=start,
        neighbors=neighbors[:, :COMPANIONS],
        generator=np.random.default_rng(seed),
    )
    labels = (points @ trained.coef.T + trained.intercept).argmax(axis=1).astype(np.int32)
    return improved_labels(graph, labels, n_clusters)


def centroid_head(centres: NDArray[np.float32], inertia: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the linear head whose clusters are those of the nearest centres, given the mean squared distance to them.

    Round clusters of variance v in every direction would have a steepness of 1/v. But there are many directions, and
    clusters are not round: probabilities would be too sure.
    """
    steepness = min(np.sqrt(centres.shape[1]) / inertia, STEEPEST) if inertia > 0 else STEEPEST
    coef = steepness * centres.astype(np.float64)
    return coef, -0.5 * (coef * centres).sum(axis=1)


def run_kmeans(
    points: NDArray[np.float32], weights: NDArray[np.float32], n_clusters: int, *, seed: int
) -> tuple[Labels, NDArray[np.float32], float]:
    """Return K-means' clusters, their centres and the mean squared distance from them.

    It starts several times, on a part of very many points, and goes on with the best on all.
    """
    part = slice(None)
    if len(points) > max(KMEANS_POINTS, KMEANS_POINTS_PER_CLUSTER * n_clusters):
        count = max(KMEANS_POINTS, KMEANS_POINTS_PER_CLUSTER * n_clusters)
        part = np.sort(np.random.default_rng(seed).choice(len(points), count, replace=False))
    n_repeats = int(np.clip(KMEANS_WORK // (len(points[part]) * n_clusters), 1, KMEANS_STARTS))
    labels, centres, inertia = lloyd(points[part], weights[part], n_clusters, seed, n_repeats)
    return (
        (labels, centres, inertia) if isinstance(part, slice) else lloyd(points, weights, n_clusters, seed, 1, centres)
    )


def lloyd(
    points: NDArray[np.float32],
    weights: NDArray[np.float32],
    n_clusters: int,
    seed: int,
    n_repeats: int,
    centres: NDArray[np.float32] | None = None,
) -> tuple[Labels, NDArray[np.float32], float]:
    """Return K-means' clusters, their centres and the mean squared distance from them, perhaps from given centres."""
    # It takes a second to load.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    kmeans = KMeans(n_clusters, init="k-means++" if centres is None else centres, n_init=n_repeats, random_state=seed)
    # The sums of several threads would differ in their last bits, and on a busy machine they wait for each other for
    # longer than they work.
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        # Of fewer different points than clusters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(points, sample_weight=weights)
    inertia = float(kmeans.inertia_ / weights.sum(dtype=np.float64))
    return kmeans.labels_.astype(np.int32), kmeans.cluster_centers_, inertia
