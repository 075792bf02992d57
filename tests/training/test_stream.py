from __future__ import annotations

from typing import Any

import numpy as np

from cceclust.pseudo_labels import EMSolver
from cceclust.training.engine import TrainingPlan
from cceclust.training.heads import HeadStack
from cceclust.training.objectives import SelfLabeling
from cceclust.training.rows import ArrayRows
from cceclust.training.standardization import Standardization
from cceclust.training.stream import MEMORY, Stream

PLAN = TrainingPlan(
    n_clusters=3, n_restarts=2, batch_size=50, max_epochs=1, learning_rate=0.5, constant_rate=True,
    weight_decay=0.01, tol=0.0,
)  # fmt: skip


def pieces() -> Any:
    generator = np.random.default_rng(0)
    for _ in range(15):
        yield ArrayRows(generator.normal(size=(100, 5)) + 8 * np.eye(3, 5)[generator.integers(0, 3, 100)])


def test_the_running_loss_falls_and_remembers() -> None:
    generator = np.random.default_rng(0)
    stream = Stream(
        HeadStack.random(2, 3, 5, np.dtype(float), generator), Standardization(np.full(5, 1.6), 3.0), generator
    )
    curve = [stream.update(piece, np.ones(100), PLAN, SelfLabeling(EMSolver(max_iter=20))) for piece in pieces()]
    assert (curve[-1] < 0.7 * curve[0]).all()
    # One piece moves it by no more than its share.
    assert (np.abs(curve[1] - curve[0]) <= (1 - MEMORY) * np.abs(curve[0]) + 1e-12).all()
    coef, intercept = stream.raw_heads()
    assert (coef.shape, intercept.shape) == ((2, 3, 5), (2, 3))
