"""Training on data that comes in pieces (``partial_fit``): the heads, and what is kept between the pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.training.candidates import HeadPlan
from cceclust.training.engine import RestartGroup
from cceclust.training.fit import MakeObjective, make_plan, start_piece
from cceclust.training.heads import HeadStack
from cceclust.training.labels import Supervision
from cceclust.training.robustness import scaled_columns
from cceclust.training.rows import ArrayRows, SparseRows
from cceclust.training.settings import FitSettings
from cceclust.training.space import TrainingSpace
from cceclust.training.standardization import Standardization, fold, measure

__all__ = ["PieceTrainer"]


@dataclass
class PieceTrainer:
    """Heads in training, piece by piece.

    Attributes
    ----------
    heads : HeadStack
        For standardised features.
    standardization : Standardization
        Fixed by the first piece, or by the fit that goes on.
    weight_decay : float
        Likewise.
    generator : numpy.random.Generator
        Source of the order of rows.
    columns : ndarray of shape (n_features,) or None
        What each column is divided by first, if the fit that goes on did so.
    running_losses : ndarray of shape (n_restarts,) or None
        Mean loss of each head, in which later pieces count more.
    """

    heads: HeadStack
    standardization: Standardization
    weight_decay: float
    generator: np.random.Generator
    columns: NDArray[np.float64] | None = None
    running_losses: NDArray[np.float64] | None = None

    @classmethod
    def begin(
        cls,
        rows: ArrayRows | SparseRows,
        settings: FitSettings,
        *,
        sample_weight: NDArray[Any],
        seed: int,
        supervision: Supervision | None = None,
    ) -> Self:
        """Draw new heads, and take mean, scale and weight decay from a first piece."""
        generator = np.random.default_rng(seed)
        with threadpool_limits(1, user_api="blas"):
            standardization = measure(rows, sample_weight, standardize=settings.standardize)
            heads, decay = start_piece(rows, settings, standardization, sample_weight, supervision, generator)
            return cls(heads, standardization, decay, generator)

    @classmethod
    def resume(
        cls,
        coef: NDArray[Any],
        intercept: NDArray[Any],
        standardization: Standardization,
        weight_decay: float,
        *,
        seed: int,
        columns: NDArray[np.float64] | None = None,
    ) -> Self:
        """Go on from one head for raw features."""
        scaled = coef if columns is None else (coef * columns).astype(coef.dtype)
        heads = HeadStack.of_raw(scaled, intercept, standardization)
        return cls(heads, standardization, weight_decay, np.random.default_rng(seed), columns)

    def train_on(
        self,
        rows: ArrayRows | SparseRows,
        settings: FitSettings,
        make_objective: MakeObjective | None,
        *,
        sample_weight: NDArray[Any],
        supervision: Supervision | None = None,
    ) -> int:
        """Go once through a piece; return the number of the head with the lowest running loss."""
        if self.columns is not None:
            rows = scaled_columns(rows, self.columns)
        learning = sample_weight if make_objective or supervision is None else supervision.only_labelled(sample_weight)
        if supervision is not None and make_objective:
            supervision = supervision.joined(rows.matrix, sample_weight)
        space = TrainingSpace.of_rows(rows, self.standardization)
        with threadpool_limits(1, user_api="blas"):
            plan = make_plan(settings, self.weight_decay, rows.shape[0], space, learning, supervision, seed=0)
            # Pieces come one after the other, and nobody knows which is the last: the rate is that of a fit's end.
            rate = plan.learning_rate * (1.0 if plan.constant_rate else choices.FINAL_RATE)
            plans = [
                HeadPlan(
                    "", settings.without_graph().fixed_fairness, settings.prior_parts(rows.dtype), self.weight_decay
                )
            ]
            objective = make_objective(plans) if make_objective else None
            group = RestartGroup(self.heads, objective, self.generator, supervision)
            group.train_on(rows.matrix, learning, self.standardization, None, plan, lambda _: rate)
        losses = group.epoch_losses()
        if self.running_losses is not None:
            kept = choices.RUNNING_LOSS_KEPT
            losses = kept * self.running_losses + (1 - kept) * losses
        self.running_losses = losses
        return int(np.argmin(np.where(np.isnan(losses), np.inf, losses)))

    def raw_head(self, number: int) -> tuple[Any, Any]:
        """Return weights and biases of one head for raw features."""
        weights, biases = self.heads.unstacked()
        coef, intercept = fold(weights[number], biases[number], self.standardization)
        return coef if self.columns is None else (coef / self.columns).astype(coef.dtype), intercept
