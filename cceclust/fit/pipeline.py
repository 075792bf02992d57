"""One fit, from top to bottom: sample → neighbours → starts → heads → choice → the whole sample → fold → predict."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from cceclust.errors import InputError
from cceclust.fit.choice import Choice, choose
from cceclust.fit.diagnosis import find_problems
from cceclust.fit.head import Head
from cceclust.fit.heads import ROUNDS, Basis, GivenLabels, HeadTrainer, basis_of
from cceclust.fit.levels import Levels, find_levels
from cceclust.fit.neighbors import Metric, find_neighbors
from cceclust.fit.outliers import outlier_scores
from cceclust.fit.predict import Prediction, predict_source
from cceclust.fit.progress import OnProgress, Progress, silent
from cceclust.fit.sample import Sample, Scale, take_sample
from cceclust.fit.source import Source
from cceclust.fit.space import sharpened
from cceclust.fit.starts import MOST_POINTS, Start, find_starts

__all__ = ["MOST_POINTS", "Fit", "Settings", "fit_source", "metric_for", "neighbors_of"]

# Neighbours of each point: fewer cut large clusters, more join small ones.
N_NEIGHBORS = 15
# Neighbours by distance rather than by direction where fewer directions than this hold nearly all of the variance: in a
# plane, clusters that lie behind each other have the same direction.
LEAST_DIRECTIONS_FOR_COSINE = 32
# Levels are compared on so many points: of 40 topics, 3,000 points give 29 or 30, these 39 to 41, in the time of one
# start of K-means.
POINTS_FOR_LEVELS = 12_000
# λ: hardly a pull where clusters have the sizes of their start, a strong one where sizes are given.
FAIRNESS, FAIRNESS_OF_GIVEN_PRIOR = 1.0, 100.0


@dataclass(frozen=True)
class Settings:
    """How to fit.

    Attributes
    ----------
    n_clusters : int or ndarray or None
        Their number, the numbers to choose from, or None to choose from all.
    fairness : float or None
        λ; None for the usual one.
    prior : ndarray of shape (n_clusters,) or None
        Expected shares of the clusters; None for those of each start.
    scale, n_components, curved, max_rows
        As in :class:`cceclust.CCEClusterer`.
    n_threads : int
        The result does not depend on it.
    seed : int
        Decides all random numbers.
    """

    n_clusters: int | NDArray[np.intp] | None
    fairness: float | None = None
    prior: NDArray[np.float64] | None = None
    scale: Scale = "auto"
    n_components: int = 100
    curved: bool = True
    max_rows: int = 100_000
    n_threads: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Fit:
    """The head of a fit, its predictions, and how it came about.

    Attributes
    ----------
    head : Head
        For raw rows.
    prediction : Prediction
        Of all rows.
    choice : Choice or None
        Among candidates; None for one cluster and where labels are given.
    levels : Levels or None
        How the number of clusters was chosen; None if it was given.
    outlier_scores : ndarray of shape (n_samples,) or None
        None where only a sample of the rows was trained on.
    n_trained_rows : int
        Number of rows in the sample.
    columns_scaled : bool
        Whether each column was divided by its own deviation.
    problems : list of str
        What makes the clusters doubtful.
    """

    head: Head
    prediction: Prediction
    choice: Choice | None
    levels: Levels | None
    outlier_scores: NDArray[np.float64] | None
    n_trained_rows: int
    columns_scaled: bool
    problems: list[str]


def fit_source(
    source: Source,
    settings: Settings,
    *,
    sample_weight: NDArray[Any] | None = None,
    given: GivenLabels | None = None,
    self_labeling: bool = True,
    on_progress: OnProgress = silent,
) -> Fit:
    """Fit a head to rows, and predict all of them with it.

    Parameters
    ----------
    source : Source
        The rows.
    settings : Settings
        How to fit.
    sample_weight : ndarray of shape (n_samples,), optional
        Weight of each row.
    given : GivenLabels, optional
        What is known of the classes of some rows.
    self_labeling : bool
        Whether rows also get pseudo-labels; only without labels for some rows it must be so.
    on_progress : callable, optional
        Called with a :class:`~cceclust.fit.progress.Progress` from time to time.
    """
    weights = np.ones(source.shape[0]) if sample_weight is None else sample_weight
    with threadpool_limits(1, user_api="blas"):
        on_progress(Progress("Reading rows"))
        sample = take_sample(
            source,
            weights,
            first=np.empty(0, np.intp) if given is None else given.rows,
            scale=settings.scale,
            n_components=settings.n_components,
            max_rows=settings.max_rows,
            seed=settings.seed,
        )
        on_progress(Progress("Finding neighbours"))
        metric = metric_for(sample)
        sample = sharpened(sample, metric, settings.seed, settings.n_threads)
        neighbors = neighbors_of(sample, metric, settings)
        basis = basis_of(sample.points, sample.weights, curved=settings.curved)
        if given is None:
            clustering = cluster(sample, neighbors, metric, basis, settings, on_progress)
        else:
            clustering = classify(sample, neighbors, metric, basis, settings, given, self_labeling, on_progress)
        head = basis.fold(clustering.weights, sample.projection, source.dtype)
        prediction = predict_source(head, source, sample_weight=weights, on_progress=on_progress)
    problems = find_problems(prediction.sizes(weights > 0), prediction.mean_confidence(weights), settings.prior)
    if sample.n_far:
        problems.append(f"{sample.n_far} rows far from all others were ignored in training, but still got a label")
    is_whole = len(sample.points) + sample.n_far == source.shape[0]
    return Fit(
        head,
        prediction,
        clustering.choice,
        clustering.levels,
        outlier_scores(source, sample, neighbors) if is_whole else None,
        len(sample.points),
        sample.columns_scaled,
        problems,
    )


@dataclass(frozen=True)
class Clustering:
    """The weights of a head on its basis, and how they came about."""

    weights: NDArray[np.float64]
    choice: Choice | None = None
    levels: Levels | None = None


def cluster(
    sample: Sample,
    neighbors: NDArray[np.int32],
    metric: Metric,
    basis: Basis,
    settings: Settings,
    on_progress: OnProgress,
) -> Clustering:
    """Make heads from starts on some points, choose one, and go on with it on the whole sample."""
    levels = None
    is_given = isinstance(settings.n_clusters, int)
    part = some_points(sample, MOST_POINTS if is_given else POINTS_FOR_LEVELS, settings.seed)
    near = neighbors if part is sample else neighbors_of(part, metric, settings)
    if isinstance(settings.n_clusters, int):
        n_clusters = settings.n_clusters
        if len(sample.points) < n_clusters:
            raise InputError(f"n_samples={len(sample.points)} should be >= n_clusters={n_clusters}")
    else:
        on_progress(Progress("Comparing numbers of clusters"))
        levels, labels = find_levels(
            part.points,
            part.weights,
            near,
            metric,
            settings.n_clusters,
            seed=settings.seed,
            n_threads=settings.n_threads,
        )
        n_clusters = levels.chosen
    if n_clusters == 1:
        return Clustering(np.zeros((1, basis.n_features)), levels=levels)
    on_progress(Progress("Training heads"))
    fairness = settings.fairness
    if fairness is None:
        fairness = FAIRNESS if settings.prior is None else FAIRNESS_OF_GIVEN_PRIOR
    trainer = HeadTrainer(basis.features(part.points), part.weights, near, fairness=fairness)
    starts: list[Start] = (
        [("reproducible partition", labels)]
        if levels is not None
        else find_starts(
            part.points, near, part.weights, metric, n_clusters, seed=settings.seed, n_threads=settings.n_threads
        )
    )

    def heads_from(start: Start) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        labels, prior = start[1], shares_of(start[1], part.weights, n_clusters)
        if settings.prior is not None:
            labels, prior = in_order_of(settings.prior, labels), settings.prior
        head = trainer.towards(labels, n_clusters)
        return head, trainer.refine(head, prior)

    with ThreadPoolExecutor(settings.n_threads) as pool:
        unrefined, refined = zip(*pool.map(heads_from, starts), strict=True)
    heads = list(refined)
    names = [name for name, _ in starts]
    keeps_kmeans = levels is None and settings.prior is None
    if keeps_kmeans:
        heads.append(unrefined[-1])
        names.append("K-means as it is")
    choice = choose(
        names,
        np.stack([trainer.labels(head) for head in heads]),
        [labels for _, labels in starts],
        near,
        part.weights,
        n_clusters,
        keeps_kmeans=keeps_kmeans,
    )
    best = heads[choice.best]
    if levels is not None:
        choice = replace(choice, reason=f"random halves of the rows repeat these {n_clusters} clusters best")
        # Nobody asked for so many that some stay empty.
        best = best[np.unique(trainer.labels(best))]
    # More rounds would not leave K-means as it is.
    if part is not sample and choice.best < len(starts):
        prior = settings.prior
        if prior is None:
            prior = shares_of(trainer.labels(best), part.weights, len(best))
        whole = HeadTrainer(basis.features(sample.points), sample.weights, neighbors, fairness=fairness)
        # It is nearly there: on 60,000 images, more rounds gained 0.001.
        best = whole.refine(best, prior, ROUNDS // 3)
    return Clustering(best, choice, levels)


def classify(
    sample: Sample,
    neighbors: NDArray[np.int32],
    metric: Metric,
    basis: Basis,
    settings: Settings,
    given: GivenLabels,
    self_labeling: bool,
    on_progress: OnProgress,
) -> Clustering:
    """Make a head from the labels of some rows, and perhaps from pseudo-labels of all."""
    # Of very many labelled rows, some are not in the sample.
    kept = np.isin(given.rows, sample.which)
    here = replace(given, rows=np.searchsorted(sample.which, given.rows[kept]), targets=given.targets[kept])
    n_clusters = given.targets.shape[1]
    trainer = HeadTrainer(
        basis.features(sample.points),
        sample.weights,
        neighbors,
        fairness=FAIRNESS_OF_GIVEN_PRIOR if settings.fairness is None else settings.fairness,
        given=here,
        self_labeling=self_labeling,
    )
    has_label = here.targets.sum(axis=0) > 0
    if has_label.all() or not self_labeling:
        head = trainer.towards_given(n_clusters)
    else:
        found = cluster(sample, neighbors, metric, basis, replace(settings, n_clusters=n_clusters), on_progress)
        head = trainer.towards(as_classes(trainer.labels(found.weights), here, n_clusters), n_clusters)
    if not self_labeling:
        return Clustering(head)
    prior = settings.prior
    if prior is None:
        prior = shares_among_labels(here)
    # What labels of some points say has to spread.
    return Clustering(trainer.refine(head, prior, 2 * ROUNDS))


def metric_for(sample: Sample) -> Metric:
    """Return how neighbours are compared."""
    return "cosine" if sample.n_directions >= LEAST_DIRECTIONS_FOR_COSINE else "euclidean"


def neighbors_of(sample: Sample, metric: Metric, settings: Settings) -> NDArray[np.int32]:
    """Return the nearest neighbours of a sample's points; a single one is its own."""
    count = min(N_NEIGHBORS, len(sample.points) - 1)
    if count < 1:
        return np.zeros((1, 1), np.int32)
    return find_neighbors(sample.points, count, metric, settings.seed, settings.n_threads)


