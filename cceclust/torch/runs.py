"""From images to a trained network and clusters, kept in a folder; and from such a folder and new images to clusters.

The random numbers of an epoch depend only on the seed and its number, so a run that is killed at any moment
can resume from its checkpoint and gives the same result.
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
from torch import Tensor

from cceclust.errors import ClusteringWarning, FileContentError, InputError
from cceclust.fit.diagnosis import NETWORK_ADVICE, find_problems
from cceclust.io.atomic import check_targets
from cceclust.io.clusters import STDOUT, Clusters, clusters_writer, write_clusters
from cceclust.io.images import ImageCollection, open_images
from cceclust.io.partial_labels import PartialLabels
from cceclust.io.provenance import stamp
from cceclust.io.run_folders import read_config
from cceclust.text import without_folders
from cceclust.torch import ranks
from cceclust.torch.deep import DeepTrainer, EpochMetrics
from cceclust.torch.networks import NETWORKS, build_network, choose_network
from cceclust.torch.objectives import make_objective
from cceclust.torch.pixels import LoadedImages, load_pixels, look_at, make_augmentation
from cceclust.torch.ranks import resolve_device
from cceclust.torch.run_folder import RunFolder
from cceclust.torch.weights import load_weights, sha256
from cceclust.validation import check_count

__all__ = ["RunSettings", "cluster_images", "predict_images", "predict_images_file"]


@dataclass(frozen=True)
class RunSettings:
    """All that the result of a run depends on, besides the images and their labels.

    `network` is VGG-4 for one size of images, SCAN's ResNet-18 (``resnet18``), or ``auto``: the VGG-4 for the size of
    most images. Views for ``vgg4-28``, which sees grey, move and slant; those for the others crop, mirror and recolour.
    `init` is a file of weights for the backbone: a checkpoint of SCAN, SimCLR or MoCo, or the network of a run. The
    learning rate is Adam's.
    """

    network: str = "auto"
    init: str | None = None
    objective: str = "cce"
    objective_parameters: dict[str, Any] = field(default_factory=dict)
    learning_rate: float = 1e-3
    batch_size: int = 250
    n_epochs: int = 50
    seed: int = 0


def cluster_images(
    images: ImageCollection,
    folder: str | Path,
    n_clusters: int,
    settings: RunSettings | None = None,
    *,
    labels: PartialLabels | None = None,
    device: str = "auto",
    resume: bool = False,
    force: bool = False,
    on_step: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[EpochMetrics], None] | None = None,
) -> tuple[Clusters, list[Path]]:
    """Cluster images by training a network on them; return the clusters and the files of the run, a folder.

    Processes that torchrun started and that have joined (:func:`cceclust.torch.ranks.joined`) train together; all must
    call this function, and the first one writes the folder.

    True labels of the images are used for the metrics only; `labels` are classes of some images to learn from, which
    clusters take their names from. `resume` continues the run in the folder, if there is one, and `force` starts over.
    `on_step` and `on_epoch` are those of :meth:`cceclust.torch.DeepTrainer.fit`.

    Examples
    --------
    >>> from cceclust.io.images import open_images
    >>> from cceclust.torch.runs import RunSettings, cluster_images
    >>> digits = open_images("sample_data/digits")
    >>> cluster_images(digits, "run", 10, RunSettings(n_epochs=5))  # doctest: +SKIP
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
    resolve_device(device)
    if ranks.is_first():
        sources = (settings.init, None if labels is None else labels.source)
        inputs = [*images.files, *(source for source in sources if source is not None)]
        place.begin(config, inputs=inputs, resume=resume, force=force)
    ranks.require_same(config)
    form = NETWORKS[settings.network]
    loaded = load_pixels(images, form.size, form.n_channels)
    trainer = make_trainer(settings, n_clusters, loaded.pixels, device)
    place.restore(trainer)

    def keep(metrics: EpochMetrics) -> None:
        if ranks.is_first():
            place.save(trainer)
        if on_epoch is not None:
            on_epoch(metrics)

    truth = None if images.labels is None else images.labels[loaded.kept]
    given = None if labels is None else labels.values[loaded.kept]
    trainer.fit(loaded.pixels, settings.n_epochs, labels=truth, given=given, on_step=on_step, on_epoch=keep)
    clusters = label_images(trainer, images, loaded)
    clusters.parameters = {"method": "deep", "n_clusters": n_clusters, **asdict(settings)}
    clusters.diagnostics |= {
        "n_iter": len(trainer.history),
        "seconds": round(sum(len(loaded.kept) / metrics.images_per_second for metrics in trainer.history), 1),
        "warnings": find_collapse(clusters),
    }
    if labels is not None:
        clusters.parameters["classes"] = labels.names(n_clusters)
        clusters.diagnostics["labelled_rows"] = int((labels.values[loaded.kept] >= 0).sum())
        judging = labels.unseen(images.labels)
        clusters.true_labels = None if judging is None else judging[loaded.kept]
    if ranks.is_first():
        place.write_model(trainer.network, {"network": settings.network, "n_clusters": str(n_clusters)})
        # Last, because this file marks the run as complete.
        write_clusters(place.clusters, clusters, force=True)
        for problem in clusters.diagnostics["warnings"]:
            warnings.warn(problem, ClusteringWarning, stacklevel=2)
    return clusters, [place.model, place.clusters]


