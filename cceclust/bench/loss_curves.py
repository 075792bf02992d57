"""Figure 1 of arXiv:2303.07321: collision cross-entropy beside Shannon's, for two classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cceclust.errors import InputError, MissingExtraError
from cceclust.files.atomic import replacing
from cceclust.objective import collision_cross_entropy, cross_entropy

__all__ = ["LossCurve", "draw_loss_curves", "loss_curves"]

FloatArray = npt.NDArray[np.floating[Any]]

FORMATS = (".png", ".svg", ".pdf")
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
    A uniform label teaches nothing: its collision cross-entropy is the same for every prediction.

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
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"a figure is one of {', '.join(FORMATS)}; got {path.name!r}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError('drawing needs matplotlib; install it with: pip install "cceclust[report]"') from error

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for curve, colour in zip(loss_curves(), COLOURS, strict=True):
        name = f"y = ({curve.label:.1f}, {1 - curve.label:.1f})"
        axes.plot(curve.x, curve.collision, color=colour, label=f"{name}: collision")
        axes.plot(curve.x, curve.shannon, "--", color=colour, linewidth=1, label=f"{name}: Shannon")
    axes.set(xlabel="prediction σ = (x, 1 − x)", ylabel="cross-entropy", xlim=(0, 1), ylim=(0, 3))
    axes.legend()
    with replacing(path, force=force) as part:
        figure.savefig(part, format=path.suffix[1:].lower(), dpi=150)
