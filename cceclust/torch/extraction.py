"""Features of images from a frozen network; decoding and writing run in parallel with it, and no work is done twice."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.io.atomic import claiming, refuse_to_overwrite
from cceclust.io.extraction_journal import (
    ExtractionJournal,
    discard_leftovers,
    holds_result_of,
    skipped_images,
)
from cceclust.io.features import check_features_name, open_features
from cceclust.io.images import ImageCollection
from cceclust.io.provenance import stamp
from cceclust.text import without_folders
from cceclust.torch.preprocessing import describe_preprocessing, normalize, resize_and_crop
from cceclust.torch.ranks import Ranks
from cceclust.torch.weights import Backbone, load_backbone
from cceclust.workers import WorkerContext

__all__ = ["Extraction", "extract_features", "usual_workers"]

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FEATURE_TYPES = ("float32", "float16")
# Number of batches that may wait to be written: a slow disk slows the network down instead of filling the memory.
BATCHES_TO_WRITE = 2
LARGE_MEMORY = 8 << 30


@dataclass
class Extraction:
    """The result of an extraction.

    Attributes
    ----------
    target : str
        The feature file.
    n_images, n_rows, n_features : int
        Number of images, of rows (images that could be read) and of columns.
    dtype : str
        Type of the features.
    n_classes : int or None
        Number of distinct labels; None without labels.
    n_resumed : int
        Number of images that earlier runs had done; all of them if there was nothing left to do.
    skipped : list of str
        The images that could not be read, and why.
    """

    target: str
    n_images: int
    n_rows: int
    n_features: int
    dtype: str
    n_classes: int | None
    n_resumed: int = 0
    skipped: list[str] = field(default_factory=list)


def extract_features(
    images: ImageCollection,
    target: str | Path,
    *,
    backbone: str | Path = "resnet50",
    weights: str | Path | None = None,
    trust: bool = False,
    size: int = 224,
    device: str = "auto",
    precision: str = "auto",
    batch_size: int | None = None,
    workers: int = 0,
    dtype: str = "float32",
    on_error: str = "skip",
    restart: bool = False,
    force: bool = False,
    full_paths: bool = False,
    progress: Callable[[int, int], None] | None = None,
    ranks: Ranks | None = None,
) -> Extraction:
    """Write the features of images to a feature file.

    A run that was stopped or killed continues where it stopped when it is repeated, and ends with the same file, bit by
    bit, as without the stop. A complete run is not repeated.

    Parameters
    ----------
    images : ImageCollection
        See :func:`cceclust.io.images.open_images`.
    target : str or Path
        The ``.h5`` file to write.
    backbone, weights, trust
        See :func:`cceclust.torch.weights.load_backbone`.
    size : int
        Side length of the network's input in pixels.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    precision : {"auto", "float32", "bfloat16", "float16"}
        Precision of the network; ``auto`` is float32 on the CPU and the faster half precision on a GPU.
    batch_size : int, optional
        Images in a batch; by default chosen for the device.
    workers : int
        Number of processes that decode images in advance; with 0 the network waits for each batch. Same result.
        A script that uses workers must be importable: put its code under ``if __name__ == "__main__":``.
    dtype : {"float32", "float16"}
        Type of the features in the file.
    on_error : {"skip", "fail"}
        Leave out images that cannot be read and list them, or stop at the first one.
    restart : bool
        Start over instead of continuing, or keeping, the work of earlier runs.
    force : bool
        Overwrite a file that was made from something else.
    full_paths : bool
        Keep the absolute path of the images in the file, not only its last part.
    progress : callable, optional
        Called with the number of images done and the number of all images, at the start and after every batch.
    ranks : Ranks, optional
        The processes that share the work; see :mod:`cceclust.torch.ranks`. All of them must call this function with the
        same arguments; the first one writes. By default this process works alone. Same result.

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
    target, ranks = Path(target), ranks or Ranks()
    place = ranks.device(device)
    check_options(target, size=size, batch_size=batch_size, workers=workers, dtype=dtype, on_error=on_error)
    inputs = [*images.files, *(source for source in (backbone, weights) if source is not None)]
    # Whether the target may be replaced depends on its settings, which are not known yet.
    with claiming([target], inputs=inputs, force=True) if ranks.is_first else nullcontext():
        network = load_backbone(backbone, weights, place, trust=trust)
        if network.size not in (None, size):
            raise InputError(f"{network.name} takes images of {network.size} px only; use --size {network.size}")
        batch_size = network.batch_size or batch_size or usual_batch_size(place)
        precision = usual_precision(place) if precision == "auto" else precision
        if precision not in PRECISIONS:
            raise InputError(f"precision={precision!r}; expected auto, {', '.join(PRECISIONS)}")
        settings = {
            **stamp("features"),
            "backbone": as_utf8(network.name),
            "weights": as_utf8(network.weights),
            "weights_sha256": network.weights_sha256,
            "image_size": size,
            "preprocessing": describe_preprocessing(size),
            "input": as_utf8(images.source if full_paths else without_folders(images.source)),
            "input_count": len(images),
            "input_fingerprint": images.fingerprint(),
            "dtype": dtype,
            "precision": precision,
            "device": place.type,
            "batch_size": batch_size,
            "torch_version": str(torch.__version__),
        }
        ranks.require_same(settings)
        n_resumed = len(images)
        if not ranks.share(ranks.is_first and is_complete(target, settings, restart=restart, force=force)):
            work = ExtractionJournal(target, settings, dtype, restart=restart) if ranks.is_first else nullcontext()
            with work as journal:
                n_resumed = ranks.share(0 if journal is None else journal.images_done)
                batches = ImageBatches(images, size, batch_size, first_image=n_resumed, ranks=ranks)
                store_features(
                    network, batches, journal, place, PRECISIONS[precision], workers, dtype, on_error, progress
                )
                if journal is not None:
                    finish(journal, images)
        done = ranks.share(outcome(target, images, n_resumed=n_resumed) if ranks.is_first else None)
        assert done is not None
        return done


