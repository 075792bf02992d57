"""Runs of ``cceclust deep``, read without torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cceclust.errors import FileContentError
from cceclust.io import Clusters, write_clusters
from cceclust.io.description import describe
from cceclust.io.provenance import stamp
from cceclust.io.run_folders import clusters_of, read_config, run_of


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run that has done one of three epochs."""
    folder = tmp_path / "run"
    folder.mkdir()
    config = {**stamp("run"), "n_epochs": 3, "n_clusters": 2, "network": "vgg4-28", "init_sha256": None}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "metrics.jsonl").write_text(json.dumps({"epoch": 1, "loss": 2.5, "accuracy": None}) + "\n")
    return folder


def test_a_run_is_named_by_its_folder_or_its_network(run: Path, tmp_path: Path) -> None:
    assert run_of(run) == run_of(run / "model.safetensors") == run
    assert run_of(tmp_path) is None
    assert run_of(run / "clusters.h5") is None
    assert clusters_of(tmp_path / "other.h5") == tmp_path / "other.h5"


def test_clusters_are_there_once_the_run_is_complete(run: Path) -> None:
    with pytest.raises(FileContentError, match=r"no clusters yet; .* --resume"):
        clusters_of(run)
    write_clusters(run / "clusters.h5", Clusters(np.array([0, 1])))
    assert clusters_of(run) == clusters_of(run / "model.safetensors") == run / "clusters.h5"
    assert describe(run).kind == "clusters"


@pytest.mark.parametrize("content", ["[3]", "{", "{}"])
def test_a_damaged_configuration_is_named(run: Path, content: str) -> None:
    (run / "config.json").write_text(content)
    with pytest.raises(FileContentError, match=r"config\.json is "):
        read_config(run)
