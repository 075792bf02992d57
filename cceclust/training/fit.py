"""One fit from top to bottom: measure, choose the space, start, train, judge, fold, predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.diagnosis import STILL_FALLING, Prediction, find_problems, predict_rows
from cceclust.training.engine import EpochReport, TrainingPlan, train
from cceclust.training.heads import HeadStack
from cceclust.training.labels import Supervision, labelled_rows
from cceclust.training.neighbors import as_neighbors, nearest_neighbors
from cceclust.training.objectives import Objective
from cceclust.training.rows import ArrayRows, Rows, SparseRows
from cceclust.training.selection import evaluate
from cceclust.training.settings import FitSettings
from cceclust.training.space import TrainingSpace, training_space
from cceclust.training.spectrum import Spectrum, longest_stable_step, measure_spectrum
from cceclust.training.standardization import Standardization, fold, measure
from cceclust.training.starts import heads_around_centres, in_order_of_classes, random_heads

__all__ = ["Fit", "MakeObjective", "choose_decay", "choose_start", "fit_heads", "make_plan", "refuse_growing_weights"]

# Makes an objective for a thread of its own, given the expected part of each cluster.
MakeObjective = Callable[[NDArray[Any]], Objective]
# Makes a number of heads to start from.
DrawHeads = Callable[[int, np.random.Generator], HeadStack]


@dataclass(frozen=True)
class Fit:
    """The chosen head for raw features, and how it came about.

    Attributes
    ----------
    coef : ndarray of shape (n_clusters, n_features)
    intercept : ndarray of shape (n_clusters,)
    best : int
        Number of the chosen restart.
    losses : ndarray of shape (n_init,)
        Loss of every restart on all the data.
    loss_curves : ndarray of shape (n_init, n_epochs)
        Mean loss over the batches of each epoch.
    converged : bool
        Whether the loss had stopped falling.
    agreement : float or None
        Mean adjusted Rand index between the labels of every two restarts.
    n_agreeing : int
        Number of restarts that found the chosen one's clusters, itself included.
    weight_decay : float
        The weight decay that was used.
    n_components : int
        Number of components that were trained on, or of features.
    standardization : Standardization
        What was done to the features before training.
    prediction : Prediction
        Labels and probabilities of all rows.
    problems : list of str
        What makes the clusters doubtful.
    """

    coef: NDArray[Any]
    intercept: NDArray[Any]
    best: int
    losses: NDArray[np.float64]
    loss_curves: NDArray[np.float64]
    converged: bool
    agreement: float | None
    n_agreeing: int
    weight_decay: float
    n_components: int
    standardization: Standardization
    prediction: Prediction
    problems: list[str]


def fit_heads(
    rows: Rows,
    settings: FitSettings,
    make_objective: MakeObjective | None,
    *,
    sample_weight: NDArray[Any],
    seed: int,
    neighbors: Any = None,
    supervision: Supervision | None = None,
    on_epoch: Callable[[EpochReport], None] | None = None,
) -> Fit:
    """Train all restarts on the rows, choose one of them, and predict the rows with it.

    Parameters
    ----------
    rows : Rows
        The features.
    settings : FitSettings
        How to fit.
    make_objective : callable or None
        Makes the objective that needs no labels; None to learn from labels alone.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    seed : int
        Decides all random numbers.
    neighbors : array-like or sparse matrix, optional
        Nearest neighbours of each row; given these, none are searched for.
    supervision : Supervision, optional
        The loss of labelled rows.
    on_epoch : callable, optional
        Called with an :class:`~cceclust.training.engine.EpochReport` after each epoch.
    """
    n_clusters = settings.n_clusters
    # Rows without a label that learn from labels alone only serve to measure the features.
    learning = sample_weight if make_objective or supervision is None else supervision.only_labelled(sample_weight)
    n_learning = int((learning > 0).sum())
    if make_objective and n_learning < n_clusters:
        raise InputError(f"n_samples={n_learning} should be >= n_clusters={n_clusters}")
    prior = settings.prior_parts(rows.dtype)
    with threadpool_limits(1, user_api="blas"):
        standardization = measure(rows, sample_weight, standardize=settings.standardize)
        space = training_space(
            rows,
            standardization,
            sample_weight,
            settings.n_components,
            n_clusters,
            is_centred=settings.standardize,
            seed=seed,
            n_threads=settings.n_threads,
        )
        spectrum = measure_spectrum(space.rows, space.standardization, sample_weight, seed=seed)
        companions = None
        if make_objective:
            companions = find_companions(space.rows, spectrum, settings, neighbors, sample_weight)
        if supervision is not None and make_objective:
            joining = labelled_rows(space.rows, supervision.rows, sample_weight[supervision.rows])
            supervision = replace(supervision, joining=joining)
        start = choose_start(space, spectrum, settings, sample_weight, supervision)
        decay = choose_decay(space, spectrum, settings, sample_weight, supervision, seed=seed)
        plan = make_plan(settings, decay, n_learning, space, learning, supervision, seed=seed)

        def new_objective() -> Objective | None:
            return make_objective(prior) if make_objective else None

        trained = train(
            space.rows,
            plan,
            start,
            new_objective,
            space.standardization,
            seed=seed,
            sample_weight=learning,
            companions=companions,
            supervision=supervision,
            n_threads=settings.n_threads,
            on_epoch=on_epoch,
        )
        evaluation = evaluate(
            *fold(trained.weights, trained.biases, space.standardization),
            space.rows,
            new_objective,
            sample_weight=learning,
            seed=seed,
            supervision=supervision,
            n_threads=settings.n_threads,
        )
    best = int(np.argmin(evaluation.losses))
    coef, intercept = finite_heads(space, trained.weights[best], trained.biases[best])
    prediction = predict_rows(coef, intercept, rows)
    if make_objective:
        problems = find_problems(
            prediction.sizes(sample_weight),
            prior,
            prediction.mean_confidence(sample_weight),
            agreement=evaluation.agreement,
            converged=trained.converged,
        )
    else:
        # Classes may have any size and, with soft labels, any confidence.
        problems = [] if trained.converged else [STILL_FALLING]
    return Fit(
        coef,
        intercept,
        best,
        evaluation.losses,
        trained.loss_curves,
        trained.converged,
        evaluation.agreement,
        evaluation.n_agreeing,
        decay,
        space.rows.shape[1],
        standardization,
        prediction,
        problems,
    )


def find_companions(
    rows: Rows, spectrum: Spectrum, settings: FitSettings, neighbors: Any, weights: NDArray[Any]
) -> NDArray[np.intp] | None:
    """Return the rows that share each row's pseudo-label: the neighbours given, those found, or none."""
    wanted = settings.n_neighbors
    if settings.neighbor_weight == 0 or (wanted == 0 and neighbors is None):
        return None
    if not isinstance(rows, ArrayRows | SparseRows):
        if neighbors is None and wanted == "auto":
            return None
        raise InputError("neighbours need all rows in memory; allow more memory or set n_neighbors=0")
    if neighbors is not None:
        given = as_neighbors(neighbors, rows.shape[0])
        # Nothing is learned from rows without weight: in their place, a row is its own neighbour.
        return np.where(weights[given] > 0, given, np.arange(rows.shape[0])[:, None])
    kept = np.flatnonzero(weights > 0)
    if wanted == "auto":
        crowded = choices.is_crowded(spectrum.n_directions, settings.n_clusters)
        wanted = 0 if isinstance(rows, SparseRows) else choices.neighbors_for(len(kept), crowded=crowded)
        if wanted == 0:
            return None
    matrix = rows.matrix if len(kept) == rows.shape[0] else rows.matrix[kept]
    companions = np.zeros((rows.shape[0], wanted), np.intp)
    companions[kept] = kept[nearest_neighbors(matrix, wanted, n_jobs=settings.n_jobs)]
    return companions


