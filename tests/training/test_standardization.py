from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from cceclust.errors import InputError
from cceclust.training.rows import ArrayRows, SparseRows, in_memory
from cceclust.training.standardization import Standardization, fold, measure


def uniform(rows: Any) -> Any:
    return np.ones(rows.shape[0], rows.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_mean_of_columns_and_one_scale(dtype: Any, kind: Any) -> None:
    matrix = (np.random.default_rng(0).normal(size=(500, 4)) * [1, 2, 3, 4] + [0, 5, -5, 1]).astype(dtype)
    rows = in_memory(kind(matrix))
    found = measure(rows, uniform(rows), standardize=True)
    assert found.mean.dtype == dtype
    np.testing.assert_allclose(found.mean, matrix.mean(axis=0), rtol=1e-3, atol=1e-5)
    assert found.scale == pytest.approx(np.sqrt(matrix.astype(float).var(axis=0).mean()), rel=1e-5)


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ArrayRows(np.random.default_rng(0).normal(size=(100, 4)))
    whole = measure(rows, uniform(rows), standardize=True)
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 7 * 4 * 8)
    pieces = measure(rows, uniform(rows), standardize=True)
    np.testing.assert_allclose(pieces.mean, whole.mean, atol=1e-12)
    assert pieces.scale == pytest.approx(whole.scale, rel=1e-12)


def test_weights_count_as_repetitions() -> None:
    matrix = np.random.default_rng(0).normal(size=(30, 3))
    counts = np.random.default_rng(1).integers(0, 4, 30)
    rows, repeated = ArrayRows(matrix), ArrayRows(np.repeat(matrix, counts, axis=0))
    weighted = measure(rows, counts.astype(float), standardize=True)
    expected = measure(repeated, uniform(repeated), standardize=True)
    np.testing.assert_allclose(weighted.mean, expected.mean)
    assert weighted.scale == pytest.approx(expected.scale)


def test_far_from_the_origin_the_scale_keeps_its_digits() -> None:
    matrix = np.random.default_rng(0).normal(size=(1000, 5))
    rows = ArrayRows((matrix + 1e4).astype(np.float32))
    assert measure(rows, uniform(rows), standardize=True).scale == pytest.approx(1, abs=0.05)


def test_a_far_first_row_without_weight_costs_no_digits() -> None:
    matrix = np.random.default_rng(0).normal(size=(1000, 5))
    matrix[0] = 1e12
    weights = np.ones(1000)
    weights[0] = 0
    assert measure(ArrayRows(matrix), weights, standardize=True).scale == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_extreme_scales_are_measured_in_float32(scale: float, kind: Any) -> None:
    matrix = (np.random.default_rng(0).normal(size=(1000, 5)) * scale).astype(np.float32)
    rows = in_memory(kind(matrix))
    assert measure(rows, uniform(rows), standardize=True).scale == pytest.approx(scale, rel=0.05)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_constant_data_keep_their_scale(kind: Any) -> None:
    rows = in_memory(kind(np.full((50, 3), 3.3)))
    found = measure(rows, uniform(rows), standardize=True)
    assert found.scale == 1.0
    np.testing.assert_allclose(found.mean, 3.3)


def test_a_huge_constant_column_does_not_hide_the_spread_of_the_others() -> None:
    matrix = np.random.default_rng(0).normal(size=(100, 4)) * 0.01
    matrix[:, 0] = 1.7e9
    rows = ArrayRows(matrix)
    assert measure(rows, uniform(rows), standardize=True).scale == pytest.approx(0.01 * np.sqrt(3 / 4), rel=0.2)


def test_without_standardization_nothing_is_changed() -> None:
    rows = ArrayRows(np.random.default_rng(0).normal(size=(10, 2)))
    found = measure(rows, uniform(rows), standardize=False)
    assert (found.scale, found.mean.tolist()) == (1.0, [0.0, 0.0])


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_counted_and_the_first_is_named(value: float, standardize: bool) -> None:
    matrix = np.ones((10, 3))
    matrix[[4, 7], [0, 2]] = value
    for rows in (ArrayRows(matrix), SparseRows(sparse.csr_matrix(matrix))):
        with pytest.raises(InputError, match="NaN or infinity in 2 of 10 rows, first in row 4"):
            measure(rows, uniform(rows), standardize=standardize)


def test_what_cannot_be_squared_is_refused() -> None:
    rows = ArrayRows(np.array([[1e200], [-1e200]]))
    with pytest.raises(InputError, match="too large"):
        measure(rows, uniform(rows), standardize=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_folded_heads_see_raw_features_as_they_saw_standardised_ones(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    matrix = (generator.normal(size=(20, 6)) * 30 + 7).astype(dtype)
    weights, biases = generator.normal(size=(2, 3, 6)).astype(dtype), generator.normal(size=(2, 3)).astype(dtype)
    standardization = Standardization(matrix.mean(axis=0), 30.0)
    coef, intercept = fold(weights, biases, standardization)
    assert coef.dtype == intercept.dtype == dtype
    standardised = (matrix - standardization.mean) / standardization.scale
    expected = softmax(np.einsum("nd,rkd->rnk", standardised, weights) + biases[:, None], axis=2)
    found = softmax(np.einsum("nd,rkd->rnk", matrix, coef) + intercept[:, None], axis=2)
    np.testing.assert_allclose(found, expected, atol=1e-4 if dtype == np.float32 else 1e-12)


def test_weights_that_their_type_cannot_hold_are_refused() -> None:
    weights, biases = np.full((2, 3), 9, np.float32), np.zeros(2, np.float32)
    for standardization in (Standardization(np.zeros(3), 1e-38), Standardization(np.full(3, 1e30), 1e-10)):
        with pytest.raises(InputError, match="need weights that float32 cannot hold; rescale and centre them"):
            fold(weights, biases, standardization)
        assert np.isfinite(fold(weights.astype(np.float64), biases, standardization)[1]).all()
