"""EM minimises L_CCE+: exactly, monotonically, for every input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cceclust import estimate_pseudo_labels
from cceclust.objective import loss_cce_plus
from cceclust.pseudo_labels import em


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


@st.composite
def problems(draw, max_clusters=12):
    """Probabilities from flat to one-hot, any prior, any weights, any fairness."""
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_clusters = draw(st.integers(1, max_clusters))
    n_samples = draw(st.integers(1, 30))
    sharpness = draw(st.sampled_from([0.0, 1.0, 5.0, 30.0, 1000.0]))
    probabilities = softmax(sharpness * generator.normal(size=(n_samples, n_clusters)))
    prior = draw(st.sampled_from(["uniform", "skewed", "with zeros"]))
    sizes = generator.dirichlet(np.full(n_clusters, 0.1 if prior == "skewed" else 1.0)) + 1e-12
    if prior == "with zeros":
        sizes[generator.random(n_clusters) < 0.5] = 0
        sizes[0] += 1e-3
    weights = generator.random(n_samples) * (generator.random(n_samples) < 0.8)
    weights[0] += 0.01
    return probabilities, {
        "fairness": draw(st.sampled_from([0.0, 1e-6, 0.1, 1.0, 10.0, 1e3, 1e6])),
        "prior": None if prior == "uniform" else sizes / sizes.sum(),
        "sample_weight": draw(st.sampled_from([None, weights])),
    }


def rounding(dtype, curve, fairness):
    """What the float type may add to a loss of this size."""
    return 200 * np.finfo(dtype).eps * (1 + np.abs(curve).max() + fairness)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(problems())
def test_loss_never_rises_within_a_solve(dtype, problem):
    probabilities, options = problem
    result = estimate_pseudo_labels(probabilities.astype(dtype), **options, max_iter=15, tol=0, return_loss_curve=True)
    curve = result.loss_curve[1:]
    assert len(curve) == 15
    assert np.isfinite(curve).all()
    assert np.diff(curve).max(initial=0) <= rounding(dtype, curve, options["fairness"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(problems())
def test_rows_stay_on_the_simplex(dtype, problem):
    probabilities, options = problem
    labels = estimate_pseudo_labels(probabilities.astype(dtype), **options, max_iter=10).pseudo_labels
    assert labels.dtype == dtype
    assert (labels >= 0).all()
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=50 * np.finfo(dtype).eps)


@given(problems())
def test_reported_loss_is_the_objective(problem):
    probabilities, options = problem
    result = estimate_pseudo_labels(probabilities, **options, max_iter=5, tol=0, return_loss_curve=True)
    expected = loss_cce_plus(probabilities, result.pseudo_labels, **options)
    assert result.loss_curve[-1] == pytest.approx(expected, rel=1e-9, abs=1e-9 * (1 + options["fairness"]))


def m_step(probabilities, coefficients):
    """Minimise −ln σ·y − Σ a ln y for every row with the kernel's own code."""
    n_samples, n_clusters = probabilities.shape
    sigma = np.ascontiguousarray(probabilities.T)
    labels = np.ascontiguousarray(coefficients.T)
    weights = np.full(n_samples, 1 / n_samples)
    workspace = em._workspace(sigma)
    em._prepare(sigma, labels.copy(), np.zeros(n_clusters), weights, 1.0, workspace)
    workspace.per_cluster[0] = 1
    em._minimise(labels, workspace, 0, n_samples)
    em._normalise(labels, weights, workspace, 0, n_samples)
    return labels.T


def m_step_loss(probabilities, coefficients, labels):
    logs = np.where(coefficients > 0, np.log(np.where(labels > 0, labels, 1e-300)), 0)
    return -np.log((probabilities * labels).sum(axis=-1)) - (coefficients * logs).sum(axis=-1)


m_step_problems = st.builds(
    lambda seed, n_clusters, sharpness, size: (
        softmax(sharpness * np.random.default_rng(seed).normal(size=(8, n_clusters))),
        size * np.random.default_rng(seed + 1).dirichlet(np.full(n_clusters, 0.5), size=8) + 1e-9,
    ),
    st.integers(0, 10_000),
    st.integers(1, 40),
    st.sampled_from([0.0, 1.0, 5.0, 20.0]),
    st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
)


