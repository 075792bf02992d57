"""The comparison of graphs: the exact one is perfect by definition, the others are measured against it."""

import json

import numpy as np

from cceclust.bench.neighbors import compare_graphs
from cceclust.cli.main import run


def test_graphs_are_measured_against_the_exact_one(blobs):
    features, labels = blobs
    wide = np.hstack([features, np.zeros((len(features), 36), np.float32)])
    none, exact, projected = compare_graphs(wide, labels, n_neighbors=5, components=(8, 64), n_seeds=1)
    assert (none.graph, none.recall, none.seconds) == ("none", None, 0.0)
    assert (exact.graph, exact.recall) == ("exact", 1.0)
    assert projected.graph == "8 components"
    assert projected.recall > 0.9
    assert projected.purity > 0.8
    assert all(result.accuracies[0] > 0.9 for result in (none, exact, projected))


def test_command_prints_table_and_json(blob_file, capsys):
    assert run(["bench", "neighbors", str(blob_file), "--neighbors", "3", "--seeds", "1"]) == 0
    assert "exact" in capsys.readouterr().out
    assert run(["bench", "neighbors", str(blob_file), "--neighbors", "3", "--seeds", "1", "--json"]) == 0
    assert [result["graph"] for result in json.loads(capsys.readouterr().out)] == ["none", "exact"]
