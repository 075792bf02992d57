"""Training on data that comes in pieces: the heads, and what is remembered between the pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.training.engine import FINAL_RATE, RestartGroup, TrainingPlan
from cceclust.training.heads import HeadStack
from cceclust.training.objectives import Objective
from cceclust.training.rows import Rows
from cceclust.training.standardization import Standardization, fold
from cceclust.training.supervision import Supervision

__all__ = ["Stream"]

# How much of the running loss each piece leaves standing.
MEMORY = 0.9


class Stream:
    """Heads in training, piece by piece.

    Parameters
    ----------
    heads : HeadStack
        Where to start.
    standardization : Standardization
        Fixed by the first piece.
    generator : numpy.random.Generator
        Decides the order of rows.
    """

    def __init__(self, heads: HeadStack, standardization: Standardization, generator: np.random.Generator) -> None:
        self.heads = heads
        self.standardization = standardization
        self.generator = generator
        self.running_losses: NDArray[np.float64] | None = None

    def update(
        self,
        rows: Rows,
        sample_weight: NDArray[Any],
        plan: TrainingPlan,
        objective: Objective | None,
        supervision: Supervision | None = None,
    ) -> NDArray[np.float64]:
        """Go once through a piece; return the running loss of each head."""
        group = RestartGroup(self.heads, objective, self.generator, supervision)
        rate = plan.learning_rate * (1.0 if plan.constant_rate else FINAL_RATE)
        for buffer in rows.buffers(self.generator):
            group.train_on(buffer, sample_weight, self.standardization, None, plan, lambda _: rate)
        losses = group.epoch_losses()
        if self.running_losses is not None:
            losses = MEMORY * self.running_losses + (1 - MEMORY) * losses
        self.running_losses = losses
        return losses

    def raw_heads(self) -> tuple[Any, Any]:
        """Return weights and biases for raw features."""
        return fold(*self.heads.unstacked(), self.standardization)
