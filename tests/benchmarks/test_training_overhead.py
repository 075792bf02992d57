"""The trainer's overhead: pairs of epochs over as many images, without the first pair."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import training_overhead
from torch import Tensor, nn

from cceclust.torch import DeepTrainer

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits"


def test_the_ratio_is_the_median_of_pairs_without_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.randn(70, 5)
    trainer = DeepTrainer(nn.Linear(5, 3), lambda batch: batch, batch_size=30, device="cpu")
    speeds = iter([1.0, 90.0, 80.0, 60.0])
    monkeypatch.setattr(trainer, "fit", lambda *_: [SimpleNamespace(images_per_second=next(speeds))])
    bare_seconds, sizes = iter([70.0, 0.7, 0.7, 1.4]), []

    def time_bare_loop(_: DeepTrainer, pairs: list[Tensor]) -> float:
        sizes.append([len(pair) for pair in pairs])
        return next(bare_seconds)

    monkeypatch.setattr(training_overhead, "time_bare_loop", time_bare_loop)
    speed = training_overhead.measure_overhead(trainer, images, n_rounds=3)
    # Batches of 24, 23 and 23 images, each with its view.
    assert sizes == 4 * [[48, 46, 46]]
    assert speed.ratio == pytest.approx(0.9)
    assert (speed.images_per_second, speed.bare_images_per_second) == (80.0, pytest.approx(100.0))


def test_the_script_prints_the_ratio(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--k", "4", "--network", "vgg4-32", "--batch-size", "20", "--rounds", "1", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["training_overhead.py", str(DIGITS), *options])
    training_overhead.main()
    assert "of the bare loop's speed" in capsys.readouterr().out
