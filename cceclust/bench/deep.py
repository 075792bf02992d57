"""Deep clustering: Tables 3 and 4 of the paper on any labelled images."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cceclust.errors import ClusteringWarning, InputError
from cceclust.files.clusters import Clusters
from cceclust.files.images import ImageCollection
from cceclust.scoring import score_clusters

if TYPE_CHECKING:
    from cceclust.torch.deep import EpochMetrics
    from cceclust.torch.runs import RunSettings

__all__ = ["TABLE_3", "TABLE_4", "ObjectiveResult", "compare_objectives"]

# The rows of the tables, with the supplement's L_CCE beside L_CCE+.
TABLE_3 = ("imsat", "iic", "sela", "miadm", "cce-pgd", "cce")
TABLE_4 = ("scan", "imsat", "miadm", "cce")


@dataclass(frozen=True)
class ObjectiveResult:
    """Scores of one objective over several trials.

    Attributes
    ----------
    objective : str
        Its name.
    accuracies, nmis, aris : list of float
        One value per trial, for the trained network on all images.
    seconds : float
        Mean training time of a trial.
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
    folder: str | Path | None = None,
    on_epoch: Callable[[str, int, EpochMetrics], None] | None = None,
) -> list[ObjectiveResult]:
    """Train the same network from the same weights with every objective, several times.

    Parameters
    ----------
    images : ImageCollection
        Images with labels, which only the scores use.
    settings : sequence of RunSettings
        One per objective. The trials use the seeds ``seed``, ``seed + 1``, …
    n_clusters : int, optional
        Number of clusters; by default the number of classes.
    n_trials : int
        Number of trials per objective.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    folder : str or Path, optional
        Where to keep the runs, one folder per objective and trial. Finished trials are not trained again, and a
        trial that was stopped continues after its last complete epoch. By default nothing is kept.
    on_epoch : callable, optional
        Called after each epoch with the objective, the trial and the metrics.

    Returns
    -------
    list of ObjectiveResult
    """
    if images.labels is None:
        raise InputError(f"{images.source} has no labels to compare with; use images in class folders, or with labels")
    n_clusters = n_clusters or len(images.class_names)
    results = []
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(TemporaryDirectory(prefix="cceclust-"))
        for chosen in settings:
            scores, seconds = [], 0.0
            for trial in range(n_trials):
                place = Path(folder) / f"{chosen.objective}-{trial + 1}"
                report = None if on_epoch is None else partial(on_epoch, chosen.objective, trial)
                clusters = run_trial(
                    images, place, n_clusters, replace(chosen, seed=chosen.seed + trial), device, report
                )
                assert clusters.true_labels is not None
                scores.append(score_clusters(clusters.true_labels, clusters.labels))
                seconds += clusters.diagnostics["seconds"]
            results.append(
                ObjectiveResult(
                    chosen.objective,
                    [score.accuracy for score in scores],
                    [score.nmi for score in scores],
                    [score.ari for score in scores],
                    seconds / n_trials,
                )
            )
    return results


def run_trial(
    images: ImageCollection,
    folder: Path,
    n_clusters: int,
    settings: RunSettings,
    device: str,
    on_epoch: Callable[[EpochMetrics], None] | None,
) -> Clusters:
    """Train a network, or resume the run in the folder, and return the clusters."""
    from cceclust.torch.runs import cluster_images

    folder.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # Objectives that collapse are part of the comparison: their scores already show what the warnings would say.
        warnings.simplefilter("ignore", ClusteringWarning)
        run = cluster_images(images, folder, n_clusters, settings, device=device, resume=True, on_epoch=on_epoch)
    return run.clusters
