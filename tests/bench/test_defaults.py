"""The protocol for defaults: ranks are right, K-means is the yardstick, weight decays are multiples."""

import json

import pytest

from cceclust.bench.defaults import CANDIDATES, CandidateOnFile, compare_defaults, rank
from cceclust.cli.main import run


def outcome(candidate, file, accuracy):
    return CandidateOnFile(candidate, file, [accuracy], None, 0.0)


def test_rank_averages_over_files_and_finds_the_worst_case():
    outcomes = [
        outcome("K-means", "one", 0.5), outcome("good", "one", 0.7), outcome("risky", "one", 0.9),
        outcome("K-means", "two", 0.6), outcome("good", "two", 0.8), outcome("risky", "two", 0.4),
    ]  # fmt: skip
    good, risky, kmeans = rank(outcomes)
    assert (good.candidate, good.mean_rank, good.worst_against_kmeans) == ("good", 1.5, pytest.approx(0.2))
    assert (risky.candidate, risky.mean_rank, risky.worst_against_kmeans) == ("risky", 2.0, pytest.approx(-0.2))
    assert (kmeans.candidate, kmeans.mean_rank) == ("K-means", 2.5)


def test_equal_accuracies_share_a_rank():
    outcomes = [outcome("K-means", "one", 0.5), outcome("a", "one", 0.7), outcome("b", "one", 0.7001)]
    assert [ranking.mean_rank for ranking in rank(outcomes)] == [1.5, 1.5, 3.0]


def test_candidates_are_fitted_to_every_file_with_every_seed(blobs):
    files = {"one": blobs, "two": blobs}
    outcomes = compare_defaults(files, candidates={"quick": {"n_init": 2, "weight_decay": 0.5}}, n_seeds=2)
    assert [(each.candidate, each.file) for each in outcomes] == [
        ("K-means", "one"), ("quick", "one"), ("K-means", "two"), ("quick", "two"),
    ]  # fmt: skip
    assert all(len(each.accuracies) == 2 and each.mean > 0.9 for each in outcomes)


def test_candidates_start_with_the_defaults_themselves():
    assert next(iter(CANDIDATES.items())) == ("default", {})


def test_command_prints_the_ranking(blob_file, capsys):
    assert run(["bench", "defaults", str(blob_file), "--candidate", "default", "--seeds", "1"]) == 0
    assert "K-means" in capsys.readouterr().out
    assert run(["bench", "defaults", str(blob_file), "--candidate", "default", "--seeds", "1", "--json"]) == 0
    assert {entry["candidate"] for entry in json.loads(capsys.readouterr().out)["ranking"]} == {"default", "K-means"}


def test_unknown_candidate_is_misuse(blob_file):
    assert run(["bench", "defaults", str(blob_file), "--candidate", "magic"]) == 2
