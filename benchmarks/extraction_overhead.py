"""Speed of extraction beside that of the bare network, in turns in one process."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from cceclust.errors import InputError
from cceclust.io.images import ImageCollection, open_images
from cceclust.torch.devices import resolve_device
from cceclust.torch.extraction import PRECISIONS, extract_features, usual_batch_size, usual_precision, usual_workers
from cceclust.torch.preprocessing import normalize
from cceclust.torch.weights import BACKBONES, Backbone, load_backbone


@dataclass(frozen=True)
class ExtractionSpeed:
    """Speed of extraction and of the bare network: medians over rounds in which both ran in turns."""

    # The network on a batch that lies ready on the device.
    bare_images_per_second: float
    # A whole extraction, from the end of its first batch until its file is complete.
    images_per_second: float
    # The second over the first.
    ratio: float
    # What comes before the end of the first batch: weights are loaded, workers start.
    start_up_seconds: float


def measure_extraction(
    images: ImageCollection,
    *,
    backbone: str,
    size: int,
    device: str,
    batch_size: int | None,
    workers: int,
    n_rounds: int,
) -> ExtractionSpeed:
    """Run the bare network and extract, in turns, several rounds. Weights are random: speed does not depend on them."""
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
            options = {"weights": weights, "size": size, "device": device, "batch_size": batch_size, "workers": workers}
            seconds, speed = extraction_speed(images, Path(folder, "features.h5"), backbone=backbone, **options)
            start_up.append(seconds)
            whole.append(speed)
            print(f"bare {bare[-1]:.1f}, extraction {whole[-1]:.1f} images/s", file=sys.stderr)
    return ExtractionSpeed(
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", type=Path, nargs="?", help="as for extract; by default made-up JPEG files")
    parser.add_argument("--limit", type=int, default=160, help="number of images (%(default)s)")
    parser.add_argument("--backbone", choices=["resnet18", "resnet50"], default="resnet50", help="(%(default)s)")
    parser.add_argument("--size", type=int, default=224, help="side of the network's input in pixels (%(default)s)")
    parser.add_argument("--device", default="auto", help="auto, cpu, mps, cuda or cuda:N (%(default)s)")
    parser.add_argument("--batch-size", type=int, help="by default chosen for the device")
    parser.add_argument("--workers", type=int, help="decoding processes; by default as for extract")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which both run in turns (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.images is None:
            make_photographs(Path(folder), options.limit)
        images = open_images(options.images or folder, limit=options.limit)
        workers = usual_workers(options.device, len(images)) if options.workers is None else options.workers
        speed = measure_extraction(
            images,
            backbone=options.backbone,
            size=options.size,
            device=options.device,
            batch_size=options.batch_size,
            workers=workers,
            n_rounds=options.rounds,
        )
    print(f"{options.backbone}, {len(images):,} images, {workers} workers")
    print(f"bare network  {speed.bare_images_per_second:9.1f} images/s")
    print(f"extraction    {speed.images_per_second:9.1f} images/s")
    print(f"ratio         {speed.ratio:9.3f}")
    print(f"until the end of the first batch: {speed.start_up_seconds:.1f} s")


if __name__ == "__main__":
    main()
