"""Some labels beside the objective: clusters take the labels' identity, from the trainer to the run's files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cceclust.cli.main import run
from cceclust.errors import InputError
from cceclust.io import read_clusters
from cceclust.torch import DeepTrainer

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits"

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")


def blobs(n: int = 90) -> tuple[Tensor, np.ndarray]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % 3
    return torch.randn(n, 6, generator=generator) + 6 * torch.eye(3, 6)[labels], labels.numpy()


def trainer() -> DeepTrainer:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    return DeepTrainer(network, lambda batch: batch, batch_size=30, learning_rate=0.03, device="cpu")


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_clusters_follow_the_labels_however_they_are_permuted(order: list[int]) -> None:
    images, labels = blobs()
    permuted = np.array(order)[labels]
    known = np.where(np.arange(90) < 9, permuted, -1)
    clusterer = trainer()
    history = clusterer.fit(images, 15, given=known)
    assert (clusterer.predict(images) == permuted).mean() > 0.95
    assert history[-1].parts["labels"] < history[0].parts["labels"]


def test_no_label_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no image has a label"):
        trainer().fit(blobs()[0], 1, given=np.full(90, -1))


def test_a_run_keeps_the_names_of_the_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, folder = tmp_path / "partial.csv", tmp_path / "run"
    table.write_text("row,label\n0,zero\n1,zero\n39,other\n")
    options = ["--network", "vgg4-32", "--batch-size", "20", "--device", "cpu", "--epochs", "1", "--json"]
    command = ["deep", str(DIGITS), "-o", str(folder), "--k", "3", "--labels", str(table), *options]
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["other", "zero", "extra 1"]
    clusters = read_clusters(folder / "clusters.h5")
    assert clusters.diagnostics["labelled_rows"] == 3
    assert run(["predict", str(folder), str(DIGITS), "-o", str(tmp_path / "new.csv"), "--quiet"]) == 0
    assert "class" in (tmp_path / "new.csv").read_text().splitlines()[0]
    table.write_text("row,label\n0,zero\n1,other\n39,other\n")
    assert run([*command, "--resume"]) == 1
    assert "labels_sha256" in capsys.readouterr().err
