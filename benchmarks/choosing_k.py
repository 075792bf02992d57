"""Finding the number of clusters: the search of this tool beside others, on labelled data and on noise.

Every method gets the same rows, at most 3,000 of each set. Noise has one cluster. Each file is also searched with half
of its classes, and with class c cut to 0.75^c of the largest. This tool's search is run with three seeds. Methods that
are not installed (Leiden needs leidenalg, EVoC needs evoc) are left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from choosing import long_tail
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

from cceclust import CCEClusterer
from cceclust.bench.files import read_labelled
from cceclust.training.k_search import search_rows
from cceclust.training.rows import in_memory

Labelled = tuple[NDArray[Any], int]
MOST_ROWS = 3000
# The peers that fit every number of clusters try these; all true numbers are among them.
GRID = (*range(2, 16), 18, 20, 22, 25, 28, 32, 36, 40, 45, 50, 55, 60, 65, 70, 80)
# They, and HDBSCAN, get at most this many principal components, for the time they take.
COMPONENTS = 30
OURS = {"cceclust": 0, "seed 1": 1, "seed 2": 2}
WITH_ALL_FEATURES = (*OURS, "Leiden", "EVoC")


def blobs(
    sizes: int | Sequence[int], n_clusters: int, dimensions: int, width: float, box: float, seed: int
) -> Labelled:
    """Return round clusters of the given sizes around centres in a box."""
    centers = n_clusters if isinstance(sizes, int) else None
    rows, _ = datasets.make_blobs(
        sizes, dimensions, centers=centers, cluster_std=width, center_box=(-box, box), random_state=seed
    )
    return rows, n_clusters


def growing(n_clusters: int, smallest: int, factor: float) -> list[int]:
    """Return sizes of clusters, each a factor larger than the last."""
    return [round(smallest * factor**k) for k in range(n_clusters)]


def noise(kind: str, n_rows: int, dimensions: int, seed: int) -> Labelled:
    """Return rows without clusters: uniform, or of a Gaussian that is round or long."""
    generator = np.random.default_rng(seed)
    if kind == "uniform":
        return generator.uniform(size=(n_rows, dimensions)), 1
    widths = np.arange(1, dimensions + 1) ** (-0.7 if kind == "long" else 0.0)
    return generator.normal(size=(n_rows, dimensions)) * widths, 1


def some_classes(rows: NDArray[Any], labels: NDArray[Any], classes: Any) -> Labelled:
    """Return the rows of some classes."""
    return rows[np.isin(labels, classes)], len(classes)


def small_sets(seed: int) -> dict[str, Callable[[], Labelled]]:
    """Return the sets that need no file; the seed decides where blobs lie."""
    digits, digit_labels = datasets.load_digits(return_X_y=True)
    tables = {"iris": datasets.load_iris, "wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer}
    sets: dict[str, Callable[[], Labelled]] = {
        name: (lambda load=load: (scale(load().data), len(load().target_names))) for name, load in tables.items()
    }
    return sets | {
        "digits": lambda: (digits, 10),
        "digits, 4 classes": lambda: some_classes(digits, digit_labels, (2, 3, 8, 9)),
        "digits, 5 classes": lambda: some_classes(digits, digit_labels, (0, 1, 4, 6, 8)),
        "digits, 7 classes": lambda: some_classes(digits, digit_labels, (0, 2, 3, 5, 6, 7, 9)),
        "3 blobs, 2-D": lambda: blobs(1500, 3, 2, 1.0, 10, seed),
        "7 blobs, 10-D": lambda: blobs(2000, 7, 10, 2.0, 8, seed),
        "25 blobs, 2-D": lambda: blobs(3000, 25, 2, 0.35, 10, seed),
        "25 blobs, 50-D": lambda: blobs(3000, 25, 50, 3.0, 3, seed),
        "60 blobs, 20-D": lambda: blobs(3000, 60, 20, 1.5, 5, seed),
        "60 blobs, 200-D": lambda: blobs(3000, 60, 200, 2.5, 2, seed),
        "3 unequal blobs, 8-D": lambda: blobs([800, 200, 60], 3, 8, 1.5, 5, seed),
        "7 unequal blobs, 5-D": lambda: blobs(growing(7, 50, 1.6), 7, 5, 1.0, 8, seed),
        "25 unequal blobs, 8-D": lambda: blobs(growing(25, 30, 1.1), 25, 8, 1.0, 8, seed),
        "uniform, 2-D": lambda: noise("uniform", 2000, 2, seed),
        "uniform, 10-D": lambda: noise("uniform", 3000, 10, seed),
        "Gaussian, 50-D": lambda: noise("round", 3000, 50, seed),
        "long Gaussian, 30-D": lambda: noise("long", 3000, 30, seed),
    }


def sets_of(path: Path) -> dict[str, Callable[[], Labelled]]:
    """Return a labelled file whole, with half of its classes, and with classes of unequal size."""

    def whole() -> Labelled:
        rows, labels = read_labelled(path)
        return rows, len(np.unique(labels))

    def half() -> Labelled:
        rows, labels = read_labelled(path)
        classes = np.unique(labels)
        return some_classes(rows, labels, np.random.default_rng(0).choice(classes, len(classes) // 2, replace=False))

    def unequal() -> Labelled:
        rows, labels = long_tail(*read_labelled(path))
        return rows, len(np.unique(labels))

    return {path.stem: whole, f"{path.stem}, half of the classes": half, f"{path.stem}, unequal classes": unequal}


def by_this_tool(seed: int) -> Callable[[NDArray[Any]], int]:
    """Search all numbers up to a hundred."""
    return lambda rows: search_rows(in_memory(rows), seed=seed).chosen


def by_silhouette(rows: NDArray[Any]) -> int:
    """Take the K-means with the highest silhouette."""

    def silhouette(k: int) -> float:
        return float(silhouette_score(rows, kmeans(rows, k).labels_, sample_size=2000, random_state=0))

    return max(possible(rows), key=silhouette)


def by_gap(rows: NDArray[Any]) -> int:
    """Take the first number whose gap is within a standard error of the next one's (Tibshirani et al., 2001)."""
    generator = np.random.default_rng(0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    references = [generator.uniform(low, high, rows.shape) for _ in range(3)]
    ks = [1, *possible(rows)]
    gaps, errors = [], []
    for k in ks:
        logs = [np.log(kmeans(reference, k).inertia_) for reference in references]
        gaps.append(np.mean(logs) - np.log(kmeans(rows, k).inertia_))
        errors.append(np.std(logs) * np.sqrt(1 + 1 / len(logs)))
    accepted = [k for k, gap, after, error in zip(ks, gaps, gaps[1:], errors[1:], strict=False) if gap >= after - error]
    return accepted[0] if accepted else ks[int(np.argmax(gaps))]


def by_bic(rows: NDArray[Any]) -> int:
    """Take the mixture of Gaussians with the lowest BIC, full covariances up to ten features and else diagonal ones."""
    kind = "full" if rows.shape[1] <= 10 else "diag"

    def criterion(k: int) -> float:
        mixture = GaussianMixture(k, covariance_type=kind, reg_covar=1e-4, max_iter=50, random_state=0)
        return float(mixture.fit(rows).bic(rows))

    return min((1, *possible(rows)), key=criterion)


def by_hdbscan(rows: NDArray[Any]) -> int:
    """Count HDBSCAN's clusters of at least 15 rows; none at all count as one."""
    return max(1, int(HDBSCAN(min_cluster_size=15, copy=True).fit(rows).labels_.max()) + 1)


def by_leiden(rows: NDArray[Any]) -> int:
    """Count the parts of highest modularity of a graph of 15 neighbours."""
    import igraph
    import leidenalg
    from sklearn.neighbors import kneighbors_graph

    graph = kneighbors_graph(rows, min(15, len(rows) - 1)).tocoo()
    pairs = igraph.Graph(len(rows), list(zip(graph.row, graph.col, strict=True)))
    return len(leidenalg.find_partition(pairs, leidenalg.ModularityVertexPartition, seed=0))


def by_evoc(rows: NDArray[Any]) -> int:
    """Count EVoC's clusters; none at all count as one."""
    import evoc

    return max(1, int(evoc.EVoC(random_state=0).fit_predict(rows.astype(np.float32)).max()) + 1)


def kmeans(rows: NDArray[Any], k: int) -> Any:
    """Fit K-means once."""
    return KMeans(k, n_init=1, random_state=0).fit(rows)


def possible(rows: NDArray[Any]) -> list[int]:
    """Return the numbers of the grid with at least five rows for each cluster."""
    return [k for k in GRID if 5 * k <= len(rows)]


METHODS: dict[str, Callable[[NDArray[Any]], int]] = {
    **{name: by_this_tool(seed) for name, seed in OURS.items()},
    "silhouette": by_silhouette,
    "gap": by_gap,
    "BIC": by_bic,
    "HDBSCAN": by_hdbscan,
    "Leiden": by_leiden,
    "EVoC": by_evoc,
}


@dataclass(frozen=True)
class Choice:
    """What a method said of a set."""

    set_name: str
    true_k: int
    method: str
    # None where the method is not installed or failed.
    chosen: int | None


def choose(sets: Mapping[str, Callable[[], Labelled]], methods: Sequence[str]) -> list[Choice]:
    """Ask every method for the number of clusters of every set."""
    outcomes = []
    for name, load in sets.items():
        rows, true_k = load()
        rows = sample(np.asarray(rows, np.float64))
        narrow = PCA(COMPONENTS, random_state=0).fit_transform(rows) if rows.shape[1] > COMPONENTS else rows
        for method in methods:
            chosen = answer(METHODS[method], rows if method in WITH_ALL_FEATURES else narrow)
            outcomes.append(Choice(name, true_k, method, chosen))
    return outcomes


def answer(method: Callable[[NDArray[Any]], int], rows: NDArray[Any]) -> int | None:
    """Ask one method; peers may be missing or fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return method(rows)
        except (ImportError, ValueError):
            # EVoC refuses two features.
            return None


def sample(rows: NDArray[Any]) -> NDArray[Any]:
    """Return at most so many rows, drawn at random."""
    if len(rows) <= MOST_ROWS:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), MOST_ROWS, replace=False))]


def kind_of(set_name: str) -> str:
    """Return what kind of set this is, by its name."""
    if any(word in set_name for word in ("blobs", "uniform", "Gaussian")):
        return "blobs and noise"
    return "classes left out or cut" if "classes" in set_name else "real sets as they are"


def count_close(choices: Sequence[Choice]) -> int:
    """Return how often the number was right or one off."""
    return sum(choice.chosen is not None and abs(choice.chosen - choice.true_k) <= 1 for choice in choices)


def mean_log_error(choices: Sequence[Choice]) -> float:
    """Return the mean of the absolute logarithm of K / K_true."""
    return float(np.mean([abs(np.log(c.chosen / c.true_k)) for c in choices if c.chosen is not None]))


def print_choices(outcomes: Sequence[Choice]) -> None:
    """Print what each method chose for each set, and how well it did over all of them, as a table in Markdown."""
    methods = list(dict.fromkeys(choice.method for choice in outcomes))

    def print_row(name: str, *cells: object) -> None:
        print("|", " | ".join([name, *map(str, cells)]), "|")

    print_row("set", "true", *methods)
    print("|---|" + "---:|" * (1 + len(methods)))
    for name in dict.fromkeys(choice.set_name for choice in outcomes):
        row = {choice.method: choice for choice in outcomes if choice.set_name == name}
        print_row(name, row[methods[0]].true_k, *(row[method].chosen or "–" for method in methods))
    of_method = {method: [choice for choice in outcomes if choice.method == method] for method in methods}
    for kind in dict.fromkeys(kind_of(choice.set_name) for choice in outcomes):
        of_kind = [[c for c in chosen if kind_of(c.set_name) == kind] for chosen in of_method.values()]
        print_row(f"right or one off, {kind}", "", *(f"{count_close(found)} of {len(found)}" for found in of_kind))
    shares = [count_close(chosen) / len(chosen) for chosen in of_method.values()]
    print_row("right or one off", "", *(f"{share:.0%}" for share in shares))
    print_row(r"mean \|log(K/true)\|", "", *(f"{mean_log_error(chosen):.2f}" for chosen in of_method.values()))


def print_times(path: Path, rounds: int = 2) -> None:
    """Print how long searches take beside the fit at the number they find, in CPU seconds of one thread."""
    rows, _ = read_labelled(path)
    for _ in range(rounds):
        seconds = {}
        for most in (30, 100):
            started = time.process_time()
            found = search_rows(in_memory(rows), range(2, most + 1), n_jobs=1).chosen
            seconds[most] = time.process_time() - started
        started = time.process_time()
        CCEClusterer(found, random_state=0, n_jobs=1).fit(rows)
        fit = time.process_time() - started
        print(*(f"2..{most}: {taken / fit:.2f} times the fit" for most, taken in seconds.items()), sep="; ")


def main() -> None:
    """Compare the methods and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="labelled feature files, beside the sets that need none")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seed", type=int, default=10, help="where blobs lie")
    parser.add_argument("--times", action="store_true", help="time the search in the first file, and nothing else")
    arguments = parser.parse_args()
    if arguments.times:
        print_times(arguments.files[0])
        return
    files = {name: load for path in arguments.files for name, load in sets_of(path).items()}
    print_choices(choose({**files, **small_sets(arguments.seed)}, arguments.methods))


if __name__ == "__main__":
    main()
