"""From images to a trained network and clusters, kept in a folder; and from such a folder and new images to clusters.

The random numbers of an epoch depend only on the seed and its number, so a run that is killed at any moment
can resume from its checkpoint and gives the same result.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cceclust.errors import ClusteringWarning, FileContentError, InputError
from cceclust.io.atomic import claiming
from cceclust.io.clusters import STDOUT, Clusters, clusters_writer, write_clusters
from cceclust.io.features import write_features
from cceclust.io.images import ImageCollection, open_images
from cceclust.io.partial_labels import PartialLabels
from cceclust.io.provenance import stamp
from cceclust.presets import NORMALIZATIONS, PRESETS, RunSettings
from cceclust.text import without_folders
from cceclust.torch.augmentation import AUGMENTATIONS, make_augmentation
from cceclust.torch.deep import DeepTrainer, EpochMetrics, check_at_least_one, check_precision
from cceclust.torch.devices import resolve_device
from cceclust.torch.networks import NETWORKS, ClusterNetwork, build_network, choose_network
from cceclust.torch.objectives import make_objective, parameters_of
from cceclust.torch.pixels import LoadedImages, load_pixels, look_at
from cceclust.torch.ranks import Ranks
from cceclust.torch.run_folder import RunFolder
from cceclust.torch.weights import load_weights, sha256
from cceclust.fit.diagnosis import NETWORK_ADVICE, find_problems

__all__ = [
    "Run",
    "RunSettings",
    "choose_settings",
    "cluster_images",
    "make_trainer",
    "predict_images",
    "predict_images_file",
    "resolve",
]


@dataclass(frozen=True)
class Run:
    """The result of a run.

    Attributes
    ----------
    clusters : Clusters
        The clusters of the images that could be read.
    history : list of EpochMetrics
        The metrics of each epoch.
    skipped : list of str
        The images that could not be read, and why.
    files : list of Path
        The files that were written.
    n_resumed : int
        Number of epochs that an earlier run had done.
    """

    clusters: Clusters
    history: list[EpochMetrics]
    skipped: list[str]
    files: list[Path]
    n_resumed: int


def cluster_images(
    images: ImageCollection,
    folder: str | Path,
    n_clusters: int,
    settings: RunSettings | None = None,
    *,
    labels: PartialLabels | None = None,
    device: str = "auto",
    features: bool = False,
    resume: bool = False,
    force: bool = False,
    on_step: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[EpochMetrics], None] | None = None,
    ranks: Ranks | None = None,
) -> Run:
    """Cluster images by training a network on them, and keep the run in a folder.

    Parameters
    ----------
    images : ImageCollection
        See :func:`cceclust.io.images.open_images`. Their own labels are used for the metrics only.
    folder : str or Path
        The run's folder.
    n_clusters : int
        Number of clusters.
    settings : RunSettings, optional
        Everything that the result depends on, except labels.
    labels : PartialLabels, optional
        The classes of some images, which clusters take their names from; hard labels only.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    features : bool
        Also write ``features.h5``.
    resume : bool
        Resume the run in the folder, if there is one.
    force : bool
        Start over instead.
    on_step, on_epoch : callable, optional
        As in :meth:`cceclust.torch.DeepTrainer.fit`.
    ranks : Ranks, optional
        The processes that train together; see :mod:`cceclust.torch.ranks`. All of them must call this function with the
        same arguments; the first one writes the folder. By default this process trains alone.

    Returns
    -------
    Run

    Examples
    --------
    >>> from cceclust.io.images import open_images
    >>> from cceclust.torch.runs import RunSettings, cluster_images
    >>> digits = open_images("sample_data/digits")
    >>> cluster_images(digits, "run", 10, RunSettings(n_epochs=5)).clusters.labels  # doctest: +SKIP
    """
    settings = resolve(settings or RunSettings(), images, n_clusters)
    place, ranks = RunFolder(folder), ranks or Ranks()
    config = {
        **stamp("run"),
        **without_folders(asdict(settings)),
        "n_clusters": n_clusters,
        "init_sha256": None if settings.init is None else sha256(Path(settings.init)),
        "images": without_folders(images.source),
        "images_fingerprint": images.fingerprint(),
        "classes": None if labels is None else labels.names(n_clusters),
        "labels_sha256": None if labels is None else hashlib.sha256(labels.values.tobytes()).hexdigest(),
        "torch_version": str(torch.__version__),
    }
    sources = (settings.init, None if labels is None else labels.source)
    inputs = [*images.files, *(source for source in sources if source is not None)]
    with place.opened(config, inputs=inputs, resume=resume, force=force) if ranks.is_first else nullcontext():
        ranks.require_same(config)
        form = NETWORKS[settings.network]
        loaded = load_pixels(images, form.size, form.n_channels)
        trainer = make_trainer(settings, n_clusters, loaded.pixels, device, ranks)
        n_resumed = place.restore(trainer)

        def keep(metrics: EpochMetrics) -> None:
            if ranks.is_first:
                place.save(trainer)
            if on_epoch is not None:
                on_epoch(metrics)

        truth = None if images.labels is None else images.labels[loaded.kept]
        given = None if labels is None else labels.values[loaded.kept]
        trainer.fit(loaded.pixels, settings.n_epochs, labels=truth, given=given, on_step=on_step, on_epoch=keep)
        clusters = label_images(trainer, images, loaded)
        clusters.parameters = {"method": "deep", "n_clusters": n_clusters, **asdict(settings)}
        clusters.loss_curves = np.array([[metrics.loss for metrics in trainer.history]])
        clusters.diagnostics = {
            "n_iter": len(trainer.history),
            "seconds": round(sum(len(loaded.kept) / metrics.images_per_second for metrics in trainer.history), 1),
            "warnings": find_collapse(clusters),
            "skipped": loaded.skipped,
        }
        if labels is not None:
            clusters.parameters["classes"] = labels.names(n_clusters)
            clusters.diagnostics["labelled_rows"] = int((labels.values[loaded.kept] >= 0).sum())
            judging = labels.unseen(images.labels)
            clusters.true_labels = None if judging is None else judging[loaded.kept]
        rows = trainer.features(loaded.pixels) if features else None
        if rows is not None:
            clusters.provenance["features"] = str(place.features.resolve())
        if rows is not None and ranks.is_first:
            write_features(
                place.features,
                rows,
                labels=clusters.true_labels,
                paths=clusters.paths,
                attributes={
                    "backbone": settings.network,
                    "image_size": form.size,
                    "input": without_folders(images.source),
                },
                force=True,
            )
        if ranks.is_first:
            place.write_model(trainer.network, {"network": settings.network, "n_clusters": str(n_clusters)})
            # Last, because this file marks the run as complete.
            write_clusters(place.clusters, clusters, force=True)
    for problem in clusters.diagnostics["warnings"] if ranks.is_first else ():
        warnings.warn(problem, ClusteringWarning, stacklevel=2)
    files = [place.model, *([place.features] if features else []), place.clusters]
    return Run(clusters, trainer.history, loaded.skipped, files, n_resumed)


def predict_images(folder: str | Path, images: ImageCollection, *, device: str = "auto") -> Clusters:
    """Assign images to the clusters of a run.

    Parameters
    ----------
    folder : str or Path
        The run.
    images : ImageCollection
        The images; they are cropped and scaled to the input size of the network.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.

    Returns
    -------
    Clusters
    """
    place = RunFolder(folder)
    config, metadata = place.read_config(), place.read_model_metadata()
    if metadata.get("network") not in NETWORKS or not metadata.get("n_clusters", "").isdecimal():
        raise FileContentError(f"{place.model} is damaged: it does not say which network it is")
    form = NETWORKS[metadata["network"]]
    loaded = load_pixels(images, form.size, form.n_channels)
    network = new_network(metadata["network"], int(metadata["n_clusters"]), loaded.pixels)
    load_weights(network, place.model)
    clusters = label_images(DeepTrainer(network, augmentation=lambda batch: batch, device=device), images, loaded)
    clusters.parameters = {"method": "deep", "run": str(place.path.resolve()), "objective": config.get("objective")}
    if config.get("classes"):
        clusters.parameters["classes"] = config["classes"]
    clusters.diagnostics = {"warnings": [], "skipped": loaded.skipped}
    return clusters


def predict_images_file(
    folder: str | Path,
    path: str | Path,
    *,
    out: Path | None = None,
    force: bool = False,
    full_paths: bool = False,
    dataset: str | None = None,
    labels_dataset: str | None = None,
) -> tuple[Clusters, list[Path]]:
    """Assign a collection of images to the clusters of a run, and write them beside it.

    Parameters
    ----------
    folder : str or Path
        The run.
    path, dataset, labels_dataset
        As in :func:`cceclust.io.images.open_images`.
    out : Path, optional
        Where to write; by default ``*.predicted.h5`` beside the images. With ``-`` clusters go to standard output.
    force : bool
        Overwrite a file that exists.
    full_paths : bool
        Keep absolute paths of this machine in the file, not only file names.

    Returns
    -------
    clusters : Clusters
    written : list of Path
        The files that were written.
    """
    path = Path(path).resolve() if Path(path).name in ("", "..") else Path(path)
    out = out or path.with_name((path.name if path.is_dir() else path.stem) + ".predicted.h5")
    clusters_writer(out)
    images = open_images(path, dataset=dataset, labels_dataset=labels_dataset)
    written = [] if out == STDOUT else [out]
    with claiming(written, inputs=[*images.files, *RunFolder(folder).files], force=force):
        clusters = predict_images(folder, images)
        write_clusters(out, clusters, force=force, full_paths=full_paths)
    return clusters, written


def choose_settings(objective: str = "cce", preset: str | None = None, **chosen: Any) -> RunSettings:
    """Return the settings of a preset, or the defaults, with changes.

    Parameters
    ----------
    objective : str
        A preset's fairness is meant for ``cce`` and ``cce-pgd``; others keep their own.
    preset : str, optional
        A name in :data:`cceclust.presets.PRESETS`. Those with ResNet-18 need ``init``.
    **chosen
        Fields of :class:`RunSettings` to change; ``objective_parameters`` are added to those of the preset.

    Examples
    --------
    >>> from cceclust.torch.runs import choose_settings
    >>> settings = choose_settings("cce", "cifar10", objective_parameters={"max_iter": 50})
    >>> settings.objective_parameters
    {'augmentation_weight': 1.0, 'fairness': 100.0, 'max_iter': 50}
    """
    start = RunSettings()
    if preset is not None:
        if preset not in PRESETS:
            raise InputError(f"preset={preset!r}; expected one of {', '.join(PRESETS)}")
        start = PRESETS[preset]
    parameters = {
        name: value
        for name, value in start.objective_parameters.items()
        if name in parameters_of(objective) and (name != "fairness" or objective in ("cce", "cce-pgd"))
    }
    parameters |= chosen.pop("objective_parameters", {})
    settings = replace(start, objective=objective, objective_parameters=parameters, **chosen)
    if preset is not None and settings.network == "resnet18" and settings.init is None:
        raise InputError(
            f"preset {preset!r} starts from the checkpoint of a pretext task, and its learning rate is far too small "
            "for random weights; name a checkpoint, e.g. one of SCAN's, as init=FILE"
        )
    return settings


def resolve(settings: RunSettings, images: ImageCollection, n_clusters: int) -> RunSettings:
    """Choose the settings that are "auto" by a look at the images, and refuse impossible ones before any long work.

    Parameters
    ----------
    settings : RunSettings
        The network or the augmentation may be ``auto``.
    images : ImageCollection
        The images to cluster.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    RunSettings
    """
    for name in ("n_epochs", "batch_size"):
        check_at_least_one(getattr(settings, name), name)
    check_precision(settings.precision)
    smallest_batch = len(images) // math.ceil(len(images) / settings.batch_size)
    if not 2 <= n_clusters <= smallest_batch:
        raise InputError(
            f"{n_clusters} clusters for {len(images):,} images in batches of {smallest_batch}; expected at least 2 "
            "and no more than a batch has images, since each batch is to hold all clusters"
        )
    objective = make_objective(settings.objective, **settings.objective_parameters)
    if objective.n_neighbors and settings.init is None:
        raise InputError(
            f"objective {settings.objective!r} compares images that are neighbours by the features they have at "
            "first, and random weights have none worth comparing; name a checkpoint as init=FILE"
        )
    network = settings.network
    if network in ("auto", "resnet18"):
        size, is_grey = look_at(images)
        network = choose_network(network, size, is_grey=is_grey)
    if network not in NETWORKS:
        raise InputError(f"network={network!r}; expected auto, resnet18, or one of {', '.join(NETWORKS)}")
    by_default = "digits" if NETWORKS[network].n_channels == 1 else "photos"
    augmentation = by_default if settings.augmentation == "auto" else settings.augmentation
    if augmentation not in AUGMENTATIONS:
        raise InputError(f"augmentation={augmentation!r}; expected auto, {', '.join(AUGMENTATIONS)}")
    if settings.normalization not in ("images", *NORMALIZATIONS):
        known = ", ".join(NORMALIZATIONS)
        raise InputError(f"normalization={settings.normalization!r}; expected images, {known}")
    if settings.normalization != "images" and NETWORKS[network].n_channels != 3:
        raise InputError(f"normalization={settings.normalization!r} is for RGB images; {network} takes grey ones")
    if settings.init is not None and not Path(settings.init).is_file():
        raise InputError(f"init={settings.init!r} is no file; expected a checkpoint of weights")
    return replace(settings, network=network, augmentation=augmentation)


def make_trainer(
    settings: RunSettings, n_clusters: int, pixels: Tensor, device: str = "auto", ranks: Ranks | None = None
) -> DeepTrainer:
    """Build the network and its trainer from settings that :func:`resolve` returned.

    Parameters
    ----------
    settings : RunSettings
        The settings.
    n_clusters : int
        Number of clusters.
    pixels : tensor (n, n_channels, size, size) of uint8
        The images, for the mean and deviation of their channels.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    ranks : Ranks, optional
        The processes that train together.
    """
    resolve_device(device)
    form = NETWORKS[settings.network]
    objective = make_objective(settings.objective, **settings.objective_parameters)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(settings.seed)
        network = new_network(settings.network, n_clusters, pixels, settings.normalization)
        objective.start_head(network.head)
    if settings.init is not None:
        load_weights(network.backbone, settings.init)
    return DeepTrainer(
        network,
        make_augmentation(settings.augmentation, form.size, form.n_channels),
        objective,
        learning_rate=settings.learning_rate,
        head_learning_rate=settings.head_learning_rate,
        weight_decay=settings.weight_decay,
        batch_size=settings.batch_size,
        precision=settings.precision,
        device=device,
        seed=settings.seed,
        ranks=ranks,
    )


def new_network(name: str, n_clusters: int, pixels: Tensor, normalization: str = "images") -> ClusterNetwork:
    """Build a network that standardises images by the given channel means and deviations, or by those of the pixels."""
    mean, deviation = channel_statistics(pixels) if normalization == "images" else NORMALIZATIONS[normalization]
    return build_network(name, n_clusters, mean=mean, deviation=deviation)


def channel_statistics(pixels: Tensor) -> tuple[list[float], list[float]]:
    """Return the mean and deviation of each channel of bytes (n, n_channels, …), as fractions of 255."""
    values = np.arange(256) / 255
    means, deviations = [], []
    for channel in pixels.unbind(dim=1):
        counts = np.bincount(channel.flatten().numpy(), minlength=256)
        mean = float(np.average(values, weights=counts))
        means.append(mean)
        # A constant channel is not scaled.
        deviations.append(float(np.sqrt(np.average((values - mean) ** 2, weights=counts))) or 1.0)
    return means, deviations


def label_images(trainer: DeepTrainer, images: ImageCollection, loaded: LoadedImages) -> Clusters:
    """Predict the cluster of every image that could be read."""
    probabilities = trainer.predict_proba(loaded.pixels)

    def kept(column: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if column is None else column[loaded.kept]

    return Clusters(
        probabilities.argmax(axis=1),
        probabilities,
        true_labels=kept(images.labels),
        paths=kept(images.paths),
        provenance={"images": images.source, "tool": f"cceclust {stamp('clusters')['tool_version']}"},
    )


def find_collapse(clusters: Clusters) -> list[str]:
    """Return a sentence for everything that makes a clustering doubtful."""
    assert clusters.probabilities is not None
    prediction = Prediction(clusters.labels, clusters.probabilities)
    n_clusters = clusters.probabilities.shape[1]
    return find_problems(
        prediction.sizes(),
        np.full(n_clusters, 1 / n_clusters),
        prediction.mean_confidence(),
        agreement=None,
        converged=True,
        advice=NETWORK_ADVICE,
    )
