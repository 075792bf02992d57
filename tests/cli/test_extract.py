"""``cceclust extract`` from the shell: what it prints, how it goes on, and the way from images to a score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cceclust.cli.console import Stopped
from cceclust.cli.main import run
from cceclust.io import open_features
from cceclust.torch import resnet18

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "random.safetensors"
    save_file(resnet18(n_classes=None).state_dict(), path)
    return path


@pytest.fixture
def options(weights: Path, tmp_path: Path) -> list[str]:
    return ["--backbone", "resnet18", "--weights", str(weights), "--size", "32", "-o", str(tmp_path / "features.h5")]


def test_tells_what_was_done_and_the_next_command(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["extract", str(DIGITS), *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "40 × 512 float32" in out
    assert out.endswith(f"Next: cceclust fit --k 10 {tmp_path / 'features.h5'}\n")
    assert run(["extract", str(DIGITS), *options]) == 0
    assert "it was complete already" in capsys.readouterr().out


def test_json_is_what_the_library_returns(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["extract", str(DIGITS), *options, "--limit", "7", "--dtype", "float16", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["n_rows"], result["n_features"], result["dtype"], result["skipped"]) == (7, 512, "float16", [])


def test_changed_inputs_are_refused_with_a_hint(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["extract", str(DIGITS), *options]) == 0
    assert run(["extract", str(DIGITS), *options, "--limit", "12"]) == 1
    assert "--force" in capsys.readouterr().err
    assert run(["extract", str(DIGITS), *options, "--limit", "12", "--force"]) == 0
    with open_features(tmp_path / "features.h5") as features:
        assert features.n_samples == 12


@pytest.mark.parametrize("wrong", [["--size", "0"], ["--dtype", "int8"]])
def test_misuse_is_told_from_failure(options: list[str], wrong: list[str]) -> None:
    assert run(["extract", str(DIGITS), *options, *wrong]) == 2
    assert run(["extract", "nowhere", *options]) == 1


def test_stopped_it_says_how_to_continue(
    options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise Stopped(143)

    monkeypatch.setattr("cceclust.torch.extraction.store_features", stop)
    assert run(["extract", str(DIGITS), *options]) == 143
    expected = "Error: terminated; no file was left half-written, and the same command continues where it stopped\n"
    assert capsys.readouterr().err == expected
