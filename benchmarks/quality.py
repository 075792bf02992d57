"""How good the clusters are: this package and its peers on built-in sets and on folders of labelled files.

    python benchmarks/quality.py [FILE or FOLDER ...] [--method cceclust,kmeans,umap,leiden,gmm] [--seeds 5]

Every set is clustered at the true number of classes and without it. A line a fit goes into a CSV file as soon as it is
known, so that a run that was stopped goes on where it was. Peers need `pip install umap-learn leidenalg igraph`.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# One thread a process, and as many processes as there are cores; set before NumPy is loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import h5py
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

COLUMNS = ("method", "set", "rows", "columns", "classes", "k", "seed", "found", "acc", "nmi", "ari", "seconds")
SAMPLE = Path(__file__).parents[1] / "sample_data" / "fashion-resnet50.h5"
Labelled = tuple[NDArray[Any], NDArray[Any]]


def scaled(load: Callable[..., Labelled]) -> Labelled:
    """Return one of scikit-learn's tables with every column at unit deviation."""
    features, labels = load(return_X_y=True)
    return StandardScaler().fit_transform(features), labels


def blobs(sizes: list[int]) -> Labelled:
    """Return Gaussian clouds of these sizes."""
    features, labels = datasets.make_blobs(sizes, n_features=16, cluster_std=2.0, random_state=0)
    return features, labels


def digits_with_outlier() -> Labelled:
    """Return the digits with one row at 10,000."""
    features, labels = datasets.load_digits(return_X_y=True)
    features[0] = 1e4
    return features, labels


BUILT_IN: dict[str, Callable[[], Labelled]] = {
    "wine": lambda: scaled(datasets.load_wine),
    "breast-cancer": lambda: scaled(datasets.load_breast_cancer),
    "iris": lambda: scaled(datasets.load_iris),
    "blobs-3-sizes": lambda: blobs([1000, 300, 100]),
    "blobs-7-sizes": lambda: blobs([1200, 600, 400, 300, 200, 100, 50]),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "digits-outlier": digits_with_outlier,
    "fashion-sample": lambda: read(SAMPLE),
}


