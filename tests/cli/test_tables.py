"""Tables, several files and pipes on the command line, from features to clusters and back."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cceclust.cli.main import run
from cceclust.io import read_clusters

THREE = ["-k", "3", "--quiet"]
TRUTH = np.repeat([0, 1, 2], 20)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return 60 rows in three far-apart groups, with a column of each use."""
    X = np.random.default_rng(0).normal(size=(60, 4)) + 9 * np.eye(3, 4)[TRUTH]
    table = pd.DataFrame(X, columns=list("abcd"))
    return table.assign(sample=[f"s{row}" for row in range(60)], species=TRUTH, city="Bonn")


ROLES = ["--id", "sample", "--labels-dataset", "species", "--keep", "city"]


@pytest.fixture
def table(frame: pd.DataFrame, tmp_path: Path) -> Path:
    frame.to_csv(tmp_path / "x.csv", index=False)
    return tmp_path / "x.csv"


def same_groups(labels: pd.Series, truth: pd.Series) -> bool:
    return len(set(zip(labels, truth, strict=True))) == 3


def test_names_and_columns_come_out_again(table: Path, frame: pd.DataFrame) -> None:
    for ending in ("csv", "parquet"):
        assert run(["fit", str(table), *ROLES, *THREE, "--force", "--out", str(table.with_name(f"out.{ending}"))]) == 0
    written = pd.read_csv(table.with_name("out.csv"))
    assert list(written) == ["row", "name", "label", "confidence", "outlier_score", "city"]
    assert written["name"].tolist() == frame["sample"].tolist()
    assert same_groups(written["label"], frame["species"])
    typed = pd.read_parquet(table.with_name("out.parquet"))
    assert typed["label"].tolist() == written["label"].tolist()


def test_a_model_of_a_table_wants_the_same_columns(
    table: Path, frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fit", str(table), *ROLES, *THREE]) == 0
    frame[["b", "a", "c", "d"]].to_csv(table.with_name("y.csv"), index=False)
    model = str(table.with_name("x.model.safetensors"))
    assert run(["predict", model, str(table.with_name("y.csv"))]) == 1
    assert "y.csv has the column 'b' where the model expects 'a'" in capsys.readouterr().err
    assert run(["predict", model, str(table), *ROLES, "--quiet"]) == 0
    again = read_clusters(table.with_name("x.predicted.h5"))
    np.testing.assert_array_equal(again.labels, read_clusters(table.with_name("x.clusters.h5")).labels)
    assert again.kept["city"][0] == "Bonn"


def test_from_stdin_to_stdout(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(table.read_bytes())))
    assert run(["fit", "-", *ROLES, "-k", "3", "--out", "-"]) == 0
    out, err = capsys.readouterr()
    lines = pd.read_csv(io.StringIO(out))
    assert same_groups(lines["label"], pd.Series(TRUTH))
    assert lines["name"][7] == "s7"
    assert "60 rows in 3 clusters" in err
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-"], "such features need a name for the clusters"),
        (["x.csv", "--out", "-", "--json"], "the clusters go to stdout"),
    ],
)
def test_output_without_a_place_is_misuse(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", *options]) == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_shards_are_one_matrix(frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    for number in range(3):
        frame[20 * number : 20 * number + 20].to_parquet(folder / f"{number}.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    files = sorted(str(file) for file in folder.iterdir())
    results = []
    for given in (["shards"], ["shards/*.parquet"], files):
        assert run(["fit", *given, *ROLES, *THREE, "--force"]) == 0
        results.append([read_clusters(folder / f"{number}.clusters.h5") for number in range(3)])
    assert run(["fit", "shards", *ROLES, *THREE, "--force", "--out", "all.h5"]) == 0
    results.append([read_clusters(tmp_path / "all.h5")])
    for parts in results:
        assert same_groups(pd.Series(np.concatenate([part.labels for part in parts])), frame["species"])
        assert [name for part in parts for name in part.names] == frame["sample"].tolist()
    assert results[0][1].provenance["features"] == "1.parquet"
    assert (tmp_path / "shards.model.safetensors").is_file()


def test_labels_in_a_column_of_the_table(table: Path, frame: pd.DataFrame) -> None:
    some = frame.assign(kind=np.where(np.arange(60) % 20 < 2, frame["species"].map({0: "p", 1: "q", 2: "r"}), ""))
    some.drop(columns="species").to_csv(table, index=False)
    assert run(["fit", str(table), "--id", "sample", "--keep", "city", "--labels", "kind", "--quiet"]) == 0
    clusters = read_clusters(table.with_name("x.clusters.h5"))
    assert clusters.named_labels.tolist() == np.repeat(["p", "q", "r"], 20).tolist()
