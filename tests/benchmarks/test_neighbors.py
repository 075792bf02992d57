"""The comparison of graphs: the exact one is perfect by definition, the others are measured against it."""

from __future__ import annotations

from pathlib import Path

import neighbors
import numpy as np
import pytest

from cceclust.bench.files import read_labelled


def test_graphs_are_measured_against_the_exact_one(small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    features, labels = read_labelled(small_features)
    # On one component, distances within a group are mostly those of noise left out.
    none, exact, projected = outcomes = neighbors.compare_graphs(
        features, labels, n_neighbors=5, components=(1, 64), n_seeds=1
    )
    assert (none.graph, none.recall, none.purity, none.seconds) == ("none", None, None, 0.0)
    assert (exact.graph, exact.recall) == ("exact", 1.0)
    assert exact.purity == 1.0
    assert projected.graph == "1 components"
    assert 0 < projected.recall < 0.5
    assert all(np.mean(result.accuracies) > 0.9 for result in (none, exact))
    neighbors.print_graphs(outcomes, "title")
    assert "1 components" in capsys.readouterr().out
