"""The first run after an installation, which compiles, gives the same bits as later runs, which load its kernels."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import hashlib
import numpy as np
from cceclust.pseudo_labels import AlternatingDirectionSolver, EMSolver, OptimalTransportSolver, PGDSolver

sigma = np.ascontiguousarray(np.random.default_rng(0).dirichlet(np.ones(10), 250).T.astype(np.float32))
weights = np.full(250, 1 / 250, np.float32)
for solver in (EMSolver(fairness=100.0, max_iter=20), AlternatingDirectionSolver(max_iter=20),
               OptimalTransportSolver(max_iter=20), PGDSolver(max_iter=20)):
    labels = sigma.copy()
    solved = solver.solve(np.log(sigma) if solver.takes_logarithms else sigma, labels, weights)
    print(type(solver).__name__, hashlib.sha256(labels.tobytes()).hexdigest(), solved.loss)
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
