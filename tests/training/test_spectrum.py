"""Leading variances against a full decomposition, whatever the shape."""

import numpy as np
import pytest
from scipy import sparse

from cceclust.training.rows import in_memory
from cceclust.training.spectrum import leading_variances, sample_rows


@pytest.mark.parametrize("shape", [(40, 5), (5, 40)])
def test_variances_are_the_largest_eigenvalues(shape):
    generator = np.random.default_rng(0)
    rows, weights = generator.normal(size=shape), generator.dirichlet(np.ones(shape[0]))
    expected = np.linalg.eigvalsh((rows * weights[:, None]).T @ rows)[-3:]
    np.testing.assert_allclose(leading_variances(rows, weights, 3), expected)


def test_asking_for_more_directions_than_there_are_gives_all():
    assert len(leading_variances(np.eye(3), np.full(3, 1 / 3), 20)) == 3


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_only_rows_with_weight_are_sampled(convert):
    matrix = np.arange(6.0).reshape(3, 2)
    sample, weights = sample_rows(in_memory(convert(matrix)), np.array([1.0, 0.0, 3.0]), seed=0)
    np.testing.assert_array_equal(sample, matrix[[0, 2]])
    np.testing.assert_array_equal(weights, [0.25, 0.75])
