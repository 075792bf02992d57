"""``cceclust score`` takes any mix of files and says one clear line about what it cannot use."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cceclust.cli.main import run
from cceclust.io import Clusters, write_clusters

LABELS = np.array([0, 0, 1, 1, 2, 2])
TRUTH = np.array(["cat", "cat", "dog", "cat", "owl", ""])


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write the same clusters and the same truth in every format into the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("found.clusters.h5", "found.npy", "found.csv"):
        write_clusters(name, Clusters(LABELS))
    np.savetxt("found.txt", LABELS)
    write_clusters("both.clusters.h5", Clusters(LABELS, np.eye(3)[LABELS], true_labels=TRUTH))
    np.save("truth.npy", TRUTH)
    (tmp_path / "truth.txt").write_text("\n".join(TRUTH) + "\n")
    (tmp_path / "truth.csv").write_text("name,label\n" + "".join(f"x,{label}\n" for label in TRUTH))
    return tmp_path


def scores(capsys, *arguments):
    assert run(["score", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("found", ["found.clusters.h5", "found.npy", "found.csv", "found.txt"])
@pytest.mark.parametrize("truth", ["truth.npy", "truth.txt", "truth.csv", "both.clusters.h5"])
def test_any_mix_of_formats_gives_the_same_scores(files, capsys, found, truth):
    judged = scores(capsys, found, "--labels", truth)["with_labels"]
    assert judged["accuracy"] == 0.8
    assert judged["n_without_label"] == 1
    assert judged["confusion"] == [[2, 1, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("stated", ["{folder}/small.h5", "small.h5", "elsewhere/small.h5"])
def test_modularity_and_silhouette_are_computed_where_the_features_are_found(small_features, tmp_path, capsys, stated):
    provenance = {"features": stated.format(folder=tmp_path), "dataset": "features"}
    write_clusters(tmp_path / "a.clusters.h5", Clusters(np.repeat([0, 1, 2], 40), provenance=provenance))
    found = scores(capsys, str(tmp_path / "a.clusters.h5"))["without_labels"]
    assert found["silhouette"] > 0.5
    assert found["modularity"] > 0.6
    given = ["--features", str(small_features)]
    assert scores(capsys, str(tmp_path / "a.clusters.h5"), *given)["without_labels"] == found


def test_features_of_other_rows_are_not_used(small_features, tmp_path, capsys):
    write_clusters(tmp_path / "a.clusters.h5", Clusters(LABELS, provenance={"features": str(small_features)}))
    assert scores(capsys, str(tmp_path / "a.clusters.h5"))["without_labels"]["silhouette"] is None
    assert run(["score", str(tmp_path / "a.clusters.h5"), "--features", str(small_features)]) == 1
    assert "has 120 rows" in capsys.readouterr().err


def test_people_get_figures_and_confusions(files, capsys):
    assert run(["score", "both.clusters.h5"]) == 0
    text = capsys.readouterr().out
    for part in (
        "ACC 0.8000",
        "1 rows without a true label left out",
        "1 rows of cat in cluster 1, which stands for dog",
        "mean confidence 1.0000",
    ):
        assert part in text


def test_labels_are_never_taken_for_console_markup(tmp_path, capsys):
    truth = np.array(["[red]", "[/]", "[/]"])
    write_clusters(tmp_path / "a.h5", Clusters(np.array([1, 1, 1]), true_labels=truth))
    assert run(["score", str(tmp_path / "a.h5")]) == 0
    assert "1 rows of [red] in cluster 1, which stands for [/]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.h5"], "absent.h5"),
        (["found.npy", "--labels", "absent.npy"], "absent.npy"),
        (["found.npy", "--labels", "short.txt"], "2 true labels for 6"),
        (["found.npy", "--labels", "truth.csv", "--labels-dataset", "species"], "'species'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_one(files, capsys, arguments, message):
    (files / "short.txt").write_text("1\n2\n")
    assert run(["score", *arguments]) == 1
    errors = capsys.readouterr().err
    assert message in errors
    assert len(errors.strip().splitlines()) == 1


def test_features_are_not_scored_as_clusters(small_features, capsys):
    assert run(["score", str(small_features)]) == 1
    assert "holds features, not clusters" in capsys.readouterr().err


def test_naming_a_dataset_of_no_file_is_misuse(files, capsys):
    assert run(["score", "found.npy", "--labels-dataset", "x"]) == 2
