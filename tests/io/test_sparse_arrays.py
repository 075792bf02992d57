from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import sparse

from cceclust.errors import FileContentError
from cceclust.io import open_features

DENSE = np.random.default_rng(0).poisson(0.3, size=(30, 8)).astype(np.float32)


def save_group(path: Path, matrix: Any, kind: str, **changes: Any) -> None:
    """Write a sparse matrix as AnnData does."""
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0"})
        group.attrs["shape"] = changes.pop("shape", matrix.shape)
        for part in ("data", "indices", "indptr"):
            group[part] = changes.get(part, getattr(matrix, part))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("is_array", [False, True])
def test_files_of_scipy(tmp_path: Path, kind: str, is_array: bool) -> None:
    made = (sparse.coo_array if is_array else sparse.coo_matrix)(DENSE).asformat(kind)
    sparse.save_npz(tmp_path / "x.npz", made)
    with open_features(tmp_path / "x.npz") as features:
        assert features.is_sparse
        assert features.shape == (30, 8)
        assert features.array().format == "csr"
        np.testing.assert_array_equal(features.array().toarray(), DENSE)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_matrices_of_anndata(tmp_path: Path, kind: str) -> None:
    save_group(tmp_path / "x.h5ad", sparse.coo_matrix(DENSE).asformat(kind), kind)
    with open_features(tmp_path / "x.h5ad") as features:
        assert features.dataset == "X"
        np.testing.assert_array_equal(features.array().toarray(), DENSE)
        np.testing.assert_array_equal(features.read(slice(3, 7)), DENSE[3:7])
        np.testing.assert_array_equal(features.read([9, -1, 0]), DENSE[[9, -1, 0]])
        np.testing.assert_array_equal(np.concatenate([rows for _, rows in features.blocks(7)]), DENSE)


def test_counts_become_floating_point_numbers(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_matrix(DENSE.astype(np.int64)))
    with open_features(tmp_path / "x.npz") as features:
        assert features.array().dtype == np.float32


def test_a_format_without_rows_is_refused(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "x.npz", sparse.dia_matrix(np.eye(3)))
    with pytest.raises(FileContentError, match="sparse matrix of format 'dia'; expected one of csr, csc, coo"):
        open_features(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.full(4, 8)},
        {"indices": np.full(4, -1)},
        {"indices": np.zeros(4)},
        {"indptr": np.array([0, 2, 9])},
        {"indptr": np.array([0, 3, 2])},
        {"indptr": np.array([0, 4])},
        {"data": np.ones(3)},
        {"data": np.ones((2, 2))},
        {"data": np.ones(4, complex)},
        {"shape": (2, 8, 1)},
        {"shape": (0, 8)},
        {"shape": (2, 10**12)},
        {"shape": (10**12, 8)},
    ],
    ids=str,
)
def test_indices_that_point_elsewhere_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    matrix = sparse.csr_matrix((np.ones(4), [0, 1, 2, 3], [0, 2, 4]), (2, 8))
    save_group(tmp_path / "x.h5ad", matrix, "csr", **change)
    with pytest.raises(FileContentError, match=r"x\.h5ad"):
        open_features(tmp_path / "x.h5ad", dataset="X")
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape, **change}
    np.savez(tmp_path / "x.npz", format=b"csr", **parts)
    with pytest.raises(FileContentError, match=r"x\.npz"):
        open_features(tmp_path / "x.npz")