def is_complete(target: Path, settings: Mapping[str, Any], *, restart: bool, force: bool) -> bool:
    """Tell whether there is nothing left to do; raise if the target holds something else and may not be replaced."""
    if not (target.exists() and holds_result_of(target, settings)):
        refuse_to_overwrite(target, force=force)
        return False
    if not restart:
        discard_leftovers(target)
    return not restart


def finish(journal: ExtractionJournal, images: ImageCollection) -> None:
    """Write the target."""
    if not journal.n_rows:
        raise FileContentError(f"none of the {len(images)} images can be read; the first: {journal.skipped[0][1]}")
    journal.finish(labels=images.labels, paths=images.paths)


def as_utf8(name: str) -> str:
    """Replace the bytes of a file name that are not UTF-8, which HDF5 attributes do not accept."""
    return os.fsencode(name).decode("utf-8", "replace")


def check_options(target: Path, *, size: int, batch_size: int | None, workers: int, dtype: str, on_error: str) -> None:
    """Raise for values that cannot be used, before any long work."""
    check_features_name(target)
    for name, value, least in (("size", size, 1), ("batch_size", batch_size, 1), ("workers", workers, 0)):
        if value is not None and value < least:
            raise InputError(f"{name}={value}; expected at least {least}")
    for name, choice, choices in (("dtype", dtype, FEATURE_TYPES), ("on_error", on_error, ("skip", "fail"))):
        if choice not in choices:
            raise InputError(f"{name}={choice!r}; expected one of {', '.join(choices)}")


def usual_batch_size(device: torch.device) -> int:
    """Return a batch size that keeps the device busy and fits into its memory."""
    if device.type == "cuda":
        # From the total memory, not from what is free now: a resumed run must make the same batches.
        return 256 if torch.cuda.get_device_properties(device).total_memory >= LARGE_MEMORY else 64
    return 64 if device.type == "mps" else 32


def usual_precision(device: torch.device) -> str:
    """Return the fastest precision that is good enough for features."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "float16" if device.type == "mps" else "float32"


def usual_workers(device: str, n_images: int, ranks: Ranks | None = None) -> int:
    """Return how many decoding processes suit the device; 0 for a few images."""
    ranks = ranks or Ranks()
    place = ranks.device(device)
    if n_images <= 4 * usual_batch_size(place) * ranks.count:
        return 0
    return 1 if place.type == "cpu" else min(8, max(1, (os.cpu_count() or 1) // ranks.count_here))


class ImageBatch(NamedTuple):
    """Pixels (n, size, size, 3) of successive images; those that could not be read are black, and listed."""

    first_image: int
    pixels: Tensor
    skipped: list[tuple[int, str]]


class ImageBatches(Dataset[ImageBatch]):
    """Batches of decoded and resized images: the same ones wherever a run resumes and however many processes share it.

    In every round, each process takes one batch; in the last one, some may have none.
    """

    def __init__(
        self, images: ImageCollection, size: int, batch_size: int, *, first_image: int = 0, ranks: Ranks | None = None
    ) -> None:
        self.images = images
        self.size = size
        self.batch_size = batch_size
        self.ranks = ranks or Ranks()
        self.first_image = first_image
        starts = range(first_image, len(images), batch_size)
        self.starts = starts[self.ranks.number :: self.ranks.count]
        self.ends_of_rounds = [*starts[self.ranks.count :: self.ranks.count], len(images)] if starts else []

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
    network: Backbone,
    batches: ImageBatches,
    journal: ExtractionJournal | None,
    device: torch.device,
    precision: torch.dtype,
    workers: int,
    dtype: str,
    on_error: str,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Run all batches through the network while others are being decoded and written."""
    n_images = len(batches.images)
    report = progress or (lambda n_done, n_images: None)
    report(batches.first_image, n_images)
    writes: deque[Future[None]] = deque()
    last: Future[None] | None = None
    with ThreadPoolExecutor(max_workers=1) as writer:
        # In the last round there may be no batch for this process.
        for n_done, batch in zip_longest(batches.ends_of_rounds, decoded_ahead(batches, workers, device)):
            own = None
            if batch is not None:
                if batch.skipped and on_error == "fail":
                    raise FileContentError(f"{batch.skipped[0][1]}; --on-error skip leaves such images out")
                own = (run_network(network, batch.pixels, device, precision), batch.skipped, batch.first_image)
            last = writer.submit(write_round, last, journal, batches.ranks, own, np.dtype(dtype))
            writes.append(last)
            if len(writes) > BATCHES_TO_WRITE:
                writes.popleft().result()
            report(n_done, n_images)
        for write in writes:
            write.result()


