"""Figure 1 of arXiv:2303.07321: collision cross-entropy beside Shannon's, for two classes.

python benchmarks/paper/figure1.py [--out loss-curves.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cceclust.objective import collision_cross_entropy, cross_entropy

# The figure does not say which soft labels it has.
LABELS = {0.9: "tab:red", 0.7: "tab:green", 0.5: "tab:blue"}


def main() -> None:
    """Draw both losses over all predictions, for three soft labels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("loss-curves.png"), help=".png, .svg or .pdf")
    options = parser.parse_args()
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    x = np.linspace(0, 1, 401)
    sigma = np.stack([x, 1 - x], axis=1)
    for label, color in LABELS.items():
        y = np.broadcast_to([label, 1 - label], sigma.shape)
        name = f"y = ({label:.1f}, {1 - label:.1f})"
        axes.plot(x, collision_cross_entropy(y, sigma), color=color, label=f"{name}: collision")
        axes.plot(x, cross_entropy(y, sigma), "--", color=color, linewidth=1, label=f"{name}: Shannon")
    axes.set(xlabel="prediction σ = (x, 1 − x)", ylabel="cross-entropy", xlim=(0, 1), ylim=(0, 3))
    axes.legend()
    figure.savefig(options.out, dpi=150)


if __name__ == "__main__":
    main()
