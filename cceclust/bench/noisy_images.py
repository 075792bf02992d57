"""Robustness to noisy labels of images: Figure 2 of arXiv:2303.07321 with the paper's network, a ResNet-18."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cceclust.bench.noisy_labels import LOSSES, NOISES, NoiseResult, corrupt, hold_out
from cceclust.errors import InputError
from cceclust.files.images import ImageCollection

__all__ = ["compare_losses_on_images"]


def compare_losses_on_images(
    images: ImageCollection,
    *,
    noises: Sequence[float] = NOISES,
    n_draws: int = 1,
    size: int = 32,
    n_epochs: int = 10,
    learning_rate: float = 1e-3,
    batch_size: int = 100,
    device: str = "auto",
    seed: int = 0,
    on_fit: Callable[[str], None] | None = None,
) -> list[NoiseResult]:
    """Train a ResNet-18 on noisy labels with both losses, against the same soft targets η·u + (1 − η)·label.

    Both start from the same random weights and see the same batches; nothing is augmented.

    Parameters
    ----------
    images : ImageCollection
        Images with labels.
    noises : sequence of float
        Levels of noise η.
    n_draws : int
        Number of draws of the held-out fifth of the images, of the noise and of the initial weights.
    size : int
        Side length of the squares that images are cropped and scaled to.
    n_epochs, learning_rate, batch_size, device
        As in :func:`cceclust.torch.classification.train_classifier`.
    seed : int
        Seed of the first draw.
    on_fit : callable, optional
        Called after each fit with the loss and the noise.

    Returns
    -------
    list of NoiseResult
    """
    from cceclust.torch import classification
    from cceclust.torch.pixels import load_pixels
    from cceclust.torch.runs import channel_statistics

    if images.labels is None:
        raise InputError(f"{images.source} has no labels to learn from; use images in class folders, or with labels")
    loaded = load_pixels(images, size, n_channels=3)
    classes, labels = np.unique(images.labels[loaded.kept], return_inverse=True)
    mean, deviation = channel_statistics(loaded.pixels)
    results = []
    for noise in noises:
        accuracies: dict[str, list[float]] = {loss: [] for loss in LOSSES}
        for draw in range(seed, seed + n_draws):
            train, test = hold_out(labels, draw)
            targets = classification.soft_targets(corrupt(labels[train], noise, draw), len(classes), noise)
            for loss in LOSSES:
                network = classification.standard_resnet18(len(classes), mean, deviation, draw)
                classification.train_classifier(
                    network,
                    loaded.pixels[train],
                    targets,
                    classification.LOSSES[loss],
                    n_epochs=n_epochs,
                    learning_rate=learning_rate,
                    batch_size=batch_size,
                    device=device,
                    seed=draw,
                )
                predicted = classification.predict_classes(network, loaded.pixels[test])
                accuracies[loss].append(float((predicted == labels[test]).mean()))
                if on_fit is not None:
                    on_fit(f"{loss}, noise {noise:g}")
        results.append(NoiseResult(noise, **accuracies))
    return results
