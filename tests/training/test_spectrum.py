"""Principal variances against a full decomposition, whatever the shape."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from cceclust.training.rows import in_memory
from cceclust.training.spectrum import Spectrum, measure_spectrum, principal_variances, sample_rows
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


@pytest.mark.parametrize(
    ("variances", "n_directions"),
    [([1.0], 1), ([0.0], 1), ([1.0, 1.0], 2), ([98.0, 1.0, 1.0], 1), ([5.0, 4.0, 1.0], 3)],
)
def test_directions_that_hold_nearly_nothing_do_not_count(variances, n_directions):
    assert Spectrum(np.array(variances)).n_directions == n_directions


def test_clusters_are_crowded_unless_each_beyond_two_has_four_directions():
    spectrum = Spectrum(np.ones(10))
    assert [spectrum.is_crowded_by(k) for k in (1, 2, 4, 5, 100)] == [False, False, False, True, True]


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_only_rows_with_weight_are_sampled(convert):
    matrix = np.arange(6.0).reshape(3, 2)
    sample, weights = sample_rows(in_memory(convert(matrix)), np.array([1.0, 0.0, 3.0]), seed=0)
    dense = sample.toarray() if sparse.issparse(sample) else sample
    np.testing.assert_array_equal(dense, matrix[[0, 2]])
    np.testing.assert_array_equal(weights, [0.25, 0.75])
