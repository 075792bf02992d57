"""Files larger than memory: time and peak memory of ``cceclust fit``, beside reading the file and bare products.

Each fit is a process of its own. Its time is compared with what cannot be avoided: reading the file once, and two
passes of the product that projects its rows. Both as passed on the clock and as CPU seconds of all cores, of which a
busy machine changes the latter little. Files of random clusters are made in a folder and removed afterwards.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from paper.tables import print_table

from cceclust import choices
from cceclust.cli.options import parse_bytes
from cceclust.io import open_features

CLUSTERS = 10


@dataclass(frozen=True)
class Cost:
    """What a piece of work takes: seconds on the clock, CPU seconds, and peak memory in bytes if it is a process."""

    seconds: float
    cpu_seconds: float
    peak: int = 0


def make_file(path: Path, n_rows: int, n_columns: int) -> None:
    """Write round clusters, a piece at a time."""
    generator = np.random.default_rng(0)
    centres = 2 * generator.standard_normal((CLUSTERS, n_columns), np.float32)
    step = max(1, choices.BLOCK_BYTES // (4 * n_columns))
    with h5py.File(path, "w") as file:
        features = file.create_dataset(
            "features", (n_rows, n_columns), "f4", chunks=(min(step // 4, n_rows), n_columns)
        )
        for start in range(0, n_rows, step):
            count = min(step, n_rows - start)
            rows = generator.standard_normal((count, n_columns), np.float32)
            rows += centres[generator.integers(0, CLUSTERS, count)]
            features[start : start + count] = rows


def cost_of(work: Callable[[], None]) -> Cost:
    """Measure work in this process."""
    began, cpu_began = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - began, time.process_time() - cpu_began)


def read_once(path: Path) -> None:
    """Read all rows, and do nothing with them."""
    with open_features(path) as features:
        for _ in features.blocks():
            pass


def project_twice(n_rows: int, n_columns: int) -> None:
    """Multiply as many rows with as many components as a fit does at most, twice; without reading them."""
    step = max(1, choices.BLOCK_BYTES // (4 * n_columns))
    block = np.ones((step, n_columns), np.float32)
    axes = np.ones((n_columns, min(choices.COMPONENTS, n_columns)), np.float32)
    for _ in range(2 * -(-n_rows // step)):
        block @ axes


def fit_cost(path: Path, memory: int) -> Cost:
    """Measure a fit in a process of its own."""
    command = [sys.executable, "-m", "cceclust", "fit", str(path), "--k", str(CLUSTERS), "--memory", str(memory)]
    began = time.perf_counter()
    process = subprocess.Popen([*command, "--force", "--quiet"])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)


def main() -> None:
    """Make each file, measure, remove it, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000], help="(%(default)s)")
    parser.add_argument("--columns", type=int, default=64, help="(%(default)s)")
    parser.add_argument("--memory", type=parse_bytes, default=10_000_000, help="as in cceclust fit (%(default)s)")
    parser.add_argument("--folder", type=Path, help="where to make the files; by default that for temporary files")
    options = parser.parse_args()
    print(f"{options.columns} columns, float32, --memory {options.memory:,}")
    print_table(["rows", "GB", "time / needed", "CPU / needed", "CPU s / million rows", "peak MB"], measure(options))


def measure(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield a row of the table for each number of rows."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder, "features.h5")
        for n_rows in options.rows:
            make_file(path, n_rows, options.columns)
            needed = [
                cost_of(lambda: read_once(path)),
                cost_of(lambda count=n_rows: project_twice(count, options.columns)),
            ]
            fit = fit_cost(path, options.memory)
            yield [
                f"{n_rows:,}",
                f"{path.stat().st_size / 1e9:.2f}",
                f"{fit.seconds / sum(cost.seconds for cost in needed):.2f}",
                f"{fit.cpu_seconds / sum(cost.cpu_seconds for cost in needed):.2f}",
                f"{fit.cpu_seconds / n_rows * 1e6:.1f}",
                f"{fit.peak / 1e6:.0f}",
            ]
            path.unlink()


if __name__ == "__main__":
    main()
