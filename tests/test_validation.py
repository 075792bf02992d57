"""Bad input is refused with one message that names the value and where it is."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from cceclust import estimate_pseudo_labels
from cceclust.errors import InputError
from cceclust.pseudo_labels import EMSolver
from cceclust.validation import as_prior, thread_count

GOOD = np.full((4, 2), 0.5)


def with_value(value, position=(2, 1)):
    array = GOOD.copy()
    array[position] = value
    return array


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (with_value(0.7), "the sum of probabilities at row 2 is 1.2, not 1"),
        (with_value(-0.25), "probabilities at row 2, column 1 is -0.25, negative"),
        (with_value(np.nan), "probabilities at row 2, column 1 is nan, not a finite number"),
        (with_value(np.inf), "probabilities at row 2, column 1 is inf, not a finite number"),
        (np.full(3, 1 / 3), r"got shape \(3,\)"),
        (np.empty((0, 3)), r"got shape \(0, 3\)"),
        ([["a", "b"]], "must hold numbers, got dtype <U1"),
    ],
)
def test_bad_probabilities_are_named(probabilities, message):
    with pytest.raises(InputError, match=message):
        estimate_pseudo_labels(probabilities)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": [0.2, 0.3, 0.5]}, "prior has 3 entries, but there are 2 clusters"),
        ({"prior": [0.1, 0.3]}, r"prior sums to 0.4, expected 1; divided by its sum it is \[0.25, 0.75\]"),
        ({"prior": [0, 0]}, "prior sums to 0, expected 1$"),
        ({"prior": ["a", "b"]}, r"prior=\['a', 'b'\]; expected numbers"),
        ({"prior": [[0.5, 0.5]]}, r"prior must have shape \(n_clusters,\), got shape \(1, 2\)"),
        ({"prior": [1.5, -0.5]}, "prior at cluster 1 is -0.5, negative"),
        ({"sample_weight": [1, 1]}, r"sample_weight must have shape \(4,\), got shape \(2,\)"),
        ({"sample_weight": [1, 1, -2, 1]}, "sample_weight at row 2 is -2, negative"),
        ({"sample_weight": [0, 0, 0, 0]}, "sample_weight is zero for every row"),
        ({"initial": np.full((4, 3), 1 / 3)}, r"initial has shape \(4, 3\), but probabilities have shape \(4, 2\)"),
        ({"initial": with_value(0.9)}, "the sum of initial at row 2 is 1.4, not 1"),
        ({"fairness": -1}, "fairness=-1; expected a number of at least 0"),
        ({"fairness": np.nan}, "fairness=nan; expected a number of at least 0"),
        ({"tol": -1e-3}, "tol=-0.001; expected a number of at least 0"),
        ({"max_iter": 2.5}, "max_iter=2.5; expected a whole number of at least 0"),
        ({"solver": "newton"}, "solver='newton'; expected one of 'em', 'exact'"),
        ({"max_iter": -1}, "max_iter=-1; expected a whole number of at least 0"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(InputError, match=message):
        estimate_pseudo_labels(GOOD, **options)


def test_input_errors_are_value_errors():
    with pytest.raises(ValueError):
        EMSolver(fairness=-1)


def test_lists_and_integers_are_taken():
    np.testing.assert_array_equal(estimate_pseudo_labels([[1, 0], [0, 1]]).pseudo_labels.round(6), np.eye(2))


def test_prior_is_uniform_by_default_and_scaled_only_within_half_precision():
    assert as_prior(None) is None
    np.testing.assert_array_equal(as_prior(None, 4), [0.25] * 4)
    np.testing.assert_allclose(as_prior([0.2, 0.8005], 2).sum(), 1, rtol=1e-15)
    with pytest.raises(InputError, match=r"prior sums to 1\.002, expected 1"):
        as_prior([0.2, 0.802], 2)
    with pytest.raises(InputError, match="prior has 2 entries, but there are 3 clusters"):
        as_prior([0.2, 0.8], 3)


def test_a_long_prior_is_shown_in_part():
    with pytest.raises(
        InputError, match=r"sums to 300, .* it is \[0.0033, 0.0033, 0.0033, ..., 0.0033, 0.0033, 0.0033\]$"
    ):
        as_prior(np.ones(300))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only some systems bind a process to cores")
def test_no_more_threads_than_this_process_may_use():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from cceclust.validation import thread_count; print(thread_count(None), thread_count(-1))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "1"]


def test_no_more_threads_than_the_container_has(monkeypatch):
    # joblib reads the limits of control groups.
    monkeypatch.setattr("joblib.cpu_count", lambda: 3)
    assert [thread_count(n_jobs) for n_jobs in (None, -1, -2, -9, 5)] == [3, 3, 2, 1, 5]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_impossible_numbers_of_threads_are_named(n_jobs):
    with pytest.raises(InputError, match=f"n_jobs={n_jobs!r}; expected a positive whole number, or -1 for all cores"):
        thread_count(n_jobs)
