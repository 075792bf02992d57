"""Errors come in the order in which a person fixes them: that a target exists is said last of all."""

from pathlib import Path

import numpy as np
import pytest

from cceclust.cli.main import run
from cceclust.io import Model, write_model


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which every default target exists already."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.random.default_rng(0).normal(size=(20, 3)))
    np.save("wide.npy", np.zeros((20, 5)))
    Path("x.txt").write_text("no features")
    write_model("m.safetensors", Model(np.eye(2, 3), np.zeros(2)))
    for name in ("x", "wide", "missing"):
        Path(f"{name}.clusters.h5").touch()
        Path(f"{name}.model.safetensors").touch()
    Path("m.onnx").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fit missing.npy -k 3", "there is no file missing.npy"),
        ("fit x.txt -k 3", "files that end in '.txt'"),
        ("fit m.safetensors -k 3", "m.safetensors is a model file; expected a feature file"),
        ("fit x.npy -k 3 --out x.pdf", "files that end in '.pdf'"),
        ("fit x.npy -k 3 --labels missing.csv", "missing.csv"),
        ("fit x.npy -k 50", "50 clusters were asked for, but there are only 20 rows"),
        ("fit x.npy -k 3", "x.clusters.h5 exists already"),
        ("fit x.npy -k 3 --out ./x.h5", "x.model.safetensors exists already"),
        ("score missing.h5", "there is no file missing.h5"),
        ("report missing.h5", "there is no file missing.h5"),
        ("predict missing.safetensors x.npy", "there is no file missing.safetensors"),
        ("predict x.npy x.npy", "x.npy is a file that states no format"),
        ("predict m.safetensors missing.npy", "there is no file missing.npy"),
        ("predict m.safetensors wide.npy", "has rows of 5 features, but the model was fitted to 3"),
        ("predict m.safetensors x.npy --out x.clusters.h5", "x.clusters.h5 exists already"),
        ("export x.npy m.onnx", "x.npy is a file that states no format"),
        ("export m.safetensors x.txt", "expected one of .onnx"),
        ("export m.safetensors m.onnx", "m.onnx exists already"),
    ],
)
def test_the_first_error_is_the_one_to_fix_first(
    command: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command.split()) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
