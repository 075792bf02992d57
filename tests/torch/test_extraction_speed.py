"""The benchmark of extraction measures what it says, on tiny images."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cceclust.cli.main import run
from cceclust.errors import InputError
from cceclust.files.images import open_images
from cceclust.torch.extraction_speed import make_photographs, measure_extraction


def test_photographs_are_as_large_as_those_of_imagenet(tmp_path: Path) -> None:
    make_photographs(tmp_path, 2)
    files = sorted(tmp_path.iterdir())
    assert all(60_000 < file.stat().st_size < 150_000 for file in files)
    with Image.open(files[1]) as image:
        assert image.size == (500, 375)


def test_the_ratio_is_that_of_the_two_speeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "images.npy", np.zeros((12, 8, 8, 3), np.uint8))
    options = ["--backbone", "resnet18", "--size", "32", "--batch-size", "4", "--rounds", "1", "--workers", "0"]
    assert run(["bench", "extract", str(tmp_path / "images.npy"), *options, "--json"]) == 0
    speed = json.loads(capsys.readouterr().out)
    assert speed["n_images"] == 12
    assert speed["start_up_seconds"] > 0
    expected = speed["extraction_images_per_second"] / speed["bare_images_per_second"]
    assert speed["ratio"] == pytest.approx(expected)
    # A bare network would have to be slower than the same network with decoding and writing around it.
    assert speed["ratio"] < 2


def test_one_batch_is_too_few_to_measure(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.zeros((4, 8, 8, 3), np.uint8))
    with pytest.raises(InputError, match="4 images fill one batch of 32"):
        measure_extraction(open_images(tmp_path / "images.npy"), backbone="resnet18", device="cpu")
