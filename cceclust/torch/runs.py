"""From images to a trained network and clusters, kept in a folder; and from such a folder and new images to clusters.

The random numbers of an epoch depend on nothing but the seed and its number, so a run that is killed at any moment
goes on from its checkpoint to the same result.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cceclust.errors import ClusteringWarning, FileContentError, InputError
from cceclust.files.atomic import claiming
from cceclust.files.clusters import Clusters, clusters_writer, write_clusters
from cceclust.files.features import write_features
from cceclust.files.images import ImageCollection, open_images
from cceclust.files.partial_labels import PartialLabels
from cceclust.files.provenance import stamp
from cceclust.presets import PRESETS
from cceclust.text import without_folders
from cceclust.torch.augmentation import AUGMENTATIONS, make_augmentation
from cceclust.torch.deep import DeepTrainer, EpochMetrics, check_at_least_one
from cceclust.torch.devices import resolve_device
from cceclust.torch.networks import NETWORKS, ClusterNetwork, build_network, choose_network
from cceclust.torch.objectives import make_objective, parameters_of
from cceclust.torch.pixels import LoadedImages, load_pixels, look_at
from cceclust.torch.run_folder import RunFolder
from cceclust.torch.small_resnet import load_pretext
from cceclust.torch.weights import load_weights, sha256

__all__ = ["Run", "RunSettings", "cluster_images", "make_trainer", "predict_images", "predict_images_file", "resolve"]

# Clusters smaller than this part of their equal share count as lost.
TINY_PART = 0.05


@dataclass(frozen=True)
class RunSettings:
    """What a run is told.

    Attributes
    ----------
    network : str
        ``auto``, ``resnet18`` or a name in :data:`cceclust.torch.networks.NETWORKS`.
    init : str or None
        A file of weights for the backbone: a checkpoint of SCAN's pretext task, or an earlier run's model.
    objective : str
        A name in :data:`cceclust.torch.objectives.OBJECTIVES`.
    objective_parameters : dict
        Its parameters that differ from their defaults.
    augmentation : str
        ``auto``, ``digits`` or ``photos``.
    learning_rate, head_learning_rate, weight_decay, batch_size, seed
        As in :class:`cceclust.torch.DeepTrainer`.
    n_epochs : int
        How often each image is seen.
    """

    network: str = "auto"
    init: str | None = None
    objective: str = "cce"
    objective_parameters: dict[str, Any] = field(default_factory=dict)
    augmentation: str = "auto"
    learning_rate: float = 1e-3
    head_learning_rate: float | None = None
    weight_decay: float = 0.01
    batch_size: int = 250
    n_epochs: int = 50
    seed: int = 0

    @classmethod
    def from_preset(cls, name: str, objective: str = "cce") -> RunSettings:
        """Return the settings of the paper.

        Parameters
        ----------
        name : str
            A name in :data:`cceclust.presets.PRESETS`.
        objective : str
            The preset's fairness is meant for ``cce`` and ``cce-pgd``; others keep their own.

        Examples
        --------
        >>> from cceclust.torch.runs import RunSettings
        >>> RunSettings.from_preset("cifar10-resnet18").objective_parameters
        {'augmentation_weight': 0.2, 'fairness': 100.0}
        """
        if name not in PRESETS:
            raise InputError(f"preset={name!r}; expected one of {', '.join(PRESETS)}")
        values = asdict(PRESETS[name])
        fairness, augmentation_weight = values.pop("fairness"), values.pop("augmentation_weight")
        parameters = {}
        if "augmentation_weight" in parameters_of(objective):
            parameters["augmentation_weight"] = augmentation_weight
        if objective in ("cce", "cce-pgd"):
            parameters["fairness"] = fairness
        return cls(objective=objective, objective_parameters=parameters, **values)


@dataclass(frozen=True)
class Run:
    """What a run has left.

    Attributes
    ----------
    clusters : Clusters
        The clusters of the images that could be read.
    history : list of EpochMetrics
        The metrics of each epoch.
    skipped : list of str
        The images that could not be read, and why.
    files : list of Path
        What was written.
    n_resumed : int
        Epochs that an earlier run had done.
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
) -> Run:
    """Cluster images by training a network on them, and keep the run in a folder.

    Parameters
    ----------
    images : ImageCollection
        See :func:`cceclust.files.images.open_images`. Their own labels are used for the metrics only.
    folder : str or Path
        The run's folder.
    n_clusters : int
        Number of clusters.
    settings : RunSettings, optional
        All that the result depends on, but for labels.
    labels : PartialLabels, optional
        The classes of some images, which clusters take their names from; hard labels only.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    features : bool
        Also write ``features.h5``.
    resume : bool
        Go on with the run in the folder, if there is one.
    force : bool
        Start over instead.
    on_step, on_epoch : callable, optional
        As in :meth:`cceclust.torch.DeepTrainer.fit`.

    Returns
    -------
    Run

    Examples
    --------
    >>> from cceclust.files.images import open_images
    >>> from cceclust.torch.runs import RunSettings, cluster_images
    >>> digits = open_images("sample_data/digits")
    >>> cluster_images(digits, "run", 10, RunSettings(n_epochs=5)).clusters.labels  # doctest: +SKIP
    """
    settings = resolve(settings or RunSettings(), images, n_clusters)
    place = RunFolder(folder)
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
    with place.opened(config, inputs=inputs, resume=resume, force=force):
        form = NETWORKS[settings.network]
        loaded = load_pixels(images, form.size, form.n_channels)
        trainer = make_trainer(settings, n_clusters, loaded.pixels, device)
        n_resumed = place.restore(trainer)

        def keep(metrics: EpochMetrics) -> None:
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
        if features:
            clusters.provenance["features"] = str(place.features.resolve())
            write_features(
                place.features,
                trainer.features(loaded.pixels),
                labels=clusters.true_labels,
                paths=clusters.paths,
                attributes={
                    "backbone": settings.network,
                    "image_size": form.size,
                    "input": without_folders(images.source),
                },
                force=True,
            )
        place.write_model(trainer.network, {"network": settings.network, "n_clusters": str(n_clusters)})
        # Last, because it is what tells that a run is complete.
        write_clusters(place.clusters, clusters, force=True)
    for problem in clusters.diagnostics["warnings"]:
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
        The images; they are cut and scaled to what the network takes.
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
) -> tuple[Clusters, Path]:
    """Assign a collection of images to the clusters of a run, and write them beside it.

    Parameters
    ----------
    folder : str or Path
        The run.
    path, dataset, labels_dataset
        As in :func:`cceclust.files.images.open_images`.
    out : Path, optional
        Where to write; by default ``*.clusters.h5`` beside the images.
    force : bool
        Overwrite a file that exists.
    full_paths : bool
        Keep absolute paths of this machine in the file, not only names.

    Returns
    -------
    clusters : Clusters
    written : Path
    """
    path = Path(path).resolve() if Path(path).name in ("", "..") else Path(path)
    out = out or path.with_name((path.name if path.is_dir() else path.stem) + ".clusters.h5")
    clusters_writer(out)
    images = open_images(path, dataset=dataset, labels_dataset=labels_dataset)
    with claiming([out], inputs=[*images.files, *RunFolder(folder).files], force=force):
        clusters = predict_images(folder, images)
        write_clusters(out, clusters, force=force, full_paths=full_paths)
    return clusters, out


