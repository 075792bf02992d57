"""Six groups of 1,200 to 40 rows in 20 dimensions: K-means divides the largest and joins small ones.

python examples/unequal_sizes.py --out unequal-sizes.png
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from cceclust import CCEClusterer

SHARES = np.array([0.6, 0.2, 0.1, 0.05, 0.03, 0.02])
COLORS = np.array(["#00796b", "#e08214", "#5e3c99", "#c51b7d", "#2166ac", "#333333"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000, help="number of rows")
    parser.add_argument("--out", type=Path, default=Path("unequal-sizes.png"), help="the picture")
    options = parser.parse_args(arguments)

    numbers = np.random.default_rng(0)
    groups = np.repeat(np.arange(6), (SHARES * options.rows).astype(int))
    centers = numbers.normal(size=(6, 20))
    centers *= 9 / np.linalg.norm(centers, axis=1, keepdims=True)
    rows = centers[groups] + numbers.normal(size=(len(groups), 20))
    found = {
        "K-means": KMeans(6, n_init=10, random_state=0).fit_predict(rows),
        "cceclust": CCEClusterer(6, random_state=0).fit_predict(rows),
    }

    points = PCA(2).fit_transform(rows)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, (name, labels) in zip(figure.subplots(1, 2), found.items(), strict=True):
        agreement = adjusted_rand_score(groups, labels)
        print(
            f"{name}: adjusted Rand index {agreement:.2f}, sizes {sorted(np.bincount(labels).tolist(), reverse=True)}"
        )
        largest_first = np.argsort(np.argsort(-np.bincount(labels, minlength=6)))
        axes.scatter(*points.T, s=5, c=COLORS[largest_first[labels]])
        axes.set(title=f"{name}: adjusted Rand index {agreement:.2f}", xticks=(), yticks=())
    figure.savefig(options.out, dpi=90)


if __name__ == "__main__":
    main()
