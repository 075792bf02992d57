from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from cceclust.errors import FileContentError, InputError, TargetExistsError
from cceclust.io import Clusters, open_features
from cceclust.io.observations import write_observations

LABELS = np.array([10, 0, -1, 2])
CHANCES = np.full((4, 11), 1 / 11, np.float32)


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """Return an AnnData file of four observations."""
    path = tmp_path / "cells.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.eye(4)
        file["obs/_index"] = ["a", "b", "c", "d"]
        file["obs/age"] = np.arange(4)
        file["obs"].attrs.update({"_index": "_index", "encoding-type": "dataframe"})
        file["obs"].attrs["column-order"] = np.array(["age"], h5py.string_dtype())
    return path


def test_the_encoding_is_that_of_anndata(cells: Path) -> None:
    write_observations(cells, Clusters(LABELS, CHANCES))
    with h5py.File(cells) as file:
        column = file["obs/cce"]
        assert dict(column.attrs) == {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False}
        assert column["categories"].asstr()[...].tolist() == ["0", "2", "10"]
        assert dict(column["categories"].attrs) == {"encoding-type": "string-array", "encoding-version": "0.2.0"}
        assert column["codes"][...].tolist() == [2, 0, -1, 1]
        assert column["codes"].dtype == np.int8
        np.testing.assert_array_equal(file["obs/cce_confidence"][...], CHANCES.max(axis=1))
        assert file["obs/cce_confidence"].attrs["encoding-type"] == "array"
        assert file["obs"].attrs["column-order"].tolist() == ["age", "cce", "cce_confidence"]
        assert file["obs/age"][...].tolist() == [0, 1, 2, 3]


def test_we_read_it_back(cells: Path) -> None:
    write_observations(cells, Clusters(LABELS, parameters={"classes": [f"type {i}" for i in range(11)]}))
    with open_features(cells, dataset="X", labels_dataset="obs/cce") as features:
        assert features.labels is not None
        assert features.labels[:2].tolist() == ["type 10", "type 0"]


def test_columns_are_replaced_only_when_asked(cells: Path) -> None:
    write_observations(cells, Clusters(LABELS, CHANCES))
    before = cells.read_bytes()
    with pytest.raises(TargetExistsError, match="has obs/cce and obs/cce_confidence already; use --force"):
        write_observations(cells, Clusters(LABELS[::-1]))
    assert cells.read_bytes() == before
    write_observations(cells, Clusters(LABELS[::-1]), force=True)
    with h5py.File(cells) as file:
        assert file["obs/cce/codes"][...].tolist() == [1, -1, 0, 2]
        assert file["obs"].attrs["column-order"].tolist() == ["age", "cce"]


def test_a_failure_leaves_the_file_as_it_was(cells: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cells.read_bytes()

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cceclust.io.observations.write_categories", fail)
    with pytest.raises(KeyboardInterrupt):
        write_observations(cells, Clusters(LABELS, CHANCES))
    assert cells.read_bytes() == before
    assert [file.name for file in cells.parent.iterdir()] == ["cells.h5ad"]


def test_other_files_have_no_observations(tmp_path: Path, cells: Path) -> None:
    with pytest.raises(InputError, match="not an AnnData file"):
        write_observations(tmp_path / "x.h5", Clusters(LABELS))
    with h5py.File(cells, "r+") as file:
        del file["obs"]
        file["obs"] = np.zeros(4)
    with pytest.raises(FileContentError, match="no group of observations"):
        write_observations(cells, Clusters(LABELS))
    with pytest.raises(InputError, match="4 observations"):
        write_observations(with_observations(tmp_path), Clusters(LABELS[:3]))


def with_observations(folder: Path) -> Path:
    """Return an AnnData file of four observations that says nothing else."""
    with h5py.File(folder / "few.h5ad", "w") as file:
        file["obs/_index"] = ["a", "b", "c", "d"]
    return folder / "few.h5ad"
