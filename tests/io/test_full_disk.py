"""A full disk, for real: a process that may not write files beyond a size, with the libraries that do the writing."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from cceclust.errors import FileError
from cceclust.io import Clusters, Model, write_clusters, write_features, write_model

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder, limit = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
matrix = np.random.default_rng(0).normal(size=(20_000, 32))
chances = np.full((len(matrix), 32), 1 / 32)
clusters = Clusters(np.zeros(len(matrix), int), chances, paths=np.array([f"image {row}" for row in range(len(matrix))]))
for write in (
    lambda: write_features(folder / "x.h5", matrix, paths=clusters.paths),
    lambda: write_clusters(folder / "y.h5", clusters),
    lambda: write_clusters(folder / "y.csv", clusters),
    lambda: write_clusters(folder / "y.npy", clusters),
    lambda: write_model(folder / "m.safetensors", Model(matrix, matrix[:, 0])),
):
    try:
        write()
    except FileError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are a thing of Unix")
@pytest.mark.parametrize("limit", [0, 3_000, 150_000])
def test_full_disk_is_an_error_that_leaves_nothing_behind(tmp_path: Path, limit: int) -> None:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path, str(limit)], capture_output=True, text=True, timeout=120
    )
    # HDF5 used to bring the process down here, at the latest when it ended.
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        f"cannot write {tmp_path / name}: File too large"
        for name in ("x.h5", "y.h5", "y.csv", "y.npy", "m.safetensors")
    ]
    assert list(tmp_path.iterdir()) == []