def run_network(network: Backbone, pixels: Tensor, device: torch.device, precision: torch.dtype) -> Tensor:
    """Return the features of pixels on the device."""
    try:
        return compute_features(network, pixels.to(device, non_blocking=True), precision)
    except torch.OutOfMemoryError:
        raise InputError(
            f"{device} has too little memory for {len(pixels)} images at once; use a smaller --batch-size"
        ) from None


def decoded_ahead(batches: ImageBatches, workers: int, device: torch.device) -> Iterator[ImageBatch]:
    """Yield the batches in order, decoded by worker processes if there are any."""
    loader = DataLoader(
        batches,
        batch_size=None,
        num_workers=min(workers, len(batches)),
        # Spawned, because a fork of a process that has run OpenMP may hang or crash.
        multiprocessing_context=WorkerContext() if min(workers, len(batches)) else None,
        pin_memory=device.type == "cuda",
    )
    yield from loader


def compute_features(network: Backbone, pixels: Tensor, precision: torch.dtype) -> Tensor:
    """Return the features (n, n_features) of pixels (n, size, size, 3) as float32."""
    device, n_images = pixels.device.type, len(pixels)
    with (
        torch.inference_mode(),
        torch.autocast(device, precision, enabled=precision != torch.float32),
        torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
    ):
        x = normalize(pixels)
        if network.batch_size is not None:
            # An exported network may have a fixed batch size: fill up the last batch.
            x = torch.cat([x, x.new_zeros(network.batch_size - n_images, *x.shape[1:])])
        features: Any = network.network(x)
        if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != len(x):
            came = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
            raise InputError(f"{network.name} returns {came} for {len(x)} images; expected vectors ({len(x)}, n)")
        return features[:n_images].float()


def write_round(
    earlier: Future[None] | None,
    journal: ExtractionJournal | None,
    ranks: Ranks,
    own: tuple[Tensor, list[tuple[int, str]], int] | None,
    dtype: np.dtype[Any],
) -> None:
    """Hand the batch of this process to the first one, which stores those of all, in order."""
    if earlier is not None:
        # If the round before has failed, this one must not take its place.
        earlier.result()
    rows = None if own is None else (rows_to_store(*own, dtype), len(own[0]), own[1])
    for batch in ranks.gather(rows):
        if batch is not None:
            assert journal is not None
            journal.append(*batch)


def rows_to_store(
    features: Tensor, skipped: list[tuple[int, str]], first_image: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return the rows of the images that could be read."""
    kept = np.ones(len(features), bool)
    kept[[index - first_image for index, _ in skipped]] = False
    with np.errstate(over="ignore"):
        rows = features.cpu().numpy()[kept].astype(dtype)
    if not np.isfinite(rows).all():
        bad = first_image + int(np.flatnonzero(kept)[np.argmin(np.isfinite(rows).all(axis=1))])
        raise InputError(
            f"the features of image {bad} contain NaN or infinity; try --precision float32 --dtype float32, "
            "or check the weights"
        )
    return rows


def outcome(target: Path, images: ImageCollection, *, n_resumed: int) -> Extraction:
    """Read the result of a complete extraction from its file."""
    with open_features(target) as features:
        return Extraction(
            target=str(target),
            n_images=len(images),
            n_rows=features.n_samples,
            n_features=features.n_features,
            dtype=str(features.dtype),
            n_classes=None if features.labels is None else len(np.unique(features.labels)),
            n_resumed=n_resumed,
            skipped=skipped_images(target),
        )
