from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cceclust.training.diagnosis import find_problems, predict_rows
from cceclust.training.head import Head
from cceclust.training.rows import in_memory

GOOD: dict[str, Any] = {
    "sizes": np.array([40, 60]),
    "prior": np.array([0.5, 0.5]),
    "mean_confidence": 0.9,
    "agreement": 0.9,
    "converged": True,
}


def test_good_clusters_have_no_problems() -> None:
    assert find_problems(**GOOD) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sizes": np.array([100, 0])}, "1 of 2 clusters is empty; try another fairness"),
        ({"sizes": np.array([98, 2])}, "1 of 2 clusters holds less than 15% of the expected rows"),
        ({"mean_confidence": 0.52}, "mean confidence is 0.52, hardly above the 0.50 of a guess"),
        ({"agreement": 0.2}, "restarts disagree (mean pairwise ARI 0.20)"),
        ({"converged": False}, "still falling when training stopped; raise max_epochs"),
    ],
)
def test_each_problem_is_told_alone(change: dict[str, Any], said: str) -> None:
    problems = find_problems(**{**GOOD, **change})
    assert len(problems) == 1
    assert said in problems[0]


def test_several_problems_are_all_told() -> None:
    problems = find_problems(np.array([99, 1, 0, 0]), np.full(4, 0.25), 0.3, agreement=0.0, converged=False)
    assert len(problems) == 5
    assert problems[0].startswith("2 of 4 clusters are empty")


def test_a_cluster_that_is_expected_to_be_empty_may_be() -> None:
    changed = {"sizes": np.array([100, 0]), "prior": np.array([1.0, 0.0])}
    assert find_problems(**{**GOOD, **changed}) == []


def test_sizes_are_compared_with_the_prior() -> None:
    changed = {"sizes": np.array([97, 3]), "prior": np.array([0.96, 0.04])}
    assert find_problems(**{**GOOD, **changed}) == []


def test_one_cluster_and_one_restart_are_no_problem() -> None:
    assert find_problems(np.array([5]), np.ones(1), 1.0, agreement=None, converged=True) == []


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_centers_are_weighted_means_of_the_members(as_rows, monkeypatch: pytest.MonkeyPatch) -> None:
    # Several blocks.
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 7 * 3 * 8)
    generator = np.random.default_rng(0)
    X, weights = generator.normal(size=(60, 3)), generator.uniform(size=60)
    # The last cluster gets no row.
    coef, intercept = generator.normal(size=(4, 3)), np.array([0.0, 0.0, 0.0, -1e3])
    prediction = predict_rows(Head(coef, intercept), in_memory(as_rows(X)), sample_weight=weights)
    for cluster in range(3):
        members = prediction.labels == cluster
        expected = np.average(X[members], axis=0, weights=weights[members])
        np.testing.assert_allclose(prediction.centers[cluster], expected)
    np.testing.assert_allclose(prediction.centers[3], np.average(X, axis=0, weights=weights))


def test_centers_of_the_largest_numbers_are_finite() -> None:
    X = np.full((40, 2), np.finfo(np.float64).max / 2)
    prediction = predict_rows(Head(np.zeros((1, 2)), np.zeros(1)), in_memory(X), sample_weight=np.ones(40))
    np.testing.assert_allclose(prediction.centers, X[:1])
