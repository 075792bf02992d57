"""One fit from top to bottom: measure, choose the space, start, train, judge, fold, predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.candidates import (
    Arena,
    Choice,
    HeadPlan,
    Partitions,
    choose_head,
    find_arena,
    find_graph,
    partitions_of,
    plan_heads,
    start_heads,
)
from cceclust.training.curves import Lift
from cceclust.training.diagnosis import STILL_FALLING, Prediction, find_problems, predict_rows
from cceclust.training.engine import TrainedHeads, TrainingPlan, train
from cceclust.training.gathering import Gathered, gather
from cceclust.training.head import Curves, Head
from cceclust.training.heads import HeadStack
from cceclust.training.k_search import KSearch
from cceclust.training.labels import Supervision
from cceclust.training.neighbors import as_neighbors
from cceclust.training.objectives import Objective
from cceclust.training.progress import OnProgress, Progress, silent
from cceclust.training.robustness import distances_from_the_middle, outlier_scores
from cceclust.training.rows import ArrayRows, Rows, SparseRows
from cceclust.training.selection import Evaluation, evaluate
from cceclust.training.settings import FitSettings
from cceclust.training.space import TrainingSpace
from cceclust.training.spectrum import Spectrum, longest_stable_step, measure_spectrum
from cceclust.training.standardization import Standardization, fold
from cceclust.training.starts import heads_around_centres, in_order_of_classes, random_heads

__all__ = ["Fit", "MakeObjective", "choose_decay", "fit_heads", "make_plan", "start_piece"]

# Makes an objective for a thread of its own, given how each of its heads is trained.
MakeObjective = Callable[[Sequence[HeadPlan]], Objective]


@dataclass(frozen=True)
class Fit:
    """The chosen head for raw features, and how it came about.

    Attributes
    ----------
    head : Head
        For raw features.
    loss : float
        Loss of the chosen head on all the data, or on a sample if there are very many rows.
    losses : ndarray of shape (n_init,)
        Loss of every trained head, each with its own fairness.
    loss_curves : ndarray of shape (n_init, n_epochs)
        Mean loss over the batches of each epoch.
    best_curve : int
        Number of the trained head that the chosen one comes from, or of the one with the lowest loss.
    converged : bool
        Whether the loss had stopped falling.
    choice : Choice or None
        The candidates and what the judge says of them; None if the loss decided.
    agreement : float or None
        Mean adjusted Rand index between the labels of every two candidates.
    n_agreeing : int
        Number of candidates with the chosen one's clusters, itself included.
    weight_decay : float
        The weight decay that suits the data, or the one given.
    n_components : int
        Number of components that were trained on, or of features.
    n_trained_rows : int
        Number of rows that were trained on: all, or a random sample of very many that are not in memory.
    standardization : Standardization
        What was done to the features before training.
    prediction : Prediction
        Labels and probabilities of all rows.
    columns : ndarray of shape (n_features,) or None
        What each column was divided by first, if columns were scaled one by one.
    directions_evened : bool
        Whether principal directions were evened out.
    outlier_scores : ndarray of shape (n_samples,) or None
        How much farther each row is from its neighbours than they are from theirs; None if these were not found for all
        rows.
    problems : list of str
        What makes the clusters doubtful.
    search : KSearch or None
        How the number of clusters was chosen; None if it was given.
    """

    head: Head
    loss: float
    losses: NDArray[np.float64]
    loss_curves: NDArray[np.float64]
    best_curve: int
    converged: bool
    choice: Choice | None
    agreement: float | None
    n_agreeing: int
    weight_decay: float
    n_components: int
    n_trained_rows: int
    standardization: Standardization
    prediction: Prediction
    columns: NDArray[np.float64] | None
    directions_evened: bool
    outlier_scores: NDArray[np.float64] | None
    problems: list[str]
    search: KSearch | None = None


@dataclass(frozen=True)
class Prepared:
    """What a fit knows of the rows that it trains on.

    Attributes
    ----------
    space : TrainingSpace
        What heads are trained on.
    spectrum : Spectrum
        How its rows vary.
    neighbors : ndarray of shape (n_samples, n_neighbors) or None
        The nearest neighbours of all rows.
    n_companions : int
        How many of them share pseudo-labels in training.
    arena : Arena or None
        Where candidates are judged.
    """

    space: TrainingSpace
    spectrum: Spectrum
    neighbors: NDArray[np.intp] | None
    n_companions: int
    arena: Arena | None


def fit_heads(
    rows: Rows,
    settings: FitSettings,
    make_objective: MakeObjective | None,
    *,
    sample_weight: NDArray[Any],
    seed: int,
    neighbors: Any = None,
    supervision: Supervision | None = None,
    on_progress: OnProgress = silent,
) -> Fit:
    """Train several heads on the rows, choose one without labels, and predict the rows with it.

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
    on_progress : callable, optional
        Called with a :class:`~cceclust.training.progress.Progress` from time to time.
    """
    with threadpool_limits(1, user_api="blas"):
        gathered = gather(
            rows,
            settings,
            sample_weight,
            neighbors=neighbors,
            labelled=None if supervision is None else supervision.rows,
            seed=seed,
            on_progress=on_progress,
        )
        if gathered.search is not None:
            settings = settings.with_clusters(gathered.search.chosen)
        if supervision is not None:
            supervision = supervision.among(gathered.which)
        learning = learning_weights(gathered.weights, settings, make_objective, supervision)
        # Labels decide between heads by the loss they leave; without any, the graph decides.
        is_judged = make_objective is not None and supervision is None and settings.is_judged
        prepared = prepare(
            gathered.space,
            settings if make_objective else replace(settings, n_neighbors=0),
            gathered.weights,
            neighbors,
            is_judged=is_judged,
            seed=seed,
            on_progress=on_progress,
        )
        if prepared.arena is None:
            # The loss decides, which cannot be compared between heads of different fairness.
            settings = settings.without_graph()
        if make_objective is None:
            prepared = replace(prepared, n_companions=0)
        elif supervision is not None:
            supervision = supervision.joined(prepared.space.rows.matrix, gathered.weights)
        decay = choose_decay(prepared.space, prepared.spectrum, settings, gathered.weights, supervision, seed=seed)
        plans, partitions = plan_candidates(prepared, settings, decay, rows.dtype, seed=seed)
        trained = train_heads(
            prepared,
            settings,
            plans,
            partitions,
            make_objective,
            gathered.weights,
            learning,
            supervision,
            on_progress,
            seed,
        )

        def objective_of(heads: NDArray[np.intp]) -> Objective | None:
            return make_objective([plans[head] for head in heads]) if make_objective else None

        on_progress(Progress("Choosing clusters"))
        evaluation = evaluate_heads(trained, prepared, objective_of, learning, supervision, settings, seed)
        best = int(np.argmin(evaluation.losses))
        weights, biases, choice = trained.weights[best], trained.biases[best], None
        if prepared.arena is not None:
            choice = choose_head(
                prepared.arena,
                plans,
                trained.weights,
                trained.biases,
                partitions,
                prepared.spectrum,
                settings,
                decay,
                seed=seed,
            )
            weights, biases = choice.weights, choice.biases
            best = choice.best if choice.best < len(plans) else best
        lift = None if choice is None else choice.lift
        head = finite_head(gathered, weights, biases, lift)
        prediction = predict_rows(
            head,
            rows,
            sample_weight=gathered.sample_weight if supervision is None else None,
            n_threads=settings.n_threads,
            on_progress=on_progress,
        )
        loss = float(evaluation.losses[best])
        if make_objective and partitions is not None:
            # The chosen head was fitted to improved labels, so its loss is not that of the head it comes from.
            fitted = replace(
                plans[best],
                fairness=settings.fixed_fairness or choices.FAIRNESS,
                prior=prediction.shares(gathered.sample_weight).astype(rows.dtype),
            )
            objective = make_objective([fitted])
            last = replace(trained, weights=weights[None], biases=biases[None])
            alone = evaluate_heads(last, prepared, lambda _: objective, learning, None, settings, seed, lift)
            loss = float(alone.losses[0])
    agreement = evaluation.agreement if choice is None else choice.agreement
    if make_objective:
        problems = problems_of_clusters(
            gathered, settings, prediction, plans[best].prior, choice, agreement=agreement, converged=trained.converged
        )
    else:
        # Classes may have any size and, with soft labels, any confidence.
        problems = [] if trained.converged else [STILL_FALLING]
    if gathered.n_far:
        problems.append(
            f"{gathered.n_far} of {rows.shape[0]} rows are more than {choices.FAR:g} times as far from the middle as "
            "most rows: they took no part in the fit; look at outlier_score_"
        )
    return Fit(
        head=head,
        loss=loss,
        losses=evaluation.losses,
        loss_curves=trained.loss_curves,
        best_curve=best,
        converged=trained.converged,
        choice=choice,
        agreement=agreement,
        n_agreeing=evaluation.n_agreeing if choice is None else choice.n_agreeing,
        weight_decay=decay,
        n_components=gathered.space.rows.shape[1],
        n_trained_rows=gathered.space.rows.shape[0],
        standardization=gathered.space.origin,
        prediction=prediction,
        columns=gathered.columns,
        directions_evened=gathered.space.evened_by is not None,
        outlier_scores=(
            score_outliers(prepared, gathered.weights, settings, prediction) if gathered.has_all_rows else None
        ),
        problems=problems,
        search=gathered.search,
    )


def learning_weights(
    sample_weight: NDArray[Any],
    settings: FitSettings,
    make_objective: MakeObjective | None,
    supervision: Supervision | None,
) -> NDArray[Any]:
    """Return the weights of the rows that heads learn from, 0 for the others; refuse fewer rows than clusters."""
    if make_objective is None and supervision is not None:
        # Rows without a label only serve to measure the features.
        return supervision.only_labelled(sample_weight)
    n_learning = int((sample_weight > 0).sum())
    if make_objective and n_learning < settings.n_clusters:
        raise InputError(f"n_samples={n_learning} should be >= n_clusters={settings.n_clusters}")
    return sample_weight


def problems_of_clusters(
    gathered: Gathered,
    settings: FitSettings,
    prediction: Prediction,
    prior: NDArray[Any],
    choice: Choice | None,
    *,
    agreement: float | None,
    converged: bool,
) -> list[str]:
    """Return what makes the clusters doubtful."""
    if gathered.search is not None and gathered.search.chosen == 1:
        # A single cluster is neither tiny nor unsure: this is all there is to say of it.
        return [gathered.search.in_words()]
    weights = gathered.sample_weight
    problems = find_problems(
        prediction.sizes((weights > 0).astype(float) if settings.has_free_prior else weights),
        None if settings.has_free_prior else prior,
        prediction.mean_confidence(weights),
        agreement=agreement,
        converged=converged,
        n_candidates=1 if choice is None else len(choice.names),
        closest=None if choice is None or choice.is_floor else choice.closest,
    )
    if choice is not None and choice.even_rival is not None:
        equal, chosen = choice.modularities[choice.even_rival], choice.modularities[choice.best]
        problems.append(
            f"clusters of equal size fit the neighbours nearly as well (modularity {equal:.3f}) as these of different "
            f"size ({chosen:.3f}); if you expect equal sizes, set prior to None"
        )
    return problems


def score_outliers(
    prepared: Prepared, weights: NDArray[Any], settings: FitSettings, prediction: Prediction
) -> NDArray[np.float64] | None:
    """Return how much each row stands out from its neighbours; None without neighbours, or where rows are sparse."""
    space = prepared.space
    if prepared.neighbors is None or not isinstance(space.rows, ArrayRows):
        return None
    kept = weights > 0
    # Neighbours mostly share a cluster; labels that are not in memory are left where they are.
    order = np.argsort(prediction.labels, kind="stable") if isinstance(prediction.labels, np.ndarray) else None
    scores = outlier_scores(
        space.rows.matrix,
        prepared.neighbors,
        n_threads=settings.n_threads,
        scale=space.standardization.scale,
        order=order,
    )
    if not kept.all():
        # Rows that took no part have no neighbours; how far they are from the middle is what stands out of them.
        away = distances_from_the_middle(space.rows, weights, seed=0)
        scores[~kept] = away[~kept]
    return np.minimum(np.nan_to_num(scores, nan=choices.FAR, posinf=np.inf), np.finfo(np.float32).max)


def prepare(
    space: TrainingSpace,
    settings: FitSettings,
    sample_weight: NDArray[Any],
    neighbors: Any,
    *,
    is_judged: bool,
    seed: int,
    on_progress: OnProgress,
) -> Prepared:
    """Find out how the rows vary and which are neighbours."""
    spectrum = measure_spectrum(space.rows, space.standardization, sample_weight, seed=seed)
    found, n_companions = find_neighbors(
        space.rows, spectrum, settings, neighbors, sample_weight, is_judged=is_judged, on_progress=on_progress
    )
    arena = None
    if is_judged:
        arena = find_arena(space, sample_weight, spectrum, settings, found, seed=seed)
    return Prepared(space, spectrum, found, n_companions, arena)


def find_neighbors(
    rows: ArrayRows | SparseRows,
    spectrum: Spectrum,
    settings: FitSettings,
    neighbors: Any,
    weights: NDArray[Any],
    *,
    is_judged: bool,
    on_progress: OnProgress,
) -> tuple[NDArray[np.intp] | None, int]:
    """Return the nearest neighbours of all rows, given or found, and how many of them share pseudo-labels."""
    if neighbors is not None:
        given = as_neighbors(neighbors, rows.shape[0])
        # Nothing is learned from rows without weight: in their place, a row is its own neighbour.
        masked = np.where(weights[given] > 0, given, np.arange(rows.shape[0])[:, None])
        wanted = given.shape[1] if settings.n_neighbors in ("auto", 0) else min(settings.n_neighbors, given.shape[1])
        return masked, wanted if settings.neighbor_weight > 0 else 0
    kept = np.flatnonzero(weights > 0)
    count = n_companions = companion_count(rows, spectrum, settings, len(kept))
    if is_judged and isinstance(rows, ArrayRows) and len(kept) <= choices.MOST_ROWS:
        count = max(count, choices.JUDGE_NEIGHBORS)
    if n_companions >= len(kept) and settings.n_neighbors != "auto":
        raise InputError(f"n_neighbors={n_companions}; expected fewer than the {len(kept)} rows")
    count = min(count, len(kept) - 1)
    if count < 1:
        return None, 0
    matrix = rows.matrix if len(kept) == rows.shape[0] else rows.matrix[kept]
    found = np.zeros((rows.shape[0], count), np.intp)

    def on_block(done: int, total: int) -> None:
        on_progress(Progress("Finding neighbours", done, total))

    on_block(0, len(kept))
    graph = find_graph(matrix, count, spectrum.n_directions, n_jobs=settings.n_jobs, on_block=on_block)
    found[kept] = kept[graph]
    return found, min(n_companions, count)


def companion_count(rows: Rows, spectrum: Spectrum, settings: FitSettings, n_rows: int) -> int:
    """Return how many neighbours share pseudo-labels in training."""
    if settings.neighbor_weight == 0:
        return 0
    if settings.n_neighbors != "auto":
        return settings.n_neighbors
    crowded = choices.is_crowded(spectrum.n_directions, settings.n_clusters)
    return choices.neighbors_for(n_rows, crowded=crowded) if isinstance(rows, ArrayRows) else 0


def plan_candidates(
    prepared: Prepared, settings: FitSettings, decay: float, dtype: np.dtype[Any], *, seed: int
) -> tuple[list[HeadPlan], Partitions | None]:
    """Return how each head is trained, and the partitions of the graph that are candidates beside them."""
    partitions = None
    if prepared.arena is not None and settings.mixes_heads:
        partitions = partitions_of(prepared.arena, settings.n_clusters, seed=seed, n_threads=settings.n_threads)
    crowded = choices.is_crowded(prepared.spectrum.n_directions, settings.n_clusters)
    best = None if partitions is None else partitions.labels[0]
    return plan_heads(settings, decay, settings.prior_parts(dtype), best, crowded=crowded), partitions


def train_heads(
    prepared: Prepared,
    settings: FitSettings,
    plans: Sequence[HeadPlan],
    partitions: Partitions | None,
    make_objective: MakeObjective | None,
    sample_weight: NDArray[Any],
    learning: NDArray[Any],
    supervision: Supervision | None,
    on_progress: OnProgress,
    seed: int,
) -> TrainedHeads:
    """Train all heads in one pass over the batches."""
    space, spectrum = prepared.space, prepared.spectrum
    decays = np.array([plan.weight_decay for plan in plans])
    plan = make_plan(settings, decays, int((learning > 0).sum()), space, learning, supervision, seed=seed)
    best = None if partitions is None else partitions.labels[0]

    def draw_heads(members: NDArray[np.intp], generator: np.random.Generator) -> HeadStack:
        if supervision is not None:
            return start_beside_labels(len(members), generator, space, spectrum, settings, sample_weight, supervision)
        return start_heads(
            [plans[member] for member in members],
            generator,
            space=space,
            spectrum=spectrum,
            sample_weight=sample_weight,
            arena=prepared.arena,
            partition=best,
        )

    companions = None
    if prepared.neighbors is not None and prepared.n_companions > 0:
        companions = prepared.neighbors[:, : prepared.n_companions]
    return train(
        space.rows,
        plan,
        draw_heads,
        lambda members: make_objective([plans[member] for member in members]) if make_objective else None,
        space.standardization,
        seed=seed,
        sample_weight=learning,
        companions=companions,
        supervision=supervision,
        n_threads=settings.n_threads,
        on_progress=on_progress,
    )


def evaluate_heads(
    trained: TrainedHeads,
    prepared: Prepared,
    objective_of: Callable[[NDArray[np.intp]], Objective | None],
    learning: NDArray[Any],
    supervision: Supervision | None,
    settings: FitSettings,
    seed: int,
    lift: Lift | None = None,
) -> Evaluation:
    """Return the loss of each head on the rows that it learned from."""
    weights, biases, curves = trained.weights, trained.biases, None
    if lift is not None:
        weights, biases, curved = lift.split(weights, biases)
        curves = lift.curves(prepared.space, curved)
    return evaluate(
        *fold(weights, biases, prepared.space.standardization),
        prepared.space.rows,
        objective_of,
        sample_weight=learning,
        seed=seed,
        curves=curves,
        supervision=supervision,
        n_threads=settings.n_threads,
    )


def start_piece(
    rows: ArrayRows | SparseRows,
    settings: FitSettings,
    standardization: Standardization,
    sample_weight: NDArray[Any],
    supervision: Supervision | None,
    generator: np.random.Generator,
) -> tuple[HeadStack, float]:
    """Return new heads and their weight decay for data that comes in pieces, of which this is the first."""
    space = TrainingSpace.of_rows(rows, standardization)
    spectrum = measure_spectrum(rows, standardization, sample_weight, seed=0)
    decay = choose_decay(space, spectrum, settings, sample_weight, supervision, seed=0)
    if supervision is not None:
        heads = start_beside_labels(settings.n_init, generator, space, spectrum, settings, sample_weight, supervision)
        return heads, decay
    n_rows = int((sample_weight > 0).sum())
    if settings.init == "k-means" and n_rows < settings.n_clusters:
        raise InputError(f"init='k-means' needs a row for each of {settings.n_clusters} clusters; got {n_rows}")
    crowded = choices.is_crowded(spectrum.n_directions, settings.n_clusters) and n_rows >= settings.n_clusters
    plans = plan_heads(settings.without_graph(), decay, settings.prior_parts(rows.dtype), None, crowded=crowded)
    heads = start_heads(
        plans, generator, space=space, spectrum=spectrum, sample_weight=sample_weight, arena=None, partition=None
    )
    return heads, decay


def start_beside_labels(
    count: int,
    generator: np.random.Generator,
    space: TrainingSpace,
    spectrum: Spectrum,
    settings: FitSettings,
    weights: NDArray[Any],
    supervision: Supervision,
) -> HeadStack:
    """Return heads that start near zero, where labels decide which cluster is which, or around K-means' centres."""
    n_clusters, n_rows = settings.n_clusters, int((weights > 0).sum())
    if settings.init == "k-means":
        if n_rows < n_clusters:
            raise InputError(f"init='k-means' needs a row for each of {n_clusters} clusters; got {n_rows}")
        heads = heads_around_centres(
            count, generator, space=space, n_clusters=n_clusters, spectrum=spectrum, sample_weight=weights
        )
        return in_order_of_classes(heads, space, supervision)
    size = 0.0 if supervision.joining is None else choices.SIZE_BESIDE_LABELS
    return random_heads(count, generator, space=space, n_clusters=n_clusters, size=size)


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
    weight_decay: float | NDArray[np.float64],
    n_rows: int,
    space: TrainingSpace,
    weights: NDArray[Any],
    supervision: Supervision | None,
    *,
    seed: int,
) -> TrainingPlan:
    """Return how to train on a number of rows, with steps short enough for labels if there are any."""
    rate = settings.learning_rate
    if supervision is not None:
        longest = longest_stable_step(space.rows, settings.n_clusters, space.standardization, weights, seed=seed)
        rate = min(rate, longest)
    refuse_growing_weights(rate, weight_decay)
    return TrainingPlan(
        n_clusters=settings.n_clusters,
        n_restarts=settings.n_init if isinstance(weight_decay, float) else len(weight_decay),
        batch_size=settings.batch_size,
        max_epochs=settings.epochs(n_rows),
        learning_rate=rate,
        constant_rate=settings.learning_rate_schedule == "constant",
        weight_decay=weight_decay,
        tol=settings.tol,
    )


