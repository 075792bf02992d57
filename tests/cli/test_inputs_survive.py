"""No command writes over what it reads, however the file is spelled."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.torch import save_file

from cceclust.cli.main import run


@pytest.fixture(params=["same", "symbolic link", "hard link", "other spelling"])
def spelled(request: pytest.FixtureRequest) -> object:
    """Return a function that names a file in another way."""

    def spell(path: Path) -> str:
        other = path.with_name("other-" + path.name)
        other.unlink(missing_ok=True)
        if request.param == "symbolic link":
            other.symlink_to(path)
        elif request.param == "hard link":
            other.hardlink_to(path)
        else:
            other = path if request.param == "same" else path.parent / ".." / path.parent.name / path.name
        return str(other)

    return spell


def refused(arguments: list[str], source: Path, capsys: pytest.CaptureFixture[str]) -> bool:
    """Tell whether a command is refused in one line and leaves its input as it was."""
    before = source.read_bytes()
    code = run([*arguments, "--force"])
    err = capsys.readouterr().err
    return (code, err.count("\n"), "name another to write" in err, source.read_bytes()) == (1, 1, True, before)


@pytest.fixture
def model(small_features: Path) -> Path:
    assert run(["fit", "-k", "3", str(small_features), "--quiet"]) == 0
    return small_features.with_suffix(".model.safetensors")


def test_features_and_models(small_features: Path, model: Path, spelled, capsys) -> None:  # type: ignore[no-untyped-def]
    features, labels = str(small_features), small_features.with_name("given.csv")
    labels.write_text("row,label\n0,a\n50,b\n100,c\n")
    capsys.readouterr()
    assert refused(["fit", "-k", "3", features, "-o", spelled(small_features)], small_features, capsys)
    assert refused(["fit", "-k", "3", features, "--labels", str(labels), "-o", spelled(labels)], labels, capsys)
    assert refused(
        ["predict", str(model), features, "-o", spelled(model.with_name("small.h5"))], small_features, capsys
    )


@pytest.mark.filterwarnings("ignore:.*clusters:cceclust.errors.ClusteringWarning")
def test_images_networks_and_runs(tmp_path: Path, spelled, capsys) -> None:  # type: ignore[no-untyped-def]
    import torch

    from cceclust.torch import resnet18

    images, weights, run_folder = tmp_path / "images.h5", tmp_path / "weights.h5", tmp_path / "run"
    with h5py.File(images, "w") as file:
        file["images"] = np.random.default_rng(0).integers(0, 255, (12, 28, 28)).astype(np.uint8)
    torch.manual_seed(0)
    save_file(resnet18(n_classes=None).state_dict(), weights)
    network = ["--backbone", "resnet18", "--weights", str(weights), "--size", "32"]
    assert refused(["extract", str(images), *network, "-o", spelled(images)], images, capsys)
    assert refused(["extract", str(images), *network, "-o", spelled(weights)], weights, capsys)
    training = ["deep", str(images), "-k", "2", "-o", str(run_folder), "--epochs", "1", "--quiet"]
    assert run(training) == 0
    capsys.readouterr()
    assert refused(["predict", str(run_folder), str(images), "-o", spelled(images)], images, capsys)
