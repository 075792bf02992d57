"""Training: all restarts in one pass over the data, in fixed groups that run in threads.

Batches go in, heads come out. Each group of restarts is one :class:`~cceclust.training.heads.HeadStack`; it draws
its own batches from its own random numbers, so the result does not depend on how many threads run the groups. BLAS
is limited to one thread meanwhile: for products this small, two threads are slower than one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.heads import Batch, HeadStack, batch_for, softmax_stack
from cceclust.training.labels import Supervision
from cceclust.training.objectives import Objective
from cceclust.training.progress import OnProgress, Progress, silent
from cceclust.training.rows import ArrayRows, SparseRows
from cceclust.training.standardization import Standardization

__all__ = ["RestartGroup", "TrainedHeads", "TrainingPlan", "train"]


@dataclass(frozen=True)
class TrainingPlan:
    """How to train; see :class:`cceclust.CCEClusterer` for the meaning of each.

    `weight_decay` is one number for all restarts, or an array with one for each.
    """

    n_clusters: int
    n_restarts: int
    batch_size: int
    max_epochs: int
    learning_rate: float
    constant_rate: bool
    weight_decay: float | NDArray[np.float64]
    tol: float

    def decays_of(self, members: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the weight decay of some of the restarts."""
        return np.broadcast_to(np.asarray(self.weight_decay, np.float64), self.n_restarts)[members]


@dataclass(frozen=True)
class TrainedHeads:
    """The heads of all restarts, for standardised features.

    Attributes
    ----------
    weights : ndarray of shape (n_restarts, n_clusters, n_features)
    biases : ndarray of shape (n_restarts, n_clusters)
    loss_curves : ndarray of shape (n_restarts, n_epochs)
        Mean loss over the batches of each epoch.
    converged : bool
        Whether the loss had stopped falling by the last epoch.
    """

    weights: NDArray[Any]
    biases: NDArray[Any]
    loss_curves: NDArray[np.float64]
    converged: bool


