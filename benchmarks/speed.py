"""Time of a fit beside one start of scikit-learn's K-means, in turns in one process, as ratios.

    python benchmarks/speed.py [FEATURES] [--case wide many command] [--rounds 3]

A ratio is the median over rounds, so that a machine's changing load hits both alike. The features are clusters that
overlap, or the rows of a file, repeated with a little noise. The last case is a command of the README, as a process of
its own that finds compiled code on disk.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from paper.tables import print_table, read_labelled
from sklearn.cluster import KMeans

from cceclust import CCEClusterer
from cceclust.errors import ClusteringWarning

SAMPLE = Path(__file__).parents[1] / "sample_data" / "fashion-resnet50.h5"
NOISE = 0.05


class Case(NamedTuple):
    """Features of a shape, a number of clusters, and the largest ratio that the package promises."""

    n_columns: int
    n_clusters: int
    most: float


CASES = {"wide": Case(2048, 10, 0.6), "many": Case(256, 300, 2.0)}
MOST_SECONDS = 3.0


def make_blobs(n_samples: int, n_features: int, n_clusters: int, seed: int = 0) -> NDArray[np.float32]:
    """Return clusters that overlap, in a few of many dimensions, as those of real embeddings do."""
    generator = np.random.default_rng(seed)
    # Like the spectrum of ResNet-50's features: few directions hold most of the variance.
    deviations = (1 + np.arange(min(50, n_features))) ** -0.5
    centres = 1.2 * generator.normal(0, deviations, (n_clusters, len(deviations)))
    hidden = generator.normal(0, deviations, (n_samples, len(deviations)))
    hidden += centres[generator.integers(0, n_clusters, n_samples)]
    mixing = generator.standard_normal((len(deviations), n_features), np.float32)
    rows = generator.standard_normal((n_samples, n_features), np.float32)
    rows += hidden.astype(np.float32) @ mixing
    return rows


def repeated_rows(path: Path, n_samples: int) -> NDArray[np.float32]:
    """Return the rows of a file, over and over, with a little noise."""
    rows = read_labelled(path)[0]
    rows = rows[np.arange(n_samples) % len(rows)]
    rows += np.float32(NOISE * rows.std()) * np.random.default_rng(0).standard_normal(rows.shape, np.float32)
    return rows


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(features: NDArray[Any], n_clusters: int, n_rounds: int) -> NDArray[np.float64]:
    """Return the seconds of K-means and of a fit, in turns, shape (n_rounds, 2)."""
    seconds = np.empty((n_rounds, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusteringWarning)
        # Compiling is not what is measured.
        CCEClusterer(min(n_clusters, 10), random_state=0).fit(features[:500])
        for turn in range(n_rounds):
            models = KMeans(n_clusters, n_init=1, random_state=turn), CCEClusterer(n_clusters, random_state=turn)
            seconds[turn] = [seconds_of(partial(model.fit, features)) for model in models]
            print(f"K-means {seconds[turn, 0]:.2f} s, cceclust {seconds[turn, 1]:.2f} s", file=sys.stderr)
    return seconds


def seconds_of_command(n_rounds: int) -> list[float]:
    """Return how long the README's first command takes, again and again, after a run that compiles."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(SAMPLE, folder)
        command = [sys.executable, "-m", "cceclust", "fit", SAMPLE.name, "--k", "10", "--force", "--quiet"]
        return [
            seconds_of(lambda: subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL))
            for _ in range(n_rounds + 1)
        ][1:]


def rows_of_table(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield a row for each case."""
    for name in options.case:
        if name == "command":
            seconds = np.median(seconds_of_command(options.rounds))
            yield [f"cceclust fit {SAMPLE.name} --k 10", "", f"{seconds:.2f}", "", f"{MOST_SECONDS:g} s"]
            continue
        case = CASES[name]
        if options.features is None:
            features = make_blobs(options.rows, case.n_columns, case.n_clusters)
        else:
            features = repeated_rows(options.features, options.rows)
        seconds = compare(features, case.n_clusters, options.rounds)
        shape = " × ".join(f"{length:,}" for length in features.shape)
        kmeans, ours = np.median(seconds, axis=0)
        ratio = np.median(seconds[:, 1] / seconds[:, 0])
        yield [
            f"{shape}, K = {case.n_clusters}",
            f"{kmeans:.2f}",
            f"{ours:.2f}",
            f"{ratio:.2f}",
            f"{case.most:g}",
        ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="?", type=Path, help="labelled features to repeat; else made ones")
    parser.add_argument("--case", nargs="+", choices=[*CASES, "command"], default=[*CASES, "command"])
    parser.add_argument("--rows", type=int, default=50_000, help="number of rows (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which both run in turns (%(default)s)")
    header = ["fit", "K-means, s", "cceclust, s", "ratio", "promised"]
    print_table(header, rows_of_table(parser.parse_args()))


if __name__ == "__main__":
    main()
