"""Where the time of a default fit goes, part by part, beside what this machine could do at best.

All runs on one thread, in CPU seconds, so that a busy machine changes little. The best time of a part is the larger of
two: its floating-point operations at the rate of a large float32 product, and its bytes at the rate at which memory is
read. K-means runs beside it, one start on one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from speed import features_for
from threadpoolctl import threadpool_limits

from cceclust import CCEClusterer, choices
from cceclust.cli.bench.tables import plain_table
from cceclust.cli.console import results
from cceclust.errors import ClusteringWarning
from cceclust.training import candidates, fit, gathering, kmeans, label_heads

# The functions that are timed, by the module that calls them; what one of them spends in another is the other's. Those
# marked are products of matrices, the solver of pseudo-labels, or the search for neighbours.
PARTS: dict[str, tuple[tuple[tuple[Any, str], ...], bool]] = {
    "measure": (((gathering, "measure_near_rows"),), False),
    "project": (((gathering, "training_space"),), True),
    "neighbours": (((candidates, "nearest_neighbors"),), True),
    "graph and its partitions": (((candidates, "symmetric_graph"), (fit, "partitions_of")), False),
    "train heads": (((fit, "train"),), True),
    "losses": (((fit, "evaluate_heads"),), True),
    "fit heads to candidates": (
        ((candidates, "fit_heads_to_labels"), (candidates, "lift_for"), (candidates, "curve_heads")),
        True,
    ),
    "labels of candidates": (((candidates, "labels_of"),), True),
    # A product with a matrix of ones and zeros, which says who is in which cluster.
    "sums of rows by cluster": (((label_heads, "add_by_label"),), True),
    "distances of K-means": (((kmeans, "nearest_centres"), (kmeans, "squared_distances")), True),
    "K-means beside these": (((candidates, "kmeans_head"),), False),
    "predict": (((fit, "predict_rows"),), True),
    "outlier scores": (((fit, "score_outliers"),), False),
}


def seconds_of_parts(run: Callable[[], object]) -> tuple[dict[str, float], float]:
    """Run once, on one thread; return the CPU seconds of each part, and of all."""
    seconds = dict.fromkeys(PARTS, 0.0)
    under_way: list[str] = []
    last = time.process_time()

    def pass_on() -> None:
        """Count the time since the last change for the part that is under way."""
        nonlocal last
        now = time.process_time()
        if under_way:
            seconds[under_way[-1]] += now - last
        last = now

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            pass_on()
            under_way.append(part)
            try:
                return function(*arguments, **named)
            finally:
                pass_on()
                under_way.pop()

        return counted

    originals = [(module, name, getattr(module, name)) for parts, _ in PARTS.values() for module, name in parts]
    try:
        for part, (functions, _) in PARTS.items():
            for module, name in functions:
                setattr(module, name, timed(part, getattr(module, name)))
        started = time.process_time()
        run()
        return seconds, time.process_time() - started
    finally:
        for module, name, function in originals:
            setattr(module, name, function)


def least_work(n_rows: int, n_features: int, n_clusters: int) -> dict[str, tuple[float, float]]:
    """Return the floating-point operations and the bytes that each part cannot avoid, where they are known."""
    width = choices.components_for(n_features, n_clusters) or n_features
    seen = n_rows * choices.epochs_for(n_rows, 250)
    n_heads = len(choices.HEAD_MIX)
    is_large = n_rows > choices.ROWS_TO_SHARE_PARTS
    n_candidates = n_heads + (2 if is_large else choices.PARTITIONS + choices.UNEVEN_PARTITIONS)
    refit_rows = choices.REFIT_STEPS * choices.REFIT_BATCH
    return {
        "measure": (0, 4 * n_rows * n_features),
        "project": (2 * n_rows * n_features * width, 4 * n_rows * (n_features + width)),
        # Each pair is compared once for both; cells add the centres that each row is compared with.
        "neighbours": (2 * n_rows * (choices.ROWS_COMPARED / 2 + n_rows / choices.ROWS_IN_CELL) * width, 0),
        # Two products, for each row and for its neighbour, and the rows of two groups of heads.
        "train heads": (2 * 2 * 2 * seen * n_heads * n_clusters * width, 2 * 2 * 4 * seen * width),
        "fit heads to candidates": (
            2 * 2 * refit_rows * n_candidates * n_clusters * width,
            4 * refit_rows * width,
        ),
        "predict": (2 * n_rows * n_features * n_clusters, 4 * n_rows * n_features),
        "outlier scores": (0, 4 * n_rows * choices.JUDGE_NEIGHBORS * width),
    }


def product_rate() -> float:
    """Return floating-point operations per CPU second of a large float32 product on one thread."""
    one = np.random.default_rng(0).standard_normal((2048, 2048), np.float32)
    one @ one
    return 2 * 2048**3 / fastest(lambda: one @ one)


def memory_rate() -> float:
    """Return bytes per CPU second of reading an array that no cache holds, on one thread."""
    many = np.ones(1 << 27, np.float32)
    return many.nbytes / fastest(lambda: many.max())


def fastest(run: Callable[[], object], n_rounds: int = 5) -> float:
    """Return the least CPU seconds of some runs."""
    seconds = []
    for _ in range(n_rounds):
        started = time.process_time()
        run()
        seconds.append(time.process_time() - started)
    return min(seconds)


def peak_memory(run: Callable[[], object], n_bytes: int) -> float:
    """Return the most memory that is in use during a run, the input included, in multiples of the input (Linux)."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")

    def kilobytes(name: str) -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(name))

    reset.write_text("5")
    before = kilobytes("VmRSS") * 1024 - n_bytes
    run()
    return (kilobytes("VmHWM") * 1024 - before) / n_bytes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "file", nargs="?", type=Path, help="features to repeat, with noise of 0.05; else synthetic ones"
    )
    parser.add_argument("--samples", type=int, default=50_000, help="(%(default)s)")
    parser.add_argument("-k", "--k", type=int, default=10, help="number of clusters (%(default)s)")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ClusteringWarning)
    k, n_samples = options.k, options.samples
    features = features_for(options.file, n_samples, 2048, k)
    # Compiling is not what is measured.
    CCEClusterer(k, random_state=0).fit(features[:: max(1, n_samples // 12_000)])
    memory = peak_memory(lambda: CCEClusterer(k, random_state=0).fit(features), features.nbytes)
    with threadpool_limits(1):
        parts, total = seconds_of_parts(lambda: CCEClusterer(k, random_state=0, n_jobs=1).fit(features))
        plain = fastest(lambda: KMeans(k, n_init=1, random_state=0).fit(features), 1)
        flops, bandwidth = product_rate(), memory_rate()
    title = (
        f"{n_samples:,} × {features.shape[1]:,}; {flops / 1e9:.0f} GFLOP/s, {bandwidth / 1e9:.0f} GB/s on one thread"
    )
    table = plain_table(title, "part", "part of the time", "GFLOP", "GB", "time / best")
    work = least_work(*features.shape, k)
    for part, seconds in parts.items():
        operations, moved = work.get(part, (0, 0))
        best = max(operations / flops, moved / bandwidth)
        known = [f"{operations / 1e9:.1f}", f"{moved / 1e9:.1f}", f"{seconds / best:.1f}"] if best else ["", "", ""]
        table.add_row(part, f"{seconds / total:.0%}", *known)
    table.add_row("everything else", f"{1 - sum(parts.values()) / total:.0%}", "", "", "")
    results().print(table)
    aside = 1 - sum(seconds for part, seconds in parts.items() if PARTS[part][1]) / total
    print(f"Outside products, solver and search: {aside:.0%}. Time / one start of K-means: {total / plain:.2f}.")
    print(f"Peak of the memory: {memory:.2f} times the input.")


if __name__ == "__main__":
    main()
