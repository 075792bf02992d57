"""The benchmark of deep clustering: every objective from the same start."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cceclust.bench.deep import compare_objectives
from cceclust.cli.main import run
from cceclust.errors import InputError
from cceclust.files.images import open_images
from cceclust.scoring import score_clusters
from cceclust.torch.pixels import load_pixels
from cceclust.torch.runs import RunSettings, make_trainer

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


def test_images_without_labels_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.zeros((20, 28, 28), np.uint8))
    with pytest.raises(InputError, match="has no labels to compare with"):
        compare_objectives(open_images(tmp_path / "images.npy"), [RunSettings()], n_clusters=2)
