"""The parameters of a fit, checked once for all estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust import choices
from cceclust.errors import InputError
from cceclust.validation import (
    as_prior,
    check_count,
    check_non_negative,
    check_positive,
    thread_count,
)

__all__ = ["FitSettings"]


@dataclass(frozen=True)
class FitSettings:
    """How to fit; see :class:`cceclust.CCEClusterer` for the meaning of each parameter."""

    n_clusters: int
    # Numbers of clusters to choose from; if given, `n_clusters` has no meaning until one is chosen.
    candidates: tuple[int, ...] | Literal["auto"] | None = None
    fairness: float | Literal["auto"] | None = None
    prior: ArrayLike | Literal["auto"] | None = None
    weight_decay: float | Literal["auto"] = "auto"
    learning_rate: float = 0.5
    learning_rate_schedule: Literal["cosine", "constant"] = "cosine"
    batch_size: int = 250
    n_neighbors: int | Literal["auto"] = 0
    neighbor_weight: float = 1.0
    init: Literal["auto", "random", "k-means", "graph"] = "auto"
    graph_candidates: bool = False
    curved: bool | Literal["auto"] = False
    n_components: int | Literal["auto"] = "auto"
    n_init: int = 10
    max_epochs: int | Literal["auto"] = "auto"
    tol: float = 1e-4
    standardize: bool = True
    scale: Literal["auto", "overall", "columns", "directions"] = "overall"
    n_jobs: int | None = None

    @classmethod
    def of(cls, estimator: Any, n_clusters: Any) -> Self:
        """Copy the parameters of an estimator; those that it does not have keep their defaults."""
        given: dict[str, Any] = {field.name: getattr(estimator, field.name, field.default) for field in fields(cls)}
        count, candidates = as_candidates(n_clusters)
        return cls(**{**given, "n_clusters": count, "candidates": candidates})

    def __post_init__(self) -> None:
        check_count(self.n_clusters, "n_clusters", 1)
        check_count(self.n_init, "n_init", 1)
        check_count(self.batch_size, "batch_size", 1)
        check_non_negative(self.tol, "tol")
        check_positive(self.learning_rate, "learning_rate")
        check_non_negative(self.neighbor_weight, "neighbor_weight")
        check_one_of(self.learning_rate_schedule, "learning_rate_schedule", ("cosine", "constant"))
        check_one_of(self.scale, "scale", ("auto", "overall", "columns", "directions"))
        if self.scale in ("columns", "directions") and not self.standardize:
            raise InputError(f"scale={self.scale!r} needs standardize=True")
        check_one_of(self.init, "init", ("auto", "random", "k-means", "graph"))
        if self.fairness is not None and self.fairness != "auto":
            check_non_negative(self.fairness, "fairness")
        if self.weight_decay != "auto":
            check_non_negative(self.weight_decay, "weight_decay")
        if self.curved not in (True, False, "auto"):
            raise InputError(f"curved={self.curved!r}; expected True, False or 'auto'")
        if self.n_components != "auto":
            check_count(self.n_components, "n_components", 0)
        if self.n_neighbors != "auto":
            check_count(self.n_neighbors, "n_neighbors", 0)
        if self.max_epochs != "auto":
            check_count(self.max_epochs, "max_epochs", 1)
        thread_count(self.n_jobs)
        if not self.has_free_prior and self.prior is not None:
            if self.candidates is not None:
                raise InputError("a prior needs a number of clusters, one for each part; give n_clusters or no prior")
            self.prior_parts(np.dtype(np.float64))

    @property
    def fixed_fairness(self) -> float | None:
        """The fairness of all heads; None if each has its own, or the method has none."""
        if self.fairness == "auto":
            return None if self.mixes_heads else choices.FAIRNESS
        return None if self.fairness is None else float(self.fairness)

    @property
    def has_free_prior(self) -> bool:
        """Whether the sizes of the clusters are left to the data."""
        return isinstance(self.prior, str) and self.prior == "auto"

    @property
    def mixes_heads(self) -> bool:
        """Whether heads differ in the parameters that are "auto", and partitions of the graph are candidates as well.

        Partitions ignore a prior, so they are no candidates if one is given.
        """
        return self.graph_candidates and self.has_free_prior

    @property
    def is_judged(self) -> bool:
        """Whether the graph chooses. If a prior is given, the loss chooses, since only the loss considers it."""
        return (self.has_free_prior or self.prior is None) and (self.mixes_heads or self.n_init > 1)

    def without_graph(self) -> FitSettings:
        """Return the settings for data in pieces: all heads are alike, and K-means replaces the graph as a start."""
        init = "k-means" if self.init == "graph" else self.init
        return replace(self, graph_candidates=False, init=init)

    def with_clusters(self, n_clusters: int) -> FitSettings:
        """Return the settings for the number of clusters that was chosen."""
        return replace(self, n_clusters=n_clusters, candidates=None)

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return thread_count(self.n_jobs)

    def prior_parts(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the expected share of each cluster, equal unless given; the shares sum to 1."""
        given = None if self.has_free_prior else self.prior
        return as_prior(given, self.n_clusters).astype(dtype)

    def epochs(self, n_rows: int) -> int:
        """Return the maximum number of epochs for this many rows."""
        if self.max_epochs == "auto":
            return choices.epochs_for(n_rows, self.batch_size)
        return int(self.max_epochs)


def as_candidates(n_clusters: Any) -> tuple[int, tuple[int, ...] | Literal["auto"] | None]:
    """Return the number of clusters, and the candidates if it is still to be chosen.

    Parameters
    ----------
    n_clusters : int, "auto", range or sequence of int
        The parameter of the estimator.

    Examples
    --------
    >>> as_candidates(8), as_candidates("auto"), as_candidates(range(2, 5)), as_candidates([7])
    ((8, None), (1, 'auto'), (1, (2, 3, 4)), (7, None))
    """
    if isinstance(n_clusters, str) and n_clusters == "auto":
        return 1, "auto"
    if not isinstance(n_clusters, Sequence | np.ndarray) or isinstance(n_clusters, str | bytes):
        check_count(n_clusters, "n_clusters", 1)
        return int(n_clusters), None
    if not len(n_clusters):
        raise InputError(f"n_clusters={n_clusters!r}; expected at least one number of clusters, the smallest first")
    # A range may be too long for memory.
    numbers = [n_clusters[0], n_clusters[-1]] if isinstance(n_clusters, range) else list(n_clusters)
    for number in numbers:
        check_count(number, "n_clusters", 1)
    if max(numbers) > choices.MOST_CLUSTERS_SEARCHED and len(n_clusters) > 1:
        raise InputError(
            f"n_clusters goes up to {max(numbers)}, but numbers are compared up to {choices.MOST_CLUSTERS_SEARCHED}; "
            "give lower ones, or a single one"
        )
    numbers = list(n_clusters)
    candidates = tuple(sorted({int(number) for number in numbers}))
    return (candidates[0], None) if len(candidates) == 1 else (1, candidates)


def check_one_of(value: Any, name: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not allowed."""
    if value not in allowed:
        listed = " or ".join([", ".join(map(repr, allowed[:-1])), repr(allowed[-1])])
        raise InputError(f"{name}={value!r}; expected {listed}")
