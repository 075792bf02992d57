"""The solver benchmark measures what it says, and its yardstick computes the same thing as the kernel."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cceclust import estimate_pseudo_labels
from cceclust.bench import solver as bench
from cceclust.cli.main import run


@pytest.fixture(scope="module")
def benchmark():
    return bench.benchmark_solvers(n_clusters=[3], n_points=50)


def test_yardstick_equals_the_kernel():
    rows = np.random.default_rng(0).dirichlet(np.ones(7), size=30)
    labels = rows.copy()
    bench.em_row_by_row(rows, labels, 2.0, 10)
    expected = estimate_pseudo_labels(rows, fairness=2.0, max_iter=10, tol=0).pseudo_labels
    np.testing.assert_allclose(labels, expected, atol=1e-9)


def test_every_method_is_timed_to_the_same_loss(benchmark):
    em, *pgd = benchmark.timings
    assert em.method == "EM"
    assert em.iterations > 0
    assert [timing.step_size for timing in pgd] == sorted(timing.step_size for timing in pgd)
    for timing in benchmark.timings:
        assert timing.seconds_per_iteration > 0
        assert (timing.seconds is None) == (timing.iterations is None)
        if timing.seconds is not None:
            assert timing.seconds == pytest.approx(timing.iterations * timing.seconds_per_iteration)


def test_ratios_are_those_of_the_table(benchmark):
    em, *pgd = benchmark.timings
    best = min(timing.seconds for timing in pgd if timing.seconds is not None)
    assert benchmark.best_pgd_over_em[3] == pytest.approx(best / em.seconds)
    assert benchmark.row_loop_over_kernel[3] > 0


def test_command_prints_json_and_a_table(monkeypatch, capsys):
    # Compiling afresh in two processes is measured by the command, not needed in a test.
    monkeypatch.setattr(bench, "measure_start_up", lambda: bench.StartUp(2.0, 0.25))
    assert run(["bench", "solver", "-k", "2", "--points", "20", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["benchmark"]["timings"][0]["method"] == "EM"
    assert printed["start_up"] == {"cold_seconds": 2.0, "warm_seconds": 0.25}
    assert run(["bench", "solver", "-k", "2", "--points", "20"]) == 0
    assert "0.25 s from the cache on disk" in capsys.readouterr().out


def test_first_call_is_measured_in_fresh_processes(monkeypatch):
    monkeypatch.setattr(bench, "FIRST_CALL", "import os; print(len(os.environ['NUMBA_CACHE_DIR']))")
    start_up = bench.measure_start_up()
    assert start_up.cold_seconds == start_up.warm_seconds > 0
