"""Training on principal components: the heads that come back are heads for the features."""

import numpy as np
import pytest

from cceclust import choices
from cceclust.training.rows import ArrayRows
from cceclust.training.space import TrainingSpace, project
from cceclust.training.spectrum import leading_axes
from cceclust.training.standardization import measure

WEIGHTS = np.ones(80)


def flat_rows(dtype=np.float64):
    """Return rows with 30 columns that vary in four directions only, far from the origin."""
    generator = np.random.default_rng(0)
    return (5 + generator.normal(size=(80, 4)) @ generator.normal(size=(4, 30))).astype(dtype)


def space_of(matrix, n_components, weights=WEIGHTS, n_threads=1):
    rows = ArrayRows(matrix)
    standardization = measure(rows, weights, standardize=True)
    return project(rows, standardization, weights, n_components, seed=0, n_threads=n_threads)


def test_axes_are_the_leading_singular_vectors():
    rows = np.random.default_rng(0).normal(size=(200, 6)) * [9, 7, 5, 0.3, 0.2, 0.1]
    axes = leading_axes(rows, 3, seed=0)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-5)
    expected = np.linalg.svd(rows)[2][:3]
    np.testing.assert_allclose(np.abs(axes @ expected.T), np.eye(3), atol=1e-3)


def test_small_directions_are_found_beside_a_large_one():
    rows = np.random.default_rng(0).normal(size=(500, 60)) * np.array([3000, 1, 1, 1, *[0.05] * 56])
    axes = leading_axes(rows, 4, seed=0)
    assert np.linalg.norm(axes[:, :4]) ** 2 > 3.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_head_says_the_same_of_components_and_of_features(dtype):
    matrix = flat_rows(dtype)
    space = space_of(matrix, 3)
    generator = np.random.default_rng(1)
    weights, biases = generator.normal(size=(2, 5, 3)).astype(dtype), generator.normal(size=(2, 5)).astype(dtype)
    coef, intercept = space.raw_heads(weights, biases)
    assert (space.rows.shape, space.rows.dtype, coef.dtype) == ((80, 3), dtype, dtype)
    for head in range(2):
        on_components = space.rows.matrix @ weights[head].T + biases[head]
        np.testing.assert_allclose(matrix @ coef[head].T + intercept[head], on_components, atol=1e-3)


def test_components_of_all_directions_keep_all_distances():
    matrix = flat_rows()
    space = space_of(matrix, 4)
    standardized = (matrix - space.origin.mean) / space.origin.scale
    distances = np.linalg.norm(standardized[0] - standardized, axis=1)
    np.testing.assert_allclose(
        np.linalg.norm(space.rows.matrix[0] - space.rows.matrix, axis=1), distances, rtol=1e-4, atol=1e-5
    )


def test_there_are_no_more_components_than_rows():
    space = space_of(np.random.default_rng(0).normal(size=(5, 30)), 20, np.ones(5))
    assert space.rows.shape == (5, 5)


def test_threads_do_not_show(monkeypatch):
    monkeypatch.setattr(choices, "BLOCK_BYTES", 2000)
    one, four = (space_of(flat_rows(), 3, n_threads=n).rows.matrix for n in (1, 4))
    assert np.array_equal(one, four)


def test_rows_without_weight_do_not_turn_the_axes():
    matrix = flat_rows()
    weights = np.where(np.arange(80) < 60, 1.0, 0.0)
    disturbed = matrix.copy()
    disturbed[60:] *= -100
    np.testing.assert_allclose(space_of(disturbed, 3, weights).axes, space_of(matrix, 3, weights).axes, atol=1e-6)


def test_without_projection_a_head_says_the_same_of_raw_features():
    rows = ArrayRows(flat_rows())
    standardization = measure(rows, WEIGHTS, standardize=True)
    weights, biases = np.random.default_rng(0).normal(size=(5, 30)), np.arange(5.0)
    coef, intercept = TrainingSpace.of_rows(rows, standardization).raw_heads(weights, biases)
    standardized = (rows.matrix - standardization.mean) / standardization.scale
    np.testing.assert_allclose(rows.matrix @ coef.T + intercept, standardized @ weights.T + biases, atol=1e-9)
