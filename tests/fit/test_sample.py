from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from cceclust.fit.sample import Sample, take_sample
from cceclust.fit.source import as_source

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 12)) * np.linspace(3, 1, 12) + 5


def sample_of(rows: Any, weights: Any = None, **changes: Any) -> Sample:
    settings: dict[str, Any] = {
        "first": np.empty(0, np.intp),
        "scale": "auto",
        "n_components": 100,
        "max_rows": 100_000,
        "seed": 0,
    }
    source = as_source(rows)
    return take_sample(source, np.ones(source.shape[0]) if weights is None else weights, **settings | changes)


def test_points_are_principal_components_at_one_overall_scale() -> None:
    sample = sample_of(X)
    expected = PCA(12).fit_transform(X) / np.sqrt(X.var(axis=0).mean())
    np.testing.assert_allclose(np.abs(sample.points), np.abs(expected), atol=1e-4)


@pytest.mark.parametrize("n_columns", [12, 1500])
def test_sparse_rows_give_the_points_of_dense_ones(n_columns: int) -> None:
    # Six groups, so that five directions stand out.
    rates = 20 * (RNG.random((6, n_columns)) < 0.1)
    rows = RNG.poisson(rates[np.arange(200) % 6]).astype(np.float64)
    dense, thin = sample_of(rows, n_components=5), sample_of(sparse.csr_array(rows), n_components=5)
    np.testing.assert_allclose(dense.points @ dense.points.T, thin.points @ thin.points.T, atol=0.2)
    assert thin.points.dtype == np.float32


def test_only_so_many_components_are_kept_and_directions_without_variance_are_not() -> None:
    assert sample_of(X, n_components=4).points.shape == (300, 4)
    assert sample_of(X[:, [0, 0, 1, 1]]).points.shape == (300, 2)


def test_many_far_rows_may_be_a_cluster_and_stay() -> None:
    rows = X.copy()
    rows[:30] += 1e4
    assert sample_of(rows).n_far == 0


def test_of_many_rows_so_many_are_taken_at_random_but_the_first_ones_always() -> None:
    first = np.array([3, 250])
    one, other = sample_of(X, max_rows=50, first=first), sample_of(X, max_rows=50, first=first, seed=1)
    assert len(one.which) == len(other.which) == 50
    assert {3, 250} <= set(one.which) & set(other.which)
    assert set(one.which) != set(other.which)
    assert (np.diff(one.which) > 0).all()
