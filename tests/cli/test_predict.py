from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from cceclust.cli.main import run
from cceclust.io import read_clusters


@pytest.fixture
def fitted(small_features: Path) -> Path:
    """Return a model of the small features."""
    assert run(["fit", str(small_features), "-k", "3", "--quiet"]) == 0
    return small_features.with_suffix(".model.safetensors")


def predict(model: Path, features: Path, *options: Any) -> int:
    return run(["predict", str(model), str(features), *map(str, options)])


def fitted_labels(features: Path) -> Any:
    return read_clusters(features.with_suffix(".clusters.h5")).labels


def test_the_fitted_features_get_their_labels_again_in_every_format(
    fitted: Path, small_features: Path, tmp_path: Path
) -> None:
    expected = read_clusters(small_features.with_suffix(".clusters.h5"))
    for ending in ("h5", "csv", "npy"):
        assert predict(fitted, small_features, "--out", tmp_path / f"again.{ending}") == 0
    again = read_clusters(tmp_path / "again.h5")
    np.testing.assert_array_equal(again.labels, expected.labels)
    np.testing.assert_array_equal(again.probabilities, expected.probabilities)
    np.testing.assert_array_equal(np.load(tmp_path / "again.npy"), expected.labels)
    with (tmp_path / "again.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["label"]) for line in lines] == expected.labels.tolist()
    assert lines[7]["path"] == "images/7.png"


def test_clusters_go_into_an_anndata_file_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cells.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.random.default_rng(0).normal(size=(60, 4)) + 9 * np.eye(3, 4)[np.repeat([0, 1, 2], 20)]
        file["obs/_index"] = [f"cell {row}" for row in range(60)]
    assert run(["fit", str(path), "-k", "3", "-q"]) == 0
    model = tmp_path / "cells.model.safetensors"
    assert predict(model, path, "--write-obs", "-q") == 0
    with h5py.File(path) as file:
        categories, codes = file["obs/cce/categories"].asstr()[...], file["obs/cce/codes"][...]
        assert categories[codes].tolist() == fitted_labels(path).astype(str).tolist()
        assert "cce_confidence" in file["obs"]
    (tmp_path / "cells.predicted.h5").unlink()
    assert predict(model, path, "--write-obs", "-q") == 1
    assert "has obs/cce and obs/cce_confidence already; use --force" in capsys.readouterr().err
    assert not (tmp_path / "cells.predicted.h5").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["run", "images", "--id", "name"], "is for features; a run predicts images"),
        (["run", "images", "more"], "a run reads one collection of images at a time"),
        (["m.safetensors", "-"], "such features need a name for the clusters"),
        (["m.safetensors", "x.npy", "-o", "-", "--json"], "the clusters go to stdout"),
    ],
)
def test_misuse_exits_2(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    assert run(["predict", *options]) == 2
    assert said in capsys.readouterr().err