class RestartGroup:
    """A group of restarts, with the random numbers and the memory for their training.

    They learn from an objective that needs no labels, from labels, or from both. `members` are their numbers among all
    restarts; by default all.
    """

    def __init__(
        self,
        heads: HeadStack,
        objective: Objective | None,
        generator: np.random.Generator,
        supervision: Supervision | None = None,
        members: NDArray[np.intp] | None = None,
    ) -> None:
        self.heads = heads
        self.members = np.arange(heads.n_restarts) if members is None else members
        self.objective = objective
        self.generator = generator
        self.supervision = supervision
        self.loss_sums = np.zeros(heads.n_restarts)
        self.loss_weight = 0.0
        self.stopped = False
        self._batch: Batch | None = None
        self._capacity = 0
        self._joining_batch: Batch | None = None

    # Weights that overflow give a loss of NaN, which is checked after each epoch.
    @np.errstate(over="ignore", invalid="ignore")
    def train_on(
        self,
        matrix: Any,
        sample_weight: NDArray[Any],
        standardization: Standardization,
        companions: NDArray[np.intp] | None,
        plan: TrainingPlan,
        rate_at: Callable[[float], float],
    ) -> None:
        """Train on all rows once, in batches of nearly equal size.

        Parameters
        ----------
        matrix : ndarray or CSR matrix of shape (n_rows, n_features)
            The rows.
        sample_weight : ndarray of shape (n_rows,)
            Their weights. Rows with a weight of 0 are skipped.
        standardization : Standardization
            Applied to each batch.
        companions : ndarray of shape (n_rows, n_companions) or None
            For each row, rows that share its pseudo-label; one is drawn each time.
        plan : TrainingPlan
            Batch size and weight decay.
        rate_at : callable
            Maps the fraction of the rows that is done to the learning rate.
        """
        order = self.generator.permutation(np.flatnonzero(sample_weight > 0))
        if len(order) == 0:
            return
        n_batches = max(1, round(len(order) / plan.batch_size))
        batch = self._batch_of(matrix, -(-len(order) // n_batches) * (1 if companions is None else 2))
        for number, indices in enumerate(np.array_split(order, n_batches)):
            if self.stopped:
                return
            rows = indices
            if companions is not None:
                drawn = self.generator.integers(0, companions.shape[1], len(indices))
                rows = np.concatenate([indices, companions[indices, drawn]])
            batch.load(matrix, rows, standardization)
            weights = sample_weight[indices]
            total = float(weights.sum())
            rate = rate_at(number / n_batches)
            if self.objective is None:
                losses = self._step_on_labels(batch, indices, weights / total, rate, plan)
            else:
                losses = self._step(self.objective, batch, weights / total, rate, plan, standardization)
            self.loss_sums += losses * total
            self.loss_weight += total

    def _batch_of(self, matrix: Any, capacity: int) -> Batch:
        """Return memory for this many rows: the batch size depends on the number of all rows."""
        if self._batch is None or capacity > self._capacity:
            self._batch, self._capacity = batch_for(matrix, capacity), capacity
        return self._batch

    def _step(
        self,
        objective: Objective,
        batch: Batch,
        weights: NDArray[Any],
        rate: float,
        plan: TrainingPlan,
        standardization: Standardization,
    ) -> NDArray[np.float64]:
        """Take one step; return the loss of each restart before it."""
        probabilities = softmax_stack(self.heads.logits(batch))
        losses = objective.to_gradient(probabilities, weights)
        joining = None if self.supervision is None else self.supervision.joining
        if self.supervision is None or joining is None:
            self.heads.descend(batch, probabilities, rate=rate, weight_decay=plan.decays_of(self.members))
            return losses
        drawn = joining.draw(plan.batch_size, self.generator)
        labelled_batch = self._batch_for_labelled(joining.matrix, len(drawn))
        labelled_batch.load(joining.matrix, joining.positions[drawn], standardization)
        labelled_weights = joining.weights[drawn]
        predicted = softmax_stack(self.heads.logits(labelled_batch))
        losses = losses + self.supervision.to_gradient(predicted, drawn, labelled_weights / labelled_weights.sum())
        # Both gradients were computed before the first step, so the two steps act as one.
        self.heads.descend(batch, probabilities, rate=rate, weight_decay=plan.decays_of(self.members))
        self.heads.descend(labelled_batch, predicted, rate=rate, weight_decay=0.0)
        return losses

    def _step_on_labels(
        self, batch: Batch, rows: NDArray[np.intp], weights: NDArray[Any], rate: float, plan: TrainingPlan
    ) -> NDArray[np.float64]:
        """Take one step on labelled rows alone; return the loss of each restart before it."""
        assert self.supervision is not None
        probabilities = softmax_stack(self.heads.logits(batch))
        labelled = np.searchsorted(self.supervision.rows, rows)
        losses = self.supervision.to_gradient(probabilities, labelled, weights)
        self.heads.descend(batch, probabilities, rate=rate, weight_decay=plan.decays_of(self.members))
        return losses

    def _batch_for_labelled(self, matrix: Any, capacity: int) -> Batch:
        """Return memory for the labelled rows of a batch; their number does not change."""
        if self._joining_batch is None:
            self._joining_batch = batch_for(matrix, capacity)
        return self._joining_batch

    def epoch_losses(self) -> NDArray[np.float64]:
        """Return the mean loss of each restart since the last call."""
        losses = self.loss_sums / self.loss_weight
        self.loss_sums, self.loss_weight = np.zeros_like(self.loss_sums), 0.0
        return losses


def train(
    rows: ArrayRows | SparseRows,
    plan: TrainingPlan,
    draw_heads: Callable[[NDArray[np.intp], np.random.Generator], HeadStack],
    make_objective: Callable[[NDArray[np.intp]], Objective | None],
    standardization: Standardization,
    *,
    seed: int,
    sample_weight: NDArray[Any],
    companions: NDArray[np.intp] | None = None,
    supervision: Supervision | None = None,
    n_threads: int | None = None,
    on_progress: OnProgress = silent,
) -> TrainedHeads:
    """Train all restarts.

    Parameters
    ----------
    rows : ArrayRows or SparseRows
        The features.
    plan : TrainingPlan
        How to train.
    draw_heads : callable
        Returns the initial heads of the restarts with the given numbers.
    make_objective : callable
        Returns an objective for the restarts with the given numbers, which run in one thread, or None to learn from
        `supervision` alone; then every row with weight must have a label.
    standardization : Standardization
        Applied to the features, batch by batch.
    seed : int
        Seed of all random numbers.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    companions : ndarray of shape (n_samples, n_companions), optional
        Rows that share each row's pseudo-label.
    supervision : Supervision, optional
        The loss of labelled rows.
    n_threads : int, optional
        Number of groups that run at the same time; by default the number of cores. It does not change the result.
    on_progress : callable, optional
        Called with a :class:`~cceclust.training.progress.Progress` after each epoch.

    Returns
    -------
    TrainedHeads
    """
    numbers = range(1, 1 + choices.restart_groups(plan.n_restarts))
    seeds = [np.random.SeedSequence(seed, spawn_key=(number,)) for number in numbers]
    groups = make_groups(plan, draw_heads, make_objective, seeds, supervision)
    curves: list[NDArray[np.float64]] = []
    stalled = False
    on_progress(Progress("Training", 0, plan.max_epochs))
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        for epoch in range(plan.max_epochs):

            def rate_at(progress: float, epoch: int = epoch) -> float:
                return learning_rate(plan, epoch + progress)

            train_all(pool, groups, (rows.matrix, sample_weight, standardization, companions, plan, rate_at))
            curves.append(np.concatenate([group.epoch_losses() for group in groups]))
            if not np.isfinite(curves[-1]).any():
                raise InputError(
                    f"training diverged in epoch {epoch + 1} with learning_rate={plan.learning_rate:g} and "
                    f"weight_decay={np.max(plan.weight_decay):g}; lower them, and standardize features of a large scale"
                )
            on_progress(Progress("Training", epoch + 1, plan.max_epochs, f"loss {np.nanmin(curves[-1]):.4f}"))
            # While steps are long, the loss stays above what short steps will reach: that is no reason to stop.
            stalled = 2 * (epoch + 1) > plan.max_epochs and has_stalled(curves, plan.tol)
            if stalled:
                break
    stacks = [group.heads.unstacked() for group in groups]
    return TrainedHeads(
        np.concatenate([weights for weights, _ in stacks]),
        np.concatenate([biases for _, biases in stacks]),
        np.array(curves).T,
        converged=stalled or has_settled(curves),
    )


def train_all(pool: ThreadPoolExecutor, groups: list[RestartGroup], arguments: tuple[Any, ...]) -> None:
    """Train all groups on all rows. An error or Ctrl-C stops them after their next batch."""
    outcomes = [pool.submit(group.train_on, *arguments) for group in groups]
    try:
        for outcome in as_completed(outcomes):
            outcome.result()
    except BaseException:
        for group in groups:
            group.stopped = True
        raise


def make_groups(
    plan: TrainingPlan,
    draw_heads: Callable[[NDArray[np.intp], np.random.Generator], HeadStack],
    make_objective: Callable[[NDArray[np.intp]], Objective | None],
    seeds: list[np.random.SeedSequence],
    supervision: Supervision | None = None,
) -> list[RestartGroup]:
    """Divide the restarts into groups of nearly equal size, each with its own heads."""
    groups = []
    for members, seed in zip(np.array_split(np.arange(plan.n_restarts), len(seeds)), seeds, strict=True):
        generator = np.random.default_rng(seed)
        heads, objective = draw_heads(members, generator), make_objective(members)
        groups.append(RestartGroup(heads, objective, generator, supervision, members))
    return groups


def learning_rate(plan: TrainingPlan, epochs_done: float) -> float:
    """Return the rate after a number of epochs: half a cosine, from the full rate down to a fraction of it."""
    if plan.constant_rate:
        return plan.learning_rate
    fall = 0.5 * (1 + np.cos(np.pi * epochs_done / plan.max_epochs))
    return float(plan.learning_rate * (choices.FINAL_RATE + (1 - choices.FINAL_RATE) * fall))


def has_stalled(curves: list[NDArray[np.float64]], tol: float) -> bool:
    """Tell whether no restart's loss has improved by the fraction `tol` for some epochs."""
    if tol <= 0 or len(curves) <= choices.PATIENCE:
        return False
    best_before = np.min(curves[: -choices.PATIENCE], axis=0)
    best_since = np.min(curves[-choices.PATIENCE :], axis=0)
    # A loss of NaN does not improve any more.
    return not (best_before - best_since > tol * np.abs(best_before)).any()


def has_settled(curves: list[NDArray[np.float64]]) -> bool:
    """Tell whether the best restart's mean loss hardly fell between the last two tenths of the epochs."""
    window = max(1, len(curves) // 10)
    if len(curves) < 2 * window:
        return False
    best = np.array(curves)[:, int(np.nanargmin(curves[-1]))]
    before, after = best[-2 * window : -window].mean(), best[-window:].mean()
    # A loss near zero may fall by any fraction of itself without any effect.
    return bool(before - after <= choices.SETTLED_PART * abs(before) + choices.NEGLIGIBLE_LOSS)
