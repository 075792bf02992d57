"""Speed: everything runs in every round, and the ratios are those of the times."""

import json

import pytest

from cceclust.bench import speed
from cceclust.cli.main import run


@pytest.fixture
def instant_runs(monkeypatch):
    """Replace all runs but the bare loop by nothing: how fast this machine is, is not tested."""
    names = [name for name in speed.RUNS if name != "bare loop"]
    monkeypatch.setattr(speed, "RUNS", {**dict.fromkeys(names, lambda *_: None), "bare loop": speed.bare_loop})
    monkeypatch.setattr(speed, "cce", lambda *_, **__: type("Nothing", (), {"fit": lambda *_: None})())


def test_every_run_takes_its_turn_in_every_round(instant_runs):
    seen = []
    speed.measure_speed(speed.make_blobs(1000, 8, 3), 3, n_rounds=2, on_run=seen.append)
    assert seen == 2 * list(speed.RUNS)


def test_ratios_compare_times_of_the_same_round(instant_runs, monkeypatch):
    # Two readings a run: 7 runs a round that take 1, 2, … 7 seconds.
    ticks = iter([reading for run_time in range(1, 8) for reading in (0.0, float(run_time))])
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(ticks))
    measured = speed.measure_speed(speed.make_blobs(1000, 8, 3), 3, n_rounds=1)
    assert measured.ratios["CCE, ten restarts / K-means, one start"] == 2.0
    assert measured.ratios["CCE, ten restarts, with neighbours / CCE, ten restarts"] == 1.5


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
def test_real_runs_work_on_small_data():
    features = speed.make_blobs(1100, 8, 3)
    for name, work in speed.RUNS.items():
        if name != "bare loop":
            assert hasattr(work(features, 3), "labels_"), name


def test_command_prints_json(instant_runs, capsys):
    assert run(["bench", "speed", "--samples", "1000", "--dimensions", "4", "--rounds", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shape"] == [1000, 4]
