"""Compiled inner loops against the same thing in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cceclust.objective import gradient_by_logits
from cceclust.training.kernels import (
    add_moments,
    gather_standardized,
    step,
    write_collision_gradient,
    write_shannon_gradient,
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
    write_collision_gradient(sigma, labels, weights, 0.5, sigma)  # The result may take the place of the probabilities.
    np.testing.assert_allclose(sigma, expected, atol=10 * np.finfo(dtype).eps)


def test_collision_gradient_is_zero_where_nothing_collides() -> None:
    sigma = np.array([[[1.0], [0.0]]])
    labels = np.array([[[0.0], [1.0]]])
    gradient = np.full_like(sigma, np.nan)
    write_collision_gradient(sigma, labels, np.ones(1), 1.0, gradient)
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_shannon_gradient_is_the_difference(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    sigma, labels = distributions(generator, dtype), distributions(generator, dtype)
    weights, gradient = generator.random(7).astype(dtype), np.empty_like(sigma)
    write_shannon_gradient(sigma, labels, weights, 0.25, gradient)
    np.testing.assert_allclose(gradient, 0.25 * weights * (sigma - labels), atol=10 * np.finfo(dtype).eps)


def test_step_descends_and_decays() -> None:
    weights, gradient = np.array([[1.0, -2.0]]), np.array([[0.5, 0.5]])
    step(weights, gradient, 0.1, 2.0)
    np.testing.assert_allclose(weights, [[1 - 0.1 * (0.5 + 2), -2 - 0.1 * (0.5 - 4)]])
