"""Collision cross-entropy and the self-labeling loss as modules for any training loop (arXiv:2303.07321).

Their pseudo-labels come from EM on torch's devices; the mathematics is in :mod:`cceclust.pseudo_labels.em`. The numbers
of iterations and of Newton steps are fixed, so nothing waits for a value from the device.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from cceclust.errors import InputError
from cceclust.validation import as_prior, check_count, check_non_negative

__all__ = ["CollisionCrossEntropy", "SelfLabelingLoss", "collision_cross_entropy", "estimate_pseudo_labels"]

# Two or three are usually enough, since each iteration starts from the last root; extreme probabilities need more.
NEWTON_STEPS = 8


def collision_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return H₂(y, σ) = −ln Σ_k y_k σ_k (equation 9), in log space; y are distributions, or indices of classes."""
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


def estimate_pseudo_labels(
    probabilities: Tensor, *, fairness: float = 1.0, prior: Tensor | None = None, max_iter: int = 20
) -> Tensor:
    """Minimise mean of H₂(y, σ) + λ KL(u ‖ ȳ) (equation 11 of arXiv:2303.07321) over y, starting from y = σ.

    Parameters
    ----------
    probabilities : tensor (n_samples, n_clusters)
        σ, float32 or float64; every row sums to 1.
    fairness : float
        λ of the loss.
    prior : tensor (n_clusters,), optional
        u; uniform by default.
    max_iter : int
        Number of EM iterations.

    Returns
    -------
    tensor (n_samples, n_clusters)

    Examples
    --------
    >>> sigma = torch.tensor([[0.95, 0.05], [0.9, 0.1], [0.6, 0.4], [0.55, 0.45]])
    >>> estimate_pseudo_labels(sigma, fairness=10.0, max_iter=100).argmax(dim=1)
    tensor([0, 0, 1, 1])
    """
    if prior is None:
        n_clusters = probabilities.shape[1]
        prior = probabilities.new_full((n_clusters,), 1 / n_clusters)
    labels: Tensor = _minimise(probabilities, prior, fairness, max_iter)
    return labels


# Compilers would spend minutes on the unrolled iterations.
@torch.compiler.disable  # type: ignore[untyped-decorator]
@torch.no_grad()
def _minimise(probabilities: Tensor, prior: Tensor, fairness: float, max_iter: int) -> Tensor:
    pull = fairness * prior.to(probabilities)
    smallest = torch.finfo(probabilities.dtype).tiny
    # EM could never leave zeros, so they are raised where the prior is positive.
    floor = smallest**0.6 * (pull > 0).to(probabilities)
    largest = probabilities.amax(dim=1, keepdim=True)
    gap = (largest - probabilities) / largest
    is_largest = gap == 0
    ties = is_largest.sum(dim=1, keepdim=True)

    labels = torch.maximum(probabilities, floor)
    delta = torch.zeros_like(largest)
    for _ in range(max_iter):
        attraction = pull / labels.mean(dim=0).clamp_min(smallest)
        coefficient = attraction.clamp_max(smallest**-0.95) * labels
        reach = 1 + coefficient.sum(dim=1, keepdim=True)
        bound = _lower_bound(coefficient, gap, reach, is_largest).clamp_min(smallest**0.6)
        delta = torch.maximum(delta, bound)
        for _ in range(NEWTON_STEPS):
            delta = torch.maximum(_newton_step(coefficient, gap, reach, delta), bound)
        labels = coefficient / (delta + gap * (reach - delta))
        total = labels.sum(dim=1, keepdim=True)
        # Without a root, the largest classes take the rest of the sum up to 1.
        rootless = (total < 1) & (delta <= bound)
        missing = torch.where(rootless, (1 - total) / ties, 0.0)
        labels = labels / torch.where(rootless, 1.0, total) + missing * is_largest
        labels = torch.maximum(labels, floor)
    return labels


def _lower_bound(coefficient: Tensor, gap: Tensor, reach: Tensor, is_largest: Tensor) -> Tensor:
    """Lemma 1's end point: no y_k exceeds 1, and nor do the largest classes together."""
    alone = (coefficient - gap * reach).amax(dim=1, keepdim=True)
    together = (coefficient * is_largest).sum(dim=1, keepdim=True)
    return torch.maximum(alone, together)


def _newton_step(coefficient: Tensor, gap: Tensor, reach: Tensor, delta: Tensor) -> Tensor:
    """One step for 1 / Σ_k y_k = 1, which is concave in δ: from below it never passes the root."""
    inverse = 1 / (delta + gap * (reach - delta))
    share = coefficient * inverse
    total = share.sum(dim=1, keepdim=True)
    slope = (share * inverse * (1 - gap)).sum(dim=1, keepdim=True)
    step = total * (total - 1) / slope.clamp_min(torch.finfo(delta.dtype).tiny)
    return torch.minimum(delta + step, reach)