def resolve(settings: RunSettings, images: ImageCollection, n_clusters: int) -> RunSettings:
    """Look at the images to settle what is left open, and refuse what cannot work before any long work.

    Parameters
    ----------
    settings : RunSettings
        Perhaps with the network or the augmentation ``auto``.
    images : ImageCollection
        What is to be clustered.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    RunSettings
    """
    for name in ("n_epochs", "batch_size"):
        check_at_least_one(getattr(settings, name), name)
    smallest_batch = len(images) // math.ceil(len(images) / settings.batch_size)
    if not 2 <= n_clusters <= smallest_batch:
        raise InputError(
            f"{n_clusters} clusters for {len(images):,} images in batches of {smallest_batch}; expected at least 2 "
            "and no more than a batch has images, since each batch is to hold all clusters"
        )
    make_objective(settings.objective, **settings.objective_parameters)
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
    if settings.init is not None and not Path(settings.init).is_file():
        raise InputError(f"init={settings.init!r} is no file; expected a checkpoint of weights")
    return replace(settings, network=network, augmentation=augmentation)


def make_trainer(settings: RunSettings, n_clusters: int, pixels: Tensor, device: str = "auto") -> DeepTrainer:
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
    """
    resolve_device(device)
    form = NETWORKS[settings.network]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(settings.seed)
        network = new_network(settings.network, n_clusters, pixels)
    if settings.init is not None:
        load_pretext(network.backbone, settings.init)
    return DeepTrainer(
        network,
        make_augmentation(settings.augmentation, form.size, form.n_channels),
        settings.objective,
        learning_rate=settings.learning_rate,
        head_learning_rate=settings.head_learning_rate,
        weight_decay=settings.weight_decay,
        batch_size=settings.batch_size,
        device=device,
        seed=settings.seed,
        **settings.objective_parameters,
    )


def new_network(name: str, n_clusters: int, pixels: Tensor) -> ClusterNetwork:
    """Build a network that standardises images by the mean and deviation of each channel of these."""
    values = np.arange(256) / 255
    means, deviations = [], []
    for channel in pixels.unbind(dim=1):
        counts = np.bincount(channel.flatten().numpy(), minlength=256)
        mean = float(np.average(values, weights=counts))
        means.append(mean)
        # A channel without any variation is left as it is.
        deviations.append(float(np.sqrt(np.average((values - mean) ** 2, weights=counts))) or 1.0)
    return build_network(name, n_clusters, mean=means, deviation=deviations)


def label_images(trainer: DeepTrainer, images: ImageCollection, loaded: LoadedImages) -> Clusters:
    """Ask the network for the cluster of every image that could be read."""
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
    n_images, n_clusters = clusters.probabilities.shape
    sizes = np.bincount(clusters.labels, minlength=n_clusters)
    lost = int((sizes < TINY_PART * n_images / n_clusters).sum())
    confidence = float(clusters.probabilities.max(axis=1).mean())
    problems = []
    if lost:
        verb = "is" if lost == 1 else "are"
        problems.append(
            f"{lost} of {n_clusters} clusters {verb} empty or nearly so: the network has collapsed or needs more "
            "epochs; train for longer, try another fairness, lower the learning rate, or try another seed"
        )
    if confidence < 1 / n_clusters + 0.1 * (1 - 1 / n_clusters):
        problems.append(
            f"the mean confidence is {confidence:.2f}, hardly above the {1 / n_clusters:.2f} of a guess: the network "
            "has learned nothing yet; train for longer, or raise the learning rate"
        )
    return problems
