"""Weak supervision of networks that are trained from scratch: Table 5 of arXiv:2303.07321, on any labelled images."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cceclust.bench.weak import WeakResult, draw_labels
from cceclust.errors import InputError
from cceclust.files.images import ImageCollection

if TYPE_CHECKING:
    from cceclust.torch.deep import EpochMetrics
    from cceclust.torch.runs import RunSettings

__all__ = ["METHODS", "compare_weak_deep"]

# The objective that each method adds to the cross-entropy loss of the labelled images.
METHODS: dict[str, str | None] = {
    "only seeds": None,
    "+ IMSAT": "imsat",
    "+ IIC": "iic",
    "+ SeLa": "sela",
    "+ MIADM": "miadm",
    "+ CCE": "cce",
}


def compare_weak_deep(
    images: ImageCollection,
    settings: Mapping[str, RunSettings],
    *,
    ratios: Sequence[float] = (0.1, 0.05, 0.01),
    n_draws: int = 5,
    device: str = "auto",
    on_epoch: Callable[[str, EpochMetrics], None] | None = None,
) -> list[WeakResult]:
    """Train the same network, from the same random weights and with the same few labels, by every method.

    All methods take the same steps on the same batches; "only seeds" leaves out the loss of the unlabelled images, but
    batch norms still see them. A cluster is the class that its labels name, so nothing is matched.

    Parameters
    ----------
    images : ImageCollection
        Images with labels. The methods see a fraction of the labels; the others are for testing.
    settings : mapping of str to RunSettings
        Training settings by method, a name in :data:`METHODS` that decides the objective. Draws of the labelled
        images, and their networks, use the seeds ``seed``, ``seed + 1``, …
    ratios : sequence of float
        Fractions of the images that have a label.
    n_draws : int
        Number of draws of the labelled images per ratio.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    on_epoch : callable, optional
        Called after each epoch with the method and the metrics.

    Returns
    -------
    list of WeakResult
    """
    from cceclust.torch.networks import NETWORKS
    from cceclust.torch.objectives.labels_only import LabelsOnly
    from cceclust.torch.pixels import load_pixels
    from cceclust.torch.runs import make_trainer, resolve

    if images.labels is None:
        raise InputError(f"{images.source} has no labels to learn from; use images in class folders, or with labels")
    for method in settings:
        if method not in METHODS:
            raise InputError(f"method {method!r} is none of {', '.join(METHODS)}")
    classes, codes = np.unique(images.labels, return_inverse=True)
    results = []
    for method, chosen in settings.items():
        resolved = resolve(replace(chosen, objective=METHODS[method] or chosen.objective), images, len(classes))
        form = NETWORKS[resolved.network]
        loaded = load_pixels(images, form.size, form.n_channels)
        labels = codes[loaded.kept]
        seeds = range(resolved.seed, resolved.seed + n_draws)
        # All draws first, so that an impossible ratio is refused before any long work.
        draws = {ratio: [draw_labels(labels, ratio, seed) for seed in seeds] for ratio in ratios}
        for ratio, drawn in draws.items():
            accuracies, started = [], time.perf_counter()
            for seed, given in zip(seeds, drawn, strict=True):
                trainer = make_trainer(replace(resolved, seed=seed), len(classes), loaded.pixels, device)
                if METHODS[method] is None:
                    trainer.objective = LabelsOnly()
                report = None if on_epoch is None else partial(on_epoch, method)
                trainer.fit(loaded.pixels, resolved.n_epochs, given=given.astype(np.int64), on_epoch=report)
                hidden = given < 0
                accuracies.append(float((trainer.predict(loaded.pixels) == labels)[hidden].mean()))
            results.append(WeakResult(method, ratio, accuracies, (time.perf_counter() - started) / n_draws))
    return results
