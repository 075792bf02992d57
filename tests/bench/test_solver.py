"""The solver benchmark measures what it says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cceclust.bench import solver as bench
from cceclust.cli.main import run
from cceclust.objective import loss_cce_plus


@pytest.fixture(scope="module")
def benchmark():
    return bench.benchmark_solvers(n_clusters=[3], n_points=50, fairness=[1.0, 10.0])


def test_every_method_is_timed_to_the_same_loss(benchmark):
    methods = [timing.method for timing in benchmark.timings if timing.fairness == 1]
    assert methods[:3] == ["EM", "EM, accelerated", "exact"]
    assert methods[3:] == ["PGD, step 0.1", "PGD, step 1", "PGD, step 5", "PGD, step 16.6667"]
    em = {timing.fairness: timing.seconds for timing in benchmark.timings if timing.method == "EM"}
    for timing in benchmark.timings:
        assert timing.seconds_per_iteration > 0
        assert (timing.seconds is None) == (timing.iterations is None) == (timing.seconds_over_em is None)
        if timing.seconds is not None:
            assert timing.seconds == pytest.approx(timing.iterations * timing.seconds_per_iteration)
            assert timing.seconds_over_em == pytest.approx(timing.seconds / em[timing.fairness])


def test_counted_iterations_are_the_first_that_are_near_enough(benchmark):
    probabilities = bench._random_probabilities(3, 50, 0)
    rows = probabilities[0].T
    lowest = bench._run(bench.ExactSolver(10.0, tol=1e-7), probabilities)[1]
    for timing in benchmark.timings:
        if timing.fairness == 10 and timing.method in ("EM", "EM, accelerated"):
            solver = bench.EMSolver(10.0, tol=0, accelerate=timing.method != "EM")
            for count, reached in ((timing.iterations - 1, False), (timing.iterations, True)):
                labels = bench._run(bench._with_iterations(solver, count), probabilities)[0][0].T
                assert (loss_cce_plus(rows, labels, fairness=10.0) <= 1.0001 * lowest) == reached


def test_steps_shrink_with_fairness(benchmark):
    steps = [timing.method for timing in benchmark.timings if timing.fairness == 10 and "PGD" in timing.method]
    assert steps == ["PGD, step 0.01", "PGD, step 0.1", "PGD, step 0.5", "PGD, step 1.66667"]


def test_pgd_wins_where_its_best_step_is_faster(benchmark):
    for fairness in (1.0, 10.0):
        ratios = [t.seconds_over_em for t in benchmark.timings if t.fairness == fairness and "PGD" in t.method]
        best = min((ratio for ratio in ratios if ratio is not None), default=np.inf)
        assert ((3, fairness) in benchmark.pgd_wins) == (best < 1)


def test_command_prints_json_and_a_table(monkeypatch, capsys):
    # Compiling afresh in two processes is measured by the command, not needed in a test.
    monkeypatch.setattr(bench, "measure_start_up", lambda: bench.StartUp(2.0, 0.25))
    options = ["-k", "2", "--points", "20", "--fairness", "1"]
    assert run(["bench", "solver", *options, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["benchmark"]["timings"][0]["method"] == "EM"
    assert printed["start_up"] == {"cold_seconds": 2.0, "warm_seconds": 0.25}
    assert run(["bench", "solver", *options]) == 0
    table = capsys.readouterr().out
    assert "20 points, to a loss 0.0001 × the minimum above it" in table
    assert "PGD at its best step size is faster than plain EM at" in table
    assert "0.25 s from the cache on disk" in table


def test_first_call_is_measured_in_fresh_processes(monkeypatch):
    monkeypatch.setattr(bench, "FIRST_CALL", "import os; print(len(os.environ['NUMBA_CACHE_DIR']))")
    start_up = bench.measure_start_up()
    assert start_up.cold_seconds == start_up.warm_seconds > 0
