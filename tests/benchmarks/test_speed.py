"""Speed: everything runs in every round, and the ratios are those of the times."""

from __future__ import annotations

import itertools

import pytest
import speed


@pytest.fixture
def instant_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace all runs by nothing, as how fast this machine is is not tested; return what ran."""
    ran: list[str] = []
    monkeypatch.setattr(speed, "RUNS", {name: lambda *_, name=name: ran.append(name) for name in speed.RUNS})
    monkeypatch.setattr(speed, "cce", lambda *_, **__: type("Nothing", (), {"fit": lambda *_: None})())
    return ran


def test_every_run_takes_its_turn_in_every_round(instant_runs: list[str]) -> None:
    speed.measure_speed(speed.make_blobs(1000, 8, 3), 3, n_rounds=2)
    assert instant_runs == 2 * list(speed.RUNS)


def test_ratios_are_medians_over_rounds(instant_runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # Two readings for each of 7 runs, which take 1, 2, … 7 seconds, and twice, four times as long in later rounds.
    seconds = [factor * run_time for factor in (1, 2, 4) for run_time in range(1, 8)]
    ticks = itertools.chain.from_iterable((0.0, float(each)) for each in seconds)
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(ticks))
    ratios, medians = speed.measure_speed(speed.make_blobs(1000, 8, 3), 3, n_rounds=3)
    assert ratios["CCE, ten restarts / K-means, one start"] == 2.0
    assert ratios["CCE, ten restarts, with neighbours / CCE, ten restarts"] == 1.5
    # One restart takes 5 seconds with all epochs and 6 with one, here.
    assert ratios["an epoch / bare loop"] == pytest.approx((5 - 6) / (speed.EPOCHS - 1) / 7)
    assert medians["K-means, one start"] == 2.0


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
def test_real_runs_work_on_small_data() -> None:
    features = speed.make_blobs(1100, 8, 3)
    for name, work in speed.RUNS.items():
        assert name == "bare loop" or hasattr(work(features, 3), "labels_"), name
