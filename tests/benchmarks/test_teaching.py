"""Which labels teach best: every kind is fitted once for every seed, and a second run adds nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import teaching
from sklearn.datasets import make_blobs

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")


def test_results_are_kept_and_tabulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(teaching, "FAIRNESS", (10.0,))
    monkeypatch.setattr(teaching, "ITERATIONS", (5,))
    sets = {"blobs": lambda: make_blobs(150, 4, centers=3, random_state=0)}
    kept = tmp_path / "kept.jsonl"
    results = teaching.measure(sets, 1, kept)
    kinds = {(result["labels"], result["neighbors"]) for result in results}
    assert kinds == {(labels, n) for labels in ("EM, 5", "exact", "SeLa", "MIADM") for n in (0, 10)}
    before = kept.read_bytes()
    assert teaching.measure(sets, 1, kept) == results
    assert kept.read_bytes() == before
    capsys.readouterr()
    teaching.print_table(results, "accuracy")
    table = capsys.readouterr().out
    assert len(table.splitlines()) == 2 + len(kinds)
    exact = [r["accuracy"] for r in results if r["labels"] == "exact" and r["neighbors"] == 0]
    assert f"| exact | 10 | no | {np.mean(exact):.3f} |" in table
