"""The folder of a run of ``cceclust deep``, as far as it can be read without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cceclust.errors import FileContentError
from cceclust.io.provenance import check_stamp
from cceclust.io.reading import reading

__all__ = ["RUN_FILES", "clusters_of", "is_run", "read_config", "run_of"]

# All settings, a line for each epoch, the state after the last complete one, the trained network, and the clusters.
RUN_FILES = ("config.json", "metrics.jsonl", "checkpoint.pt", "model.safetensors", "clusters.h5")
CONFIG, MODEL, CLUSTERS = "config.json", "model.safetensors", "clusters.h5"


def is_run(path: str | Path) -> bool:
    return (Path(path) / CONFIG).is_file()


def run_of(path: str | Path) -> Path | None:
    """Return the folder of a run, given that folder or the network in it; None for any other path."""
    path = Path(path)
    if path.name == MODEL and is_run(path.parent):
        return path.parent
    return path if is_run(path) else None


def clusters_of(path: str | Path) -> Path:
    """Return the cluster file of a run, given its folder or the network in it; any other path as it is."""
    run = run_of(path)
    if run is None:
        return Path(path)
    if not (run / CLUSTERS).is_file():
        raise FileContentError(f"the run in {run} has no clusters yet; continue it with its command and --resume")
    return run / CLUSTERS


def read_config(run: Path) -> dict[str, Any]:
    path = run / CONFIG
    with reading(path, "the configuration of a run"):
        config = dict(json.loads(path.read_text("utf-8")))
        check_stamp(config, "run", path)
        return config
