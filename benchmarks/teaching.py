"""Which pseudo-labels teach best: after 5, 20 or 100 iterations of EM, or exact ones, for several weights of fairness.

Every file given and scikit-learn's digits are clustered by single heads, with and without
neighbours. A head has one random start, equal sizes are given, and nothing is chosen, so that only the labels differ.
SeLa and MIADM, whose labels are harder, run beside them. Accuracy and modularity are means over the seeds. Results are
kept in a file of JSON lines, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from cceclust import CCEClusterer, clustering_accuracy, nearest_neighbors, neighbor_modularity
from cceclust.bench.files import read_labelled
from cceclust.errors import ClusteringWarning
from cceclust.estimators import MIADM, SeLa
from cceclust.pseudo_labels import ExactSolver
from cceclust.training.candidates import HeadPlan
from cceclust.training.objectives import SelfLabeling

FAIRNESS = (1.0, 10.0, 100.0)
ITERATIONS = (5, 20, 100)
JUDGE_NEIGHBORS = 15
Labelled = tuple[NDArray[Any], NDArray[Any]]


class ExactlyTaught(CCEClusterer):
    """A clusterer whose pseudo-labels are the minimum of the loss itself."""

    def _make_objective(self, plans: Sequence[HeadPlan]) -> SelfLabeling:
        """Return L_CCE+ with exact pseudo-labels."""
        solvers = [ExactSolver(fairness=plan.fairness_or_usual, prior=plan.prior) for plan in plans]
        return SelfLabeling(solvers, companion_weight=self.neighbor_weight)


def single_heads() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield the name of the labels, the fairness as text, and what makes the estimator."""
    for fairness in FAIRNESS:
        for iterations in ITERATIONS:
            yield (
                f"EM, {iterations}",
                f"{fairness:g}",
                lambda k, f=fairness, i=iterations, **given: CCEClusterer(k, fairness=f, max_iter=i, **given),
            )
        yield "exact", f"{fairness:g}", lambda k, f=fairness, **given: ExactlyTaught(k, fairness=f, **given)
    yield "SeLa", "–", SeLa
    yield "MIADM", "–", MIADM


def some_rows(labelled: Labelled, n_rows: int) -> Labelled:
    """Return a random sample of the rows if there are more."""
    chosen = np.sort(np.random.default_rng(0).permutation(len(labelled[1]))[:n_rows])
    return labelled[0][chosen], labelled[1][chosen]


def long_tail(labelled: Labelled) -> Labelled:
    """Return the rows with each class cut to three quarters of the one before it."""
    X, y = labelled
    sizes = np.bincount(y)
    kept = [np.flatnonzero(y == c)[: int(sizes[c] * 0.75**c)] for c in range(len(sizes))]
    chosen = np.sort(np.concatenate(kept))
    return X[chosen], y[chosen]


def built_in() -> dict[str, Callable[[], Labelled]]:
    """Return the data that need no file."""
    return {
        "digits": lambda: datasets.load_digits(return_X_y=True),
    }


def measure(sets: dict[str, Callable[[], Labelled]], n_seeds: int, kept: Path) -> list[dict[str, Any]]:
    """Fit whatever is not in the file of results yet, and return all results."""
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(r["data"], r["labels"], r["fairness"], r["neighbors"], r["seed"]) for r in results}
    loaded = {data: load() for data, load in sets.items()}
    graphs = {data: nearest_neighbors(X, JUDGE_NEIGHBORS, n_jobs=1) for data, (X, _) in loaded.items()}
    # Seed by seed, so that a run that is stopped has something to say of every kind.
    for seed, data, n_neighbors in itertools.product(range(n_seeds), sets, (0, 10)):
        (X, y), graph = loaded[data], graphs[data]
        n_clusters = len(np.unique(y))
        for labels, fairness, make in single_heads():
            if (data, labels, fairness, n_neighbors, seed) in done:
                continue
            equal = np.full(n_clusters, 1 / n_clusters)
            model = make(n_clusters, prior=equal, n_init=1, n_neighbors=n_neighbors, random_state=seed, n_jobs=1)
            found = model.fit(X, neighbors=graph if n_neighbors else None).labels_
            result = {
                "data": data,
                "labels": labels,
                "fairness": fairness,
                "neighbors": n_neighbors,
                "seed": seed,
                "accuracy": clustering_accuracy(y, found),
                "modularity": float(neighbor_modularity(found, graph)),
            }
            results.append(result)
            with kept.open("a") as file:
                file.write(json.dumps(result) + "\n")
        print(f"seed {seed}, {data}, {n_neighbors} neighbours", file=sys.stderr)
    return [result for result in results if result["data"] in sets and result["seed"] < n_seeds]


