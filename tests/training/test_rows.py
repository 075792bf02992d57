from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from safetensors.numpy import save_file
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


def row_sums(block: Any, factors: Any) -> Any:
    return factors * np.asarray(block.sum(axis=1)).ravel()


def kinds_of_rows(tmp_path: Path, matrix: Any) -> dict[str, Any]:
    write_features(tmp_path / "x.h5", matrix)
    files = {"h5": open_features(tmp_path / "x.h5")}
    np.save(tmp_path / "x.npy", matrix)
    files["npy"] = open_features(tmp_path / "x.npy")
    save_file({"features": matrix}, tmp_path / "x.safetensors")
    files["safetensors"] = open_features(tmp_path / "x.safetensors")
    of_files = {name: FileRows(file, memory=1000 * 16) for name, file in files.items()}
    return {"array": in_memory(matrix), "sparse": in_memory(sparse.csr_matrix(matrix)), **of_files}


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", ["array", "sparse", "h5", "npy", "safetensors"])
def test_results_of_blocks_come_in_the_order_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, n_threads: int
) -> None:
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 7 * 16)
    matrix, factors = numbers(100), np.arange(100) % 3
    rows = kinds_of_rows(tmp_path, matrix)[kind]
    found = list(rows.map_blocks(row_sums, factors, n_threads=n_threads))
    assert [where.start for where, _ in found] == list(range(0, 100, 7))
    np.testing.assert_array_equal(np.concatenate([result for _, result in found]), factors * matrix.sum(axis=1))


@pytest.mark.parametrize("kind", ["array", "sparse", "h5"])
def test_blocks_are_smaller_where_results_are_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 12 * 16)
    rows = kinds_of_rows(tmp_path, numbers())[kind]
    assert {result for _, result in rows.map_blocks(block_length, n_outputs=16)} == {3, 2}


def block_length(block: Any) -> int:
    return int(block.shape[0])


def test_a_file_is_read_ahead_but_only_a_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 16)
    rows = kinds_of_rows(tmp_path, numbers())["npy"]
    starts: list[int] = []
    read = rows.file.read
    monkeypatch.setattr(rows.file, "read", lambda where: (starts.append(where.start), read(where))[1])
    results = rows.map_blocks(block_length)
    next(results)
    time.sleep(0.2)
    assert starts == [0, 1, 2]
    results.close()


@pytest.mark.parametrize("chunk_rows", [1, 5, 7, 16, 40, 100])
def test_every_chunk_is_read_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int
) -> None:
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 7 * 16)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("features", data=numbers(100), chunks=(chunk_rows, 4), compression="gzip")
    with open_features(tmp_path / "x.h5") as features:
        chunks: list[int] = []
        read = features.read

        def counting(where: slice) -> Any:
            chunks.extend(range(where.start // chunk_rows, -(-where.stop // chunk_rows)))
            return read(where)

        monkeypatch.setattr(features, "read", counting)
        found = list(FileRows(features, memory=1000 * 16).map_blocks(row_sums, np.ones(100)))
    assert chunks == list(range(-(-100 // chunk_rows)))
    assert [where.start for where, _ in found] == list(range(0, 100, 7))
    np.testing.assert_array_equal(np.concatenate([sums for _, sums in found]), numbers(100).sum(axis=1))


def test_an_error_in_the_reading_thread_reaches_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = kinds_of_rows(tmp_path, numbers())["h5"]

    def fail(_: slice) -> Any:
        raise OSError("no such chunk")

    monkeypatch.setattr(rows.file, "read", fail)
    with pytest.raises(OSError, match="no such chunk"):
        list(rows.map_blocks(block_length))


def test_what_does_not_fit_goes_to_scratch(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(2000))
    made: list[Any] = []

    def make_scratch(shape: Any, dtype: Any) -> Any:
        made.append((shape, dtype))
        return np.empty(shape, dtype)

    with open_features(tmp_path / "x.npy") as file:
        rows = FileRows(file, 1000 * 16, make_scratch)
        assert rows.room_for((1000, 4)).shape == (1000, 4)
        assert made == []
        assert rows.room_for((1001, 4)).dtype == np.float32
    assert made == [((1001, 4), np.dtype("f4"))]


def test_too_little_memory_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    write_features(tmp_path / "x.h5", numbers())
    with (
        open_features(tmp_path / "x.h5") as file,
        pytest.raises(InputError, match=r"1,000 bytes of memory hold 62 rows of 4 features; allow at least 8,000"),
    ):
        FileRows(file, memory=1000)
