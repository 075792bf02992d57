"""The comparison of methods that find the number of clusters: all see the same rows, and failures are no answers."""

from __future__ import annotations

import choosing_k
import numpy as np
import pytest
from choosing_k import Choice


def test_methods_are_asked_and_scored(capsys: pytest.CaptureFixture[str]) -> None:
    sets = {
        "four blobs": lambda: choosing_k.blobs(400, 4, 5, 1.0, 8.0, 0),
        "uniform noise": lambda: choosing_k.noise("uniform", 300, 3, 0),
    }
    outcomes = choosing_k.choose(sets, ["cceclust", "silhouette"])
    assert [(choice.set_name, choice.method, choice.true_k) for choice in outcomes] == [
        ("four blobs", "cceclust", 4),
        ("four blobs", "silhouette", 4),
        ("uniform noise", "cceclust", 1),
        ("uniform noise", "silhouette", 1),
    ]
    assert [choice.chosen for choice in outcomes[:3]] == [4, 4, 1]
    choosing_k.print_choices(outcomes)
    out = capsys.readouterr().out
    assert "| four blobs | 4 | 4 | 4 |" in out
    assert "| right or one off, blobs and noise |  | 2 of 2 |" in out


def test_answers_are_compared_with_the_truth() -> None:
    choices = [Choice("a", 10, "m", chosen) for chosen in (10, 11, 20, None)]
    assert choosing_k.count_close(choices) == 2
    assert choosing_k.mean_log_error(choices) == pytest.approx((np.log(1.1) + np.log(2)) / 3)


def test_sets_are_counted_by_kind() -> None:
    names = "7 unequal blobs, 5-D", "long Gaussian, 30-D", "digits, 4 classes", "mnist, unequal classes", "digits"
    kinds = ["blobs and noise"] * 2 + ["classes left out or cut"] * 2 + ["real sets as they are"]
    assert [choosing_k.kind_of(name) for name in names] == kinds


def test_a_method_that_fails_gives_no_answer() -> None:
    def fails(rows: object) -> int:
        raise ImportError

    assert choosing_k.answer(fails, np.zeros((3, 2))) is None


def test_every_peer_counts_far_blobs() -> None:
    rows, n_clusters = choosing_k.blobs(300, 3, 4, 0.5, 10.0, 1)
    for name in ("silhouette", "gap", "BIC", "HDBSCAN"):
        assert choosing_k.METHODS[name](rows) == n_clusters, name
