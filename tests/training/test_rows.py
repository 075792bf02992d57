from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cceclust.errors import InputError
from cceclust.files import open_features, write_features
from cceclust.training.rows import FileRows, SparseRows, in_memory


def numbers(n_rows: int = 50, n_columns: int = 4, dtype: Any = np.float32) -> Any:
    return np.arange(n_rows * n_columns).reshape(n_rows, n_columns).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_of_the_right_kind_are_not_copied(dtype: Any) -> None:
    matrix = numbers(dtype=dtype)
    rows = in_memory(matrix)
    assert rows.matrix is matrix
    assert rows.dtype == dtype
    (buffer,) = rows.buffers(np.random.default_rng(0))
    assert buffer.matrix is matrix
    for _, block in rows.blocks():
        assert np.shares_memory(block, matrix)


@pytest.mark.parametrize("fortran", [False, True])
def test_memory_maps_are_not_copied(tmp_path: Path, fortran: bool) -> None:
    np.save(tmp_path / "x.npy", np.asfortranarray(numbers()) if fortran else numbers())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    rows = in_memory(mapped)
    assert np.shares_memory(rows.matrix, mapped)
    for _, block in rows.blocks():
        assert np.shares_memory(block, mapped)


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [("f2", "f4"), ("i8", "f4"), ("u1", "f4"), ("?", "f4"), (">f4", "f4"), (">f8", "f8"), (">i4", "f4"), ("g", "f8")],
)
def test_other_numbers_are_converted(dtype: str, computed: str) -> None:
    rows = in_memory((numbers() % 2).astype(dtype))
    assert rows.matrix.dtype == rows.dtype == np.dtype(computed)
    np.testing.assert_array_equal(rows.matrix, numbers() % 2)


@pytest.mark.parametrize("matrix", [np.asfortranarray(numbers()), numbers(50, 8)[:, ::2]])
def test_arrays_in_memory_are_brought_into_the_order_of_rows(matrix: Any) -> None:
    rows = in_memory(matrix)
    assert rows.matrix.flags.c_contiguous
    np.testing.assert_array_equal(rows.matrix, matrix)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_matrices_stay_sparse(kind: Any) -> None:
    rows = in_memory(kind(numbers()))
    assert isinstance(rows, SparseRows)
    for where, block in rows.blocks():
        assert sparse.issparse(block)
        np.testing.assert_array_equal(block.toarray(), numbers()[where])


def test_blocks_are_bounded_and_cover_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 12 * 16)
    pieces = [(where.start, block) for where, block in in_memory(numbers()).blocks()]
    assert [start for start, _ in pieces] == [0, 12, 24, 36, 48]
    np.testing.assert_array_equal(np.concatenate([block for _, block in pieces]), numbers())
    assert max(len(block) for _, block in in_memory(numbers()).blocks(n_outputs=16)) == 3


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_every_row_of_a_file_comes_once_in_every_epoch(tmp_path: Path, dtype: str) -> None:
    write_features(tmp_path / "x.h5", numbers(2500, 4, dtype) % 1000)
    with open_features(tmp_path / "x.h5") as file:
        rows = FileRows(file, memory=1000 * 4 * (8 if dtype == "f8" else 4))
        generator = np.random.default_rng(0)
        orders = []
        for _ in range(2):
            buffers = [(b.indices.copy(), b.matrix.copy()) for b in rows.buffers(generator)]
            assert len(buffers) > 2
            assert max(len(indices) for indices, _ in buffers) <= 1000
            indices = np.concatenate([indices for indices, _ in buffers])
            np.testing.assert_array_equal(np.sort(indices), np.arange(2500))
            matrix = np.concatenate([matrix for _, matrix in buffers])
            assert matrix.dtype == rows.dtype
            np.testing.assert_array_equal(matrix, file.array()[indices])
            orders.append(indices)
        assert not np.array_equal(*orders)


def test_a_buffer_mixes_rows_from_all_over_the_file(tmp_path: Path) -> None:
    write_features(tmp_path / "x.h5", numbers(20_000, 2))
    with open_features(tmp_path / "x.h5") as file:
        for buffer in FileRows(file, memory=2000 * 8).buffers(np.random.default_rng(0)):
            quarters = np.bincount(buffer.indices // 5000, minlength=4)
            assert (quarters > 0).all()


def test_too_little_memory_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    write_features(tmp_path / "x.h5", numbers())
    with (
        open_features(tmp_path / "x.h5") as file,
        pytest.raises(InputError, match=r"1,000 bytes of memory hold 62 rows of 4 features; allow at least 16,000"),
    ):
        FileRows(file, memory=1000)
