"""What is not loaded: commands that only show help or refuse need none of the slow packages."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SLOW = ("numba", "onnx", "pandas", "sklearn", "torch", "matplotlib")
LISTING = """
import json, sys
from cceclust.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(name for name in sys.modules if "." not in name)]), file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.zeros((20, 3)))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help", 0),
        ("--version", 0),
        ("info x.npy", 0),
        ("score missing.h5", 1),
        ("fit missing.h5 -k 3", 1),
        ("fit x.npy -k 3 --prior .5,.3,.3", 2),
        ("fit x.npy --nonsense", 2),
        ("predict missing.safetensors x.npy", 1),
        ("report missing.h5", 1),
        ("extract missing -o x.h5", 1),
        ("deep missing -k 3 -o run", 1),
        ("export missing.safetensors x.onnx", 1),
    ],
)
def test_slow_packages_are_not_loaded(command: str, code: int, folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", LISTING, *command.split()], cwd=folder, capture_output=True, text=True, check=True
    )
    ended, modules = json.loads(result.stderr.splitlines()[-1])
    assert ended == code, result.stderr
    assert set(modules).isdisjoint(SLOW)
