"""A graph of neighbours says which matrix it is of, and goes into the file that a link leads to."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from cceclust.errors import TargetExistsError
from cceclust.io import open_features
from cceclust.io.neighbor_graphs import write_neighbors

GRAPH = np.tile(np.arange(3), (57, 1))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Return an AnnData file with two embeddings, neither of which is the default."""
    path = tmp_path / "two.h5ad"
    with h5py.File(path, "w") as file:
        for name in ("obsm/X_pca", "obsm/X_umap"):
            file[name] = np.random.default_rng(0).normal(size=(57, 5))
    return path


@pytest.mark.parametrize("name", ["obsm/X_pca", "/obsm/X_pca"])
def test_a_graph_is_read_with_its_matrix_only(two: Path, name: str) -> None:
    write_neighbors(two, GRAPH, dataset=name)
    with h5py.File(two) as file:
        assert file["neighbors"].attrs["dataset"] == "obsm/X_pca"
    with open_features(two, dataset=name) as features:
        np.testing.assert_array_equal(features.neighbors, GRAPH)
    with open_features(two, dataset="obsm/X_umap") as features:
        assert features.neighbors is None


def test_a_graph_of_another_matrix_is_not_that_of_the_features(small_features: Path) -> None:
    with h5py.File(small_features, "a") as file:
        file["other"] = file["features"][...]
    write_neighbors(small_features, np.zeros((120, 2), int), dataset="other")
    with open_features(small_features) as features:
        assert features.neighbors is None
    write_neighbors(small_features, np.zeros((120, 2), int), dataset="features", force=True)
    with open_features(small_features) as features:
        assert features.neighbors is not None


def test_the_attribute_may_be_bytes(two: Path) -> None:
    # Tools written in C store text of fixed length, which h5py returns as bytes.
    with h5py.File(two, "a") as file:
        file["neighbors"] = GRAPH
        file["neighbors"].attrs["dataset"] = np.bytes_("obsm/X_pca")
    with open_features(two, dataset="obsm/X_pca") as features:
        assert features.neighbors is not None


def test_a_link_stays_and_its_target_is_rewritten(small_features: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.h5"
    link.symlink_to(small_features)
    write_neighbors(link, np.zeros((120, 2), int))
    assert link.is_symlink()
    with open_features(small_features) as features:
        assert features.neighbors is not None
    assert list(link.parent.iterdir()) == [link]
    with pytest.raises(TargetExistsError, match="has neighbours already"):
        write_neighbors(link, np.zeros((120, 2), int))
