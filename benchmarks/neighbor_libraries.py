"""Our search for neighbours beside libraries for it: CPU time and memory to reach a recall, and whether bits repeat.

Every search runs in a process of its own, on rows like those that a fit compares (unit length, 256 dimensions, clusters
that overlap). The settings of each library are raised until the recall is reached; the time is that of building and
searching with the first that does. A search that takes longer than the limit is stopped. Needs ``pip install faiss-cpu
hnswlib pynndescent``; what is missing is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from speed import make_blobs

from cceclust import nearest_neighbors
from cceclust.cli.bench.tables import plain_table
from cceclust.cli.console import results

N_NEIGHBORS = 15
ROWS_FOR_RECALL = 300
Search = Callable[[NDArray[np.float32], int], NDArray[Any]]


def by_cells(rows: NDArray[np.float32], n_compared: int) -> NDArray[Any]:
    """Search with this package."""
    return nearest_neighbors(rows, N_NEIGHBORS, n_compared=n_compared)


def by_faiss(rows: NDArray[np.float32], n_probed: int) -> NDArray[Any]:
    """Search some of FAISS' inverted lists."""
    import faiss

    width, n_lists = rows.shape[1], int(4 * np.sqrt(len(rows)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_lists, faiss.METRIC_INNER_PRODUCT)
    index.train(rows)
    index.add(rows)
    index.nprobe = n_probed
    return without_itself(index.search(rows, N_NEIGHBORS + 1)[1])


def by_hnsw(rows: NDArray[np.float32], breadth: int) -> NDArray[Any]:
    """Search a hierarchy of small worlds."""
    import hnswlib

    index = hnswlib.Index("ip", rows.shape[1])
    index.init_index(len(rows), M=16, ef_construction=max(breadth, 40), random_seed=0)
    index.add_items(rows)
    index.set_ef(max(breadth, N_NEIGHBORS + 1))
    return without_itself(index.knn_query(rows, N_NEIGHBORS + 1)[0])


def by_descent(rows: NDArray[np.float32], n_neighbors: int) -> NDArray[Any]:
    """Search by nearest-neighbour descent."""
    import pynndescent

    index = pynndescent.NNDescent(rows, metric="cosine", n_neighbors=n_neighbors, random_state=0)
    return without_itself(index.neighbor_graph[0][:, : N_NEIGHBORS + 1])


# The search of each library, the settings that are tried in turn, and what must be installed.
LIBRARIES: dict[str, tuple[Search, Sequence[int], str]] = {
    "cceclust": (by_cells, (1000, 1500, 2400, 3300, 6000, 12_000), "cceclust"),
    "faiss, inverted lists": (by_faiss, (4, 8, 16, 32, 64, 128), "faiss"),
    "hnswlib": (by_hnsw, (20, 40, 80, 160), "hnswlib"),
    "pynndescent": (by_descent, (16, 24, 32), "pynndescent"),
}


@dataclass(frozen=True)
class Outcome:
    """What one search took, in a process of its own."""

    recall: float
    seconds: float
    megabytes: float
    digest: str


def without_itself(found: NDArray[Any]) -> NDArray[Any]:
    """Drop each row from its own neighbours, or else the farthest."""
    own = found == np.arange(len(found))[:, None]
    own[~own.any(axis=1), -1] = True
    return found[~own].reshape(len(found), -1)


def comparable(n_samples: int) -> NDArray[np.float32]:
    """Return centred rows of unit length."""
    rows = make_blobs(n_samples, 256, 10)
    # Again and again, as rows of unit length have another mean, and every search should compare the same directions.
    for _ in range(4):
        rows -= rows.mean(axis=0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def recall_of(found: NDArray[Any], rows: NDArray[np.float32]) -> float:
    """Return the part of the true neighbours that were found, for a sample of rows."""
    shares = []
    for row in np.random.default_rng(0).permutation(len(rows))[:ROWS_FOR_RECALL]:
        similar = rows @ rows[row]
        similar[row] = -np.inf
        shares.append(np.isin(np.argpartition(-similar, N_NEIGHBORS)[:N_NEIGHBORS], found[row]).mean())
    return float(np.mean(shares))


def search_once(name: str, setting: int, n_samples: int, limit: int) -> Outcome:
    """Search, and measure time and memory; runs in a process of its own, which ends when the limit is reached."""
    rows = comparable(n_samples)
    search = LIBRARIES[name][0]
    # Compiling and importing are not what is measured.
    search(rows[:2000].copy(), 16)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (round(started) + limit,) * 2)
    found = search(rows, setting)
    seconds = time.process_time() - started
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return Outcome(
        recall_of(found, rows), seconds, megabytes, hashlib.sha256(found.astype(np.int64).tobytes()).hexdigest()
    )


def in_its_own_process(name: str, setting: int, n_samples: int, limit: int) -> Outcome | None:
    """Search in a new process; None if it took too long."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(search_once, name, setting, n_samples, limit).result()
        except BrokenProcessPool:
            return None


def compare(
    names: Sequence[str],
    n_samples: int,
    recall: float,
    *,
    first: int = 0,
    limit: int = 600,
    again: bool = True,
    run: Callable[[str, int, int, int], Outcome | None] = in_its_own_process,
) -> dict[str, tuple[int, Outcome | None, bool | None]]:
    """Return for each library the first setting that reaches the recall, what it took, and whether it repeats.

    Settings below `first` are not tried. None stands for what a search took that was stopped, as stronger settings
    would be, and for what was not tried again.
    """
    outcomes: dict[str, tuple[int, Outcome | None, bool | None]] = {}
    for name in names:
        for setting in [setting for setting in LIBRARIES[name][1] if setting >= first]:
            outcome = run(name, setting, n_samples, limit)
            if outcome is None:
                print(f"{name}, {setting}: stopped after {limit} s of CPU", file=sys.stderr)
                break
            took = f"{outcome.seconds:.0f} s of CPU, {outcome.megabytes:.0f} MB"
            print(f"{name}, {setting}: recall {outcome.recall:.3f}, {took}", file=sys.stderr)
            if outcome.recall >= recall:
                break
        second = run(name, setting, n_samples, limit) if again and outcome is not None else None
        repeats = second.digest == outcome.digest if second is not None and outcome is not None else None
        outcomes[name] = setting, outcome, repeats
    return outcomes


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=50_000, help="(%(default)s)")
    parser.add_argument("--recall", type=float, default=0.85, help="(%(default)s)")
    parser.add_argument("--library", action="append", choices=list(LIBRARIES), help="by default all that are installed")
    parser.add_argument("--first", type=int, default=0, help="do not try settings below this one")
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds after which a search ends (%(default)s)")
    parser.add_argument("--once", action="store_true", help="do not search again to see whether bits repeat")
    options = parser.parse_args()
    installed = [name for name, (_, _, module) in LIBRARIES.items() if importlib.util.find_spec(module)]
    names = options.library or installed
    outcomes = compare(
        names, options.samples, options.recall, first=options.first, limit=options.limit, again=not options.once
    )
    title = f"{N_NEIGHBORS} neighbours of {options.samples:,} × 256, recall {options.recall:g}"
    table = plain_table(title, "search", "setting", "recall", "CPU seconds", f"/ {names[0]}", "memory in MB", "repeats")
    base = outcomes[names[0]][1]
    for name, (setting, outcome, repeats) in outcomes.items():
        if outcome is None:
            table.add_row(name, str(setting), "–", f"> {options.limit}", "–", "–", "–")
            continue
        ratio = f"{outcome.seconds / base.seconds:.2f}" if base else "–"
        row = [name, str(setting), f"{outcome.recall:.3f}", f"{outcome.seconds:.0f}", ratio]
        table.add_row(*row, f"{outcome.megabytes:,.0f}", "–" if repeats is None else "yes" if repeats else "no")
    results().print(table)


if __name__ == "__main__":
    main()