def read(path: Path) -> Labelled:
    """Read features and labels of an .npz or .h5 file."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            return file["features"].astype(np.float32), file["labels"]
    with h5py.File(path) as file:
        return file["features"][:], file["labels"][:]


def cut(data: Labelled, seed: int, ratio: float = 0.75, largest: int = 1000) -> Labelled:
    """Return rows at random, 1,000 of the first class and three quarters as many of each next one."""
    features, labels = data
    generator = np.random.default_rng(seed)
    kept = [
        generator.permutation(np.flatnonzero(labels == label))[: round(largest * ratio**i)]
        for i, label in enumerate(np.unique(labels))
    ]
    which = np.sort(np.concatenate(kept))
    return features[which], labels[which]


@cache
def load(name: str) -> Labelled:
    """Load a set by its name: a built-in one, a file, or cuts of a file to unequal classes ("FILE#cut0")."""
    if name in BUILT_IN:
        features, labels = BUILT_IN[name]()
    else:
        file, _, number = name.partition("#cut")
        features, labels = read(Path(file))
        if number:
            features, labels = cut((features, labels), int(number))
    return np.ascontiguousarray(features, np.float32), np.unique(labels, return_inverse=True)[1]


def fit_cceclust(features: NDArray[Any], k: int | None, seed: int) -> NDArray[Any]:
    from cceclust import CCEClusterer

    return CCEClusterer("auto" if k is None else k, n_jobs=1, random_state=seed).fit(features).labels_


def fit_kmeans(features: NDArray[Any], k: int | None, seed: int) -> NDArray[Any] | None:
    from sklearn.cluster import KMeans

    return None if k is None else KMeans(k, n_init=10, random_state=seed).fit_predict(features)


def fit_umap(features: NDArray[Any], k: int | None, seed: int) -> NDArray[Any] | None:
    import umap

    if k is None:
        return None
    n_neighbors = min(15, len(features) - 1)
    embedded = umap.UMAP(n_neighbors=n_neighbors, n_components=10, min_dist=0.0, random_state=seed, n_jobs=1)
    return fit_kmeans(embedded.fit_transform(features), k, seed)


def fit_leiden(features: NDArray[Any], k: int | None, seed: int) -> NDArray[Any] | None:
    import igraph
    import leidenalg
    from sklearn.neighbors import kneighbors_graph

    if k is not None:
        return None
    pairs = np.stack(kneighbors_graph(features, min(15, len(features) - 1)).nonzero(), axis=1)
    graph = igraph.Graph(len(features), np.unique(np.sort(pairs, axis=1), axis=0))
    return np.array(leidenalg.find_partition(graph, leidenalg.RBConfigurationVertexPartition, seed=seed).membership)


def fit_gmm(features: NDArray[Any], k: int | None, seed: int) -> NDArray[Any] | None:
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    if k is None:
        return None
    axes = PCA(min(50, *features.shape), random_state=seed).fit_transform(features)
    return GaussianMixture(k, covariance_type="diag", n_init=3, random_state=seed).fit_predict(axes)


METHODS = {"cceclust": fit_cceclust, "kmeans": fit_kmeans, "umap": fit_umap, "leiden": fit_leiden, "gmm": fit_gmm}


def accuracy(truth: NDArray[Any], found: NDArray[Any]) -> float:
    """Return Hungarian accuracy; written out here so that what is measured does not measure itself."""
    table = np.zeros((truth.max() + 1, found.max() + 1))
    np.add.at(table, (truth, found), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(truth))


def measure(method: str, name: str, is_given: bool, seed: int) -> dict[str, Any] | None:
    """Fit once; None if the method does not do this."""
    warnings.simplefilter("ignore")
    features, truth = load(name)
    classes = int(truth.max() + 1)
    started = time.perf_counter()
    labels = METHODS[method](features, classes if is_given else None, seed)
    seconds = time.perf_counter() - started
    if labels is None:
        return None
    found = np.unique(np.asarray(labels), return_inverse=True)[1]
    figures = (
        *(int(found.max() + 1), round(accuracy(truth, found), 4)),
        *(round(normalized_mutual_info_score(truth, found), 4), round(adjusted_rand_score(truth, found), 4)),
    )
    place = name if name in BUILT_IN else Path(name).name
    row = (method, place, *features.shape, classes, "given" if is_given else "auto", seed, *figures, round(seconds, 2))
    return dict(zip(COLUMNS, row, strict=True))


def sets_of(paths: list[Path], cuts: list[Path], *, built_in: bool) -> Iterator[str]:
    """Yield the names of all sets."""
    if built_in:
        yield from BUILT_IN
    for path in paths:
        files = [file for suffix in ("npz", "h5") for file in path.glob(f"*.{suffix}")] if path.is_dir() else [path]
        yield from map(str, sorted(files))
    yield from (f"{path}#cut{i}" for path in cuts for i in range(3))


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read the figures of a CSV file; none if there is no file yet."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def print_table(rows: list[dict[str, Any]], out: Any = sys.stdout) -> None:
    """Print means over seeds as a Markdown table, and the mean of all sets for each method."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["set"], row["method"], row["k"]].append(row)
    print("| set | rows × columns | K | method | K given | K found | ACC | NMI | ARI | seconds |", file=out)
    print("|---|---|---|---|---|---|---|---|---|---|", file=out)
    totals: dict[tuple[str, str], list[NDArray[Any]]] = defaultdict(list)
    for (name, method, k), fits in sorted(groups.items()):
        values = np.array([[float(fit[key]) for key in ("acc", "nmi", "ari", "seconds")] for fit in fits])
        means, spread = values.mean(0), values.std(0)
        totals[method, k].append(means)
        found = ", ".join(str(n) for n in sorted({int(fit["found"]) for fit in fits}))
        shape = f"{fits[0]['rows']} × {fits[0]['columns']} | {fits[0]['classes']}"
        acc = f"{means[0]:.3f} ± {spread[0]:.3f}"
        figures = f"{acc} | {means[1]:.3f} | {means[2]:.3f} | {means[3]:.1f}"
        print(f"| {name} | {shape} | {method} | {k} | {found} | {figures} |", file=out)
    for (method, k), values in sorted(totals.items()):
        acc, nmi, ari, seconds = np.mean(values, axis=0)
        figures = f"{acc:.4f} | {nmi:.4f} | {ari:.4f} | {seconds:.1f}"
        print(f"| mean of {len(values)} sets | | | {method} | {k} | | {figures} |", file=out)


