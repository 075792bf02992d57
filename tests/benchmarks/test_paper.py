"""The scripts of the paper's tables and figures run end to end on tiny data, and print what they promise."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cceclust.io import write_features

FOLDER = Path(__file__).parents[2] / "benchmarks" / "paper"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs a script and returns its table: the header, and a row by its first column."""
    monkeypatch.syspath_prepend(FOLDER)

    def run(script: str, *arguments: Any) -> tuple[list[str], dict[str, list[str]]]:
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        runpy.run_path(str(FOLDER / f"{script}.py"), run_name="__main__")
        lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
        return (lines[0], {row[0]: row[1:] for row in lines[2:]}) if lines else ([], {})

    return run


def mean(cell: str) -> float:
    return float(cell.split(" ± ")[0])


@pytest.fixture(scope="session")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a feature file of three far-apart groups."""
    generator = np.random.default_rng(0)
    labels = np.arange(240) % 3
    path = tmp_path_factory.mktemp("features") / "blobs.h5"
    rows = 4 * np.eye(3, 4)[labels] + generator.normal(size=(240, 4))
    write_features(path, rows.astype(np.float32), labels=np.array(["a", "b", "c"])[labels])
    return path


@pytest.fixture(scope="session")
def stripes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return noisy images of horizontal, vertical and no stripes, which a few labels are enough to tell apart."""
    generator = np.random.default_rng(0)
    rows = np.tile(200 * (np.arange(32)[:, None] // 4 % 2), 32)
    labels = np.arange(30) % 3
    images = np.stack([rows, rows.T, np.full_like(rows, 100)])[labels] + generator.normal(20, 10, (30, 32, 32))
    path = tmp_path_factory.mktemp("images") / "stripes.npz"
    names = np.array(["vertical", "horizontal", "none"])
    np.savez(path, images=np.clip(images, 0, 255).astype(np.uint8), labels=names[labels])
    return path


QUICK = ("--epochs", 1, "--batch-size", 15, "--device", "cpu")


def test_figure_1_draws_the_losses(table: Any, tmp_path: Path) -> None:
    table("figure1", "--out", tmp_path / "losses.svg")
    assert b"<svg" in (tmp_path / "losses.svg").read_bytes()


def test_table_1_counts_the_iterations_of_every_solver(table: Any) -> None:
    header, rows = table("table1", "-k", 2, "--fairness", 1, "--most", 200)
    assert header == ["K", "λ", "solver", "ms per iteration", "iterations", "time / EM's"]
    # All rows begin with the same K; the last one stays.
    assert rows["2"][:2] == ["1", "exact"]
    assert 1 <= int(rows["2"][3]) <= 20


def test_table_2_compares_all_methods_at_the_papers_settings(table: Any, blobs: Path) -> None:
    options = ("--trials", 2, "--max-iter", 20, "--standardize", "--epochs", 30)
    header, rows = table("table2", blobs, *options, "--method", "kmeans", "migd", "sela", "miadm", "cce", "cce-pgd")
    assert header == ["method", "ACC", "NMI", "ARI", "seconds"]
    assert list(rows) == ["kmeans", "migd", "sela", "miadm", "cce", "cce-pgd"]
    assert min(mean(row[0]) for row in rows.values()) > 0.6


def test_table_3_keeps_finished_trials(table: Any, stripes: Path, tmp_path: Path) -> None:
    options = (stripes, *QUICK, "--network", "vgg4-32-small", "--trials", 1, "--out", tmp_path / "runs")
    header, rows = table("table3", *options)
    assert header == ["objective", "ACC", "NMI", "ARI", "seconds"]
    assert list(rows) == ["imsat", "iic", "sela", "miadm", "cce-pgd", "cce"]
    (tmp_path / "runs" / "cce-0.json").write_text(json.dumps([1.0, 0.5, 0.25, 0.0]))
    assert table("table3", *options)[1]["cce"][:3] == ["1.000 ± 0.000", "0.500 ± 0.000", "0.250 ± 0.000"]


def test_table_4_starts_from_a_checkpoint(table: Any, stripes: Path, tmp_path: Path) -> None:
    import torch

    from cceclust.torch import build_network

    backbone = build_network("resnet18-32", 3).backbone
    torch.save({"backbone." + name: value for name, value in backbone.state_dict().items()}, tmp_path / "simclr.pth")
    options = ("--limit", 6, "--trials", 1, "--objective", "cce", "--init", tmp_path / "simclr.pth")
    _, rows = table("table4", stripes, *QUICK, *options)
    assert list(rows) == ["cce"]


def test_table_5_learns_from_few_labels_and_judges_by_the_others(table: Any, stripes: Path) -> None:
    options = ("--network", "vgg4-32", "--learning-rate", 1e-3, "--draws", 1, "--ratio", 0.2)
    training = ("--epochs", 4, "--batch-size", 15, "--device", "cpu")
    header, rows = table("table5", stripes, *training, *options, "--method", "only seeds", "+ CCE")
    assert header == ["method", "0.2"]
    assert list(rows) == ["only seeds", "+ CCE"]
    assert min(mean(row[0]) for row in rows.values()) > 0.9


def test_table_5_has_every_objective_beside_the_labels(table: Any, stripes: Path) -> None:
    _, rows = table("table5", stripes, *QUICK, "--network", "vgg4-32-small", "--draws", 1, "--ratio", 0.2)
    assert list(rows) == ["only seeds", "+ IMSAT", "+ IIC", "+ SeLa", "+ MIADM", "+ CCE"]


def test_table_5_has_linear_heads_on_features(table: Any, blobs: Path) -> None:
    _, rows = table("table5", blobs, "--features", "--draws", 2, "--ratio", 0.1, 0.05)
    assert list(rows) == ["only seeds", "+ CCE"]
    assert min(mean(cell) for row in rows.values() for cell in row) > 0.9


def test_figure_2_shows_that_collision_survives_more_noise(table: Any, blobs: Path, tmp_path: Path) -> None:
    figure = tmp_path / "noise.svg"
    _, rows = table("figure2", blobs, "--features", "--draws", 2, "--noise", 0, 0.8, "--out", figure)
    assert list(rows) == ["0", "0.8"]
    assert min(map(mean, rows["0"])) > 0.9
    assert mean(rows["0.8"][0]) > 0.6
    assert b"<svg" in figure.read_bytes()


def test_figure_2_trains_networks(table: Any, stripes: Path, tmp_path: Path) -> None:
    options = ("--draws", 1, "--noise", 0, "--epochs", 4, "--batch-size", 8, "--device", "cpu", "--seed", 1)
    _, rows = table("figure2", stripes, *options, "--out", tmp_path / "noise.svg")
    # Without noise the two losses are the same.
    assert mean(rows["0"][0]) == mean(rows["0"][1]) > 0.9


def test_files_without_labels_are_refused(table: Any, tmp_path: Path) -> None:
    write_features(tmp_path / "bare.h5", np.zeros((5, 2), np.float32))
    with pytest.raises(SystemExit, match="has no labels to compare with"):
        table("table2", tmp_path / "bare.h5")
    np.save(tmp_path / "bare.npy", np.zeros((20, 32, 32), np.uint8))
    with pytest.raises(SystemExit, match="has no labels to compare with"):
        table("table3", tmp_path / "bare.npy")
