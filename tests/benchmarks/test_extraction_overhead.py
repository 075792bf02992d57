"""The speed of extraction measures what it says, on tiny images."""

from __future__ import annotations

from pathlib import Path

import extraction_overhead
import numpy as np
import pytest
from PIL import Image

from cceclust.errors import InputError
from cceclust.io.images import ImageCollection, open_images

OPTIONS = {"backbone": "resnet18", "size": 32, "device": "cpu", "workers": 0}


@pytest.fixture
def images(tmp_path: Path) -> ImageCollection:
    np.save(tmp_path / "images.npy", np.zeros((12, 8, 8, 3), np.uint8))
    return open_images(tmp_path / "images.npy")


def test_photographs_are_as_large_as_those_of_imagenet(tmp_path: Path) -> None:
    extraction_overhead.make_photographs(tmp_path, 2)
    files = sorted(tmp_path.iterdir())
    assert all(60_000 < file.stat().st_size < 150_000 for file in files)
    with Image.open(files[1]) as image:
        assert image.size == (500, 375)


def test_images_count_from_the_end_of_the_first_batch(
    images: ImageCollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def extract(*_: object, progress: object, **__: object) -> None:
        # Nothing is done yet, then three batches of four.
        for done in (0, 4, 8, 12):
            progress(done, 12)  # type: ignore[operator]

    ticks = iter([100.0, 101.0, 105.0, 106.0, 107.0, 109.0])
    monkeypatch.setattr(extraction_overhead, "extract_features", extract)
    monkeypatch.setattr(extraction_overhead.time, "perf_counter", lambda: next(ticks))
    start_up, speed = extraction_overhead.extraction_speed(images, tmp_path / "features.h5")
    assert (start_up, speed) == (5.0, 2.0)


def test_the_ratio_is_the_median_of_the_rounds(images: ImageCollection, monkeypatch: pytest.MonkeyPatch) -> None:
    bare, whole = iter([10.0, 20.0, 10.0]), iter([(1.0, 9.0), (3.0, 10.0), (2.0, 7.0)])
    monkeypatch.setattr(extraction_overhead, "bare_speed", lambda *_: next(bare))
    monkeypatch.setattr(extraction_overhead, "extraction_speed", lambda *_, **__: next(whole))
    speed = extraction_overhead.measure_extraction(images, batch_size=4, n_rounds=3, **OPTIONS)
    assert speed == extraction_overhead.ExtractionSpeed(10.0, 9.0, 0.7, 2.0)


def test_real_runs_work(images: ImageCollection) -> None:
    speed = extraction_overhead.measure_extraction(images, batch_size=4, n_rounds=1, **OPTIONS)
    assert speed.bare_images_per_second > 0
    assert speed.images_per_second > 0


def test_one_batch_is_too_few_to_measure(images: ImageCollection) -> None:
    with pytest.raises(InputError, match="12 images fill one batch of 32"):
        extraction_overhead.measure_extraction(images, batch_size=None, n_rounds=1, **OPTIONS)
