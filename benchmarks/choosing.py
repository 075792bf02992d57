"""How good the choice without labels is: the defaults beside the tools that people would use instead, on labelled data.

Every file given and a set of built-in data are clustered with their true number of classes. Hungarian accuracy is
printed as mean ± standard deviation over the seeds. With ``--long-tail`` each file is also clustered after its class c
was cut to 0.75^c of the largest. "equal sizes" is this tool with ``prior=None``. UMAP and Leiden need
``pip install umap-learn leidenalg igraph``; without them their columns are left out. Leiden finds the number of
clusters itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

from cceclust import CCEClusterer, clustering_accuracy, nearest_neighbors
from cceclust.bench.files import read_labelled
from cceclust.cli.bench.tables import mean_and_deviation
from cceclust.estimators import MIADM, SeLa

Labelled = tuple[NDArray[Any], NDArray[Any]]


def unequal_blobs() -> Labelled:
    """Return seven round clusters of 2,000 to 30 rows in 50 dimensions, far apart."""
    generator = np.random.default_rng(0)
    sizes = [2000, 1000, 500, 250, 125, 60, 30]
    centres = generator.normal(size=(7, 50))
    centres *= 30 / np.linalg.norm(centres, axis=1, keepdims=True)
    classes = np.repeat(np.arange(7), sizes)
    return centres[classes] + generator.normal(size=(len(classes), 50)), classes


def blobs(n_rows: int, n_features: int, n_clusters: int, width: float, box: float) -> Labelled:
    """Return round clusters of equal size."""
    X, y = datasets.make_blobs(
        n_rows, n_features, centers=n_clusters, cluster_std=width, center_box=(-box, box), random_state=0
    )
    return X, y


def scaled(load: Callable[..., Labelled]) -> Labelled:
    """Return a table of scikit-learn's with its columns scaled."""
    X, y = load(return_X_y=True)
    return scale(X), y


BUILT_IN: dict[str, Callable[[], Labelled]] = {
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "wine, scaled": lambda: scaled(datasets.load_wine),
    "breast cancer, scaled": lambda: scaled(datasets.load_breast_cancer),
    "iris, scaled": lambda: scaled(datasets.load_iris),
    "unequal blobs, 50-D": unequal_blobs,
    "20 blobs, 2-D": lambda: blobs(5000, 2, 20, 1.0, 10),
    "20 blobs, 2048-D": lambda: blobs(4000, 2048, 20, 3.0, 2),
}


def umap_kmeans(X: NDArray[Any], n_clusters: int, seed: int) -> NDArray[Any]:
    """Cluster ten dimensions of UMAP by K-means."""
    import umap

    embedding = umap.UMAP(n_components=10, metric="cosine", random_state=seed).fit_transform(X)
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(embedding))


def leiden(X: NDArray[Any], n_clusters: int, seed: int) -> NDArray[Any]:
    """Partition the graph of 20 neighbours; the number of parts is Leiden's own."""
    import igraph
    import leidenalg

    neighbors = nearest_neighbors(X, min(20, len(X) - 1), metric="euclidean" if X.shape[1] < 16 else "cosine")
    pairs = np.stack([np.repeat(np.arange(len(X)), neighbors.shape[1]), neighbors.ravel()], axis=1)
    graph = igraph.Graph(len(X), pairs.tolist()).simplify()
    return np.array(leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, seed=seed).membership)


METHODS: dict[str, Callable[[NDArray[Any], int, int], NDArray[Any]]] = {
    "cceclust": lambda X, k, seed: CCEClusterer(k, random_state=seed).fit_predict(X),
    "equal sizes": lambda X, k, seed: CCEClusterer(k, prior=None, random_state=seed).fit_predict(X),
    "K-means ×10": lambda X, k, seed: KMeans(k, n_init=10, random_state=seed).fit_predict(X),
    "GMM": lambda X, k, seed: GaussianMixture(
        k, covariance_type="full" if X.shape[1] <= 64 else "diag", n_init=3, reg_covar=1e-3, random_state=seed
    ).fit_predict(X),
    "UMAP + K-means": umap_kmeans,
    "Leiden": leiden,
    "SeLa": lambda X, k, seed: SeLa(k, random_state=seed).fit_predict(X),
    "MIADM": lambda X, k, seed: MIADM(k, random_state=seed).fit_predict(X),
}
NEEDS = {"UMAP + K-means": "umap", "Leiden": "leidenalg"}


def long_tail(X: NDArray[Any], y: NDArray[Any]) -> Labelled:
    """Cut class c to 0.75^c of the largest."""
    generator = np.random.default_rng(0)
    largest = int(np.bincount(y).max())
    kept = [
        generator.choice(members, min(len(members), round(largest * 0.75**number)), replace=False)
        for number, members in enumerate(np.flatnonzero(y == c) for c in np.unique(y))
    ]
    rows = np.sort(np.concatenate(kept))
    return X[rows], y[rows]


def some_rows(X: NDArray[Any], y: NDArray[Any], n_rows: int | None, seed: int) -> Labelled:
    """Draw some of the rows, others for every seed; all without a number."""
    if n_rows is None or n_rows >= len(X):
        return X, y
    rows = np.sort(np.random.default_rng(seed).choice(len(X), n_rows, replace=False))
    return X[rows], y[rows]


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="labelled feature files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--long-tail", action="store_true", help="also cluster each file with classes of unequal size")
    parser.add_argument("--rows", type=int, help="cluster so many random rows of each, drawn anew for every seed")
    parser.add_argument("--only-files", action="store_true", help="leave out the built-in data")
    parser.add_argument("--method", action="append", choices=list(METHODS), help="by default all that are installed")
    return parser.parse_args()


def main() -> None:
    """Print a table, a line for each data set as soon as it is done."""
    options = parse()
    sets: dict[str, Callable[[], Labelled]] = {} if options.only_files else dict(BUILT_IN)
    for path in options.files:
        sets[path.stem] = lambda path=path: read_labelled(path)
        if options.long_tail:
            sets[f"{path.stem}, long tail"] = lambda path=path: long_tail(*read_labelled(path))
    installed = [name for name in METHODS if name not in NEEDS or importlib.util.find_spec(NEEDS[name])]
    methods = options.method or installed
    print("| data | " + " | ".join(methods) + " |")
    print("|---" * (len(methods) + 1) + "|")
    for name, load in sets.items():
        X, y = load()
        n_clusters = len(np.unique(y))
        cells = []
        for method in methods:
            with warnings.catch_warnings():
                # What the methods warn of is part of what is compared.
                warnings.simplefilter("ignore")
                found = []
                for seed in range(options.seeds):
                    rows, classes = some_rows(X, y, options.rows, seed)
                    found.append(clustering_accuracy(classes, METHODS[method](rows, n_clusters, seed)))
            cells.append(mean_and_deviation(found))
        n_rows = min(len(X), options.rows or len(X))
        print(f"| {name} ({n_rows:,} × {X.shape[1]:,}, K = {n_clusters}) | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
