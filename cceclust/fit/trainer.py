"""One linear softmax head by mini-batch gradient descent: the training of the paper (arXiv:2303.07321)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from cceclust.errors import InputError
from cceclust.fit.objectives import Objective

__all__ = ["Trained", "random_start", "train_head"]

Array = NDArray[np.floating[Any]]


class Trained(NamedTuple):
    """A trained head, and the mean loss of its batches in each epoch."""

    coef: Array
    intercept: Array
    loss_curve: NDArray[np.float64]


def train_head(
    rows: Any,
    n_clusters: int,
    objective: Objective,
    *,
    sample_weight: Array | None = None,
    learning_rate: float,
    final_rate: float = 1.0,
    momentum: float = 0.0,
    weight_decay: float,
    batch_size: int = 250,
    n_epochs: int | None = None,
    max_steps: int | None = None,
    start: tuple[Array, Array] | None = None,
    neighbors: NDArray[np.integer[Any]] | None = None,
    generator: np.random.Generator,
    on_epoch: Callable[[int, float], None] | None = None,
) -> Trained:
    """Train one head, in the type of the rows.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n, d), float32 or float64
    objective : Objective
        What is minimised, for example ``SelfLabeling(EMSolver(fairness=100, max_iter=5, tol=0))``.
    sample_weight : ndarray of shape (n,), optional
        Rows with a weight of 0 are skipped.
    learning_rate, final_rate
        The rate falls along half a cosine to this fraction of it; by default it stays.
    momentum, weight_decay
        Of gradient descent; the intercept does not decay.
    batch_size : int
        Rows of a batch, about: all batches of an epoch are nearly equal.
    n_epochs, max_steps
        Training ends after so many passes over the rows or after so many batches; one of them must be given.
    start : pair of ndarrays of shape (n_clusters, d) and (n_clusters,), optional
        Coefficients and intercept to start from; by default those of :func:`random_start`.
    neighbors : ndarray of shape (n, k), optional
        Rows that share each row's pseudo-label; one is drawn each time.
    on_epoch : callable, optional
        Called with the number of finished epochs and the mean loss of the last one.

    Notes
    -----
    BLAS is limited to one thread meanwhile, as two are slower for products this small. The limit is the process's:
    who trains several heads in threads sets it around all of them.
    """
    n_features = rows.shape[1]
    coef, intercept = random_start(n_features, n_clusters, generator) if start is None else start
    # Copies, which are changed in place.
    coef, intercept = np.array(coef, rows.dtype, order="C"), np.array(intercept, rows.dtype)
    velocity, intercept_velocity = np.zeros_like(coef), np.zeros_like(intercept)
    weights = np.ones(rows.shape[0]) if sample_weight is None else np.asarray(sample_weight, np.float64)
    used = np.flatnonzero(weights > 0)
    n_batches = max(1, round(len(used) / batch_size))
    limits = [None if n_epochs is None else n_epochs * n_batches, max_steps]
    n_steps = min(limit for limit in limits if limit is not None)
    curve: list[float] = []
    # Weights that overflow give a loss that is not finite, which is checked after each epoch.
    with threadpool_limits(1, user_api="blas"), np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, n_steps, n_batches):
            total = 0.0
            batches = draw_batches(used, n_batches, neighbors, generator)
            for step, (points, indices) in zip(range(first, n_steps), batches, strict=False):
                rate = rate_at(step / n_steps, learning_rate, final_rate)
                batch, share = rows[indices], weights[points] / weights[points].sum()
                logits = products(coef, batch)
                logits += intercept[:, None]
                gradient, loss = objective.gradient(logits, share.astype(rows.dtype))
                total += loss
                velocity *= momentum
                velocity += weighted_sums(gradient, batch)
                velocity += rows.dtype.type(weight_decay) * coef
                intercept_velocity *= momentum
                intercept_velocity += gradient.sum(axis=1)
                coef -= rate * velocity
                intercept -= rate * intercept_velocity
            curve.append(total / min(n_batches, n_steps - first))
            if not np.isfinite(curve[-1]):
                raise InputError(
                    f"training diverged in epoch {len(curve)} with learning_rate={learning_rate:g} and "
                    f"weight_decay={weight_decay:g}; lower them, and standardize features of a large scale"
                )
            if on_epoch is not None:
                on_epoch(len(curve), curve[-1])
    return Trained(coef, intercept, np.array(curve))


def random_start(n_features: int, n_clusters: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Draw coefficients as He et al. (2015) do, with zero intercepts: the paper's start."""
    return generator.normal(0, np.sqrt(2 / n_features), (n_clusters, n_features)), np.zeros(n_clusters)


def rate_at(progress: float, learning_rate: float, final_rate: float) -> float:
    """Return the rate after a fraction of all steps."""
    return float(learning_rate * (final_rate + (1 - final_rate) * 0.5 * (1 + np.cos(np.pi * progress))))


def draw_batches(
    used: NDArray[np.intp], n_batches: int, neighbors: NDArray[Any] | None, generator: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the points of each batch of an epoch, and all its rows: the points and a neighbour of each."""
    for points in np.array_split(generator.permutation(used), n_batches):
        if neighbors is None:
            yield points, points
        else:
            drawn = generator.integers(0, neighbors.shape[1], len(points))
            yield points, np.concatenate([points, neighbors[points, drawn]])


def products(coef: Array, batch: Any) -> Array:
    """Return coef · batchᵀ."""
    return np.ascontiguousarray((batch @ coef.T).T) if sparse.issparse(batch) else coef @ batch.T


def weighted_sums(gradient: Array, batch: Any) -> Array:
    """Return gradient · batch."""
    return np.asarray((batch.T @ gradient.T).T) if sparse.issparse(batch) else gradient @ batch
