"""Files of any size: what ten times the rows cost beside one reading of the file, and the peak memory of a fit.

    python benchmarks/scale.py [--rows 100000 1000000] [--columns 64] [--wide 512] [--max-rows 100000]

Beyond a sample of `max_rows`, more rows cost only their reading and their prediction. Files of round clusters are made
in a folder and removed again. Memory is that of a fresh process, beyond what it held after a fit of a few rows. What a
sample needs are its raw rows and what heads are linear in: points, products of their axes, and 1. Linux only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import h5py
import numpy as np
from paper.tables import print_table

from cceclust.fit.heads import CURVED_AXES
from cceclust.fit.pipeline import Settings, fit_source
from cceclust.fit.source import ArraySource
from cceclust.io import open_features

CLUSTERS, ROWS_AT_ONCE = 10, 10_000
# Promised: the time of many rows is at most so many times that of fewer, plus a reading of the file; the memory at most
# so many times what the sample needs.
MOST_TIMES, MOST_SAMPLES = 2.0, 2.0


def make_file(path: Path, n_rows: int, n_columns: int) -> Path:
    """Write round clusters, a piece at a time."""
    generator = np.random.default_rng(0)
    centres = 2 * generator.standard_normal((CLUSTERS, n_columns), np.float32)
    with h5py.File(path, "w") as file:
        features = file.create_dataset("features", (n_rows, n_columns), "f4", chunks=(min(1000, n_rows), n_columns))
        for start in range(0, n_rows, ROWS_AT_ONCE):
            count = min(ROWS_AT_ONCE, n_rows - start)
            rows = generator.standard_normal((count, n_columns), np.float32)
            rows += centres[generator.integers(0, CLUSTERS, count)]
            features[start : start + count] = rows
    return path


def fit(path: Path, max_rows: int) -> None:
    """Fit a file as ``cceclust fit`` does."""
    with open_features(path) as features:
        fit_source(features, Settings(CLUSTERS, max_rows=max_rows))


def read(path: Path) -> None:
    """Read all rows, and do nothing with them."""
    with open_features(path) as features:
        for _ in features.blocks():
            pass


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare_times(few: Path, many: Path, max_rows: int, n_rounds: int) -> tuple[float, list[float]]:
    """Return the ratio that is promised, and the median seconds of its parts: fits of few and many rows, a reading."""
    works = [lambda: fit(few, max_rows), lambda: fit(many, max_rows), lambda: read(many)]
    # Compiling is not what is measured.
    warm_up()
    rounds = []
    for _ in range(n_rounds):
        rounds.append([seconds_of(work) for work in works])
        print(", ".join(f"{seconds:.2f} s" for seconds in rounds[-1]), file=sys.stderr)
    seconds = np.array(rounds)
    ratios = (seconds[:, 1] - seconds[:, 2]) / seconds[:, 0]
    return float(np.median(ratios)), np.median(seconds, axis=0).tolist()


def warm_up() -> None:
    """Fit a few rows, for which everything is loaded and compiled."""
    rows = np.random.default_rng(0).standard_normal((500, 20), np.float32)
    fit_source(ArraySource(rows), Settings(CLUSTERS))


def memory_of_fit(path: Path, max_rows: int) -> int:
    """Return the peak memory of a fit in a fresh process, in bytes."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(added_memory, path, max_rows).result()


def added_memory(path: Path, max_rows: int) -> int:
    """Return how many bytes this process holds at most during a fit, beyond what it holds before."""
    warm_up()
    before = resident("VmRSS")
    fit(path, max_rows)
    return resident("VmHWM") - before


def resident(kind: str) -> int:
    """Return the memory that this process holds now (VmRSS) or held at most (VmHWM), in bytes.

    ``getrusage`` would also count the process that started this one.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{kind}:"))


def main() -> None:
    """Make files, measure, and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs=2, default=[100_000, 1_000_000], help="few and many (%(default)s)")
    parser.add_argument("--columns", type=int, default=64, help="where time is measured (%(default)s)")
    parser.add_argument("--wide", type=int, default=512, help="columns where memory is measured, too (%(default)s)")
    parser.add_argument("--max-rows", type=int, default=Settings(None).max_rows, help="of a sample (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which all run in turns (%(default)s)")
    parser.add_argument("--folder", type=Path, help="where to make the files; by default that for temporary files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        few, many = (make_file(Path(folder, f"{rows}.h5"), rows, options.columns) for rows in options.rows)
        ratio, (fewer, more, reading) = compare_times(few, many, options.max_rows, options.rounds)
        header = [f"fit of {options.rows[0]:,}, s", f"fit of {options.rows[1]:,}, s", "a reading, s"]
        figures = [f"{fewer:.2f}", f"{more:.2f}", f"{reading:.2f}", f"{ratio:.2f}", f"{MOST_TIMES:g}"]
        print_table([*header, "(many − reading) / few", "promised"], [figures])
        print()
        files = {options.columns: many}
        if options.wide:
            files[options.wide] = make_file(Path(folder, "wide.h5"), options.rows[1], options.wide)
        print_table(
            ["columns", "file, MB", "raw rows, MB", "sample, MB", "memory of a fit, MB", "memory / sample", "promised"],
            (memory_row(path, n_columns, options.max_rows) for n_columns, path in files.items()),
        )


def memory_row(path: Path, n_columns: int, max_rows: int) -> list[str]:
    """Return a row of the table of memory."""
    n_axes, n_linear = min(CURVED_AXES, n_columns), min(Settings(None).n_components, n_columns)
    n_values = n_columns + n_linear + n_axes * (n_axes + 1) // 2 + 1
    rows, sample = (max_rows * each * np.dtype(np.float32).itemsize for each in (n_columns, n_values))
    memory = memory_of_fit(path, max_rows)
    sizes = [f"{size / 1e6:,.0f}" for size in (path.stat().st_size, rows, sample, memory)]
    return [f"{n_columns:,}", *sizes, f"{memory / sample:.2f}", f"{MOST_SAMPLES:g}"]


if __name__ == "__main__":
    main()