def choose_start(
    space: TrainingSpace,
    spectrum: Spectrum,
    settings: FitSettings,
    weights: NDArray[Any],
    supervision: Supervision | None,
) -> DrawHeads:
    """Return what makes heads to start from: random, around K-means' centres, or near zero where labels decide."""
    n_clusters, n_rows = settings.n_clusters, int((weights > 0).sum())
    if settings.init == "k-means" and n_rows < n_clusters:
        raise InputError(f"init='k-means' needs a row for each of {n_clusters} clusters; got {n_rows}")
    crowded = choices.is_crowded(spectrum.n_directions, n_clusters) and n_rows >= n_clusters
    if settings.init == "k-means" or (settings.init == "auto" and crowded and supervision is None):
        around_centres = partial(
            heads_around_centres, space=space, n_clusters=n_clusters, spectrum=spectrum, sample_weight=weights
        )
        if supervision is None:
            return around_centres
        return lambda count, generator: in_order_of_classes(around_centres(count, generator), space, supervision)
    size = 1.0
    if supervision is not None:
        size = 0.0 if supervision.joining is None else choices.SIZE_BESIDE_LABELS
    return partial(random_heads, space=space, n_clusters=n_clusters, size=size)


def choose_decay(
    space: TrainingSpace,
    spectrum: Spectrum,
    settings: FitSettings,
    weights: NDArray[Any],
    supervision: Supervision | None,
    *,
    seed: int,
) -> float:
    """Return the weight decay that is asked for, or one that suits the data."""
    if settings.weight_decay != "auto":
        return float(settings.weight_decay)
    n_clusters, squares = settings.n_clusters, None
    if choices.is_crowded(spectrum.n_directions, n_clusters) and (weights > 0).sum() >= n_clusters:
        heads = heads_around_centres(
            1,
            np.random.default_rng(seed),
            space=space,
            n_clusters=n_clusters,
            spectrum=spectrum,
            sample_weight=weights,
        )
        squares = float((heads.weights.astype(np.float64) ** 2).sum())
    decay = choices.decay_for(spectrum.variances, n_clusters, squared_weights=squares)
    return decay if supervision is None else choices.DECAY_BESIDE_LABELS * decay


