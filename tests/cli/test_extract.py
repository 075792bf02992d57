"""``cceclust extract`` from the shell: what it prints, how it goes on, and the way from images to a score."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

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


def test_quiet_prints_nothing(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["extract", str(DIGITS), *options, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_skipped_images_are_counted_and_listed(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(DIGITS, tmp_path / "digits")
    damaged = next((tmp_path / "digits" / "3").iterdir())
    damaged.write_bytes(b"rubbish")
    assert run(["extract", str(tmp_path / "digits"), *options]) == 0
    out, err = capsys.readouterr()
    assert "39 × 512" in out
    assert "1 of 40 images could not be read" in err
    assert str(damaged) in err


def test_without_labels_the_number_of_clusters_is_left_open(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(DIGITS / "7", tmp_path / "sevens")
    assert run(["extract", str(tmp_path / "sevens"), *options]) == 0
    assert "cceclust fit --k auto " in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("stop", "code", "told"), [(KeyboardInterrupt, 130, "interrupted"), (SystemExit(143), 143, "terminated")]
)
def test_stopped_it_says_how_to_continue(
    stop: BaseException,
    code: int,
    told: str,
    options: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def raise_it(*_: object, **__: object) -> None:
        raise stop

    monkeypatch.setattr("cceclust.torch.extraction.store_features", raise_it)
    assert run(["extract", str(DIGITS), *options]) == code
    expected = f"Error: {told}; no file was left half-written, and the same command continues where it stopped\n"
    assert capsys.readouterr().err == expected


def test_killed_it_continues_from_the_shell(options: list[str], tmp_path: Path) -> None:
    arguments = ["extract", str(DIGITS), *options, "--batch-size", "2"]
    command = [sys.executable, "-m", "cceclust", *arguments]
    work = tmp_path / "features.h5.part"
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while not any(work.glob("*.npz")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "features.h5").exists()
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "continued from image" in second.stdout
    killed = (tmp_path / "features.h5").read_bytes()
    assert run([*arguments, "--restart", "--quiet"]) == 0
    assert (tmp_path / "features.h5").read_bytes() == killed


def test_from_images_to_a_score(options: list[str], tmp_path: Path) -> None:
    features, clusters = tmp_path / "features.h5", tmp_path / "features.clusters.h5"
    for arguments in (
        ["extract", str(DIGITS), *options],
        ["fit", str(features), "--k", "10", "--seed", "0", "-o", str(clusters)],
        ["score", str(clusters), "--json"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "cceclust", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert scores["with_labels"]["n_samples"] == 40
    # Chance is about 0.3 for ten clusters of forty images.
    assert scores["with_labels"]["accuracy"] > 0.4