def some_points(sample: Sample, most: int, seed: int) -> Sample:
    """Return a sample of at most so many points, at random."""
    if len(sample.points) <= most:
        return sample
    return sample.part(np.sort(np.random.default_rng(seed).choice(len(sample.points), most, replace=False)))


def shares_of(labels: NDArray[np.int32], weights: NDArray[np.float32], n_clusters: int) -> NDArray[np.float64]:
    """Return the share of each cluster, hardly anything for an empty one."""
    sizes = np.maximum(np.bincount(labels, weights, n_clusters), 1e-9)
    return np.asarray(sizes / sizes.sum())


def in_order_of(prior: NDArray[np.float64], labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number clusters anew so that the largest gets the largest expected share."""
    by_size = np.argsort(-np.bincount(labels, minlength=len(prior)), kind="stable")
    number = np.empty(len(prior), np.int32)
    number[by_size] = np.argsort(-prior, kind="stable")
    return number[labels]


def as_classes(labels: NDArray[np.int32], given: GivenLabels, n_clusters: int) -> NDArray[np.int32]:
    """Number clusters anew so that as many labelled points as possible are in the cluster of their class."""
    table = np.zeros((n_clusters, n_clusters))
    np.add.at(table, labels[given.rows], given.targets)
    return np.asarray(linear_sum_assignment(-table)[1][labels], np.int32)


def shares_among_labels(given: GivenLabels) -> NDArray[np.float64]:
    """Return the share of each class among the labels, one more counted for each; extra clusters get the mean."""
    counts = given.targets.sum(axis=0) + 1
    counts[given.targets.sum(axis=0) == 0] = counts.mean()
    return np.asarray(counts / counts.sum())
