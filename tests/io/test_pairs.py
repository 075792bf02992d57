"""Clusters and a model that do not belong together are noticed by whoever reads one of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cceclust.cli.main import run
from cceclust.io import read_clusters, read_model

MESSAGE = "Warning: small.{} and small.{} are not from the same fit"


@pytest.fixture
def pair(small_features: Path) -> tuple[Path, Path]:
    """Return the clusters and the model of a fit."""
    assert run(["fit", "-k", "3", str(small_features), "-q"]) == 0
    return small_features.with_suffix(".clusters.h5"), small_features.with_suffix(".model.safetensors")


def commands(small_features: Path, pair: tuple[Path, Path]) -> dict[str, list[str]]:
    folder = small_features.parent
    return {
        "score": ["score", str(pair[0])],
        "report": ["report", str(pair[0]), "-o", str(folder / "report.html"), "-f"],
        "predict": ["predict", str(pair[1]), str(small_features), "-o", str(folder / "new.h5"), "-f"],
    }


def test_a_fit_makes_a_pair(small_features: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert read_clusters(pair[0]).model_id == read_model(pair[1]).id
    capsys.readouterr()
    for arguments in commands(small_features, pair).values():
        assert run(arguments) == 0
    assert "not from the same fit" not in capsys.readouterr().err
    assert read_clusters(small_features.parent / "new.h5").model_id == read_model(pair[1]).id


@pytest.mark.filterwarnings("default::cceclust.errors.ClusteringWarning")
def test_a_mixed_pair_is_noticed(
    small_features: Path, pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = shutil.copy(pair[0], tmp_path / "kept.h5")
    assert run(["fit", "-k", "4", str(small_features), "-q", "-f"]) == 0
    shutil.copy(kept, pair[0])
    capsys.readouterr()
    for name, arguments in commands(small_features, pair).items():
        assert run(arguments) == 0
        halves = ("clusters.h5", "model.safetensors")
        assert MESSAGE.format(*(halves[::-1] if name == "predict" else halves)) in capsys.readouterr().err


def test_a_damaged_half_does_not_stop_the_other(
    small_features: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pair[1].write_bytes(b"rubbish")
    capsys.readouterr()
    assert run(["score", str(pair[0])]) == 0
    assert capsys.readouterr().err == ""
