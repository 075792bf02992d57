"""Compiled inner loops against the same thing in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cceclust.objective import gradient_by_logits
from cceclust.training.kernels import (
    add_by_label,
    add_moments,
    gather_standardized,
    mean_distances,
    row_distances,
    step,
    subtract_labels,
    to_collision_gradient,
    to_shannon_gradient,
)

TYPES = [np.float32, np.float64]


def distributions(generator: np.random.Generator, dtype: Any, shape: tuple[int, ...] = (2, 3, 7)) -> Any:
    """Return a K-major stack of random distributions."""
    values = generator.random(shape).astype(dtype)
    return values / values.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_gathered_rows_are_centred_and_scaled(dtype: Any, order: Any) -> None:
    generator = np.random.default_rng(0)
    matrix = np.asarray(generator.normal(size=(9, 4)), dtype, order=order)
    matrix.flags.writeable = False
    indices, mean, rows = np.array([8, 0, 0, 3]), matrix.mean(axis=0), np.full((4, 4), np.nan, dtype)
    gather_standardized(matrix, indices, mean, 0.5, rows)
    np.testing.assert_allclose(rows, (matrix[indices] - mean) / 0.5, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", TYPES)
def test_moments_add_up_over_blocks_far_from_the_origin(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    matrix = (generator.normal(size=(20, 3)) + 1e4).astype(dtype)
    weights = generator.random(20).astype(dtype)
    shift, sums, squares = matrix[0].astype(float), np.zeros(3), np.zeros(3)
    add_moments(matrix[:12], weights[:12], shift, sums, squares)
    add_moments(matrix[12:], weights[12:], shift, sums, squares)
    shifted = matrix.astype(float) - shift
    np.testing.assert_allclose(sums, weights.astype(float) @ shifted, rtol=1e-12)
    np.testing.assert_allclose(squares, weights.astype(float) @ shifted**2, rtol=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
def test_collision_gradient_is_that_of_the_plain_objective(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    sigma, labels = distributions(generator, dtype), distributions(generator, dtype)
    weights = generator.random(7).astype(dtype)
    expected = (
        0.5 * weights * gradient_by_logits(np.moveaxis(sigma, 1, 2), np.moveaxis(labels, 1, 2)).transpose(0, 2, 1)
    )
    to_collision_gradient(sigma, 0, labels, weights, 0.5)
    np.testing.assert_allclose(sigma, expected, atol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("to_gradient", [to_collision_gradient, to_shannon_gradient])
def test_gradients_of_later_points_leave_the_first_alone(to_gradient: Any) -> None:
    generator = np.random.default_rng(0)
    points, companions, labels = (distributions(generator, np.float64) for _ in range(3))
    weights, stack = generator.random(7), np.concatenate([points, companions], axis=2)
    to_gradient(stack, 7, labels, weights, 0.5)
    to_gradient(companions, 0, labels, weights, 0.5)
    np.testing.assert_array_equal(stack, np.concatenate([points, companions], axis=2))


def test_collision_gradient_is_zero_where_nothing_collides() -> None:
    sigma = np.array([[[1.0], [0.0]]])
    labels = np.array([[[0.0], [1.0]]])
    to_collision_gradient(sigma, 0, labels, np.ones(1), 1.0)
    np.testing.assert_array_equal(sigma, 0)


def test_collision_gradient_is_a_number_where_hardly_anything_collides() -> None:
    sigma = np.array([[[1.0], [1e-39]]], np.float32)
    labels = np.array([[[0.0], [1.0]]], np.float32)
    to_collision_gradient(sigma, 0, labels, np.ones(1, np.float32), 1.0)
    assert np.isfinite(sigma).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_shannon_gradient_is_the_difference(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    sigma, labels = distributions(generator, dtype), distributions(generator, dtype)
    weights, expected = generator.random(7).astype(dtype), sigma - labels
    to_shannon_gradient(sigma, 0, labels, weights, 0.25)
    np.testing.assert_allclose(sigma, 0.25 * weights * expected, atol=10 * np.finfo(dtype).eps)


def test_step_descends_and_decays() -> None:
    weights, gradient = np.array([[1.0, -2.0]]), np.array([[0.5, 0.5]])
    step(weights, gradient, 0.1, np.array([2.0]))
    np.testing.assert_allclose(weights, [[1 - 0.1 * (0.5 + 2), -2 - 0.1 * (0.5 - 4)]])


def test_every_row_of_weights_decays_by_its_own() -> None:
    weights = np.ones((3, 2))
    step(weights, np.zeros((3, 2)), 0.5, np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(weights, [[1, 1], [0.5, 0.5], [0, 0]])


@pytest.mark.parametrize("dtype", TYPES)
def test_labels_are_subtracted_from_probabilities(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    sigma, weights = distributions(generator, dtype), generator.random(7).astype(dtype)
    labels, rows = generator.integers(0, 3, (2, 20)).astype(np.int32), generator.permutation(20)[:7]
    one_hot = np.eye(3)[labels[:, rows]].transpose(0, 2, 1)
    expected = weights * (sigma - one_hot)
    subtract_labels(sigma, labels, rows, weights)
    np.testing.assert_allclose(sigma, expected, atol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_are_added_to_the_sums_of_their_clusters(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    matrix, weights = generator.normal(size=(9, 4)).astype(dtype), generator.random(9)
    labels, shift = generator.integers(0, 3, (2, 9)).astype(np.int32), matrix.mean(axis=0)
    sums, masses = np.ones((2, 3, 4)), np.ones((2, 3))
    squares = add_by_label(matrix, labels, weights, shift, 0.5, sums, masses)
    rows, one_hot = (matrix - shift) / 0.5, labels[:, None, :] == np.arange(3)[:, None]
    assert squares == pytest.approx(float(weights @ (rows**2).sum(axis=1)), rel=1e-5)
    np.testing.assert_allclose(sums, 1 + (one_hot * weights) @ rows, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(masses, 1 + (one_hot * weights).sum(axis=2), rtol=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
def test_distances_of_rows_from_a_point_and_from_their_neighbours(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    matrix, middle = generator.normal(size=(9, 4)).astype(dtype), generator.normal(size=4)
    distances = np.empty(9)
    row_distances(matrix, middle, 2.0, distances)
    np.testing.assert_allclose(distances, np.linalg.norm(matrix - middle, axis=1) / 2, rtol=1e-6)
    neighbors, found = generator.integers(0, 9, (9, 3)), np.full(9, -1.0)
    mean_distances(matrix, neighbors, np.array([7, 2, 5]), 2.0, found)
    wanted = np.linalg.norm(matrix[neighbors] - matrix[:, None], axis=2).mean(axis=1) / 2
    np.testing.assert_allclose(found, np.where(np.isin(np.arange(9), [2, 5, 7]), wanted, -1.0), rtol=1e-5)
