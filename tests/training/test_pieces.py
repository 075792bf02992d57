"""Training piece by piece: what is kept between the pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cceclust import choices
from cceclust.pseudo_labels import EMSolver
from cceclust.training.candidates import HeadPlan
from cceclust.training.objectives import SelfLabeling
from cceclust.training.pieces import PieceTrainer
from cceclust.training.rows import ArrayRows
from cceclust.training.settings import FitSettings
from cceclust.training.standardization import Standardization

SETTINGS = FitSettings(3, n_init=2, batch_size=50, learning_rate_schedule="constant", weight_decay=0.01, init="random")
WEIGHTS = np.ones(100)


def objective(plans: Sequence[HeadPlan]) -> SelfLabeling:
    return SelfLabeling(EMSolver(prior=plans[0].prior, max_iter=20))


def pieces() -> Iterator[ArrayRows]:
    generator = np.random.default_rng(0)
    for _ in range(15):
        yield ArrayRows(generator.normal(size=(100, 5)) + 8 * np.eye(3, 5)[generator.integers(0, 3, 100)])


def test_the_running_loss_falls_and_each_piece_moves_it_by_its_share() -> None:
    trainer, curve = PieceTrainer.begin(next(pieces()), SETTINGS, sample_weight=WEIGHTS, seed=0), []
    for piece in pieces():
        best = trainer.train_on(piece, SETTINGS, objective, sample_weight=WEIGHTS)
        assert trainer.running_losses is not None
        assert best == np.argmin(trainer.running_losses)
        curve.append(trainer.running_losses)
    assert (curve[-1] < 0.7 * curve[0]).all()
    assert (np.abs(curve[1] - curve[0]) <= (1 - choices.RUNNING_LOSS_KEPT) * np.abs(curve[0]) + 1e-12).all()


def test_a_head_for_raw_features_resumes_as_it_was() -> None:
    generator = np.random.default_rng(0)
    coef, intercept = generator.normal(size=(3, 5)), generator.normal(size=3)
    trainer = PieceTrainer.resume(coef, intercept, Standardization(np.full(5, 1.6), 3.0), 0.01, seed=0)
    for found, expected in zip(trainer.raw_head(0), (coef, intercept), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
