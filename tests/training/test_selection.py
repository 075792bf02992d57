from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from cceclust import choices
from cceclust.training import selection
from cceclust.training.objectives import MutualInformation
from cceclust.training.rows import ArrayRows
from cceclust.training.selection import adjusted_rand_index, evaluate, mean_pairwise_ari


@given(
    st.integers(1, 40).flatmap(
        lambda k: st.lists(st.tuples(st.integers(0, k - 1), st.integers(0, k - 1)), min_size=1, max_size=60).map(
            lambda pairs: (k, np.array(pairs))
        )
    )
)
def test_fast_index_is_that_of_scikit_learn(case: tuple[int, Any]) -> None:
    n_clusters, pairs = case
    found = adjusted_rand_index(pairs[:, 0], pairs[:, 1], n_clusters)
    assert found == pytest.approx(adjusted_rand_score(pairs[:, 0], pairs[:, 1]), abs=1e-9)


def test_very_many_clusters_need_no_table_of_all_pairs() -> None:
    labels = np.random.default_rng(0).integers(0, 100_000, (2, 500))
    assert adjusted_rand_index(*labels, 100_000) == pytest.approx(adjusted_rand_score(*labels), abs=1e-9)


def test_agreement_is_the_mean_over_pairs_and_unknown_for_one() -> None:
    labels = np.random.default_rng(0).integers(0, 3, (3, 50))
    expected = np.mean([adjusted_rand_score(labels[a], labels[b]) for a, b in [(0, 1), (0, 2), (1, 2)]])
    assert mean_pairwise_ari(labels, 3) == pytest.approx(expected)
    assert mean_pairwise_ari(labels[:1], 3) is None


def heads_and_rows() -> tuple[Any, Any, ArrayRows]:
    generator = np.random.default_rng(0)
    return generator.normal(size=(3, 2, 4)), generator.normal(size=(3, 2)), ArrayRows(generator.normal(size=(300, 4)))


def information(members: object = None) -> MutualInformation:
    return MutualInformation(np.full(2, 0.5), 1.3)


def test_losses_are_those_of_the_objective_on_all_rows_for_any_number_of_threads() -> None:
    coef, intercept, rows = heads_and_rows()
    weights = np.random.default_rng(1).random(300)
    found = [
        evaluate(coef, intercept, rows, information, sample_weight=weights, seed=0, n_threads=n).losses for n in (1, 2)
    ]
    logits = np.einsum("nd,rkd->rkn", rows.matrix, coef) + intercept[:, :, None]
    stack = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[0], information().losses(stack, weights / weights.sum()))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(("sharpness", "expected"), [(0.01, 2), (100.0, 1)])
def test_restarts_that_found_the_best_clusters_are_counted(sharpness: float, expected: int) -> None:
    coef, intercept, rows = heads_and_rows()
    # The same clusters in another order, and a restart of its own.
    coef, intercept = coef[[0, 0, 1]], intercept[[0, 0, 1]]
    coef[1], intercept[1] = coef[1][::-1], intercept[1][::-1]
    # Sure predictions have the lowest loss, vague ones the highest.
    coef[2], intercept[2] = sharpness * coef[2], sharpness * intercept[2]
    evaluation = evaluate(coef, intercept, rows, information, sample_weight=np.ones(300), seed=0)
    assert evaluation.n_agreeing == expected


def test_very_many_rows_are_sampled_in_their_order_and_without_those_of_no_weight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coef, intercept, rows = heads_and_rows()
    weights = np.ones(300)
    weights[::3] = 0
    whole = evaluate(coef, intercept, rows, information, sample_weight=weights, seed=0)
    monkeypatch.setattr(choices, "EVALUATION_BYTES", 100 * 6 * 8)
    chosen = selection.rows_to_evaluate(rows, weights, 3, 2, seed=0)
    assert len(chosen) == 100
    assert (np.diff(chosen) > 0).all()
    assert (weights[chosen] > 0).all()
    sampled = evaluate(coef, intercept, rows, information, sample_weight=weights, seed=0)
    np.testing.assert_allclose(sampled.losses, whole.losses, atol=0.2)
    assert not np.array_equal(sampled.losses, whole.losses)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_diverged_restart_is_never_the_best() -> None:
    coef, intercept, rows = heads_and_rows()
    coef[1] = np.nan
    found = evaluate(coef, intercept, rows, information, sample_weight=np.ones(300), seed=0)
    assert found.losses[1] == np.inf
    assert np.isfinite(found.losses[[0, 2]]).all()
