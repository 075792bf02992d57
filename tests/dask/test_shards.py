"""Feature files that workers read, and clusters that they write beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from cceclust import CCEClusterer, choices
from cceclust.cli.main import run
from cceclust.dask.shards import look_at_shard, look_at_shards, rows_of_shards
from cceclust.errors import FileContentError, FileError
from cceclust.files import Model, read_clusters, read_model, write_features
from cceclust.sharding import write_shard

ROLES = {"dataset": None}


@pytest.fixture
def folder(blobs: NDArray[np.float32], tmp_path: Path) -> Path:
    """Return a folder with two files of rows, one of them with true labels and paths."""
    folder = tmp_path / "features"
    folder.mkdir()
    write_features(folder / "a.h5", blobs[:500], paths=[f"{row}.png" for row in range(500)])
    np.save(folder / "b.npy", blobs[500:])
    return folder


@pytest.fixture
def tables(blobs: NDArray[np.float32], tmp_path: Path) -> Path:
    """Return a folder with two tables that have row names and true labels."""
    folder = tmp_path / "tables"
    folder.mkdir()
    frame = pd.DataFrame(blobs, columns=list("abcdef")).assign(
        name=[f"row {row}" for row in range(900)], label=blobs[:, :4].argmax(axis=1)
    )
    frame[:300].to_parquet(folder / "1.parquet", index=False)
    frame[300:].to_parquet(folder / "2.parquet", index=False)
    return folder


def fit(*arguments: str | Path) -> int:
    return run(["fit", *map(str, arguments), "--k", "4"])


def test_workers_write_the_clusters_of_a_fit_in_memory_beside_each_file(
    folder: Path,
    blobs: NDArray[np.float32],
    cluster: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder.parent)
    assert fit("features", "--cluster", cluster, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    written = ["features/a.clusters.h5", "features/b.clusters.h5", "features.model.safetensors"]
    assert summary["files"] == written
    expected = CCEClusterer(4, random_state=0).fit(blobs)
    parts = [read_clusters(folder / f"{name}.clusters.h5") for name in "ab"]
    assert [len(part.labels) for part in parts] == [500, 400]
    np.testing.assert_array_equal(np.concatenate([part.labels for part in parts]), expected.labels_)
    np.testing.assert_allclose(
        np.concatenate([part.probabilities for part in parts]), expected.probabilities_, atol=1e-4
    )
    assert parts[0].paths is not None
    assert parts[0].paths[7] == "7.png"
    assert parts[1].provenance["features"] == "b.npy"
    model = read_model(folder.with_name("features.model.safetensors"))
    assert {part.model_id for part in parts} == {model.id}
    np.testing.assert_allclose(model.coef, expected.coef_, rtol=1e-3, atol=1e-4)
    assert (summary["n_samples"], summary["sizes"]) == (900, np.bincount(expected.labels_).tolist())
    assert summary["mean_confidence"] == pytest.approx(expected.probabilities_.max(axis=1).mean(), abs=1e-4)
    assert fit(folder, "--cluster", cluster) == 1
    assert "a.clusters.h5 exists already; use --force" in capsys.readouterr().err.replace("\n", " ")


def test_workers_read_tables_with_names_and_true_labels(
    tables: Path, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(tables / "*.parquet", "--cluster", cluster, "--json") == 0
    assert json.loads(capsys.readouterr().out)["against_labels"]["accuracy"] > 0.9
    names = read_clusters(tables / "2.clusters.h5").names
    assert names is not None
    assert names[0] == "row 300"


def test_rows_come_in_the_order_of_files_and_chunks(
    folder: Path, blobs: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "SHARD_CHUNK_BYTES", 150 * 24)
    rows = rows_of_shards(look_at_shards([folder / "a.h5", folder / "b.npy"], ROLES), ROLES, None)
    assert rows.array.chunks[0] == (150, 150, 150, 50, 150, 150, 100)
    np.testing.assert_array_equal(rows.array.compute(scheduler="sync"), blobs)


def test_tables_are_read_as_a_whole(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "SHARD_CHUNK_BYTES", 1)
    files = sorted(tables.iterdir())
    assert rows_of_shards(look_at_shards(files, ROLES), ROLES, None).array.chunks[0] == (300, 600)


def test_a_file_that_workers_do_not_see_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"a worker does not find .*gone.h5; all workers must see the files"):
        look_at_shard(tmp_path / "gone.h5", ROLES)


def test_clusters_that_a_lost_worker_wrote_are_written_again(folder: Path) -> None:
    head = Model(np.eye(4, 6, dtype=np.float32), np.zeros(4, np.float32))
    for warning in ("first", "second"):
        write_shard(folder / "a.h5", ROLES, head, {"diagnostics": {"warnings": [warning]}}, full_paths=False)
    assert read_clusters(folder / "a.clusters.h5").diagnostics["warnings"] == ["second"]


def test_a_pattern_without_a_folder_needs_a_name_for_the_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert fit("*.h5", "--cluster", "tcp://127.0.0.1:1") == 1
    assert "name it with --model FILE" in capsys.readouterr().err


def test_files_of_different_width_are_refused(folder: Path) -> None:
    np.save(folder / "c.npy", np.zeros((5, 7)))
    with pytest.raises(FileContentError, match=r"c.npy \(7 columns\) and .*a.h5 \(6\) have different columns"):
        look_at_shards([folder / "a.h5", folder / "c.npy"], ROLES)


@pytest.mark.parametrize("option", ["--out=x.h5", "--report", "--labels=x.csv"])
def test_options_that_need_all_rows_here_are_misuse(
    folder: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(folder, option, "--cluster", "tcp://127.0.0.1:1") == 2
    assert "cannot be used with --cluster" in " ".join(capsys.readouterr().err.split())


def test_kmeans_is_refused_on_a_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(folder, "--method", "kmeans", "--cluster", "tcp://127.0.0.1:1") == 1
    assert "needs all features in memory" in capsys.readouterr().err
