"""Features of images from a frozen network; threads decode ahead of it, and no work is done twice."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cceclust.errors import FileError, InputError
from cceclust.io.atomic import check_targets
from cceclust.io.extraction_journal import ExtractionJournal, holds_result_of, skipped_images
from cceclust.io.features import open_features
from cceclust.io.images import ImageCollection
from cceclust.io.provenance import stamp
from cceclust.text import without_folders
from cceclust.torch import ranks
from cceclust.torch.deep import exact_convolutions
from cceclust.torch.pixels import describe_preprocessing, normalize, resize_and_crop
from cceclust.torch.ranks import resolve_device
from cceclust.torch.weights import load_backbone, sha256
from cceclust.validation import check_count

__all__ = ["Extraction", "extract_features"]

# Images in a batch that keep the device busy and fit into its memory.
BATCH_SIZES = {"cuda": 256, "mps": 64, "cpu": 32}
# More threads than this do not decode faster than a GPU computes.
MOST_THREADS = 8

# The number of an image, and its pixels or why it cannot be read.
Decoded = tuple[int, NDArray[np.uint8] | str]
# The features of a batch, if any image can be read; its number of images, and those that cannot be read, and why.
Rows = tuple[NDArray[Any] | None, int, list[tuple[int, str]]]


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
    batch_size: int | None = None,
    dtype: str = "float32",
    restart: bool = False,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Write the features of images to a feature file.

    A run that was stopped or killed continues where it stopped when it is repeated, and ends with the same file, bit by
    bit, as without the stop. A complete run is not repeated. Images that cannot be read are left out and listed in the
    dataset ``skipped``. Processes that torchrun started and that have joined
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
    size, batch_size : int
        Side length of the network's input in pixels; images in a batch, by default as many as suit the device.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    dtype : {"float32", "float16"}
        Type of the features in the file.
    restart, force : bool
        Start over instead of continuing, or keeping, the work of earlier runs; overwrite a file that was made from
        something else.
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
    check_count(size, "size", 1)
    check_count(batch_size, "batch_size", 1)
    if dtype not in ("float32", "float16"):
        raise InputError(f"dtype={dtype!r}; expected float32 or float16")
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
        "device": place.type,
        "batch_size": batch_size,
        "torch_version": str(torch.__version__),
    }
    ranks.require_same(settings)
    is_complete = ranks.is_first() and target.exists() and holds_result_of(target, settings)
    if ranks.is_first() and not is_complete:
        check_targets([target], force=force)
    n_resumed = len(images)
    if not ranks.share(is_complete and not restart):
        journal = ExtractionJournal(target, settings, restart=restart) if ranks.is_first() else None
        # Threads that read images set filters of warnings at the same time; afterwards, these are as before.
        with warnings.catch_warnings():
            n_resumed = ranks.share(journal.images_done if journal else 0)
            starts = range(n_resumed, len(images), batch_size)
            batches = [range(start, min(start + batch_size, len(images))) for start in starts]
            read, compute = partial(read_pixels, images, size), partial(compute_rows, network, place, dtype)
            report = progress or (lambda n_done, n_images: None)
            report(n_resumed, len(images))
            # Without a GPU, the network itself needs the cores.
            n_threads = 1 if place.type == "cpu" else min(MOST_THREADS, os.cpu_count() or 1)
            store_features(batches, n_threads, read, compute, journal, lambda n_done: report(n_done, len(images)))
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


def read_pixels(images: ImageCollection, size: int, index: int) -> Decoded:
    """Return the number of an image, and its pixels or why it cannot be read."""
    try:
        return index, resize_and_crop(images.read(index), size)
    except FileError as error:
        return index, str(error)


def store_features(
    batches: list[range],
    n_threads: int,
    read: Callable[[int], Decoded],
    compute: Callable[[list[Decoded]], Rows],
    journal: ExtractionJournal | None,
    report: Callable[[int], None],
) -> None:
    """Compute the features of all batches, while threads decode the next ones.

    In every round each process takes one batch, in the last one perhaps none; the first process stores the rows of all,
    in order. So the file is the same wherever a run resumes and however many processes share it.
    """
    own = batches[ranks.number() :: ranks.count()]
    # Pillow does not hold the interpreter's lock while it decodes and scales.
    pool = ThreadPoolExecutor(n_threads)
    try:
        ahead = pool.map(read, own[0]) if own else None
        for number in range(math.ceil(len(batches) / ranks.count())):
            decoded = list(ahead or ())
            ahead = pool.map(read, own[number + 1]) if number + 1 < len(own) else None
            for rows in ranks.gather(compute(decoded) if decoded else None):
                if rows is not None and journal is not None:
                    journal.append(*rows)
            report(batches[min((number + 1) * ranks.count(), len(batches)) - 1].stop)
    finally:
        pool.shutdown(cancel_futures=True)


def compute_rows(network: nn.Module, device: torch.device, dtype: str, decoded: list[Decoded]) -> Rows:
    """Return the features of a batch, its number of images, and those that could not be read."""
    skipped = [(index, image) for index, image in decoded if isinstance(image, str)]
    readable = [image for _, image in decoded if not isinstance(image, str)]
    if not readable:
        return None, len(decoded), skipped
    try:
        with torch.inference_mode(), exact_convolutions():
            features = network(normalize(torch.from_numpy(np.stack(readable)).to(device))).cpu().numpy()
    except torch.OutOfMemoryError:
        raise InputError(
            f"{device} has too little memory for {len(decoded)} images at once; use smaller batches (--batch-size)"
        ) from None
    with np.errstate(over="ignore"):
        rows: NDArray[Any] = features.astype(dtype)
    if not np.isfinite(rows).all():
        raise InputError(
            "the features of an image contain NaN or infinity; check the weights, and try float32 if the features are "
            "to be float16"
        )
    return rows, len(decoded), skipped
