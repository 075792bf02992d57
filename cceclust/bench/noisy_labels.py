"""Robustness to noisy labels: Figure 2 of arXiv:2303.07321, on any labelled file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from cceclust.bench.figures import check_figure_target, new_figure, save_figure
from cceclust.errors import InputError
from cceclust.estimators import CCEClassifier

__all__ = ["NoiseResult", "compare_losses", "corrupt", "draw_noise_curves", "hold_out"]

LOSSES: tuple[Literal["cce", "ce"], ...] = ("cce", "ce")
NOISES = tuple(round(0.1 * step, 1) for step in range(10))
HELD_OUT = 0.2


@dataclass(frozen=True)
class NoiseResult:
    """Accuracies of both losses at one level of noise.

    Attributes
    ----------
    noise : float
        η: the fraction of the training labels that was replaced by random ones.
    cce, ce : list of float
        Accuracy on held-out rows with true labels, one value per draw.
    """

    noise: float
    cce: list[float]
    ce: list[float]


def compare_losses(
    features: NDArray[Any],
    labels: NDArray[np.intp],
    *,
    noises: Sequence[float] = NOISES,
    n_draws: int = 5,
    weight_decay: float | Literal["auto"] = "auto",
    seed: int = 0,
    on_fit: Callable[[str], None] | None = None,
) -> list[NoiseResult]:
    """Train on noisy labels with both losses, against the same soft targets η·u + (1 − η)·label.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        The features.
    labels : ndarray of shape (n_samples,)
        True labels as numbers from 0.
    noises : sequence of float
        Levels of noise η.
    n_draws : int
        Number of draws of the held-out fifth of the rows and of the noise.
    weight_decay : float or "auto"
        As in :class:`cceclust.CCEClassifier`.
    seed : int
        Seed of the first draw.
    on_fit : callable, optional
        Called after each fit with the loss and the noise.

    Returns
    -------
    list of NoiseResult
    """
    results = []
    for noise in noises:
        accuracies: dict[str, list[float]] = {loss: [] for loss in LOSSES}
        for draw in range(seed, seed + n_draws):
            train, test = hold_out(labels, draw)
            noisy = corrupt(labels[train], noise, draw)
            for loss in LOSSES:
                classifier = CCEClassifier(
                    loss=loss,
                    label_noise=noise,
                    self_labeling=False,
                    weight_decay=weight_decay,
                    n_init=1,
                    random_state=draw,
                )
                classifier.fit(features[train], noisy)
                accuracies[loss].append(float(classifier.score(features[test], labels[test])))
                if on_fit is not None:
                    on_fit(f"{loss}, noise {noise:g}")
        results.append(NoiseResult(noise, **accuracies))
    return results


def hold_out(labels: NDArray[np.intp], seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to train on and the rows to test on; a fifth of each class is for testing.

    Examples
    --------
    >>> import numpy as np
    >>> [len(rows) for rows in hold_out(np.repeat([0, 1], 50), seed=0)]
    [80, 20]
    """
    rows = np.arange(len(labels))
    try:
        train, test = train_test_split(rows, test_size=HELD_OUT, random_state=seed, stratify=labels)
    except ValueError as error:
        raise InputError(f"a fifth of each class cannot be held out: {error}") from None
    return train, test


def corrupt(labels: NDArray[np.intp], noise: float, seed: int) -> NDArray[np.intp]:
    """Replace a random fraction of the labels by random labels.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.repeat([0, 1], 500)
    >>> bool(0.2 < (corrupt(labels, 0.5, seed=0) != labels).mean() < 0.3)
    True
    """
    if not 0 <= noise < 1:
        raise InputError(f"noise={noise!r}; expected a part of the labels, at least 0 and below 1")
    generator = np.random.default_rng(seed)
    replaced = generator.random(len(labels)) < noise
    return np.where(replaced, generator.choice(np.unique(labels), len(labels)), labels)


def draw_noise_curves(results: Sequence[NoiseResult], path: str | Path, *, force: bool = False) -> None:
    """Plot accuracy against noise to a file.

    Parameters
    ----------
    results : sequence of NoiseResult
        From :func:`compare_losses`.
    path : str or Path
        A .png, .svg or .pdf file.
    force : bool
        Overwrite the file if it exists.
    """
    check_figure_target(path, force=force)
    figure, axes = new_figure()
    noises = [result.noise for result in results]
    for name, label, style in (("cce", "collision cross-entropy", "-o"), ("ce", "Shannon's cross-entropy", "--s")):
        draws = np.array([getattr(result, name) for result in results])
        axes.errorbar(noises, draws.mean(axis=1), draws.std(axis=1), fmt=style, capsize=3, label=label)
    axes.set(xlabel="part of the labels that is random (η)", ylabel="accuracy on held-out rows")
    axes.legend()
    save_figure(figure, path, force=force)
