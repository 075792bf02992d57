"""``cceclust fit`` with labels: classes keep their names from the table to the clusters, the model and the scores."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cceclust.cli.main import run
from cceclust.io import read_clusters, read_model

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")


def fit(features, *options, k=3):
    return run(["fit", str(features), "-k", str(k), *map(str, options)])


@pytest.fixture
def table(small_features):
    path = small_features.parent / "partial.csv"
    path.write_text("path,label\nimages/0.png,ant\nimages/50.png,bee\nimages/100.png,cow\n")
    return path


def test_classes_keep_their_names_into_clusters_and_model(small_features, table):
    assert fit(small_features, "--labels", table) == 0
    clusters = read_clusters(small_features.with_suffix(".clusters.h5"))
    assert clusters.parameters["classes"] == ["ant", "bee", "cow"]
    assert read_model(small_features.with_suffix(".model.safetensors")).parameters["classes"] == ["ant", "bee", "cow"]
    assert clusters.named_labels.tolist() == ["ant"] * 40 + ["bee"] * 40 + ["cow"] * 40
    assert clusters.diagnostics["labelled_rows"] == 3


def test_predictions_carry_the_names_on(small_features, table):
    assert fit(small_features, "--labels", table) == 0
    model, out = small_features.with_suffix(".model.safetensors"), small_features.parent / "again.csv"
    assert run(["predict", str(model), str(small_features), "-o", str(out)]) == 0
    lines = out.read_text().splitlines()
    assert lines[0] == "row,path,label,class,confidence"
    assert lines[1].startswith("0,images/0.png,0,ant,")


def test_labelled_rows_do_not_judge_the_fit_they_taught(small_features, capsys):
    given = np.where(np.arange(120) % 40 < 2, np.repeat([0, 1, 2], 40), -1)
    source = small_features.parent / "given.npy"
    np.save(source, given)
    assert fit(small_features, "--labels", source, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["against_labels"]["accuracy"] == 1.0
    assert summary["classes"] == [0, 1, 2]
    clusters = small_features.with_suffix(".clusters.h5")
    assert read_clusters(clusters).true_labels.tolist().count(-1) == 6
    assert run(["score", str(clusters), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["with_labels"]["n_samples"] == 114


def test_with_every_row_labelled_nothing_is_left_to_judge_by(small_features, capsys):
    assert fit(small_features, "--labels", "labels", "--json") == 0
    assert json.loads(capsys.readouterr().out)["against_labels"] is None


def test_soft_labels_give_a_cluster_for_each_class(small_features):
    source = small_features.parent / "soft.npy"
    np.save(source, 0.1 + 0.7 * np.eye(3)[np.repeat([0, 1, 2], 40)])
    assert fit(small_features, "--soft-labels", source) == 0
    clusters = read_clusters(small_features.with_suffix(".clusters.h5"))
    assert clusters.named_labels.tolist() == np.repeat([0, 1, 2], 40).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--labels", "partial.csv", "-k", "2"), "the labels name 3 classes, more than the 2 clusters asked for"),
        (("--labels", "beyond.csv"), "labels row 120, but rows go from 0 to 119"),
        (("--labels", "unknown.csv"), "holds no label, only unknown ones"),
        (("--soft-labels", "uneven.npy"), "row 0 sums to 1.5"),
        (("--soft-labels", "empty-class.npy"), "class 2 has no row that is labelled"),
        (("--labels", "nowhere"), "nowhere"),
    ],
)
def test_labels_that_fit_nothing_are_refused_in_a_line(small_features, table, options, message, capsys, monkeypatch):
    monkeypatch.chdir(small_features.parent)
    (small_features.parent / "beyond.csv").write_text("row,label\n120,ant\n")
    (small_features.parent / "unknown.csv").write_text("row,label\n0,\n")
    np.save("uneven.npy", np.full((120, 3), 0.5))
    np.save("empty-class.npy", np.tile([0.25, 0.75, 0.0], (120, 1)))
    assert fit(small_features, *options) == 1
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--labels", "a.csv", "--soft-labels", "b.csv"),
        ("--labels", "a.csv", "--method", "kmeans"),
        ("--labels", "a.csv", "--k", "auto"),
    ],
)
def test_options_that_make_no_sense_together_are_misuse(small_features, options):
    assert fit(small_features, *options) == 2