def make_plan(
    settings: FitSettings,
    weight_decay: float,
    n_rows: int,
    space: TrainingSpace,
    weights: NDArray[Any],
    supervision: Supervision | None,
    *,
    seed: int,
) -> TrainingPlan:
    """Return how to train on so many rows, with steps short enough for labels if there are any."""
    rate = settings.learning_rate
    if supervision is not None:
        longest = longest_stable_step(space.rows, settings.n_clusters, space.standardization, weights, seed=seed)
        rate = min(rate, longest)
    refuse_growing_weights(rate, weight_decay)
    return TrainingPlan(
        n_clusters=settings.n_clusters,
        n_restarts=settings.n_init,
        batch_size=settings.batch_size,
        max_epochs=settings.epochs(n_rows),
        learning_rate=rate,
        constant_rate=settings.learning_rate_schedule == "constant",
        weight_decay=weight_decay,
        tol=settings.tol,
    )


def refuse_growing_weights(learning_rate: float, weight_decay: float) -> None:
    """Raise where a step takes more than twice the weights off them, so that they grow instead."""
    if learning_rate * weight_decay >= 2:
        raise InputError(
            f"training diverges with learning_rate={learning_rate:g} and weight_decay={weight_decay:g}; "
            "lower them to a product below 2, and standardize features of a large scale"
        )


def finite_heads(space: TrainingSpace, weights: NDArray[Any], biases: NDArray[Any]) -> tuple[Any, Any]:
    """Return a head for raw features, or say that their scale leaves no room for one."""
    with np.errstate(over="ignore", invalid="ignore"):
        coef, intercept = space.raw_heads(weights, biases)
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise InputError(f"features vary by {space.origin.scale:g}, too little for {coef.dtype}; rescale them")
    return coef, intercept
