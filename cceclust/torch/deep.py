"""Clustering while learning the features: any network, any objective, one training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed, nn
from torch.optim.swa_utils import update_bn

from cceclust.errors import InputError
from cceclust.scoring import clustering_accuracy, relative_entropy
from cceclust.torch import ranks
from cceclust.torch.objectives import Objective, make_objective
from cceclust.torch.ranks import resolve_device
from cceclust.validation import check_count, check_non_negative, check_positive

__all__ = ["DeepTrainer", "EpochMetrics"]

PREDICTION_BATCH = 500
# So many batches are enough for the statistics of batch norms.
SETTLING_BATCHES = 40


@dataclass(frozen=True)
class EpochMetrics:
    """Metrics of an epoch; all except the speed are the same in every run with the same seed on the same machine.

    `loss` and its `parts` are means over the batches. `cluster_entropy`, which is 1 for clusters of equal size and 0
    for a single one, and the `accuracy` against true labels, if any, come from the predictions made in training.
    """

    epoch: int
    loss: float
    parts: dict[str, float]
    cluster_entropy: float
    accuracy: float | None
    images_per_second: float


class DeepTrainer:
    """Train a network to cluster images.

    Each step takes a batch, makes one augmented view of every image, and gives the logits of both to the objective;
    both go through the network together, so that batch norms see them as one batch. After the last epoch, the
    statistics that batch norms use for prediction are computed again with the trained network: those collected before
    lag behind its weights.

    Processes that torchrun started and that have joined (:func:`cceclust.torch.ranks.joined`) train together: they must
    make the same calls, on networks with the same weights. Each runs a part of every batch through its network.

    Parameters
    ----------
    network : nn.Module
        Maps images (n, …) to logits (n, n_clusters). Its weights are changed.
    augmentation : callable
        Maps a batch of images on the device to a view of each. Random numbers must be torch's.
    objective : str or Objective
        A name in :data:`cceclust.torch.objectives.OBJECTIVES`, or what
        :func:`cceclust.torch.objectives.make_objective` returns.
    learning_rate, weight_decay : float
        Parameters of Adam; the weight decay is its L2 term.
    batch_size : int
        Images per batch, at most. The batches of an epoch differ in size by one image at most.
    device : str
        ``auto``, ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
    seed : int
        Seed of the batches and the views.

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
        objective: str | Objective = "cce",
        *,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.01,
        batch_size: int = 250,
        device: str = "auto",
        seed: int = 0,
    ) -> None:
        check_positive(learning_rate, "learning_rate")
        check_non_negative(weight_decay, "weight_decay")
        check_count(batch_size, "batch_size", 1)
        self.device = resolve_device(device)
        self.network = network.to(self.device)
        if ranks.count() > 1 and self.device.type == "cuda":
            # On CPUs, where torch has no such norms, every process normalises its part of a batch by itself.
            self.network = nn.SyncBatchNorm.convert_sync_batchnorm(self.network)  # type: ignore[no-untyped-call]
        self.augmentation = augmentation
        self.objective = (make_objective(objective) if isinstance(objective, str) else objective).to(self.device)
        self.batch_size = batch_size
        self.seed = seed
        self.history: list[EpochMetrics] = []
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=learning_rate, weight_decay=weight_decay)

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
            One entry for each epoch so far.
        """
        if not len(images):
            raise InputError("there are no images to train on")
        n_steps = math.ceil(len(images) / self.batch_size)
        if len(images) // n_steps < ranks.count():
            raise InputError(
                f"batches of {len(images) // n_steps} images for {ranks.count()} processes; raise the batch size, "
                "or start fewer processes"
            )
        if given is not None and not (given >= 0).any():
            raise InputError("no image has a label; leave the labels out")
        targets = None if given is None else torch.from_numpy(given)

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
        with seeded(self.seed, epoch, self.device):
            order = torch.randperm(n_images)
            found = torch.empty(n_images, dtype=torch.long, device=self.device)
            for step, rows in enumerate(order.tensor_split(n_steps), start=1):
                labelled = None if given is None else self._draw_labelled(images, given)
                parts, logits = self.train_step(self._input(images, rows), labelled)
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
        return EpochMetrics(
            epoch=epoch,
            loss=means.pop("loss"),
            parts=means,
            cluster_entropy=relative_entropy(sizes[sizes > 0], n_clusters) or 0.0,
            accuracy=None if labels is None else clustering_accuracy(labels, clusters),
            images_per_second=n_images / seconds,
        )

    def _input(self, images: Tensor, rows: Tensor) -> Tensor:
        """Return some images as input of the network."""
        return as_input(images[rows.to(images.device)], self.device)

    def _draw_labelled(self, images: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Return labelled images, at most as many as a batch holds, as network input, and their clusters."""
        # If few images are labelled, a batch holds very few of them, and their gradient would be mostly noise.
        known = torch.nonzero(given >= 0).flatten()
        drawn = known[torch.randperm(len(known))[: self.batch_size]]
        return self._input(images, drawn), given[drawn].to(self.device)

    def train_step(
        self, batch: Tensor, labelled: tuple[Tensor, Tensor] | None = None
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Take a step on a batch, and perhaps on images whose cluster is known; return the loss, its parts and logits.

        With several processes, each is given the whole batch. It makes the same views of it as the others, runs its
        part through the network, and computes the loss of the whole batch from the logits of all.
        """
        view = self.objective.make_view(lambda images: self._logits([images])[0], batch, self.augmentation)
        if view.shape != batch.shape:
            raise InputError(
                f"the augmentation turned {tuple(batch.shape)} into {tuple(view.shape)}; expected the same"
            )
        inputs = [batch, view]
        if labelled is not None:
            # In the same pass, because batch norm statistics of a few images alone would be poor.
            inputs.append(self.augmentation(labelled[0]))
        logits, of_view, *of_labelled = self._logits(inputs)
        n_images, n_clusters = logits.shape
        if n_clusters > n_images:
            raise InputError(
                f"{n_clusters} clusters, but only {n_images} images a batch, which is to hold all clusters; "
                "raise the batch size, or ask for fewer clusters"
            )
        parts = self.objective(logits, of_view)
        if labelled is not None:
            parts["labels"] = nn.functional.cross_entropy(of_labelled[0], labelled[1])
            parts["loss"] = parts["loss"] + parts["labels"]
        self.optimizer.zero_grad()
        parts["loss"].backward()
        if ranks.count() > 1:
            # The gradient of a process is that of its part of the batch.
            for parameter in self.network.parameters():
                if parameter.grad is not None:
                    distributed.all_reduce(parameter.grad)
        self.optimizer.step()
        return parts, logits.detach()

    def _logits(self, inputs: list[Tensor]) -> list[Tensor]:
        """Return the logits of batches; every process runs its parts of them through the network together."""
        own = torch.cat([ranks.part(images) for images in inputs])
        # Dropout draws more numbers where the part is larger; afterwards, all processes go on with the same ones.
        with forked_random_numbers(self.device) if ranks.count() > 1 else nullcontext():
            logits: Any = self.network(own)
        if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(own):
            came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise InputError(f"the network returns {came} for {len(own)} images; expected ({len(own)}, n_clusters)")
        return ranks.join(logits, [len(images) for images in inputs])

    @torch.no_grad()
    def _settle_batch_norms(self, images: Tensor, n_steps: int) -> None:
        """Average the statistics of batch norms over batches like those of an epoch, with fixed weights.

        All processes do all of it, so that they end with the same network.
        """
        # Epochs count from 1, so the random numbers of epoch 0 are free.
        with seeded(self.seed, 0, self.device):
            order = torch.randperm(len(images)).tensor_split(n_steps)[:SETTLING_BATCHES]
            batches = (self._input(images, rows) for rows in order)
            update_bn((torch.cat([batch, self.augmentation(batch)]) for batch in batches), self.network)

    def predict_proba(self, images: Tensor) -> NDArray[np.float32]:
        """Return the probabilities (n, n_clusters) of images."""
        self.network.eval()
        with torch.inference_mode(), exact_convolutions():
            logits = [self.network(as_input(batch, self.device)) for batch in torch.split(images, PREDICTION_BATCH)]
            return torch.cat([part.float().softmax(dim=1).cpu() for part in logits]).numpy()

    def predict(self, images: Tensor) -> NDArray[np.int64]:
        """Return the most probable cluster of each image."""
        labels: NDArray[np.int64] = self.predict_proba(images).argmax(axis=1)
        return labels

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume after the last complete epoch."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "history": [asdict(metrics) for metrics in self.history],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a :meth:`state_dict`."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.history = [EpochMetrics(**metrics) for metrics in state["history"]]


def as_input(images: Tensor, device: torch.device) -> Tensor:
    """Move images to the device, and scale bytes to the range from 0 to 1."""
    images = images.to(device, non_blocking=True)
    return images.float() / 255 if images.dtype == torch.uint8 else images


@contextmanager
def seeded(seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Seed torch's random numbers for this epoch, and restore the caller's state afterwards."""
    with forked_random_numbers(device), exact_convolutions():
        torch.manual_seed(int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0]))
        yield


def forked_random_numbers(device: torch.device) -> AbstractContextManager[None]:
    """Restore the state of torch's random numbers afterwards."""
    return torch.random.fork_rng([device] if device.type == "cuda" else [])


def exact_convolutions() -> AbstractContextManager[None]:
    """Make the convolutions on a GPU deterministic."""
    return torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=True)