@given(m_step_problems)
def test_m_step_is_stationary(problem):
    sigma, a = problem
    y = m_step(sigma, a)
    x = (sigma * y).sum(axis=1, keepdims=True)
    # The equation before (16), in units of its largest term.
    residual = y * (1 + a.sum(axis=1, keepdims=True) - sigma / x) - a
    assert np.abs(residual).max() <= 1e-8 * (1 + a.sum(axis=1).max())


@settings(max_examples=20)
@given(m_step_problems)
def test_m_step_beats_random_points_of_the_simplex(problem):
    sigma, a = problem
    best = m_step_loss(sigma, a, m_step(sigma, a))
    generator = np.random.default_rng(0)
    for concentration in (0.1, 1.0):
        points = generator.dirichlet(np.full(sigma.shape[1], concentration), size=(500, 1)) + 1e-300
        others = m_step_loss(sigma, a, points)
        assert (best <= others + 1e-9 * (1 + np.abs(others))).all()


def test_m_step_without_pull_on_the_largest_class_is_the_closed_form():
    sigma = np.array([[0.6, 0.3, 0.1]])
    a = np.array([[0.0, 0.2, 0.1]])
    rest = a[:, 1:] / ((1 + a.sum()) * (1 - sigma[:, 1:] / 0.6))
    np.testing.assert_allclose(m_step(sigma, a), np.concatenate([1 - rest.sum(axis=1, keepdims=True), rest], axis=1))


def test_m_step_without_pull_falls_back_to_zero_where_the_closed_form_would_be_negative():
    sigma = np.array([[0.36, 0.34, 0.3]])
    a = np.array([[0.0, 5.0, 5.0]])
    y = m_step(sigma, a)
    assert y[0, 0] == 0
    np.testing.assert_allclose(y[:, 1:], m_step(sigma[:, 1:], a[:, 1:]), rtol=1e-12)


def test_m_step_without_pull_shares_between_tied_largest_classes():
    y = m_step(np.array([[0.4, 0.4, 0.2]]), np.array([[0.0, 0.0, 0.1]]))
    assert y[0, 0] == y[0, 1] > 0
    assert y.sum() == pytest.approx(1)


def test_without_fairness_the_largest_probability_takes_all():
    labels = estimate_pseudo_labels([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]], fairness=0).pseudo_labels
    np.testing.assert_array_equal(labels, [[1, 0, 0], [0.5, 0.5, 0]])


@given(problems())
def test_positive_stays_positive_where_the_prior_is(problem):
    probabilities, options = problem
    start = np.full(probabilities.shape, 1 / probabilities.shape[1])
    labels = estimate_pseudo_labels(probabilities, **options, max_iter=30, tol=0, initial=start).pseudo_labels
    wanted = options["prior"] is None or options["prior"] > 0
    assert (labels > 0)[:, np.broadcast_to(wanted, labels.shape[1])].all() or options["fairness"] == 0


