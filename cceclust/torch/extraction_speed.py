"""Speed of extraction beside that of the bare network, in turns in one process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from cceclust.errors import InputError
from cceclust.files.images import ImageCollection
from cceclust.torch.devices import resolve_device
from cceclust.torch.extraction import PRECISIONS, extract_features, usual_batch_size, usual_precision
from cceclust.torch.preprocessing import normalize
from cceclust.torch.weights import BACKBONES, Backbone, load_backbone

__all__ = ["ExtractionSpeed", "make_photographs", "measure_extraction"]


@dataclass(frozen=True)
class ExtractionSpeed:
    """Speed of extraction and of the bare network: medians over rounds in which both ran in turns.

    Attributes
    ----------
    backbone, device, precision : str
        What ran, and where.
    n_images, batch_size, workers : int
        How many images a run took, and how.
    bare_images_per_second : float
        The network on a batch that lies ready on the device.
    extraction_images_per_second : float
        A whole extraction, from the end of its first batch until its file is complete.
    ratio : float
        The second over the first.
    start_up_seconds : float
        What comes before the end of the first batch: weights are loaded, workers start.
    """

    backbone: str
    device: str
    precision: str
    n_images: int
    batch_size: int
    workers: int
    bare_images_per_second: float
    extraction_images_per_second: float
    ratio: float
    start_up_seconds: float


def measure_extraction(
    images: ImageCollection,
    *,
    backbone: str = "resnet50",
    size: int = 224,
    device: str = "auto",
    batch_size: int | None = None,
    workers: int = 0,
    n_rounds: int = 3,
    on_run: Callable[[str], None] = lambda name: None,
) -> ExtractionSpeed:
    """Run the bare network and extract, in turns, several rounds. Weights are random: speed does not depend on them.

    Parameters
    ----------
    images : ImageCollection
        At least two batches.
    backbone, size, device, batch_size, workers
        As in :func:`cceclust.torch.extract_features`.
    n_rounds : int
        Rounds.
    on_run : callable, optional
        Told the name of each run when it is done.
    """
    place = resolve_device(device)
    batch_size, precision = batch_size or usual_batch_size(place), usual_precision(place)
    if len(images) <= batch_size:
        raise InputError(f"{len(images)} images fill one batch of {batch_size}; expected at least two batches")
    bare, whole, start_up = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, "random.safetensors")
        save_file(BACKBONES[backbone](None).state_dict(), weights)
        network = load_backbone(backbone, weights, place)
        for _ in range(n_rounds):
            bare.append(bare_speed(network, len(images), batch_size, size, place, PRECISIONS[precision]))
            on_run("bare network")
            options = {"weights": weights, "size": size, "device": device, "batch_size": batch_size, "workers": workers}
            seconds, speed = extraction_speed(images, Path(folder, "features.h5"), backbone=backbone, **options)
            start_up.append(seconds)
            whole.append(speed)
            on_run("extraction")
    return ExtractionSpeed(
        backbone,
        place.type,
        precision,
        len(images),
        batch_size,
        workers,
        float(np.median(bare)),
        float(np.median(whole)),
        float(np.median(np.divide(whole, bare))),
        float(np.median(start_up)),
    )


def bare_speed(
    network: Backbone, n_images: int, batch_size: int, size: int, device: torch.device, precision: torch.dtype
) -> float:
    """Return the images per second of the network on one ready-made batch, after a first pass."""
    x = normalize(torch.randint(0, 256, (batch_size, size, size, 3), dtype=torch.uint8, device=device))
    n_batches = n_images // batch_size
    with torch.inference_mode(), torch.autocast(device.type, precision, enabled=precision != torch.float32):
        network.network(x)
        synchronize(device)
        began = time.perf_counter()
        for _ in range(n_batches):
            network.network(x)
        synchronize(device)
    return n_batches * batch_size / (time.perf_counter() - began)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was told to."""
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()


def extraction_speed(images: ImageCollection, target: Path, **options: Any) -> tuple[float, float]:
    """Return the seconds until the end of the first batch, and the images per second from there on."""
    marks: list[tuple[float, int]] = []
    began = time.perf_counter()
    extract_features(
        images,
        target,
        restart=True,
        progress=lambda n_done, _: marks.append((time.perf_counter(), n_done)),
        **options,
    )
    ended = time.perf_counter()
    first_end, first_count = marks[1]
    return first_end - began, (len(images) - first_count) / (ended - first_end)


def make_photographs(folder: Path, n_images: int, seed: int = 0) -> None:
    """Write JPEG files that cost as much to decode as ImageNet's: 500 × 375 pixels, about 100 kB."""
    generator = np.random.default_rng(seed)
    for number in range(n_images):
        shapes = Image.fromarray(generator.integers(0, 256, (15, 20, 3), np.uint8)).resize((500, 375))
        grain = generator.normal(0, 12, (375, 500, 1))
        pixels = np.clip(np.asarray(shapes) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:05}.jpg", quality=90)
