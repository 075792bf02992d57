"""EM for the pseudo-labels of L_CCE+ on torch's devices; the mathematics is in :mod:`cceclust.pseudo_labels.em`.

The numbers of iterations and of Newton steps are fixed, so nothing waits for a value from the device.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["estimate_pseudo_labels"]

# Two or three are usually enough, since each iteration starts from the last root; extreme probabilities need more.
NEWTON_STEPS = 8


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