def predict_images(folder: str | Path, images: ImageCollection, *, device: str = "auto") -> Clusters:
    """Assign images, cropped and scaled to the input size of the network, to the clusters of a run."""
    place = RunFolder(folder)
    config, metadata = read_config(place.path), place.read_model_metadata()
    name, n_clusters = metadata.get("network", ""), metadata.get("n_clusters", "")
    if name not in NETWORKS or not n_clusters.isdecimal():
        raise FileContentError(f"{place.model} is damaged: it does not say which network it is")
    form = NETWORKS[name]
    loaded = load_pixels(images, form.size, form.n_channels)
    # The means and deviations are among the weights.
    blank = [0.0] * form.n_channels
    network = build_network(name, int(n_clusters), mean=blank, deviation=blank)
    load_weights(network, place.model)
    clusters = label_images(DeepTrainer(network, augmentation=lambda batch: batch, device=device), images, loaded)
    clusters.parameters = {"method": "deep", "run": place.path.name, "objective": config.get("objective")}
    if config.get("classes"):
        clusters.parameters["classes"] = config["classes"]
    return clusters


def predict_images_file(
    folder: str | Path,
    path: str | Path,
    *,
    out: Path | None = None,
    force: bool = False,
    dataset: str | None = None,
    labels_dataset: str | None = None,
) -> tuple[Clusters, list[Path]]:
    """Assign a collection of images to the clusters of a run, write them, and return them and the files written.

    The path is anything that :func:`cceclust.io.images.open_images` accepts. By default, clusters go to
    ``*.predicted.h5`` beside the images; ``-`` stands for standard output.
    """
    path = Path(path).resolve() if Path(path).name in ("", "..") else Path(path)
    out = out or path.with_name((path.name if path.is_dir() else path.stem) + ".predicted.h5")
    clusters_writer(out)
    images = open_images(path, dataset=dataset, labels_dataset=labels_dataset)
    written = [] if out == STDOUT else [out]
    check_targets(written, inputs=[*images.files, *RunFolder(folder).files], force=force)
    clusters = predict_images(folder, images)
    write_clusters(out, clusters, force=force)
    return clusters, written


def resolve(settings: RunSettings, images: ImageCollection, n_clusters: int) -> RunSettings:
    """Choose an "auto" network by a look at the images, and refuse what is impossible before any long work."""
    for name in ("n_epochs", "batch_size"):
        check_count(getattr(settings, name), name, 1)
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
        raise InputError(f"there is no network {network!r}; expected auto, resnet18, or one of {', '.join(NETWORKS)}")
    if settings.init is not None and not Path(settings.init).is_file():
        raise InputError(f"there is no file {settings.init} of weights to start from")
    return replace(settings, network=network)


def make_trainer(settings: RunSettings, n_clusters: int, pixels: Tensor, device: str) -> DeepTrainer:
    """Build the network and its trainer from settings that :func:`resolve` returned."""
    form = NETWORKS[settings.network]
    objective = make_objective(settings.objective, **settings.objective_parameters)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(settings.seed)
        mean, deviation = channel_statistics(pixels)
        network = build_network(settings.network, n_clusters, mean=mean, deviation=deviation)
        objective.start_head(network.head)
    if settings.init is not None:
        load_weights(network.backbone, settings.init)
    return DeepTrainer(
        network,
        make_augmentation("digits" if form.n_channels == 1 else "photos", form.size, form.n_channels),
        objective,
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
        device=device,
        seed=settings.seed,
    )


def channel_statistics(pixels: Tensor) -> tuple[list[float], list[float]]:
    """Return the mean and deviation of each channel of bytes (n, n_channels, …), as fractions of 255."""
    values = torch.arange(256, dtype=torch.float64) / 255
    counts = torch.stack([channel.flatten().bincount(minlength=256) for channel in pixels.unbind(dim=1)]).double()
    shares = counts / counts.sum(dim=1, keepdim=True)
    mean = shares @ values
    deviation = (shares * (values - mean[:, None]) ** 2).sum(dim=1).sqrt()
    # A constant channel is not scaled.
    return mean.tolist(), torch.where(deviation > 0, deviation, 1.0).tolist()


def label_images(trainer: DeepTrainer, images: ImageCollection, loaded: LoadedImages) -> Clusters:
    """Predict the cluster of every image that could be read."""
    probabilities = trainer.predict_proba(loaded.pixels)
    return Clusters(
        probabilities.argmax(axis=1),
        probabilities,
        true_labels=None if images.labels is None else images.labels[loaded.kept],
        paths=None if images.paths is None else images.paths[loaded.kept],
        diagnostics={"warnings": [], "skipped": loaded.skipped},
        provenance={"images": images.source, "tool": f"cceclust {stamp('clusters')['tool_version']}"},
    )


def find_collapse(clusters: Clusters) -> list[str]:
    """Return a sentence for everything that makes a clustering doubtful."""
    assert clusters.probabilities is not None
    n_clusters = clusters.probabilities.shape[1]
    return find_problems(
        np.bincount(clusters.labels, minlength=n_clusters),
        float(clusters.probabilities.max(axis=1).mean()),
        np.full(n_clusters, 1 / n_clusters),
        advice=NETWORK_ADVICE,
    )
