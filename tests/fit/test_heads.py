from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from cceclust.fit.heads import (
    GivenLabels,
    HeadTrainer,
    basis_of,
    mean_of_neighbors,
    softmax_in_place,
    to_residual,
)
from cceclust.fit.neighbors import find_neighbors
from cceclust.fit.predict import predict_source
from cceclust.fit.sample import Projection
from cceclust.fit.source import as_source
from cceclust.objective import collision_cross_entropy, cross_entropy
from cceclust.pseudo_labels import EMSolver


def some_points(generator: np.random.Generator, n_points: int = 60, n_axes: int = 4) -> Any:
    points = generator.normal(size=(n_points, n_axes)) * np.linspace(3, 1, n_axes)
    return points.astype(np.float32), generator.uniform(0.5, 2, n_points).astype(np.float32)


def trainer_of(points: Any, weights: Any, *, curved: bool = True, **options: Any) -> HeadTrainer:
    neighbors = find_neighbors(points, 5, "euclidean", 0, 1)
    basis = basis_of(points, weights, curved=curved)
    return HeadTrainer(basis.features(points), weights, neighbors, **{"fairness": 1.0, **options})


def objective(trainer: HeadTrainer, head: Any, targets: Any, *, collision: bool) -> float:
    """Mean loss of a head and the penalty of its weights, as one would write them down."""
    predicted = softmax(trainer.features.astype(np.float64) @ head.T, axis=1)
    loss = collision_cross_entropy if collision else cross_entropy
    penalty = 0.5 * (trainer.decay * head**2).sum()
    return float(np.average(loss(targets, predicted), weights=trainer.shares.astype(np.float64)) + penalty)


class TestStep:
    @given(seed=st.integers(0, 2**32 - 1), n_clusters=st.integers(2, 6), collision=st.booleans(), curved=st.booleans())
    def test_loss_for_given_targets_never_rises(
        self, seed: int, n_clusters: int, collision: bool, curved: bool
    ) -> None:
        generator = np.random.default_rng(seed)
        points, weights = some_points(generator)
        trainer = trainer_of(points, weights, curved=curved)
        head = generator.normal(size=(n_clusters, trainer.features.shape[1])) * generator.choice([0.0, 0.1, 1.0])
        targets = generator.dirichlet(np.full(n_clusters, generator.choice([0.1, 1.0])), len(points))
        losses = []
        for _ in range(6):
            losses.append(objective(trainer, head, targets, collision=collision))
            predicted = trainer.predict(head)
            residual = (targets.T.astype(np.float32) - predicted) * trainer.shares
            if collision:
                residual = targets.T.astype(np.float32)
                to_residual(residual, predicted, trainer.shares)
            head = trainer.step(head, residual)
        assert np.diff(losses).max() < 1e-5 * max(losses)

    def test_steps_towards_a_start_draw_it(self) -> None:
        generator = np.random.default_rng(0)
        start = np.arange(90, dtype=np.int32) % 3
        points = (generator.normal(size=(90, 4)) + 8 * np.eye(3, 4)[start]).astype(np.float32)
        trainer = trainer_of(points, np.ones(90, np.float32))
        assert (trainer.labels(trainer.towards(start, 3)) == start).all()