def print_comparison(paths: list[Path], k: str, score: str) -> None:
    """Print one score of all methods side by side, from several CSV files; the sets where the last file loses first."""
    columns: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    facts, found = {}, defaultdict(set)
    for path in paths:
        for row in rows_of(path):
            if row["k"] == k:
                name = path.stem.removeprefix("quality-") if row["method"] == "cceclust" else row["method"]
                columns[name][row["set"]].append(float(row[score]))
                facts[row["set"]] = f"{row['rows']} × {row['columns']} | {row['classes']}"
                if path == paths[-1]:
                    found[row["set"]].add(int(row["found"]))
    methods = [*sorted(set(columns) - {own := paths[-1].stem.removeprefix("quality-")}), own]
    table = {
        name: [float(np.mean(columns[method][name])) if name in columns[method] else np.nan for method in methods]
        for name in columns[own]
    }
    print(f"\n| {score} | rows × columns | K | {' | '.join(methods)} | K found |\n|{'---|' * (len(methods) + 4)}")
    for name in sorted(table, key=lambda name: table[name][-1] - np.nanmax(table[name][:-1])):
        cells = [f"**{v:.3f}**" if v >= np.nanmax(table[name]) - 0.005 else f"{v:.3f}" for v in table[name]]
        numbers = ", ".join(map(str, sorted(found[name])))
        line = f"| {name} | {facts[name]} | {' | '.join(cells)} | {numbers} |"
        print(line.replace(".npz", "").replace(".h5", "").replace("nan", ""))
    whole = np.array([values for values in table.values() if np.isfinite(values).all()])
    print(f"| mean of {len(whole)} | | | {' | '.join(f'{mean:.3f}' for mean in whole.mean(axis=0))} | |")


def main() -> None:
    """Measure what is missing from the CSV file, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", help="labelled .npz or .h5 files, or folders of them")
    parser.add_argument("--compare", type=Path, nargs="+", help="measure nothing; print tables of these CSV files")
    parser.add_argument("--cut", type=Path, nargs="*", default=[], help="files to cut to unequal classes, three ways")
    parser.add_argument("--method", default="cceclust", help=f"some of {','.join(METHODS)} (%(default)s)")
    parser.add_argument("--no-built-in", action="store_true", help="only the files, none of the built-in sets")
    parser.add_argument("--only", choices=("given", "auto"), help="only at the true K, or only without it")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("quality.csv"))
    options = parser.parse_args()
    if options.compare:
        print_comparison(options.compare, "given", "acc")
        print_comparison(options.compare, "auto", "ari")
        return
    rows = rows_of(options.out)
    known = {(row["method"], row["set"], row["k"], int(row["seed"])) for row in rows}
    jobs = [
        (method, name, is_given, seed)
        for seed in range(options.seeds)
        for name in sets_of(options.paths, options.cut, built_in=not options.no_built_in)
        for method in options.method.split(",")
        for is_given in (True, False)
        if options.only in (None, "given" if is_given else "auto")
        and (method, Path(name).name, "given" if is_given else "auto", seed) not in known
    ]
    with (
        ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool,
        options.out.open("a", newline="") as file,
    ):
        writer = csv.DictWriter(file, COLUMNS)
        if not rows:
            writer.writeheader()
        for future in as_completed([pool.submit(measure, *job) for job in jobs]):
            if (row := future.result()) is not None:
                rows.append(row)
                writer.writerow(row)
                file.flush()
                print(row, file=sys.stderr)
    print_table(rows)


if __name__ == "__main__":
    main()
