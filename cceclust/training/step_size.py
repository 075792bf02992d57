"""How long steps may be where given labels hold the head."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.training.rows import Rows
from cceclust.training.spectrum import principal_variances, sample_rows
from cceclust.training.standardization import Standardization

__all__ = ["longest_stable_step"]

# Gradient descent on cross-entropy is stable below 2 / (h v), with v the features' variance along their leading
# direction and h the curvature by the logits: 1/K where predictions are uniform, and at most 1/2, where two classes
# share all points. So K / v is half of what is stable at the start; beyond some classes, it would be too much later.
MOST_CLASSES = 8


def longest_stable_step(
    rows: Rows, n_classes: int, standardization: Standardization, sample_weight: NDArray[Any], *, seed: int
) -> float:
    """Return a learning rate at which cross-entropy against soft labels does not diverge.

    Pseudo-labels follow the predictions, so clustering survives longer steps. Labels that stay uncertain do not: on
    ResNet-50 features, a rate of 0.5 takes Shannon's cross-entropy against them far above its starting value.

    Parameters
    ----------
    rows : Rows
        The features.
    n_classes : int
        Number of classes.
    standardization : Standardization
        What is done to the features before training.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    seed : int
        Decides the sample of rows that is looked at.

    Returns
    -------
    float
        Infinity for features that do not vary.
    """
    sample, weights = sample_rows(rows, sample_weight, seed)
    largest = principal_variances(sample, standardization.mean, weights)[0] / standardization.scale**2
    return float(min(n_classes, MOST_CLASSES) / largest) if largest > 0 else float(np.inf)
