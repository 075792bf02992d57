"""Features of images from a frozen network; other processes decode ahead of it, and no work is done twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.io.atomic import check_targets
from cceclust.io.extraction_journal import ExtractionJournal, holds_result_of, skipped_images
from cceclust.io.features import open_features
from cceclust.io.images import ImageCollection
from cceclust.io.provenance import stamp
from cceclust.text import without_folders
from cceclust.torch import ranks
from cceclust.torch.pixels import describe_preprocessing, normalize, resize_and_crop
from cceclust.torch.ranks import resolve_device
from cceclust.torch.weights import load_backbone, sha256
from cceclust.validation import check_count
from cceclust.workers import WorkerContext

__all__ = ["Extraction", "extract_features"]

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Images in a batch that keep the device busy and fit into its memory.
BATCH_SIZES = {"cuda": 256, "mps": 64, "cpu": 32}
# More processes than this do not decode faster than a GPU computes.
MOST_WORKERS = 8


@dataclass
class Extraction:
    """The result of an extraction: the file, and its numbers of images, rows (images that could be read) and columns.

    `n_classes` is the number of distinct labels, if there are labels; `n_resumed` is the number of images that earlier
    runs had done, all of them if there was nothing left to do; `skipped` lists images that could not be read, and why.
    """

    target: str
    n_images: int
    n_rows: int
    n_features: int
    dtype: str
    n_classes: int | None
    n_resumed: int
    skipped: list[str]


def extract_features(
    images: ImageCollection,
    target: str | Path,
    *,
    backbone: str = "resnet50",
    weights: str | Path | None = None,
    size: int = 224,
    device: str = "auto",
    precision: str = "auto",
    batch_size: int | None = None,
    workers: int | None = 0,
    dtype: str = "float32",
    on_error: str = "skip",
    restart: bool = False,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Write the features of images to a feature file.

    A run that was stopped or killed continues where it stopped when it is repeated, and ends with the same file, bit by
    bit, as without the stop. A complete run is not repeated. Processes that torchrun started and that have joined
    (:func:`cceclust.torch.ranks.joined`) share the work and make the same file; all must call this function.

    Parameters
    ----------
    images : ImageCollection
        See :func:`cceclust.io.images.open_images`.
    target : str or Path
        The ``.h5`` file to write.
    backbone : {"resnet18", "resnet50"}
        The network.
    weights : str or Path, optional
        The name of official weights (``IMAGENET1K_V1``, the default, or ``IMAGENET1K_V2``), or a ``.pth`` or
        ``.safetensors`` file.
    size : int
        Side length of the network's input in pixels.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    precision : {"auto", "float32", "bfloat16"}
        Precision of the network; ``auto`` is bfloat16 with CUDA, and otherwise float32.
    batch_size : int, optional
        Images in a batch; by default chosen for the device.
    workers : int, optional
        Number of processes that decode images in advance; with 0 the network waits for each batch, and None chooses for
        the device. The result is the same. A script that uses workers must be importable: put its code under
        ``if __name__ == "__main__":``.
    dtype : {"float32", "float16"}
        Type of the features in the file.
    on_error : {"skip", "fail"}
        Leave out images that cannot be read and list them, or stop at the first one.
    restart : bool
        Start over instead of continuing, or keeping, the work of earlier runs.
    force : bool
        Overwrite a file that was made from something else.
    progress : callable, optional
        Called with the number of images done and the number of all images, at the start and after every batch.

    Returns
    -------
    Extraction

    Examples
    --------
    >>> from cceclust.io.images import open_images
    >>> from cceclust.torch import extract_features
    >>> images = open_images("sample_data/digits")
    >>> extract_features(images, "digits-resnet50.h5")  # doctest: +SKIP
    """
    target, place = Path(target), resolve_device(device)
    batch_size = BATCH_SIZES[place.type] if batch_size is None else batch_size
    if workers is None:
        few = len(images) <= 4 * batch_size * ranks.count()
        cores = 1 if place.type == "cpu" else max(1, (os.cpu_count() or 1) // ranks.count())
        workers = 0 if few else min(MOST_WORKERS, cores)
    for name, count, least in (("size", size, 1), ("batch_size", batch_size, 1), ("workers", workers, 0)):
        check_count(count, name, least)
    choices = {"precision": ("auto", *PRECISIONS), "dtype": ("float32", "float16"), "on_error": ("skip", "fail")}
    for name, chosen in (("precision", precision), ("dtype", dtype), ("on_error", on_error)):
        if chosen not in choices[name]:
            raise InputError(f"{name}={chosen!r}; expected one of {', '.join(choices[name])}")
    if precision == "auto":
        precision = "bfloat16" if place.type == "cuda" else "float32"
    if target.suffix.lower() not in (".h5", ".hdf5"):
        raise InputError(f"cannot write features to {target}; name a file that ends in .h5")
    inputs = [*images.files, *([] if weights is None else [weights])]
    if ranks.is_first():
        # Whether an existing target may be replaced depends on its settings, which are not known yet.
        check_targets([target], inputs=inputs, force=True)
    network, file = load_backbone(backbone, weights, place)
    settings = {
        **stamp("features"),
        "backbone": backbone,
        "weights": as_utf8(file.name),
        "weights_sha256": sha256(file),
        "image_size": size,
        "preprocessing": describe_preprocessing(size),
        "input": as_utf8(without_folders(images.source)),
        "input_count": len(images),
        "input_fingerprint": images.fingerprint(),
        "dtype": dtype,
        "precision": precision,
        "device": place.type,
        "batch_size": batch_size,
        "torch_version": str(torch.__version__),
    }
    ranks.require_same(settings)
    is_complete = target.exists() and holds_result_of(target, settings)
    if ranks.is_first() and not is_complete:
        check_targets([target], force=force)
    n_resumed = len(images)
    if not ranks.share(is_complete and not restart):
        with ExtractionJournal(target, settings, restart=restart) if ranks.is_first() else nullcontext() as journal:
            n_resumed = ranks.share(journal.images_done if journal else 0)
            batches = ImageBatches(images, size, batch_size, n_resumed)
            compute = partial(
                compute_rows, network, device=place, precision=PRECISIONS[precision], dtype=dtype, on_error=on_error
            )
            store_features(batches, workers, compute, journal, progress or (lambda n_done, n_images: None))
            if journal is not None:
                journal.finish(labels=images.labels, paths=images.paths)
    ranks.share(None)
    with open_features(target) as features:
        return Extraction(
            target=str(target),
            n_images=len(images),
            n_rows=features.n_samples,
            n_features=features.n_features,
            dtype=dtype,
            n_classes=None if features.labels is None else len(np.unique(features.labels)),
            n_resumed=n_resumed,
            skipped=skipped_images(target),
        )


def as_utf8(name: str) -> str:
    """Replace the bytes of a file name that are not UTF-8, which HDF5 attributes do not accept."""
    return os.fsencode(name).decode("utf-8", "replace")


class ImageBatch(NamedTuple):
    """Pixels (n, size, size, 3) of successive images; those that could not be read are black, and listed."""

    first_image: int
    pixels: Tensor
    skipped: list[tuple[int, str]]


class ImageBatches(Dataset[ImageBatch]):
    """Batches of decoded and resized images: the same ones wherever a run resumes and however many processes share it.

    In every round, each process takes one batch; in the last one, some may have none.
    """

    def __init__(self, images: ImageCollection, size: int, batch_size: int, first_image: int) -> None:
        self.images = images
        self.size = size
        self.batch_size = batch_size
        self.first_image = first_image
        starts = range(first_image, len(images), batch_size)
        self.starts = starts[ranks.number() :: ranks.count()]
        self.ends_of_rounds = [*starts[ranks.count() :: ranks.count()], len(images)] if starts else []

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> ImageBatch:
        start = self.starts[number]
        indices = range(start, min(start + self.batch_size, len(self.images)))
        pixels = np.zeros((len(indices), self.size, self.size, 3), np.uint8)
        skipped = []
        for row, index in enumerate(indices):
            try:
                pixels[row] = resize_and_crop(self.images.read(index), self.size)
            except FileError as error:
                skipped.append((index, str(error)))
        return ImageBatch(start, torch.from_numpy(pixels), skipped)


def store_features(
    batches: ImageBatches,
    workers: int,
    compute: Callable[[ImageBatch], NDArray[Any]],
    journal: ExtractionJournal | None,
    report: Callable[[int, int], None],
) -> None:
    """Compute the rows of all batches; the first process stores those of every process, in order."""
    n_images, n_workers = len(batches.images), min(workers, len(batches))
    loader = DataLoader(
        batches,
        batch_size=None,
        num_workers=n_workers,
        # Spawned, because a fork of a process that has run OpenMP may hang or crash.
        multiprocessing_context=WorkerContext() if n_workers else None,
        pin_memory=torch.cuda.is_available(),
    )
    report(batches.first_image, n_images)
    # In the last round there may be no batch for this process.
    for n_done, batch in zip_longest(batches.ends_of_rounds, loader):
        own = None if batch is None else (compute(batch), len(batch.pixels), batch.skipped)
        for rows in ranks.gather(own):
            if rows is not None and journal is not None:
                journal.append(*rows)
        report(n_done, n_images)


def compute_rows(
    network: nn.Module, batch: ImageBatch, *, device: torch.device, precision: torch.dtype, dtype: str, on_error: str
) -> NDArray[Any]:
    """Return the features of the images of a batch that could be read."""
    if batch.skipped and on_error == "fail":
        raise FileContentError(f"{batch.skipped[0][1]}; --on-error skip (on_error='skip') leaves such images out")
    try:
        with (
            torch.inference_mode(),
            torch.autocast(device.type, precision, enabled=precision != torch.float32),
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
        ):
            features = network(normalize(batch.pixels.to(device, non_blocking=True))).float().cpu().numpy()
    except torch.OutOfMemoryError:
        raise InputError(
            f"{device} has too little memory for {len(batch.pixels)} images at once; use a smaller --batch-size "
            "(batch_size)"
        ) from None
    kept = np.delete(np.arange(len(features)), [index - batch.first_image for index, _ in batch.skipped])
    with np.errstate(over="ignore"):
        rows: NDArray[Any] = features[kept].astype(dtype)
    is_finite = np.isfinite(rows).all(axis=1)
    if not is_finite.all():
        raise InputError(
            f"the features of image {batch.first_image + int(kept[is_finite.argmin()])} contain NaN or infinity; try "
            "--dtype float32 (dtype='float32'), or check the weights"
        )
    return rows
