"""The protocol for defaults: ranks are right, K-means is the yardstick, weight decays are multiples."""

from __future__ import annotations

import sys
from pathlib import Path

import defaults
import pytest

from cceclust.bench.files import read_labelled


def outcome(candidate: str, file: str, accuracy: float) -> defaults.CandidateOnFile:
    return defaults.CandidateOnFile(candidate, file, [accuracy])


def test_rank_averages_over_files_and_finds_the_worst_case() -> None:
    outcomes = [
        outcome("K-means", "one", 0.5), outcome("good", "one", 0.7), outcome("risky", "one", 0.9),
        outcome("K-means", "two", 0.6), outcome("good", "two", 0.8), outcome("risky", "two", 0.4),
    ]  # fmt: skip
    good, risky, kmeans = defaults.rank(outcomes)
    assert (good.candidate, good.mean_rank, good.worst_against_kmeans) == ("good", 1.5, pytest.approx(0.2))
    assert (risky.candidate, risky.mean_rank, risky.worst_against_kmeans) == ("risky", 2.0, pytest.approx(-0.2))
    assert (kmeans.candidate, kmeans.mean_rank) == ("K-means", 2.5)


def test_equal_accuracies_share_a_rank() -> None:
    outcomes = [outcome("K-means", "one", 0.5), outcome("a", "one", 0.7), outcome("b", "one", 0.7001)]
    assert [ranking.mean_rank for ranking in defaults.rank(outcomes)] == [1.5, 1.5, 3.0]


def test_weight_decays_of_candidates_are_multiples(small_features: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []

    def spy(estimator: object, *_: object) -> float:
        tried.append(getattr(estimator, "weight_decay", 0.0))
        return 1.0

    monkeypatch.setattr(defaults, "accuracy", spy)
    monkeypatch.setattr(defaults, "suitable_weight_decay", lambda *_: 0.5)
    files = {"one": read_labelled(small_features)}
    defaults.compare_defaults(files, {"twice": {"weight_decay": 2.0}}, n_seeds=1)
    assert tried == [0.0, 1.0]


def test_candidates_are_fitted_to_every_file(
    small_features: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--candidate", "one start, no neighbours", "--seeds", "2"]
    monkeypatch.setattr(sys, "argv", ["defaults.py", str(small_features), *options])
    defaults.main()
    assert "ACC over 2 seeds" in capsys.readouterr().out


def test_candidates_start_with_the_defaults_themselves() -> None:
    assert next(iter(defaults.CANDIDATES.items())) == ("default", {})
