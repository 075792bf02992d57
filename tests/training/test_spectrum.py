"""Principal variances against a full decomposition, whatever the shape."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from cceclust.estimators import CCEClassifier
from cceclust.training.rows import in_memory
from cceclust.training.spectrum import (
    leading_axes,
    longest_stable_step,
    measure_spectrum,
    principal_variances,
    sample_rows,
)
from cceclust.training.standardization import Standardization


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(40, 5), (5, 40)])
def test_variances_are_the_eigenvalues_largest_first(shape, convert):
    generator = np.random.default_rng(0)
    rows, centre = generator.normal(size=shape), generator.normal(size=shape[1])
    weights = generator.dirichlet(np.ones(shape[0]))
    expected = np.linalg.eigvalsh(((rows - centre) * weights[:, None]).T @ (rows - centre))[::-1][:5]
    np.testing.assert_allclose(principal_variances(convert(rows), centre, weights), expected)


def test_wide_sparse_rows_are_not_made_dense():
    rows = sparse.random(50, 1_000_000, 1e-5, format="csr", random_state=0)
    tracemalloc.start()
    principal_variances(rows, np.zeros(1_000_000), np.full(50, 0.02))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * 1_000_000 * 8 / 10


def test_spectrum_is_that_of_standardised_rows_whatever_their_mean():
    rows = in_memory(7 + 3 * np.random.default_rng(0).normal(size=(500, 2)) * [1, 2])
    for mean in (np.zeros(2), np.full(2, 7.0)):
        spectrum = measure_spectrum(rows, Standardization(mean, 3.0), np.ones(500), seed=0)
        np.testing.assert_allclose(spectrum.variances, [4, 1], rtol=0.1)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_only_rows_with_weight_are_sampled(convert):
    matrix = np.arange(6.0).reshape(3, 2)
    sample, weights = sample_rows(in_memory(convert(matrix)), np.array([1.0, 0.0, 3.0]), seed=0)
    dense = sample.toarray() if sparse.issparse(sample) else sample
    np.testing.assert_array_equal(dense, matrix[[0, 2]])
    np.testing.assert_array_equal(weights, [0.25, 0.75])


STEEP = 30 * np.random.default_rng(0).normal(size=(300, 3))


def test_step_falls_with_the_variance_after_standardisation():
    rows, weights = in_memory(STEEP), np.ones(len(STEEP))
    step = longest_stable_step(rows, 2, Standardization(np.zeros(3), 1.0), weights, seed=0)
    scaled = longest_stable_step(rows, 2, Standardization(np.zeros(3), 10.0), weights, seed=0)
    assert scaled == pytest.approx(100 * step)


def test_features_that_do_not_vary_allow_any_step():
    rows = in_memory(np.ones((5, 2)))
    assert longest_stable_step(rows, 2, Standardization(np.ones(2), 1.0), np.ones(5), seed=0) == np.inf


def test_uncertain_labels_do_not_drive_the_loss_up():
    labels = (STEEP[:, 0] > 0).astype(int)
    classifier = CCEClassifier(loss="ce", label_noise=0.8, standardize=False, random_state=0)
    curve = classifier.fit(STEEP, labels).loss_curve_
    assert curve.max() <= np.log(2) + 1e-6
    assert classifier.score(STEEP, labels) > 0.9


@pytest.mark.parametrize("shape", [(90, 20), (20, 90)])
def test_axes_point_to_the_row_that_is_farthest_along_them(shape):
    rows = np.random.default_rng(0).normal(size=shape)
    along = rows @ leading_axes(rows, 5, seed=0).T
    assert (along.max(axis=0) >= -along.min(axis=0)).all()
    np.testing.assert_allclose(leading_axes(-rows, 5, seed=0), -leading_axes(rows, 5, seed=0), atol=1e-5)