def print_table(results: list[dict[str, Any]], quality: str) -> None:
    """Print a table of means over the seeds: a row for each kind of labels, a column for each data set."""
    names = list(dict.fromkeys(result["data"] for result in results))
    print(f"| {quality} | λ | neighbours | " + " | ".join(names) + " | mean |")
    print("|---" * (len(names) + 4) + "|")
    for labels, fairness, _ in single_heads():
        for n_neighbors in (0, 10):
            kind = [r for r in results if matches(r, labels, fairness, n_neighbors)]
            means = [float(np.mean([r[quality] for r in kind if r["data"] == name])) for name in names]
            cells = " | ".join(f"{mean:.3f}" for mean in [*means, float(np.mean(means))])
            print(f"| {labels} | {fairness} | {n_neighbors or 'no'} | {cells} |")


def print_differences(results: list[dict[str, Any]], quality: str) -> None:
    """Print how all kinds of labels compare with the first, as means over λ, paired by data and seed."""

    def mean(labels: str, n_neighbors: int) -> NDArray[np.float64]:
        kind = [r for r in results if (r["labels"], r["neighbors"]) == (labels, n_neighbors)]
        pairs = sorted({(r["data"], r["seed"]) for r in kind})
        return np.array([np.mean([r[quality] for r in kind if (r["data"], r["seed"]) == pair]) for pair in pairs])

    first, *others = dict.fromkeys(r["labels"] for r in results)
    compared = [(labels, n, first, n) for labels in others for n in (0, 10)] + [(first, 10, first, 0)]
    for labels, n_neighbors, base, n_of_base in compared:
        found = mean(labels, n_neighbors) - mean(base, n_of_base)
        error = found.std() / np.sqrt(len(found))
        named = f"{labels} ({n_neighbors} neighbours) beside {base} ({n_of_base})"
        print(f"{quality}, {named}: {found.mean():+.3f} ± {error:.3f} (standard error)")


def matches(result: dict[str, Any], labels: str, fairness: str, n_neighbors: int) -> bool:
    """Tell whether a result is of this kind."""
    return (result["labels"], result["fairness"], result["neighbors"]) == (labels, fairness, n_neighbors)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="labelled feature files")
    parser.add_argument("--long-tail", type=Path, help="a file whose classes are cut to unequal sizes")
    parser.add_argument("--rows", type=int, default=3000, help="rows that are drawn from each file (%(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--kept", type=Path, default=Path("teaching.jsonl"), help="file of results (%(default)s)")
    options = parser.parse_args()
    sets = built_in() | {
        path.stem: (lambda path=path: some_rows(read_labelled(path), options.rows)) for path in options.files
    }
    if options.long_tail:
        sets[f"{options.long_tail.stem}, long tail"] = lambda: some_rows(
            long_tail(read_labelled(options.long_tail)), options.rows
        )
    warnings.simplefilter("ignore", ClusteringWarning)
    results = measure(sets, options.seeds, options.kept)
    for quality in ("accuracy", "modularity"):
        print_table(results, quality)
        print()
        print_differences(results, quality)
        print()


if __name__ == "__main__":
    main()
