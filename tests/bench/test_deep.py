"""The benchmark of deep clustering: every objective from the same start."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cceclust.bench.deep import compare_objectives
from cceclust.cli.main import run
from cceclust.errors import InputError
from cceclust.files.images import open_images
from cceclust.scoring import score_clusters
from cceclust.torch.deep import EpochMetrics
from cceclust.torch.pixels import load_pixels
from cceclust.torch.runs import RunSettings, make_trainer
from cceclust.torch.vgg import VGG4

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits"
OPTIONS = ["--network", "vgg4-32", "--batch-size", "20", "--epochs", "1", "--device", "cpu"]


def test_the_table_has_a_row_for_each_objective(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["--objective", "iic", "--objective", "cce"]
    assert run(["bench", "deep", str(DIGITS), *OPTIONS, *names, "--k", "4", "--trials", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["objective"] for row in rows] == ["iic", "cce"]
    for row in rows:
        assert len(row["accuracies"]) == len(row["nmis"]) == len(row["aris"]) == 2


def test_trials_differ_and_repeat() -> None:
    images = open_images(DIGITS)
    settings = [RunSettings(network="vgg4-32", batch_size=20, n_epochs=1)]
    losses: list[float] = []
    for _ in range(2):
        (result,) = compare_objectives(
            images, settings, n_clusters=4, n_trials=2, device="cpu", on_epoch=lambda _, __, m: losses.append(m.loss)
        )
    assert losses[:2] == losses[2:]
    assert losses[0] != losses[1]
    pixels = load_pixels(images, 32, 3).pixels
    second = make_trainer(replace(settings[0], augmentation="photos", seed=1), 4, pixels, "cpu")
    second.fit(pixels, 1)
    scores = score_clusters(images.labels, second.predict(pixels))
    assert (result.accuracies[1], result.nmis[1], result.aris[1]) == (scores.accuracy, scores.nmi, scores.ari)


def test_a_killed_comparison_goes_on_and_trains_nothing_twice(tmp_path: Path) -> None:
    images = open_images(DIGITS)
    settings = [
        RunSettings(network="vgg4-32-small", batch_size=20, n_epochs=2, objective=objective)
        for objective in ("cce", "sela")
    ]

    trained: list[tuple[str, int, int]] = []

    def keep(objective: str, trial: int, metrics: EpochMetrics) -> None:
        trained.append((objective, trial, metrics.epoch))

    def keep_until_killed(objective: str, trial: int, metrics: EpochMetrics) -> None:
        keep(objective, trial, metrics)
        if len(trained) == 3:
            raise KeyboardInterrupt

    options = {"n_clusters": 4, "n_trials": 2, "device": "cpu"}
    with pytest.raises(KeyboardInterrupt):
        compare_objectives(images, settings, folder=tmp_path / "runs", on_epoch=keep_until_killed, **options)
    resumed = compare_objectives(images, settings, folder=tmp_path / "runs", on_epoch=keep, **options)
    assert trained == [(name, trial, epoch) for name in ("cce", "sela") for trial in (0, 1) for epoch in (1, 2)]
    whole = compare_objectives(images, settings, **options)
    assert [result.accuracies for result in resumed] == [result.accuracies for result in whole]


def test_table_4_starts_all_from_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"encoder." + name: value for name, value in VGG4(32).state_dict().items()}, tmp_path / "simclr.pth")
    arguments = ["bench", "deep", str(DIGITS), *OPTIONS, "--k", "4", "--trials", "1", "--json"]
    assert run([*arguments, "--init", str(tmp_path / "simclr.pth"), "-o", str(tmp_path / "runs")]) == 0
    assert [row["objective"] for row in json.loads(capsys.readouterr().out)] == ["scan", "imsat", "miadm", "cce"]
    for folder in sorted((tmp_path / "runs").iterdir()):
        assert json.loads((folder / "config.json").read_text())["init"] == "simclr.pth"


def test_presets_of_table_4_need_a_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "deep", str(DIGITS), "--preset", "cifar10-resnet18"]) == 1
    assert "starts from the checkpoint of a pretext task" in capsys.readouterr().err


def test_parameters_go_to_the_objectives_that_have_them(tmp_path: Path) -> None:
    names = ["--objective", "imsat", "--objective", "iic", "--trials", "1", "--k", "4", "--quiet"]
    changes = ["--set", "information_weight=0.3", "--set", "views=augmented"]
    assert run(["bench", "deep", str(DIGITS), *OPTIONS, *names, *changes, "-o", str(tmp_path / "runs")]) == 0
    parameters = {
        name: json.loads((tmp_path / "runs" / f"{name}-1" / "config.json").read_text())["objective_parameters"]
        for name in ("imsat", "iic")
    }
    assert parameters == {"imsat": {"information_weight": 0.3, "views": "augmented"}, "iic": {}}
    assert run(["bench", "deep", str(DIGITS), *OPTIONS, *names, "--set", "sharpness=3"]) == 2


def test_images_without_labels_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.zeros((20, 28, 28), np.uint8))
    with pytest.raises(InputError, match="has no labels to compare with"):
        compare_objectives(open_images(tmp_path / "images.npy"), [RunSettings()], n_clusters=2)
