"""``cceclust neighbors``: the graph goes into the feature file, once, and ``fit`` uses it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from cceclust import nearest_neighbors
from cceclust.cli.main import run
from cceclust.io import open_features, write_features


def neighbors(path: Path, *options: object) -> int:
    return run(["neighbors", str(path), *map(str, options)])


def test_the_graph_is_that_of_the_function(small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert neighbors(small_features, "--neighbors", 4) == 0
    assert capsys.readouterr().out == f"Wrote 4 neighbours for each of 120 rows into {small_features}\n"
    with open_features(small_features) as features:
        np.testing.assert_array_equal(features.neighbors, nearest_neighbors(features.array(), 4, metric="euclidean"))
        assert features.labels is not None


def test_json(small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert neighbors(small_features, "--json") == 0
    expected = {"file": str(small_features), "rows": 120, "neighbors": 10, "recall": 1.0}
    assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.parametrize("most_for_one", [0, 1000])
def test_what_was_found_of_the_nearest_is_said_where_not_all_are_compared(
    small_features: Path, most_for_one: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cceclust.choices.rows_compared", lambda n_rows: 12)
    monkeypatch.setattr("cceclust.choices.ROWS_IN_CELL", 5)
    monkeypatch.setattr("cceclust.choices.MOST_ROWS_FOR_ONE_SORTING", most_for_one)
    monkeypatch.setattr("cceclust.choices.LEAST_LINKS", 4)
    monkeypatch.setattr("cceclust.choices.ROUNDS_OF_LINKS", 0)
    assert neighbors(small_features, "--neighbors", 4) == 0
    found = re.fullmatch(r"Wrote .* rows into \S+: about (0\.\d\d) of the nearest\n", capsys.readouterr().out)
    assert found is not None
    with open_features(small_features) as features:
        exact = nearest_neighbors(features.array(), 4, metric="euclidean", n_compared=120)
        hits = [np.isin(one, other).mean() for one, other in zip(exact, features.neighbors, strict=True)]
    # All 120 rows are in the sample.
    assert float(found[1]) == pytest.approx(np.mean(hits), abs=0.006)


@pytest.mark.filterwarnings("default::cceclust.errors.ClusteringWarning")
def test_force_mends_a_broken_graph(small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with h5py.File(small_features, "r+") as file:
        file["neighbors"] = np.full((120, 3), 999)
    fit = ["fit", str(small_features), "-k", "3", "--set", "max_epochs=1", "--quiet", "--force"]
    assert run([*fit, "--set", "n_neighbors=0"]) == 0
    assert run([*fit, "--set", "n_neighbors=3"]) == 1
    assert "cceclust neighbors --force" in capsys.readouterr().err
    assert neighbors(small_features, "--force") == 0
    assert run([*fit, "--set", "n_neighbors=3"]) == 0


def test_a_second_graph_needs_force(small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert neighbors(small_features, "--neighbors", 4, "--quiet") == 0
    before = small_features.read_bytes()
    assert neighbors(small_features, "--neighbors", 5) == 1
    assert "--force" in capsys.readouterr().err
    assert small_features.read_bytes() == before
    assert neighbors(small_features, "--neighbors", 5, "--force", "--quiet") == 0
    with open_features(small_features) as features:
        assert features.neighbors.shape == (120, 5)


def test_fit_uses_the_graph_and_searches_only_for_more(
    small_features: Path, tmp_path: Path, searched: list[int]
) -> None:
    bare = shutil.copy(small_features, tmp_path / "bare.h5")
    assert neighbors(small_features, "--neighbors", 6, "--quiet") == 0
    fit = ["fit", "-k", "3", "--restarts", "2", "--set", "max_epochs=20", "--quiet", "--force"]
    for wanted in ("auto", "2", "6"):
        assert run([*fit, str(small_features), "--set", f"n_neighbors={wanted}"]) == 0
    assert searched == []
    assert run([*fit, str(small_features), "--set", "n_neighbors=8"]) == 0
    assert run([*fit, str(bare), "--set", "n_neighbors=4"]) == 0
    assert searched == [15, 15]


def test_fit_uses_no_graph_of_another_matrix(tmp_path: Path, searched: list[int]) -> None:
    two = tmp_path / "two.h5ad"
    generator = np.random.default_rng(0)
    with h5py.File(two, "w") as file:
        for name in ("obsm/X_pca", "obsm/X_other"):
            file[name] = generator.normal(size=(120, 6)) + 8 * np.eye(3, 6)[np.repeat([0, 1, 2], 40)]
    assert neighbors(two, "--dataset", "obsm/X_pca", "--neighbors", 6, "--quiet") == 0
    fit = [
        "fit",
        str(two),
        "-k",
        "3",
        "--restarts",
        "2",
        "--set",
        "max_epochs=20",
        "--set",
        "n_neighbors=4",
        "--quiet",
        "--force",
    ]
    assert run([*fit, "--dataset", "obsm/X_pca"]) == 0
    assert searched == []
    assert run([*fit, "--dataset", "obsm/X_other"]) == 0
    assert searched == [15]


def test_a_link_stays_a_link(small_features: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.h5"
    link.symlink_to(small_features.name)
    assert neighbors(link, "--neighbors", 4, "--quiet") == 0
    assert link.is_symlink()
    with open_features(small_features) as features:
        assert features.neighbors is not None


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [(("--neighbors", 120), 1, "fewer than the 120 rows"), (("--neighbors", 0), 2, "--neighbors")],
)
def test_impossible_numbers(
    small_features: Path, options: tuple[object, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = small_features.read_bytes()
    assert neighbors(small_features, *options) == code
    assert message in capsys.readouterr().err
    assert small_features.read_bytes() == before


def test_files_that_hold_no_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.eye(30))
    assert neighbors(tmp_path / "x.npy") == 1
    assert ".npy" in capsys.readouterr().err
    write_features(tmp_path / "x.h5", np.eye(30, dtype=np.float32))
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        file["features"][7, 0] = np.nan
    assert neighbors(tmp_path / "x.h5") == 1
    assert "first in row 7" in capsys.readouterr().err
    assert neighbors(tmp_path / "nowhere.h5") == 1
    assert "nowhere.h5" in capsys.readouterr().err
