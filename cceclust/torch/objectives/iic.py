"""IIC: the mutual information between the clusters of an image and of its augmented view.

X. Ji, J. F. Henriques, A. Vedaldi, "Invariant information clustering for unsupervised image classification and
segmentation", ICCV 2019 (arXiv:1807.06653).
"""

from __future__ import annotations

import torch
from torch import Tensor

from cceclust.torch.objectives.objective import Objective

__all__ = ["IIC"]


class IIC(Objective):
    """−I(c; c_view) for the joint distribution P = mean of σ σ_viewᵀ, made symmetric."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss, which has no parts."""
        joint = logits.softmax(dim=1).T @ view.softmax(dim=1) / len(logits)
        # Entries of 0 add nothing, but their logarithm would be infinite.
        joint = ((joint + joint.T) / 2).clamp_min(torch.finfo(joint.dtype).tiny)
        marginal = joint.sum(dim=1)
        information = (joint * (joint.log() - marginal.log()[:, None] - marginal.log()[None, :])).sum()
        return {"loss": -information}
