"""Deep clustering: Table 3 of the paper on any labelled images."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cceclust.errors import InputError
from cceclust.files.images import ImageCollection
from cceclust.scoring import score_clusters

if TYPE_CHECKING:
    from cceclust.torch.deep import EpochMetrics
    from cceclust.torch.runs import RunSettings

__all__ = ["ObjectiveResult", "compare_objectives"]


@dataclass(frozen=True)
class ObjectiveResult:
    """How an objective did in several trials.

    Attributes
    ----------
    objective : str
        Its name.
    accuracies, nmis, aris : list of float
        One a trial, of the trained network on all images.
    seconds : float
        Mean time of a trial.
    """

    objective: str
    accuracies: list[float]
    nmis: list[float]
    aris: list[float]
    seconds: float


def compare_objectives(
    images: ImageCollection,
    settings: Sequence[RunSettings],
    *,
    n_clusters: int | None = None,
    n_trials: int = 6,
    device: str = "auto",
    on_epoch: Callable[[str, int, EpochMetrics], None] | None = None,
) -> list[ObjectiveResult]:
    """Train the same network from the same random weights with every objective, several times.

    Parameters
    ----------
    images : ImageCollection
        Images with labels, which only the scores use.
    settings : sequence of RunSettings
        One an objective. Trials have the seeds ``seed``, ``seed + 1``, …
    n_clusters : int, optional
        Number of clusters; by default the number of classes.
    n_trials : int
        Trials an objective.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    on_epoch : callable, optional
        Told the objective, the trial and the metrics after each epoch.

    Returns
    -------
    list of ObjectiveResult
    """
    from cceclust.torch.networks import NETWORKS
    from cceclust.torch.pixels import load_pixels
    from cceclust.torch.runs import make_trainer, resolve

    if images.labels is None:
        raise InputError(f"{images.source} has no labels to compare with; use images in class folders, or with labels")
    n_clusters = n_clusters or len(images.class_names)
    results = []
    for chosen in settings:
        resolved = resolve(chosen, images, n_clusters)
        form = NETWORKS[resolved.network]
        loaded = load_pixels(images, form.size, form.n_channels)
        labels = images.labels[loaded.kept]
        scores, started = [], time.perf_counter()
        for trial in range(n_trials):
            trainer = make_trainer(replace(resolved, seed=resolved.seed + trial), n_clusters, loaded.pixels, device)

            def report(metrics: EpochMetrics, objective: str = chosen.objective, trial: int = trial) -> None:
                if on_epoch is not None:
                    on_epoch(objective, trial, metrics)

            trainer.fit(loaded.pixels, resolved.n_epochs, labels=labels, on_epoch=report)
            scores.append(score_clusters(labels, trainer.predict(loaded.pixels)))
        results.append(
            ObjectiveResult(
                chosen.objective,
                [score.accuracy for score in scores],
                [score.nmi for score in scores],
                [score.ari for score in scores],
                (time.perf_counter() - started) / n_trials,
            )
        )
    return results
