from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from cceclust.training.head import Head
from cceclust.training.heads import HeadStack, batch_for, softmax_stack, stack_probabilities
from cceclust.training.logits import row_logits
from cceclust.training.rows import ArrayRows, SparseRows, in_memory
from cceclust.training.standardization import Standardization, fold


def stack_and_matrix(dtype: Any = np.float64) -> tuple[HeadStack, Any, Standardization]:
    generator = np.random.default_rng(0)
    matrix = (generator.random((30, 6)) * (generator.random((30, 6)) < 0.5)).astype(dtype)
    heads = HeadStack.random(2, 3, 6, np.dtype(dtype), generator)
    return heads, matrix, Standardization(matrix.mean(axis=0), 0.3)


def test_random_heads_have_unbiased_weights_of_he_s_variance() -> None:
    heads = HeadStack.random(10, 10, 500, np.dtype(np.float32), np.random.default_rng(0))
    assert heads.weights.dtype == heads.biases.dtype == np.float32
    assert not heads.biases.any()
    assert heads.weights.mean() == pytest.approx(0, abs=1e-3)
    assert heads.weights.std() == pytest.approx(np.sqrt(2 / 500), rel=0.02)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_is_gradient_descent_on_standardised_rows(kind: Any, dtype: Any) -> None:
    heads, matrix, standardization = stack_and_matrix(dtype)
    chosen, gradient = np.array([3, 3, 29, 0]), np.random.default_rng(1).normal(size=(2, 3, 4)).astype(dtype)
    rows = (matrix[chosen] - standardization.mean) / standardization.scale
    before, flat = heads.weights.copy(), gradient.reshape(6, 4)
    batch = batch_for(kind(matrix), 10)
    batch.load(kind(matrix), chosen, standardization)
    logits = heads.logits(batch)
    np.testing.assert_allclose(logits.reshape(6, 4), before @ rows.T, atol=1e-5)
    heads.descend(batch, gradient, rate=0.1, weight_decay=0.5)
    assert heads.weights.dtype == logits.dtype == dtype
    np.testing.assert_allclose(heads.weights, before - 0.1 * (flat @ rows + 0.5 * before), atol=1e-5)
    np.testing.assert_allclose(heads.biases, -0.1 * flat.sum(axis=1), atol=1e-6)


def test_softmax_survives_huge_logits() -> None:
    logits = np.array([[[1e30, -1e30, 0.0], [0.0, -1e30, 1.0]]], np.float32)
    found = softmax_stack(logits)
    np.testing.assert_allclose(found, [[[1, 0.5, 1 / (1 + np.e)], [0, 0.5, np.e / (1 + np.e)]]], rtol=1e-6)
    assert found is logits


def test_a_raw_head_is_taken_up_where_it_was() -> None:
    heads, _, standardization = stack_and_matrix(np.float32)
    far = Standardization(standardization.mean + np.float32(1e4), 2.0)
    weights, biases = heads.unstacked()
    coef, intercept = fold(weights.astype(float)[0], biases.astype(float)[0], far)
    again = HeadStack.of_raw(coef, intercept, far)
    np.testing.assert_allclose(again.weights, weights[0], rtol=1e-6)
    np.testing.assert_allclose(again.biases, biases[0], atol=1e-6)


@pytest.mark.parametrize("kind", [ArrayRows, lambda matrix: SparseRows(sparse.csr_matrix(matrix))])
def test_probabilities_of_all_heads_in_any_blocks(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 7 * 6 * 8)
    heads, matrix, _ = stack_and_matrix()
    weights, biases = heads.unstacked()
    expected = softmax(np.einsum("nd,rkd->rkn", matrix, weights) + biases[:, :, None], axis=1)
    found = np.full_like(expected, np.nan)
    for where, block in stack_probabilities(weights, biases, kind(matrix)):
        found[:, :, where] = block
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_logits_repeat_to_the_bit() -> None:
    heads, matrix, _ = stack_and_matrix(np.float32)
    first, second = (
        np.concatenate([logits for _, logits in row_logits(Head(heads.weights, heads.biases), in_memory(rows))])
        for rows in (matrix, matrix.copy())
    )
    np.testing.assert_array_equal(first, second)
