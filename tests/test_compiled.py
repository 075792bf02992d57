"""The first run after an installation, which compiles, gives the same bits as later runs, which load its kernels."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import hashlib
import numpy as np
from cceclust.pseudo_labels import AlternatingDirectionSolver, EMSolver, OptimalTransportSolver, PGDSolver

sigma = np.random.default_rng(0).dirichlet(np.ones(10), (2, 250)).astype(np.float32)
sigma = np.ascontiguousarray(sigma.transpose(0, 2, 1))
weights = np.full(250, 1 / 250, np.float32)
for solver in (EMSolver(fairness=100.0, max_iter=20), AlternatingDirectionSolver(max_iter=20),
               OptimalTransportSolver(max_iter=20), PGDSolver(max_iter=20)):
    labels, losses, iterations = sigma.copy(), np.empty(2), np.empty(2, np.int64)
    solver.solve(sigma, labels, weights, solver.workspace(10, 250, np.float32), losses, iterations)
    print(type(solver).__name__, hashlib.sha256(labels.tobytes()).hexdigest(), losses.tolist())
"""


def test_compiling_and_loading_give_the_same_bits(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "CCECLUST_NUMBA_CACHE": "1"}
    compiled, loaded = (
        subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert list(tmp_path.rglob("*.nbc")), "nothing was cached"
    assert len(compiled.stdout.splitlines()) == 4
    assert compiled.stdout == loaded.stdout
