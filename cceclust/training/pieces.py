"""Training on data in pieces (``partial_fit``): the heads, and the state between the pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust import choices
from cceclust.training.candidates import HeadPlan
from cceclust.training.engine import RestartGroup
from cceclust.training.fit import MakeObjective, make_plan, start_piece
from cceclust.training.heads import HeadStack
from cceclust.training.labels import Supervision, labelled_rows
from cceclust.training.rows import Rows
from cceclust.training.settings import FitSettings
from cceclust.training.space import TrainingSpace
from cceclust.training.standardization import Standardization, fold, measure

__all__ = ["PieceTrainer"]


@dataclass
class PieceTrainer:
    """Heads that are trained piece by piece.

    Attributes
    ----------
    heads : HeadStack
        For standardised features.
    standardization : Standardization
        Fixed by the first piece, or by an earlier fit.
    weight_decay : float
        Likewise.
    generator : numpy.random.Generator
        Random numbers for the order of rows.
    running_losses : ndarray of shape (n_restarts,) or None
        Mean loss of each head; later pieces count more.
    """

    heads: HeadStack
    standardization: Standardization
    weight_decay: float
    generator: np.random.Generator
    running_losses: NDArray[np.float64] | None = None

    @classmethod
    def begin(
        cls,
        rows: Rows,
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
    ) -> Self:
        """Continue from one head for raw features."""
        heads = HeadStack.of_raw(coef, intercept, standardization)
        return cls(heads, standardization, weight_decay, np.random.default_rng(seed))

    def train_on(
        self,
        rows: Rows,
        settings: FitSettings,
        make_objective: MakeObjective | None,
        *,
        sample_weight: NDArray[Any],
        supervision: Supervision | None = None,
    ) -> int:
        """Train on a piece once; return the index of the head with the lowest running loss."""
        learning = sample_weight if make_objective or supervision is None else supervision.only_labelled(sample_weight)
        if supervision is not None and make_objective:
            joining = labelled_rows(rows, supervision.rows, sample_weight[supervision.rows])
            supervision = replace(supervision, joining=joining)
        space = TrainingSpace.of_rows(rows, self.standardization)
        with threadpool_limits(1, user_api="blas"):
            plan = make_plan(settings, self.weight_decay, rows.shape[0], space, learning, supervision, seed=0)
            # Any piece may be the last, so the rate is the one at the end of a fit.
            rate = plan.learning_rate * (1.0 if plan.constant_rate else choices.FINAL_RATE)
            plans = [
                HeadPlan(
                    "", settings.without_graph().fixed_fairness, settings.prior_parts(rows.dtype), self.weight_decay
                )
            ]
            objective = make_objective(plans) if make_objective else None
            group = RestartGroup(self.heads, objective, self.generator, supervision)
            for buffer in rows.buffers(self.generator):
                group.train_on(buffer, learning, self.standardization, None, plan, lambda _: rate)
        losses = group.epoch_losses()
        if self.running_losses is not None:
            kept = choices.RUNNING_LOSS_KEPT
            losses = kept * self.running_losses + (1 - kept) * losses
        self.running_losses = losses
        return int(np.argmin(np.where(np.isnan(losses), np.inf, losses)))

    def raw_head(self, number: int) -> tuple[Any, Any]:
        """Return weights and biases of one head for raw features."""
        weights, biases = self.heads.unstacked()
        return fold(weights[number], biases[number], self.standardization)
