"""``cceclust deep`` from the shell: what it prints and writes, how it goes on, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cceclust.cli.main import run
from cceclust.io import read_clusters

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits"
# The smallest of the networks.
OPTIONS = ["--k", "4", "--network", "vgg4-32-small", "--batch-size", "20", "--device", "cpu"]

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")


def deep(folder: Path, *options: str) -> int:
    return run(["deep", str(DIGITS), "-o", str(folder), *OPTIONS, *options])


def test_a_run_is_trained_scored_and_used_for_new_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert deep(folder, "--epochs", "2") == 0
    out = capsys.readouterr().out
    assert "40 rows in 4 clusters" in out
    assert "ACC" in out
    assert str(folder / "clusters.h5") in out.replace("\n", "")
    for named in (folder, folder / "model.safetensors", folder / "clusters.h5"):
        assert run(["score", str(named), "--json"]) == 0
        scores = json.loads(capsys.readouterr().out)
        assert (scores["path"], scores["with_labels"]["n_samples"]) == (str(folder / "clusters.h5"), 40)
    assert run(["info", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert facts["clusters"] == 4
    assert run(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    assert "40 points in 4 clusters" in (tmp_path / "page.html").read_text()
    capsys.readouterr()
    assert run(["predict", str(folder), str(DIGITS), "-o", str(tmp_path / "new.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] == 40
    labels = [int(line.split(",")[2]) for line in (tmp_path / "new.csv").read_text().splitlines()[1:]]
    assert labels == read_clusters(folder / "clusters.h5").labels.tolist()
    assert run(["predict", str(folder / "model.safetensors"), str(DIGITS), "-o", str(tmp_path / "again.csv")]) == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "new.csv").read_bytes()


@pytest.mark.parametrize(
    "wrong",
    [
        ["--objective", "dino"],
        ["--network", "alexnet"],
        ["--epochs", "0"],
        ["--k", "1"],
        ["--seed", "-1"],
        ["--objective", "iic", "--fairness", "1"],
        ["--fairness", "-1"],
    ],
)
def test_misuse_is_told_from_failure(wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert deep(tmp_path / "run", *wrong) == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "21"], "21 clusters for 40 images in batches of 20"),
        (["--init", "nowhere.pth"], "there is no file nowhere.pth"),
        (["--device", "cuda:99"], "the device cuda:99 is not there"),
    ],
)
def test_failures_are_one_line(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deep(tmp_path / "run", *options) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_interrupted_it_says_how_to_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cceclust.torch.DeepTrainer.train_step", interrupt)
    assert deep(tmp_path / "run") == 130
    advice = "the same command with --resume continues after the last complete epoch"
    assert capsys.readouterr().err == f"Error: interrupted; no file was left half-written, and {advice}\n"
    assert run(["score", str(tmp_path / "run")]) == 1
    assert "has no clusters yet; continue it with its command" in capsys.readouterr().err


def test_clusters_take_the_names_of_given_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, folder = tmp_path / "partial.csv", tmp_path / "run"
    table.write_text("row,label\n0,zero\n1,zero\n39,other\n")
    command = ["deep", str(DIGITS), "-o", str(folder), *OPTIONS, "--labels", str(table), "--epochs", "1", "--json"]
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["other", "zero", "extra 1", "extra 2"]
    clusters = read_clusters(folder / "clusters.h5")
    assert clusters.diagnostics["labelled_rows"] == 3
    assert run(["predict", str(folder), str(DIGITS), "-o", str(tmp_path / "new.csv"), "--quiet"]) == 0
    assert "class" in (tmp_path / "new.csv").read_text().splitlines()[0]
    table.write_text("row,label\n0,zero\n1,other\n39,other\n")
    assert run([*command, "--resume"]) == 1
    assert "labels_sha256" in capsys.readouterr().err


def test_fairness_is_kept_with_the_run(tmp_path: Path) -> None:
    assert deep(tmp_path / "run", "--epochs", "1", "--fairness", "7", "--quiet") == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["objective_parameters"] == {"fairness": 7.0}
