"""How much another processor changes the accuracy of the default fit: the spread that machines add to that of seeds.

Other processors round sums differently, and a fit may then choose another candidate. Here NumPy, OpenBLAS and the
compiled kernels run with the instructions of older processors (x86 only), each in a process of its own. Digits of
scikit-learn and every file given are clustered with their true number of classes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from cceclust import CCEClusterer, clustering_accuracy
from cceclust.bench.files import read_labelled
from cceclust.cli.bench.tables import mean_and_deviation

WIDE = "X86_V4 AVX512_ICL AVX512_SPR"
PROCESSORS: dict[str, dict[str, str]] = {
    "this one": {},
    "AVX2 (2013)": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NUMBA_CPU_NAME": "haswell",
        "NPY_DISABLE_CPU_FEATURES": WIDE,
    },
    "SSE4 (2008)": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NUMBA_CPU_NAME": "nehalem",
        "NPY_DISABLE_CPU_FEATURES": f"{WIDE} X86_V3",
    },
}


def accuracies(path: Path | None, n_seeds: int) -> list[float]:
    """Return the accuracy of the default fit for each seed, on a file or on digits."""
    X, y = read_labelled(path) if path else load_digits(return_X_y=True)
    n_clusters = len(np.unique(y))
    warnings.simplefilter("ignore")
    return [
        clustering_accuracy(y, CCEClusterer(n_clusters, random_state=seed).fit_predict(X)) for seed in range(n_seeds)
    ]


def on_processor(settings: dict[str, str], path: Path | None, n_seeds: int) -> list[float]:
    """Return the accuracies that a process with these settings finds."""
    command = [sys.executable, __file__, "--here", "--seeds", str(n_seeds), *([str(path)] if path else [])]
    output = subprocess.run(command, env=os.environ | settings, stdout=subprocess.PIPE, check=True).stdout
    return list(map(float, json.loads(output)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="labelled feature files")
    parser.add_argument("--seeds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--here", action="store_true", help="print the accuracies of one file in this process, as JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(accuracies(options.files[0] if options.files else None, options.seeds)))
        return
    print("| data | " + " | ".join(PROCESSORS) + " | all |")
    print("|---" * (len(PROCESSORS) + 2) + "|")
    for path in [None, *options.files]:
        found = [on_processor(settings, path, options.seeds) for settings in PROCESSORS.values()]
        cells = [mean_and_deviation(values) for values in [*found, list(chain(*found))]]
        print(f"| {path.stem if path else 'digits'} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
