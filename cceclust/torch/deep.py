"""Clustering while learning the features: any network, any objective, one training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed, nn

from cceclust.errors import InputError
from cceclust.presets import PrecisionName, RunSettings
from cceclust.scoring import relative_entropy, score_clusters
from cceclust.torch.objectives import Objective, make_objective
from cceclust.torch.ranks import Ranks
from cceclust.torch.shared_batch_norm import BatchNorm, share_batch_norms
from cceclust.fit.neighbors import nearest_neighbors
from cceclust.validation import check_non_negative, check_positive

__all__ = ["DeepTrainer", "EpochMetrics"]

PREDICTION_BATCH = 500
# Number of batches for the statistics of batch norms.
SETTLING_BATCHES = 40


@dataclass(frozen=True)
class EpochMetrics:
    """Metrics of an epoch. All except the speed are the same in every run with the same seed on the same machine.

    Cluster sizes and scores come from the predictions made during training, which cost nothing extra: each
    image as the network predicted it at that step.

    Attributes
    ----------
    epoch : int
        Its number, from 1.
    loss : float
        Mean loss of its batches.
    parts : dict of float
        Mean of each part of the loss that the objective reports.
    cluster_entropy : float
        Entropy of the clusters' sizes divided by its maximum: 1 for equal sizes, 0 for a single cluster.
    accuracy, nmi, ari : float or None
        Scores against the true labels, if there are any; nothing else uses these labels.
    images_per_second : float
        Number of images, each with its view, trained on per second.
    """

    epoch: int
    loss: float
    parts: dict[str, float]
    cluster_entropy: float
    accuracy: float | None
    nmi: float | None
    ari: float | None
    images_per_second: float


class DeepTrainer:
    """Train a network to cluster images.

    Each step takes a batch, makes one augmented view of every image, and gives the logits of both to the objective;
    both go through the network together, so that batch norms see them as one batch. After the last epoch, the
    statistics that batch norms use for prediction are computed again with the trained network: those collected before
    lag behind its weights.

    Parameters
    ----------
    network : nn.Module
        Maps images (n, …) to logits (n, n_clusters). Its weights are changed.
    augmentation : callable
        Maps a batch of images on the device to a view of each. Random numbers must be torch's.
    objective : str or Objective
        A name in :data:`cceclust.torch.objectives.OBJECTIVES`, or an :class:`Objective`.
    learning_rate, weight_decay : float
        Parameters of Adam; the weight decay is its L2 term.
    head_learning_rate : float, optional
        Learning rate of the parameters of ``network.head``, if it should differ.
    batch_size : int
        Images per batch, at most. The batches of an epoch differ in size by one image at most.
    precision : {"float32", "bfloat16"}
        Of the products in training; predictions are always float32.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    seed : int
        Seed of the batches and the views.
    ranks : Ranks, optional
        The processes that train together, each with a part of every batch; see :mod:`cceclust.torch.ranks`. All of them
        must call the methods of their trainers with the same arguments. By default this process trains alone.
    **parameters
        Parameters of an objective that is given by name.

    Attributes
    ----------
    history : list of EpochMetrics
        One entry per epoch so far.
    neighbors : tensor (n, n_neighbors) of int32, or None
        For objectives that compare neighbours: the nearest images by the features at the start of training.

    Examples
    --------
    >>> import torch
    >>> from cceclust.torch import DeepTrainer
    >>> images = torch.randn(60, 5) + 4 * torch.eye(3, 5).repeat(20, 1)
    >>> network = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    >>> trainer = DeepTrainer(network, lambda x: x + torch.randn_like(x), learning_rate=0.01, batch_size=30)
    >>> history = trainer.fit(images, n_epochs=3)
    >>> trainer.predict(images).shape
    (60,)
    """

    def __init__(
        self,
        network: nn.Module,
        augmentation: Callable[[Tensor], Tensor],
        objective: str | Objective = RunSettings.objective,
        *,
        learning_rate: float = RunSettings.learning_rate,
        head_learning_rate: float | None = RunSettings.head_learning_rate,
        weight_decay: float = RunSettings.weight_decay,
        batch_size: int = RunSettings.batch_size,
        precision: str = RunSettings.precision,
        device: str = "auto",
        seed: int = RunSettings.seed,
        ranks: Ranks | None = None,
        **parameters: Any,
    ) -> None:
        check_positive(learning_rate, "learning_rate")
        check_non_negative(weight_decay, "weight_decay")
        check_at_least_one(batch_size, "batch_size")
        check_precision(precision)
        if isinstance(objective, Objective) and parameters:
            raise InputError(f"parameters {', '.join(parameters)} belong into the objective that was given")
        self.ranks = ranks or Ranks()
        self.device = self.ranks.device(device)
        self.network = network.to(self.device)
        self._parallel = self.network
        if self.ranks.are_many:
            share_batch_norms(self.network, self.device)
            self._parallel = nn.parallel.DistributedDataParallel(self.network)
            self._parallel.register_comm_hook(None, lambda _, bucket: sum_gradients(bucket))
        self.augmentation = augmentation
        chosen = objective if isinstance(objective, Objective) else make_objective(objective, **parameters)
        self.objective = chosen.to(self.device)
        self.batch_size = batch_size
        self.precision = precision
        self.seed = seed
        self.history: list[EpochMetrics] = []
        self.neighbors: Tensor | None = None
        groups = parameter_groups(network, learning_rate, head_learning_rate)
        self.optimizer = torch.optim.Adam(groups, lr=learning_rate, weight_decay=weight_decay)

    def fit(
        self,
        images: Tensor,
        n_epochs: int,
        *,
        labels: NDArray[Any] | None = None,
        given: NDArray[np.int64] | None = None,
        on_step: Callable[[int, int], None] | None = None,
        on_epoch: Callable[[EpochMetrics], None] | None = None,
    ) -> list[EpochMetrics]:
        """Train until ``n_epochs`` epochs have been done in all.

        Parameters
        ----------
        images : tensor (n, …)
            Input of the network; uint8 is divided by 255. They may be on another device.
        n_epochs : int
            Total number of epochs, including those that this trainer has already done.
        labels : ndarray of shape (n,), optional
            True labels, for the metrics only.
        given : ndarray of shape (n,), optional
            The cluster that each image is known to belong to, −1 where it is not known. Shannon's cross-entropy of
            views of these images is added to the objective in every step (Table 5 of the paper).
        on_step : callable, optional
            Called before the first and after each step with the number of steps done and the number of all steps.
        on_epoch : callable, optional
            Called after each epoch with its metrics.

        Returns
        -------
        list of EpochMetrics
        """
        if not len(images):
            raise InputError("there are no images to train on")
        n_steps = math.ceil(len(images) / self.batch_size)
        if len(images) // n_steps < self.ranks.count:
            raise InputError(
                f"batches of {len(images) // n_steps} images for {self.ranks.count} processes; raise the batch size, "
                "or start fewer processes"
            )
        if given is not None and not (given >= 0).any():
            raise InputError("no image has a label; leave the labels out")
        targets = None if given is None else torch.from_numpy(given)
        if self.objective.n_neighbors and self.neighbors is None:
            features = self.features(images)
            found = nearest_neighbors(features, self.objective.n_neighbors) if self.ranks.is_first else None
            self.neighbors = torch.from_numpy(self.ranks.share(found))

        def report(step: int) -> None:
            if on_step is not None:
                on_step(len(self.history) * n_steps + step, n_epochs * n_steps)

        report(0)
        while len(self.history) < n_epochs:
            metrics = self._train_epoch(images, labels, targets, n_steps, report)
            self.history.append(metrics)
            if on_epoch is not None:
                on_epoch(metrics)
        self._settle_batch_norms(images, n_steps)
        return self.history

    def _train_epoch(
        self,
        images: Tensor,
        labels: NDArray[Any] | None,
        given: Tensor | None,
        n_steps: int,
        report: Callable[[int], None],
    ) -> EpochMetrics:
        epoch, n_images = len(self.history) + 1, len(images)
        totals: dict[str, Tensor] = {}
        started = time.perf_counter()
        self.network.train()
        with seeded(self.seed, epoch, self.device), exact_convolutions():
            order = torch.randperm(n_images)
            found = torch.empty(n_images, dtype=torch.long, device=self.device)
            for step, rows in enumerate(order.tensor_split(n_steps), start=1):
                batch = as_input(images[rows.to(images.device)], self.device)
                labelled = None if given is None else self._draw_labelled(images, given)
                parts, logits = self.train_step(batch, labelled, self._draw_neighbors(images, rows))
                n_clusters = logits.shape[1]
                # Nothing here waits for the device; the sums are read when the epoch is over.
                found[rows.to(self.device)] = logits.argmax(dim=1)
                for name, value in parts.items():
                    totals[name] = totals.get(name, 0) + value.detach() * (len(rows) / n_images)
                report(step)
        means = {name: float(total) for name, total in totals.items()}
        if not math.isfinite(means["loss"]):
            raise InputError(f"the loss became {means['loss']} in epoch {epoch}; lower the learning rate")
        clusters = found.cpu().numpy()
        seconds = time.perf_counter() - started
        sizes = np.bincount(clusters, minlength=n_clusters)
        scores = None if labels is None else score_clusters(labels, clusters)
        return EpochMetrics(
            epoch=epoch,
            loss=means.pop("loss"),
            parts=means,
            cluster_entropy=relative_entropy(sizes[sizes > 0], n_clusters) or 0.0,
            accuracy=None if scores is None else scores.accuracy,
            nmi=None if scores is None else scores.nmi,
            ari=None if scores is None else scores.ari,
            images_per_second=n_images / seconds,
        )

    def _draw_labelled(self, images: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Return labelled images, at most as many as a batch holds, as network input, and their clusters."""
        # If few images are labelled, a batch holds very few of them, and their gradient would be mostly noise.
        known = torch.nonzero(given >= 0).flatten()
        drawn = known[torch.randperm(len(known))[: self.batch_size]]
        return as_input(images[drawn.to(images.device)], self.device), given[drawn].to(self.device)

    def _draw_neighbors(self, images: Tensor, rows: Tensor) -> Tensor | None:
        """Return one neighbour of each row, at random, as network input; None if the objective needs none."""
        if self.neighbors is None:
            return None
        drawn = self.neighbors[rows, torch.randint(self.neighbors.shape[1], (len(rows),))]
        return as_input(images[drawn.to(images.device)], self.device)

    def train_step(
        self, batch: Tensor, labelled: tuple[Tensor, Tensor] | None = None, seen: Tensor | None = None
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Take one step on network input; return the loss and its parts, and the logits of the images.

        With several processes, each is given the whole batch. It makes the same views of it as the others, runs its
        part through the network, and computes the loss of the whole batch from the logits of all.

        Parameters
        ----------
        batch : tensor (n, …)
            Images.
        labelled : (tensor (m, …), tensor (m,)), optional
            Images whose cluster is known, and their clusters.
        seen : tensor (n, …), optional
            Images to make views of; by default those of the batch.
        """
        view = self.objective.make_view(
            lambda images: self._logits(self.network, [images])[0], batch if seen is None else seen, self.augmentation
        )
        if view.shape != batch.shape:
            raise InputError(
                f"the augmentation turned {tuple(batch.shape)} into {tuple(view.shape)}; expected the same"
            )
        inputs = [batch, view]
        if labelled is not None:
            # In the same pass, because batch norm statistics of a few images alone would be poor.
            inputs.append(self.augmentation(labelled[0]))
        logits, of_view, *of_labelled = self._logits(self._parallel, inputs)
        check_number_of_clusters(logits)
        parts = self.objective(logits, of_view)
        if labelled is not None:
            parts["labels"] = nn.functional.cross_entropy(of_labelled[0], labelled[1])
            parts["loss"] = parts["loss"] + parts["labels"]
        self.optimizer.zero_grad()
        parts["loss"].backward()
        self.optimizer.step()
        return parts, logits.detach()

    def _logits(self, network: nn.Module, inputs: list[Tensor]) -> list[Tensor]:
        """Return the logits of batches; every process runs its parts of them through the network together."""
        own = torch.cat([self.ranks.part(images) for images in inputs])
        halved = torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16")
        with self.ranks.own_random_numbers(self.device), halved:
            outputs = check_logits(network(own), len(own))
        return self.ranks.join(outputs, [len(images) for images in inputs])

    @torch.no_grad()
    def _settle_batch_norms(self, images: Tensor, n_steps: int) -> None:
        """Average the statistics of batch norms over batches like those of an epoch, with fixed weights."""
        norms = [
            module for module in self.network.modules() if isinstance(module, BatchNorm) and module.track_running_stats
        ]
        if not norms:
            return
        self.network.eval()
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.train()
            # None means the plain average.
            norm.momentum = None
        # Epochs count from 1, so the random numbers of epoch 0 are free.
        with seeded(self.seed, 0, self.device), exact_convolutions():
            for rows in torch.randperm(len(images)).tensor_split(n_steps)[:SETTLING_BATCHES]:
                batch = as_input(images[rows.to(images.device)], self.device)
                self.network(torch.cat([self.ranks.part(batch), self.ranks.part(self.augmentation(batch))]))
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum

    def predict_proba(self, images: Tensor) -> NDArray[np.float32]:
        """Return the probabilities (n, n_clusters) of images."""
        return self._evaluate(lambda batch: self.network(batch).float().softmax(dim=1), images)

    def predict(self, images: Tensor) -> NDArray[np.int64]:
        """Return the most probable cluster of each image."""
        labels: NDArray[np.int64] = self.predict_proba(images).argmax(axis=1)
        return labels

    def features(self, images: Tensor) -> NDArray[np.float32]:
        """Return the input of the head (n, n_features); the network must have a method ``features``."""
        compute: Any = getattr(self.network, "features", None)
        if compute is None:
            raise InputError(f"{type(self.network).__name__} has no method 'features'")
        return self._evaluate(compute, images)

    def _evaluate(self, compute: Callable[[Tensor], Tensor], images: Tensor) -> NDArray[np.float32]:
        self.network.eval()
        batches, results = torch.split(images, PREDICTION_BATCH), []
        with torch.inference_mode(), exact_convolutions():
            # Processes take whole batches in turn: the same ones as a single process makes, for the same result.
            for start in range(0, len(batches), self.ranks.count):
                own = batches[start : start + self.ranks.count][self.ranks.number :][:1]
                computed = [compute(as_input(batch, self.device)).cpu() for batch in own]
                results += [result for of_rank in self.ranks.gather_everywhere(computed) for result in of_rank]
        return torch.cat(results).numpy()

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume after the last complete epoch."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "history": [asdict(metrics) for metrics in self.history],
            "neighbors": self.neighbors,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a :meth:`state_dict`."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.history = [EpochMetrics(**metrics) for metrics in state["history"]]
        self.neighbors = state.get("neighbors")


def sum_gradients(bucket: Any) -> torch.futures.Future[Tensor]:
    """Sum each gradient over the processes, which have a part of it each, where the default is an average.

    One by one: packed together, the order of additions would depend on the packing, which changes after the first step,
    and a resumed training would differ in its rounding.
    """
    for gradient in bucket.gradients():
        distributed.all_reduce(gradient)
    done: torch.futures.Future[Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def check_at_least_one(value: int, name: str) -> None:
    """Refuse anything but whole numbers above 0."""
    if not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")


def check_precision(value: str) -> None:
    """Refuse a precision that training does not have."""
    if value not in get_args(PrecisionName):
        raise InputError(f"precision={value!r}; expected one of {', '.join(get_args(PrecisionName))}")


def parameter_groups(network: nn.Module, rate: float, head_rate: float | None) -> list[dict[str, Any]]:
    """Give the head its own learning rate."""
    if head_rate is None or head_rate == rate:
        return [{"params": list(network.parameters())}]
    check_positive(head_rate, "head_learning_rate")
    head: Any = getattr(network, "head", None)
    if not isinstance(head, nn.Module):
        raise InputError(f"head_learning_rate={head_rate} needs a module 'head' in {type(network).__name__}")
    of_head = list(head.parameters())
    others = [parameter for parameter in network.parameters() if all(parameter is not own for own in of_head)]
    return [{"params": others}, {"params": of_head, "lr": head_rate}]


def as_input(images: Tensor, device: torch.device) -> Tensor:
    """Move images to the device, and scale bytes to the range from 0 to 1."""
    images = images.to(device, non_blocking=True)
    return images.float() / 255 if images.dtype == torch.uint8 else images


def check_logits(logits: Any, n_images: int) -> Tensor:
    """Raise unless a network returned one row of logits per image."""
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != n_images:
        came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(f"the network returns {came} for {n_images} images; expected ({n_images}, n_clusters)")
    # Autocast may have made them half precision, which is too coarse to find pseudo-labels.
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def check_number_of_clusters(logits: Tensor) -> None:
    """Raise unless a batch has enough images for all clusters."""
    n_images, n_clusters = logits.shape
    if n_clusters > n_images:
        raise InputError(
            f"{n_clusters} clusters, but only {n_images} images a batch, which is to hold all clusters; "
            "raise the batch size, or ask for fewer clusters"
        )


@contextmanager
def seeded(seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Seed torch's random numbers for this epoch, and restore the caller's state afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0]))
        yield


@contextmanager
def exact_convolutions() -> Iterator[None]:
    """Make the convolutions on a GPU deterministic."""
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=True):
        yield