class TestKernels:
    @given(seed=st.integers(0, 2**32 - 1), n_clusters=st.integers(1, 7), n_points=st.sampled_from([1, 30, 512, 1030]))
    def test_kernels_equal_plain_numpy(self, seed: int, n_clusters: int, n_points: int) -> None:
        generator = np.random.default_rng(seed)
        logits = (generator.normal(size=(n_clusters, n_points)) * 20).astype(np.float32)
        predicted = logits.copy()
        softmax_in_place(predicted)
        np.testing.assert_allclose(predicted, np.exp(log_softmax(logits.astype(np.float64), axis=0)), atol=1e-6)
        neighbors = generator.integers(n_points, size=(n_points, 4), dtype=np.int32)
        averaged = np.empty_like(predicted)
        mean_of_neighbors(predicted, neighbors, averaged)
        np.testing.assert_allclose(averaged, predicted[:, neighbors].mean(axis=2), atol=1e-6)
        shares = generator.dirichlet(np.ones(n_points)).astype(np.float32)
        pseudo_labels = generator.dirichlet(np.ones(n_clusters), n_points).T.astype(np.float32)
        targets = pseudo_labels * predicted.astype(np.float64)
        total = targets.sum(axis=0)
        # Below 1e-30 a product is nothing.
        expected = np.where(total > 1e-29, shares * (targets / total - predicted), 0)
        residual = pseudo_labels.copy()
        to_residual(residual, predicted, shares)
        np.testing.assert_allclose(residual, expected, atol=1e-6)

    def test_where_prediction_and_pseudo_label_share_no_class_there_is_no_direction(self) -> None:
        predicted, residual = np.array([[1.0], [0.0]], np.float32), np.array([[0.0], [1.0]], np.float32)
        to_residual(residual, predicted, np.ones(1, np.float32))
        assert (residual == 0).all()


class TestRefine:
    @pytest.mark.parametrize("shares", [(0.6, 0.3, 0.1), (1 / 3, 1 / 3, 1 / 3)])
    def test_strong_fairness_gives_pseudo_labels_the_sizes_of_the_prior(self, shares: tuple[float, ...]) -> None:
        points, weights = some_points(np.random.default_rng(0), 300)
        trainer = trainer_of(points, weights, fairness=100.0)
        start = np.digitize(points[:, 0], [-2, 2]).astype(np.int32)
        head = trainer.refine(trainer.towards(start, 3), np.array(shares))
        averaged = np.empty((3, 300), np.float32)
        mean_of_neighbors(trainer.predict(head), trainer.neighbors, averaged)
        pseudo_labels = averaged.copy()
        EMSolver(100.0, prior=np.array(shares), max_iter=50).solve(averaged, pseudo_labels, trainer.shares)
        assert np.abs(pseudo_labels @ trainer.shares - shares).max() < 0.02
        assert np.abs(trainer.predict(head) @ trainer.shares - shares).max() < 0.1

    @pytest.mark.parametrize("collision", [True, False])
    def test_given_labels_are_followed(self, collision: bool) -> None:
        generator = np.random.default_rng(0)
        truth = np.arange(120) % 3
        points = (generator.normal(size=(120, 4)) + 5 * np.eye(3, 4)[truth]).astype(np.float32)
        rows = np.arange(12)
        labels = GivenLabels(rows, np.eye(3)[truth[rows]], collision=collision)
        trainer = trainer_of(points, np.ones(120, np.float32), given=labels)
        head = trainer.refine(trainer.towards_given(3), np.full(3, 1 / 3))
        assert (trainer.labels(head) == truth).mean() > 0.95


class TestBasis:
    @pytest.mark.parametrize("curved", [True, False])
    def test_folded_head_on_raw_rows_equals_head_on_points(self, curved: bool) -> None:
        generator = np.random.default_rng(0)
        rows = generator.normal(size=(80, 6)) * [1, 2, 3, 4, 5, 6] + 7
        mean = rows.mean(axis=0)
        projection = Projection(mean, np.linalg.qr(generator.normal(size=(6, 4)))[0])
        points = projection.apply(rows)
        basis = basis_of(points, np.ones(80, np.float32), curved=curved)
        weights = generator.normal(size=(3, basis.n_features))
        head = basis.fold(weights, projection, np.dtype(np.float64))
        assert (head.curves is None) == (not curved)
        found = predict_source(head, as_source(rows)).probabilities
        np.testing.assert_allclose(found, softmax(basis.features(points) @ weights.T, axis=1), atol=1e-4)

    def test_axes_without_variance_do_not_curve(self) -> None:
        points, weights = some_points(np.random.default_rng(0))
        points[:, 2:] = 0
        assert len(basis_of(points, weights, curved=True).means) == 2
