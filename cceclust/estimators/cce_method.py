"""The parameters of :class:`cceclust.CCEClusterer`, which describes them, and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from cceclust.estimators.softmax_method import SoftmaxMethod

if TYPE_CHECKING:
    from cceclust.training.candidates import HeadPlan
    from cceclust.training.objectives import SelfLabeling

__all__ = ["CCEMethod"]


class CCEMethod(SoftmaxMethod):
    """Clustering by collision cross-entropy, for rows that were checked."""

    _method = "cce"

    def __init__(
        self,
        n_clusters: int | Sequence[int] | Literal["auto"] = 8,
        *,
        fairness: float | Literal["auto"] = "auto",
        prior: ArrayLike | Literal["auto"] | None = "auto",
        weight_decay: float | Literal["auto"] = "auto",
        learning_rate: float = 0.5,
        learning_rate_schedule: Literal["cosine", "constant"] = "cosine",
        batch_size: int = 250,
        max_iter: int = 5,
        n_neighbors: int | Literal["auto"] = "auto",
        neighbor_weight: float = 1.0,
        init: Literal["auto", "random", "k-means", "graph"] = "auto",
        graph_candidates: bool = True,
        curved: bool | Literal["auto"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        n_init: int = 6,
        max_epochs: int | Literal["auto"] = "auto",
        tol: float = 1e-4,
        standardize: bool = True,
        scale: Literal["auto", "overall", "columns", "directions"] = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.fairness = fairness
        self.prior = prior
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_neighbors = n_neighbors
        self.neighbor_weight = neighbor_weight
        self.init = init
        self.graph_candidates = graph_candidates
        self.curved = curved
        self.n_components = n_components
        self.n_init = n_init
        self.max_epochs = max_epochs
        self.tol = tol
        self.standardize = standardize
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _make_objective(self, plans: Sequence[HeadPlan]) -> SelfLabeling:
        """Return L_CCE+ with pseudo-labels found by EM."""
        from cceclust.pseudo_labels import EMSolver
        from cceclust.training.objectives import SelfLabeling

        solvers = [
            EMSolver(fairness=plan.fairness_or_usual, prior=plan.prior, max_iter=self.max_iter, tol=0.0)
            for plan in plans
        ]
        return SelfLabeling(solvers, companion_weight=self.neighbor_weight)
