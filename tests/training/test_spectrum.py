"""Leading variances against a full decomposition, whatever the shape."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from cceclust.training.rows import in_memory
from cceclust.training.spectrum import leading_variances, sample_rows


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(40, 5), (5, 40)])
def test_variances_are_the_largest_eigenvalues(shape, convert):
    generator = np.random.default_rng(0)
    rows, centre = generator.normal(size=shape), generator.normal(size=shape[1])
    weights = generator.dirichlet(np.ones(shape[0]))
    expected = np.linalg.eigvalsh(((rows - centre) * weights[:, None]).T @ (rows - centre))[-3:]
    np.testing.assert_allclose(leading_variances(convert(rows), centre, weights, 3), expected)


def test_wide_sparse_rows_are_not_made_dense():
    rows = sparse.random(50, 1_000_000, 1e-5, format="csr", random_state=0)
    tracemalloc.start()
    leading_variances(rows, np.zeros(1_000_000), np.full(50, 0.02), 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * 1_000_000 * 8 / 10


def test_asking_for_more_directions_than_there_are_gives_all():
    assert len(leading_variances(np.eye(3), np.zeros(3), np.full(3, 1 / 3), 20)) == 3


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_only_rows_with_weight_are_sampled(convert):
    matrix = np.arange(6.0).reshape(3, 2)
    sample, weights = sample_rows(in_memory(convert(matrix)), np.array([1.0, 0.0, 3.0]), seed=0)
    dense = sample.toarray() if sparse.issparse(sample) else sample
    np.testing.assert_array_equal(dense, matrix[[0, 2]])
    np.testing.assert_array_equal(weights, [0.25, 0.75])