@pytest.mark.parametrize("fairness", [0.1, 1.0])
def test_limit_is_the_minimum_that_scipy_finds(fairness):
    generator = np.random.default_rng(0)
    sigma = softmax(generator.normal(size=(6, 3)))
    prior, weights = np.array([0.5, 0.3, 0.2]), generator.random(6) + 0.1
    options = {"fairness": fairness, "prior": prior, "sample_weight": weights}

    def loss_of_rows(flat):
        return loss_cce_plus(sigma, flat.reshape(6, 3), **options)

    reference = minimize(
        loss_of_rows,
        np.full(18, 1 / 3),
        method="SLSQP",
        bounds=[(1e-12, 1)] * 18,
        constraints={"type": "eq", "fun": lambda flat: flat.reshape(6, 3).sum(axis=1) - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    result = estimate_pseudo_labels(sigma, **options, max_iter=200_000, tol=1e-13)
    loss = loss_cce_plus(sigma, result.pseudo_labels, **options)
    assert loss == pytest.approx(reference.fun, abs=1e-6)


@given(problems(), st.randoms(use_true_random=False))
def test_permuting_points_or_clusters_permutes_the_answer(problem, random):
    probabilities, options = problem
    n_samples, n_clusters = probabilities.shape
    rows, columns = list(range(n_samples)), list(range(n_clusters))
    random.shuffle(rows)
    random.shuffle(columns)
    moved = {
        "fairness": options["fairness"],
        "prior": None if options["prior"] is None else options["prior"][columns],
        "sample_weight": None if options["sample_weight"] is None else options["sample_weight"][rows],
    }
    straight = estimate_pseudo_labels(probabilities, **options, max_iter=3, tol=0).pseudo_labels
    permuted = estimate_pseudo_labels(probabilities[rows][:, columns], **moved, max_iter=3, tol=0).pseudo_labels
    np.testing.assert_allclose(permuted, straight[rows][:, columns], atol=1e-8)


@pytest.mark.parametrize("fairness", [0.1, 1.0, 100.0])
def test_float32_agrees_with_float64(fairness):
    sigma = softmax(2 * np.random.default_rng(0).normal(size=(200, 10))).astype(np.float32)
    single = estimate_pseudo_labels(sigma, fairness=fairness, max_iter=20, tol=0).pseudo_labels
    double = estimate_pseudo_labels(sigma.astype(np.float64), fairness=fairness, max_iter=20, tol=0).pseudo_labels
    np.testing.assert_allclose(single, double, atol=2e-4)


def test_read_only_and_non_contiguous_input_is_taken_and_left_alone():
    sigma = softmax(np.random.default_rng(0).normal(size=(40, 4)))
    expected = estimate_pseudo_labels(sigma).pseudo_labels
    wide = np.repeat(np.asfortranarray(sigma), 2, axis=1)[:, ::2]
    wide.flags.writeable = False
    before = wide.copy()
    np.testing.assert_array_equal(estimate_pseudo_labels(wide, initial=wide).pseudo_labels, expected)
    np.testing.assert_array_equal(wide, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fairness", [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("n_clusters", [1, 2, 1000])
@pytest.mark.parametrize("case", ["one-hot", "ties", "denormals", "one point", "duplicates", "empty cluster"])
def test_nothing_yields_nan(dtype, fairness, n_clusters, case):
    generator = np.random.default_rng(0)
    sigma = np.eye(n_clusters)[generator.integers(n_clusters, size=20)]
    if case == "ties":
        sigma = np.full((20, n_clusters), 1 / n_clusters)
    elif case == "denormals":
        sigma = np.maximum(sigma, np.finfo(dtype).smallest_subnormal)
    elif case == "one point":
        sigma = sigma[:1]
    elif case == "duplicates":
        sigma = np.repeat(sigma[:1], 20, axis=0)
    elif case == "empty cluster":
        sigma = softmax(generator.normal(size=(20, n_clusters)))
        sigma[:, 0] = 0 if n_clusters > 1 else 1
        sigma /= sigma.sum(axis=1, keepdims=True)
    prior = np.full(n_clusters, 1e-30)
    prior[-1] = 1
    for u in (None, prior):
        result = estimate_pseudo_labels(
            sigma.astype(dtype), fairness=fairness, prior=u, max_iter=10, tol=0, return_loss_curve=True
        )
        assert np.isfinite(result.pseudo_labels).all()
        assert np.isfinite(result.loss_curve[1:]).all()


def test_a_cluster_that_nobody_predicts_is_filled():
    sigma = np.array([[1.0, 0.0], [1.0, 0.0]], np.float32)
    labels = estimate_pseudo_labels(sigma, fairness=100.0).pseudo_labels
    assert labels[:, 1].mean() == pytest.approx(0.5, abs=0.02)


def test_points_without_weight_do_not_count():
    sigma = softmax(np.random.default_rng(0).normal(size=(30, 4)))
    weights = np.r_[np.ones(20), np.zeros(10)]
    weighted = estimate_pseudo_labels(sigma, sample_weight=weights, max_iter=20, tol=0).pseudo_labels
    alone = estimate_pseudo_labels(sigma[:20], max_iter=20, tol=0).pseudo_labels
    np.testing.assert_allclose(weighted[:20], alone, atol=1e-10)


@example(fairness=1.0)
@given(fairness=st.floats(0.1, 10))
@settings(max_examples=5)
def test_tolerance_stops_early_and_says_so(fairness):
    sigma = softmax(2 * np.random.default_rng(0).normal(size=(50, 4)))
    loose = estimate_pseudo_labels(sigma, fairness=fairness, tol=1e-2)
    assert loose.converged
    assert loose.iterations < 1000
    cut_short = estimate_pseudo_labels(sigma, fairness=fairness, tol=1e-12, max_iter=7)
    assert not cut_short.converged
    assert cut_short.iterations == 7