def refuse_growing_weights(learning_rate: float, weight_decay: float | NDArray[np.float64]) -> None:
    """Raise where a step takes more than twice the weights off them, so that they grow instead."""
    weight_decay = float(np.max(weight_decay))
    if learning_rate * weight_decay >= 2:
        raise InputError(
            f"training diverges with learning_rate={learning_rate:g} and weight_decay={weight_decay:g}; "
            "lower them to a product below 2, and standardize features of a large scale"
        )


def finite_head(gathered: Gathered, weights: NDArray[Any], biases: NDArray[Any], lift: Lift | None) -> Head:
    """Return a head for raw features, or say that their scale leaves no room for one."""
    space, curves = gathered.space, None

    def raw(rows_of_weights: NDArray[Any], added: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        coef, intercept = space.raw_heads(rows_of_weights, added)
        return coef if gathered.columns is None else (coef / gathered.columns).astype(coef.dtype), intercept

    with np.errstate(over="ignore", invalid="ignore"):
        if lift is not None:
            weights, biases, curved = lift.split(weights, biases)
            # K-means' own head has none of the further columns.
            curves = Curves(*raw(lift.axes, lift.offsets), curved) if curved.any() else None
        coef, intercept = raw(weights, biases)
    arrays = [coef, intercept] if curves is None else [coef, intercept, curves.axes, curves.offsets, curves.weights]
    if not all(np.isfinite(array).all() for array in arrays):
        raise InputError(f"features vary by {space.origin.scale:g}, too little for {coef.dtype}; rescale them")
    return Head(coef, intercept, curves)
