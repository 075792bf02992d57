"""What is not loaded: commands that only show help or refuse need none of the slow packages."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cceclust.io import Clusters, write_clusters

SLOW = ("numba", "onnx", "pandas", "sklearn", "torch", "matplotlib")
LISTING = """
import json, sys
from cceclust.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(name for name in sys.modules if "." not in name)]), file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 5, 200)
    clusters = Clusters(labels, np.eye(5, dtype=np.float32)[labels], true_labels=generator.integers(0, 5, 200))
    clusters.diagnostics["modularity"] = 0.5
    write_clusters(tmp_path / "x.clusters.h5", clusters)
    np.save(tmp_path / "x.npy", np.zeros((20, 3)))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help", 0),
        ("fit --help", 0),
        ("--version", 0),
        ("info x.npy", 0),
        ("info x.clusters.h5", 0),
        ("score missing.h5", 1),
        ("fit missing.h5 -k 3", 1),
        ("fit x.npy -k 0", 2),
        ("fit x.npy -k 3 --prior .5,.3,.3", 2),
        ("fit x.npy --nonsense", 2),
        ("predict missing.safetensors x.npy", 1),
        ("predict x.npy x.npy", 1),
        ("report missing.h5", 1),
        ("info missing.h5", 1),
        ("extract missing -o x.h5", 1),
        ("deep missing -k 3 -o run", 1),
        ("export missing.safetensors x.onnx", 1),
    ],
)
def test_slow_packages_are_not_loaded(command: str, code: int, folder: Path) -> None:
    assert loaded_by(command, code, folder).isdisjoint(SLOW)


def loaded_by(command: str, code: int, folder: Path) -> set[str]:
    """Run a command that ends with a code; return the packages that it loads."""
    result = subprocess.run(
        [sys.executable, "-c", LISTING, *command.split()], cwd=folder, capture_output=True, text=True, check=True
    )
    ended, modules = json.loads(result.stderr.splitlines()[-1])
    assert ended == code, result.stderr
    return set(modules)
