"""Collision cross-entropy and the self-labeling loss as modules for any training loop (arXiv:2303.07321)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from cceclust.errors import InputError
from cceclust.torch.em import estimate_pseudo_labels
from cceclust.validation import as_prior, check_count, check_non_negative

__all__ = ["CollisionCrossEntropy", "SelfLabelingLoss", "collision_cross_entropy"]


def collision_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return H₂(y, σ) = −ln Σ_k y_k σ_k (equation 9) for σ = softmax(logits), in log space.

    Parameters
    ----------
    logits : tensor (..., n_clusters)
        Half precision is computed in float32.
    targets : tensor (..., n_clusters) of distributions, or (...) of class indices
        y.

    Returns
    -------
    tensor (...)
    """
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    log_sigma = logits.log_softmax(dim=-1)
    if not targets.is_floating_point():
        return -log_sigma.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    targets = targets.to(log_sigma)
    # Divided by the largest probability where y > 0, the sum has a term of exactly y_k and cannot vanish.
    log_largest = log_sigma.detach().masked_fill(targets == 0, -torch.inf).amax(dim=-1, keepdim=True)
    collision = (targets * (log_sigma - log_largest).clamp_max(0).exp()).sum(dim=-1)
    return -collision.log() - log_largest.squeeze(-1)


class CollisionCrossEntropy(nn.Module):
    """H₂(y, σ) = −ln Σ_k y_k σ_k (equation 9): for one-hot targets the usual cross-entropy, for uniform ones constant.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        How to combine the losses of the samples.

    Examples
    --------
    >>> logits = torch.zeros(3, 2, requires_grad=True)
    >>> loss = CollisionCrossEntropy()(logits, torch.tensor([0, 1, 1]))
    >>> round(loss.item(), 4)
    0.6931
    """

    def __init__(self, reduction: Literal["mean", "sum", "none"] = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise InputError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
        self.reduction = reduction

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of logits (..., n_clusters) for targets (..., n_clusters), or (...) of class indices."""
        losses = collision_cross_entropy(logits, targets)
        if self.reduction == "none":
            return losses
        return losses.mean() if self.reduction == "mean" else losses.sum()


class SelfLabelingLoss(nn.Module):
    """L_CCE+ = mean of H₂(y, σ) + λ KL(u ‖ ȳ) (equation 11), with the pseudo-labels y found by EM in every call.

    No gradient flows into y (Algorithm 2). Further views of the same samples share the pseudo-labels of the
    first: each adds its weighted mean of H₂(y, σ_view).

    Parameters
    ----------
    fairness : float
        λ; the paper uses 100.
    prior : sequence of n_clusters numbers, optional
        u; uniform by default.
    max_iter : int
        EM iterations per call.
    view_weight : float
        Weight of the mean over the further views.

    Examples
    --------
    >>> network = torch.nn.Linear(5, 3)
    >>> loss = SelfLabelingLoss(fairness=10.0)(network(torch.ones(8, 5)))
    >>> loss.backward()
    """

    prior: Tensor | None

    def __init__(
        self,
        fairness: float = 100.0,
        prior: Tensor | list[float] | None = None,
        max_iter: int = 20,
        view_weight: float = 1.0,
    ) -> None:
        super().__init__()
        check_non_negative(fairness, "fairness")
        check_non_negative(view_weight, "view_weight")
        check_count(max_iter, "max_iter")
        self.fairness = float(fairness)
        self.max_iter = int(max_iter)
        self.view_weight = float(view_weight)
        checked = as_prior(prior)
        self.register_buffer("prior", None if checked is None else torch.from_numpy(checked))

    def forward(self, logits: Tensor, *views: Tensor) -> Tensor:
        """Return the loss of logits (n_samples, n_clusters) and of further views of the same samples."""
        targets = self.pseudo_labels(logits)
        loss = collision_cross_entropy(logits, targets).mean() + self.fairness * self._unfairness(targets)
        if views:
            of_views = [collision_cross_entropy(view, targets).mean() for view in views]
            loss = loss + self.view_weight * torch.stack(of_views).mean()
        return loss

    @torch.no_grad()
    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return the pseudo-labels (n_samples, n_clusters) for these logits."""
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        return estimate_pseudo_labels(
            logits.softmax(dim=1), fairness=self.fairness, prior=self.prior, max_iter=self.max_iter
        )

    def _unfairness(self, targets: Tensor) -> Tensor:
        """KL(u ‖ ȳ)."""
        mean = targets.mean(dim=0)
        prior = torch.full_like(mean, 1 / len(mean)) if self.prior is None else self.prior.to(mean)
        return (torch.xlogy(prior, prior) - torch.xlogy(prior, mean)).sum()
