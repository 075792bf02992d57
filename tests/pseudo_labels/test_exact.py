"""The exact solver reaches the minimum of L_CCE+, for every input, and its gap proves it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cceclust import estimate_pseudo_labels
from cceclust.objective import loss_cce_plus
from cceclust.pseudo_labels import PGDSolver, solve_pseudo_labels

FAIRNESS = [1e-3, 0.1, 1.0, 10.0, 100.0, 1e4, 1e6]


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


@st.composite
def problems(draw, max_clusters=12, fairness=(0.0, *FAIRNESS)):
    """Probabilities from flat to one-hot, with ties and repeated rows, any prior, any weights, any fairness."""
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_clusters, n_samples = draw(st.integers(1, max_clusters)), draw(st.integers(1, 30))
    logits = draw(st.sampled_from([0.0, 1.0, 5.0, 30.0, 1000.0])) * generator.normal(size=(n_samples, n_clusters))
    kind = draw(st.sampled_from(["as drawn", "repeated", "one class", "one-hot", "unused class"]))
    if kind == "repeated":
        logits = logits[generator.integers(min(2, n_samples), size=n_samples)]
    probabilities = softmax(logits)
    if kind == "one class":
        probabilities = np.eye(n_clusters)[np.zeros(n_samples, int)]
    elif kind == "one-hot":
        probabilities = np.eye(n_clusters)[generator.integers(n_clusters, size=n_samples)]
    elif kind == "unused class" and n_clusters > 1:
        probabilities = np.c_[np.zeros(n_samples), softmax(logits[:, 1:])]
    prior = draw(st.sampled_from(["uniform", "skewed", "with zeros", "tiny"]))
    sizes = generator.dirichlet(np.full(n_clusters, 0.1 if prior == "skewed" else 1.0)) + 1e-12
    if prior == "with zeros":
        sizes[generator.random(n_clusters) < 0.5] = 0
        sizes[0] += 1e-3
    elif prior == "tiny":
        sizes = np.r_[np.full(n_clusters - 1, 1e-30), 1]
    weights = generator.random(n_samples) * (generator.random(n_samples) < 0.8)
    weights[0] += 0.01
    return probabilities, {
        "fairness": draw(st.sampled_from(fairness)),
        "prior": None if prior == "uniform" else sizes / sizes.sum(),
        "sample_weight": draw(st.sampled_from([None, weights])),
    }


def exact(probabilities, **options):
    return estimate_pseudo_labels(probabilities, solver="exact", **options)


@settings(max_examples=300)
@given(problems())
def test_gap_is_met_and_the_loss_is_the_objective(problem):
    probabilities, options = problem
    result = exact(probabilities, **options, return_loss_curve=True)
    loss = loss_cce_plus(probabilities, result.pseudo_labels, **options)
    assert result.converged
    assert 0 <= result.gap <= 1.0001e-6 * max(loss, 1e-3)
    assert result.loss_curve[-1] == pytest.approx(loss, rel=1e-9, abs=1e-9 * (1 + options["fairness"]))
    assert (result.pseudo_labels >= 0).all()
    np.testing.assert_allclose(result.pseudo_labels.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("fairness", FAIRNESS)
@pytest.mark.parametrize("sharpness", [0.0, 3.0, 1000.0])
def test_gap_is_met_for_many_clusters(fairness, sharpness):
    sigma = softmax(sharpness * np.random.default_rng(0).normal(size=(40, 100)))
    result = exact(sigma, fairness=fairness)
    assert result.gap <= 1.0001e-6 * max(loss_cce_plus(sigma, result.pseudo_labels, fairness=fairness), 1e-3)


def test_gap_is_met_for_a_thousand_clusters():
    sigma = softmax(np.random.default_rng(0).normal(size=(6, 1000)))
    result = exact(sigma, fairness=100.0)
    assert result.gap <= 1.0001e-6 * loss_cce_plus(sigma, result.pseudo_labels, fairness=100.0)


@settings(max_examples=40)
@given(problems(max_clusters=5))
def test_a_looser_solution_is_no_further_from_the_minimum_than_its_gap(problem):
    probabilities, options = problem
    minimum = exact(probabilities, **options, tol=1e-7)
    lowest = loss_cce_plus(probabilities, minimum.pseudo_labels, **options)
    rounding = 1e-12 * (1 + options["fairness"])
    for max_iter in (0, 1, 3, 6):
        rough = exact(probabilities, **options, max_iter=max_iter)
        excess = loss_cce_plus(probabilities, rough.pseudo_labels, **options) - lowest
        assert -minimum.gap - rounding <= excess <= rough.gap + rounding


@settings(max_examples=40)
@given(problem=problems(fairness=FAIRNESS))
def test_the_gap_of_em_bounds_its_error(problem):
    probabilities, options = problem
    best = exact(probabilities, **options)
    lowest = loss_cce_plus(probabilities, best.pseudo_labels, **options)
    result = estimate_pseudo_labels(probabilities, **options, max_iter=30, tol=0)
    excess = loss_cce_plus(probabilities, result.pseudo_labels, **options) - lowest
    assert excess <= result.gap + best.gap + 1e-11 * (1 + options["fairness"])


@pytest.mark.parametrize("fairness", [0.1, 1.0, 100.0])
def test_scipy_finds_no_lower_loss(fairness):
    generator = np.random.default_rng(0)
    sigma = softmax(2 * generator.normal(size=(6, 3)))
    sigma[5] = sigma[4]
    options = {"fairness": fairness, "prior": np.array([0.5, 0.3, 0.2]), "sample_weight": generator.random(6) + 0.1}
    reference = minimize(
        lambda flat: loss_cce_plus(sigma, flat.reshape(6, 3), **options),
        np.full(18, 1 / 3),
        method="SLSQP",
        bounds=[(1e-12, 1)] * 18,
        constraints={"type": "eq", "fun": lambda flat: flat.reshape(6, 3).sum(axis=1) - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    result = exact(sigma, **options)
    loss = loss_cce_plus(sigma, result.pseudo_labels, **options)
    assert reference.fun - 1e-4 * fairness <= loss <= reference.fun + result.gap


@pytest.mark.parametrize("fairness", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("sharpness", [1.0, 5.0])
def test_loss_is_lower_than_after_ten_thousand_iterations_of_em(fairness, sharpness):
    sigma = softmax(sharpness * np.random.default_rng(0).normal(size=(60, 6)))
    by_em = estimate_pseudo_labels(sigma, fairness=fairness, max_iter=10_000, tol=0)
    result = exact(sigma, fairness=fairness)
    losses = [loss_cce_plus(sigma, r.pseudo_labels, fairness=fairness) for r in (result, by_em)]
    assert losses[0] <= losses[1] + result.gap


@pytest.mark.parametrize("fairness", [1.0, 100.0])
def test_em_does_not_leave_the_minimum(fairness):
    sigma = softmax(np.random.default_rng(0).normal(size=(60, 6)))
    result = exact(sigma, fairness=fairness, tol=1e-10)
    after = estimate_pseudo_labels(sigma, fairness=fairness, initial=result.pseudo_labels, max_iter=20, tol=0)
    np.testing.assert_allclose(after.pseudo_labels, result.pseudo_labels, atol=1e-5)


def test_nearly_all_points_have_at_most_two_classes():
    sigma = softmax(np.random.default_rng(0).normal(size=(200, 8)))
    labels = exact(sigma, fairness=10.0, tol=1e-9).pseudo_labels
    # w has eight numbers; more lines than two meet in at most as many points.
    assert ((labels > 1e-4).sum(axis=1) > 2).sum() <= 8


def test_equal_points_share_what_no_single_label_could():
    labels = exact(np.full((5, 2), 0.5), fairness=100.0, prior=[0.3, 0.7]).pseudo_labels
    np.testing.assert_allclose(labels.mean(axis=0), [0.3, 0.7], atol=1e-6)


def test_without_fairness_the_largest_probability_takes_all():
    labels = exact([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]], fairness=0).pseudo_labels
    np.testing.assert_allclose(labels, [[1, 0, 0], [0.5, 0.5, 0]], atol=1e-5)


def test_points_without_weight_do_not_count():
    sigma = softmax(np.random.default_rng(0).normal(size=(30, 4)))
    weighted = exact(sigma, sample_weight=np.r_[np.ones(20), np.zeros(10)], fairness=10, tol=1e-10).pseudo_labels
    alone = exact(sigma[:20], fairness=10, tol=1e-10).pseudo_labels
    np.testing.assert_allclose(weighted[:20], alone, atol=1e-6)


def test_start_does_not_matter():
    sigma = softmax(np.random.default_rng(0).normal(size=(30, 4)))
    np.testing.assert_array_equal(exact(sigma, initial=sigma[::-1]).pseudo_labels, exact(sigma).pseudo_labels)


@pytest.mark.parametrize("fairness", [1.0, 100.0])
def test_single_precision_stays_and_is_solved_in_double(fairness):
    sigma = softmax(np.random.default_rng(0).normal(size=(300, 5))).astype(np.float32)
    single = exact(sigma, fairness=fairness)
    double = exact(sigma.astype(np.float64), fairness=fairness)
    assert single.pseudo_labels.dtype == np.float32
    np.testing.assert_allclose(single.pseudo_labels, double.pseudo_labels, rtol=1e-5, atol=1e-12)
    assert single.gap == pytest.approx(double.gap, rel=1e-2)


def test_a_tolerance_below_rounding_ends_with_the_best_labels_seen():
    sigma = softmax(np.random.default_rng(0).normal(size=(50, 5)))
    result = exact(sigma, fairness=100.0, tol=0)
    assert not result.converged
    assert result.gap < 1e-9
    np.testing.assert_allclose(result.pseudo_labels.sum(axis=1), 1, atol=1e-12)


def test_other_losses_have_no_gap():
    sigma = softmax(np.random.default_rng(0).normal(size=(20, 3)))
    plus, other = (solve_pseudo_labels(PGDSolver(loss=loss, step_size=0.2), sigma) for loss in ("cce+", "cce"))
    lowest = loss_cce_plus(sigma, exact(sigma).pseudo_labels, fairness=1.0)
    assert loss_cce_plus(sigma, plus.pseudo_labels, fairness=1.0) - lowest <= plus.gap < 0.1
    assert other.gap is None
