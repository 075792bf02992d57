"""Figure 1 of arXiv:2303.07321: collision cross-entropy beside Shannon's, for two classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cceclust.bench.figures import check_figure_target, new_figure, save_figure
from cceclust.objective import collision_cross_entropy, cross_entropy

__all__ = ["LossCurve", "draw_loss_curves", "loss_curves"]

FloatArray = npt.NDArray[np.floating[Any]]

COLOURS = ("tab:red", "tab:green", "tab:blue")


@dataclass(frozen=True)
class LossCurve:
    """Both losses of predictions σ = (x, 1 − x) for one soft label y = (label, 1 − label)."""

    label: float
    x: FloatArray
    collision: FloatArray
    shannon: FloatArray


def loss_curves(labels: Sequence[float] = (0.9, 0.7, 0.5), n_points: int = 401) -> list[LossCurve]:
    """Evaluate H₂(y, σ) and H(y, σ) over all predictions for two classes.

    Parameters
    ----------
    labels : sequence of float
        First entries of the soft labels y.
    n_points : int
        Predictions on [0, 1], both ends included.

    Returns
    -------
    list of LossCurve

    Examples
    --------
    A uniform label has no influence: its collision cross-entropy is the same for every prediction.

    >>> curve, = loss_curves([0.5], n_points=3)
    >>> curve.collision.round(4)
    array([0.6931, 0.6931, 0.6931])
    """
    x = np.linspace(0, 1, n_points)
    sigma = np.stack([x, 1 - x], axis=1)
    curves = []
    for label in labels:
        y = np.broadcast_to([label, 1 - label], sigma.shape)
        curves.append(LossCurve(label, x, collision_cross_entropy(y, sigma), cross_entropy(y, sigma)))
    return curves


def draw_loss_curves(path: str | Path, *, force: bool = False) -> None:
    """Draw the figure to a file.

    Parameters
    ----------
    path : str or Path
        A .png, .svg or .pdf file.
    force : bool
        Overwrite the file if it exists.
    """
    check_figure_target(path, force=force)
    figure, axes = new_figure()
    for curve, colour in zip(loss_curves(), COLOURS, strict=True):
        name = f"y = ({curve.label:.1f}, {1 - curve.label:.1f})"
        axes.plot(curve.x, curve.collision, color=colour, label=f"{name}: collision")
        axes.plot(curve.x, curve.shannon, "--", color=colour, linewidth=1, label=f"{name}: Shannon")
    axes.set(xlabel="prediction σ = (x, 1 − x)", ylabel="cross-entropy", xlim=(0, 1), ylim=(0, 3))
    axes.legend()
    save_figure(figure, path, force=force)
