"""The objectives that a network can be trained on: collision cross-entropy, and the published ones it is compared with.

CCE: Z. Zhang, Y. Boykov, "Collision Cross-Entropy for Soft Class Labels and Deep Clustering" (arXiv:2303.07321), whose
equations are numbered here.
IIC: X. Ji, J. F. Henriques, A. Vedaldi, "Invariant information clustering for unsupervised image classification and
segmentation", ICCV 2019 (arXiv:1807.06653).
IMSAT: W. Hu, T. Miyato, S. Tokui, E. Matsumoto, M. Sugiyama, "Learning discrete representations via information
maximizing self-augmented training", ICML 2017 (arXiv:1702.08720), with the views of virtual adversarial training:
T. Miyato, S. Maeda, M. Koyama, K. Nakae, S. Ishii, ICLR 2016 (arXiv:1507.00677).
MIADM: M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between discriminative models and
K-means", TPAMI 2021 (arXiv:1810.04246); the solver is that of :mod:`cceclust.pseudo_labels.alternating_direction`.
SeLa: Y. M. Asano, C. Rupprecht, A. Vedaldi, "Self-labelling via simultaneous clustering and representation learning",
ICLR 2020 (arXiv:1911.05371); here labels are found batch by batch, and not from time to time for all the data.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cceclust.errors import InputError
from cceclust.torch.losses import collision_cross_entropy, estimate_pseudo_labels
from cceclust.validation import check_non_negative, check_positive

__all__ = ["OBJECTIVES", "Objective", "SelfLabeling", "make_objective", "shannon_cross_entropy"]


class Objective(nn.Module, ABC):
    """A loss of the logits of a batch of images and of one view of each image; by default an augmented view."""

    def start_head(self, head: nn.Linear) -> None:
        """Change the head's initial weights as the authors of the objective do; by default they stay as they are."""

    def make_view(
        self, network: Callable[[Tensor], Tensor], images: Tensor, augmentation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the view of each image (n, …) whose logits are compared with those of the image.

        If several processes train together, `network` returns the logits of all images, but gradients flow only into
        those that belong to this process; the views of the others are not used.
        """
        return augmentation(images)

    @abstractmethod
    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Return ``loss``, and its parts, for the logits (n_samples, n_clusters) of images and of their views."""


class SelfLabeling(Objective):
    """Mean of D(y, σ) + λ · unfairness(ȳ) + w · mean of D(y, σ_view), where y are the pseudo-labels of the images.

    `fairness` is λ, the weight of equal cluster sizes; it affects y only, as no gradient flows through y.
    `augmentation_weight` is w, the weight of the loss of the augmented views.
    """

    # Iterations that find the pseudo-labels of a batch.
    max_iter: int

    def __init__(self, fairness: float, augmentation_weight: float = 1.0) -> None:
        super().__init__()
        check_non_negative(fairness, "fairness")
        check_non_negative(augmentation_weight, "augmentation_weight")
        self.fairness = fairness
        self.augmentation_weight = augmentation_weight

    @abstractmethod
    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y (n_samples, n_clusters) for these logits."""

    def divergence(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean of D(y, σ); by default Shannon's cross-entropy."""
        return shannon_cross_entropy(logits, labels)

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return how far the sizes of the clusters, ȳ, are from equal ones; by default KL(ȳ ‖ u)."""
        mean = labels.mean(dim=0)
        return torch.xlogy(mean, len(mean) * mean).sum()

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        labels = self.pseudo_labels(logits.detach())
        of_images, of_views = self.divergence(logits, labels), self.divergence(view, labels)
        unfairness = self.unfairness(labels)
        loss = of_images + self.fairness * unfairness + self.augmentation_weight * of_views
        return {"loss": loss, "images": of_images, "views": of_views, "unfairness": unfairness}


class CCE(SelfLabeling):
    """Mean of H₂(y, σ) + λ KL(u ‖ ȳ) + w · mean of H₂(y, σ_view), with y by EM, uniform u, and the paper's λ = 100."""

    max_iter = 20

    def __init__(self, fairness: float = 100.0, augmentation_weight: float = 1.0) -> None:
        super().__init__(fairness, augmentation_weight)

    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        return estimate_pseudo_labels(logits.softmax(dim=1), fairness=self.fairness, max_iter=self.max_iter)

    def divergence(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean of H₂(y, σ)."""
        return collision_cross_entropy(logits, labels).mean()

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return KL(u ‖ ȳ)."""
        return -(labels.shape[1] * labels.mean(dim=0)).log().mean()


# Deviation of the head's initial weights in the code of IMSAT's authors. A head with larger weights saturates in its
# first steps, with all images in one cluster, and the information term is too weak to undo that.
HEAD_DEVIATION = 1e-4
# Weight of the mutual information in their code.
INFORMATION_WEIGHT = 0.1
# Distance of a view from its image, as a fraction of the distance to the nearest other image of the batch. They
# use 0.25 of the distance to the tenth nearest of all images.
RADIUS = 0.25
# Length of the random step used to find the adversarial direction: 10 in their code, whose pixels go from -1 to 1.
PROBE = 5.0


class IMSAT(Objective):
    """w · mean of H(σ, σ_view) + t (mean of H(σ) − μ H(σ̄)), where σ in the first term is a constant.

    A view is the image, moved by a quarter of the distance to the next one in the direction in which the prediction
    changes most. `fairness` is μ, the weight of equal cluster sizes, H(σ̄): 4 in the authors' code.
    """

    def __init__(self, fairness: float = 4.0, augmentation_weight: float = 1.0) -> None:
        super().__init__()
        check_non_negative(fairness, "fairness")
        check_non_negative(augmentation_weight, "augmentation_weight")
        self.fairness = fairness
        self.augmentation_weight = augmentation_weight

    def start_head(self, head: nn.Linear) -> None:
        """Make the head's initial weights so small that all clusters are equally likely everywhere."""
        nn.init.normal_(head.weight, std=HEAD_DEVIATION)

    def make_view(
        self, network: Callable[[Tensor], Tensor], images: Tensor, augmentation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return adversarial views of images (n, …)."""
        return adversarial_view(network, images)

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        probabilities = logits.softmax(dim=1)
        uncertainty = shannon_cross_entropy(logits, probabilities)
        # From log-probabilities: even a mean that underflows to 0 has a finite logarithm.
        log_mean = logits.log_softmax(dim=1).logsumexp(dim=0) - logits.new_tensor(len(logits)).log()
        size_entropy = -(log_mean.exp() * log_mean).sum()
        of_views = shannon_cross_entropy(view, probabilities.detach())
        information = uncertainty - self.fairness * size_entropy
        loss = self.augmentation_weight * of_views + INFORMATION_WEIGHT * information
        return {"loss": loss, "views": of_views, "uncertainty": uncertainty, "size_entropy": size_entropy}


def adversarial_view(network: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """Move each of at least two images in the direction in which the prediction changes most."""
    flat = images.flatten(start_dim=1)
    distances = torch.cdist(flat, flat)
    nearest = distances.fill_diagonal_(torch.inf).amin(dim=1, keepdim=True)
    direction = functional.normalize(torch.randn_like(flat)).requires_grad_()
    with torch.no_grad():
        targets = network(images).softmax(dim=1)
    probed = network(images + PROBE * direction.view_as(images))
    (gradient,) = torch.autograd.grad(shannon_cross_entropy(probed, targets), direction)
    return images + (RADIUS * nearest * functional.normalize(gradient)).view_as(images)


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


class MIADM(SelfLabeling):
    """Mean of H(y, σ) + λ KL(ȳ ‖ u) + w · mean of H(y, σ_view) (equation 5); u is uniform, λ = 1 as in Jabi et al."""

    max_iter = 50

    def __init__(self, fairness: float = 1.0, augmentation_weight: float = 1.0) -> None:
        check_positive(fairness, "fairness")
        super().__init__(fairness, augmentation_weight)

    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        log_sigma = logits.log_softmax(dim=1)
        labels = log_sigma
        for _ in range(self.max_iter):
            # y ∝ y · σ^(1/λ) / ȳ, all in logarithms.
            labels = (labels + log_sigma / self.fairness - labels.logsumexp(dim=0)).log_softmax(dim=1)
        return labels.exp()


# The exponent of the probabilities in SeLa's transport, as in its paper, and the part of the iterations in which it
# grows to that.
SHARPNESS, GROWING = 25.0, 0.8


class SeLa(SelfLabeling):
    """Mean of H(y, σ) + w · mean of H(y, σ_view) (equation 4) with one-hot y in clusters of equal size."""

    max_iter = 50

    def __init__(self, augmentation_weight: float = 1.0) -> None:
        super().__init__(0.0, augmentation_weight)

    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        labels = balanced_labels(logits, SHARPNESS, self.max_iter)
        return torch.zeros_like(labels).scatter_(1, labels.argmax(dim=1, keepdim=True), 1.0)


def balanced_labels(logits: Tensor, sharpness: float, max_iter: int) -> Tensor:
    """Return y (n_samples, n_clusters) ∝ α_k σ_k^sharpness with row sums of 1 and about equal column sums, by Sinkhorn.

    All in logarithms: for a head that is sure of itself, σ^sharpness would be 0 in whole columns, which no α can fill.
    The sharpness grows up to its value, from one that makes all entries alike: otherwise the columns that such a head
    does not predict would need thousands of iterations to fill.
    """
    log_sigma = logits.log_softmax(dim=1)
    size = logits.new_tensor(logits.shape[0] / logits.shape[1]).log()
    pull = torch.zeros_like(size)
    softest = (-1 / log_sigma.amin()).clamp_max(sharpness)
    for step in range(1, max_iter + 1):
        now = softest * (sharpness / softest) ** min(1.0, step / (GROWING * max_iter))
        pull = pull + (size - (now * (log_sigma + pull)).log_softmax(dim=1).logsumexp(dim=0)) / now
    return (sharpness * (log_sigma + pull)).softmax(dim=1)


def shannon_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of H(y, σ) = −Σ_k y_k ln σ_k for σ = softmax(logits)."""
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1).mean()


OBJECTIVES: dict[str, type[Objective]] = {"cce": CCE, "imsat": IMSAT, "iic": IIC, "sela": SeLa, "miadm": MIADM}


def make_objective(name: str, **parameters: Any) -> Objective:
    """Return the objective of the given name, with these parameters; see :data:`OBJECTIVES`.

    Examples
    --------
    >>> from cceclust.torch.objectives import make_objective
    >>> make_objective("cce", fairness=10.0).fairness
    10.0
    """
    if name not in OBJECTIVES:
        raise InputError(f"objective={name!r}; expected one of {', '.join(OBJECTIVES)}")
    known = [parameter for parameter in inspect.signature(OBJECTIVES[name].__init__).parameters if parameter != "self"]
    for parameter in parameters:
        if parameter not in known:
            has = ", ".join(known) or "none"
            raise InputError(f"objective {name!r} has no parameter {parameter!r}; it has {has}")
    return OBJECTIVES[name](**parameters)
