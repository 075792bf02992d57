import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file
from scipy import sparse

from cceclust.errors import CceclustError, FileContentError, FileError, InputError
from cceclust.fit.source import Source
from cceclust.io import open_features, write_features
from cceclust.io.features import FeatureFile

MATRIX = np.random.default_rng(0).normal(size=(57, 5)).astype(np.float32)
LABELS = np.arange(57) % 4


def save_hdf5(path: Path, **arrays: Any) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def save_npy(path: Path, **arrays: Any) -> None:
    np.save(path, arrays["features"])


SAVERS: dict[str, Callable[..., Any]] = {
    "x.h5": save_hdf5,
    "x.hdf5": save_hdf5,
    "x.h5ad": save_hdf5,
    "x.npy": save_npy,
    "x.npz": np.savez,
    "x.safetensors": lambda path, **arrays: save_file(arrays, path),
}
NAMED = [name for name in SAVERS if name != "x.npy"]


def chunked(matrix: NDArray[Any], path: Path, **options: Any) -> FeatureFile:
    with h5py.File(path, "w") as file:
        file.create_dataset("features", data=matrix, **options)
    return open_features(path)


class TestOneReaderForAllFormats:
    @pytest.mark.parametrize("name", SAVERS)
    def test_rows_are_the_same_whichever_way_they_are_read(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](tmp_path / name, features=MATRIX, labels=LABELS)
        with open_features(tmp_path / name) as features:
            assert isinstance(features, Source)
            assert features.shape == (features.n_samples, features.n_features) == (57, 5)
            np.testing.assert_array_equal(features.array(), MATRIX)
            for rows in (slice(3, 9), slice(None, None, -2), slice(50, 99), slice(9, 3)):
                np.testing.assert_array_equal(features.read(rows), MATRIX[rows])
            for indices in ([5, 0, 56, 5], [], LABELS):
                np.testing.assert_array_equal(features.read(indices), MATRIX[np.asarray(indices, int)])
            for ascending in (np.arange(57), np.array([0, 5, 56]), np.arange(4, 9)):
                np.testing.assert_array_equal(features.take(ascending), MATRIX[ascending])
            places, blocks = zip(*features.blocks(), strict=True)
            np.testing.assert_array_equal(np.concatenate(blocks), MATRIX)
            assert places[0].start == 0
            if name in NAMED:
                np.testing.assert_array_equal(features.labels, LABELS)
                assert features.dataset == "features"

    @pytest.mark.parametrize("name", SAVERS)
    @pytest.mark.parametrize(
        ("stored", "read"),
        [("float16", "f4"), (">f4", "f4"), ("float64", "f8"), ("int32", "f4"), ("uint8", "f4"), ("bool", "f4")],
    )
    def test_rows_have_the_type_to_compute_with(self, tmp_path: Path, name: str, stored: str, read: str) -> None:
        matrix = (MATRIX > 0).astype(stored)
        if name == "x.safetensors" and stored == ">f4":
            pytest.skip("the format has one byte order")
        SAVERS[name](tmp_path / name, features=matrix)
        with open_features(tmp_path / name) as features:
            assert features.dtype == features.array().dtype == features.take(np.array([1, 3])).dtype == read
            np.testing.assert_array_equal(features.array(), matrix)

    def test_rows_that_are_not_there(self, small_features: Path) -> None:
        with open_features(small_features) as features:
            for row in (120, -1):
                with pytest.raises(InputError, match=f"there is no row {row}: .* has 120 rows"):
                    features.read([0, row])
            for wrong in ([0.5], np.ones(120, bool)):
                with pytest.raises(InputError, match="expected a list of integers"):
                    features.read(wrong)

    @pytest.mark.parametrize("name", NAMED)
    def test_arrays_by_name(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](tmp_path / name, first=MATRIX, second=MATRIX[:, :2], classes=LABELS)
        with open_features(tmp_path / name, dataset="/second", labels_dataset="classes") as features:
            assert features.shape == (57, 2)
            np.testing.assert_array_equal(features.labels, LABELS)

    @pytest.mark.parametrize("name", NAMED)
    def test_the_only_matrix_needs_no_name(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](tmp_path / name, embedding=MATRIX, other=LABELS)
        with open_features(tmp_path / name) as features:
            assert features.dataset == "embedding"

    def test_memory_maps_are_not_copied(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", MATRIX)
        with open_features(tmp_path / "x.npy") as features:
            assert isinstance(features.array(), np.memmap)

    def test_archives_read_only_what_is_needed(self, tmp_path: Path) -> None:
        objects = np.array([{"a": 1}], object)
        np.savez(tmp_path / "x.npz", allow_pickle=True, features=MATRIX, extra=objects, labels=LABELS)
        with open_features(tmp_path / "x.npz") as features:
            np.testing.assert_array_equal(features.array(), MATRIX)


class TestLabels:
    def test_text_labels_and_paths(self, tmp_path: Path) -> None:
        names = [f"klasse ü {row % 3}" for row in range(57)]
        write_features(tmp_path / "x.h5", MATRIX, labels=names, paths=names)
        with open_features(tmp_path / "x.h5") as features:
            assert features.labels is not None
            assert features.paths is not None
            assert features.labels.tolist() == features.paths.tolist() == names

    def test_byte_strings_in_archives_become_text(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "x.npz", features=MATRIX, labels=np.array(["ü".encode()] * 57))
        with open_features(tmp_path / "x.npz") as features:
            assert features.labels is not None
            assert features.labels[0] == "ü"

    def test_column_vectors_are_columns(self, tmp_path: Path) -> None:
        save_hdf5(tmp_path / "x.h5", features=MATRIX, labels=LABELS[:, np.newaxis])
        with open_features(tmp_path / "x.h5") as features:
            np.testing.assert_array_equal(features.labels, LABELS)

    @pytest.mark.parametrize("name", NAMED)
    @pytest.mark.parametrize("shape", [(56,), (58,), (0,), (57, 4)])
    def test_labels_of_another_shape(self, tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
        SAVERS[name](tmp_path / name, features=MATRIX, labels=np.zeros(shape, int))
        with pytest.raises(FileContentError, match=re.escape(f"labels have shape {shape}; expected one for each row")):
            open_features(tmp_path / name)

    @pytest.mark.parametrize("name", NAMED)
    def test_no_such_labels(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](tmp_path / name, features=MATRIX, labels=LABELS)
        with pytest.raises(FileContentError, match=r"no dataset 'klass' for labels; it has .*labels \(57,\) int64"):
            open_features(tmp_path / name, labels_dataset="klass")


class TestAnnData:
    @pytest.fixture
    def cells(self, tmp_path: Path) -> Path:
        path = tmp_path / "cells.h5ad"
        with h5py.File(path, "w") as file:
            file["obsm/X_pca"] = MATRIX
            file["obsm/X_umap"] = MATRIX[:, :2]
            file["obs/cell_type/categories"] = ["B", "T"]
            file["obs/cell_type/codes"] = np.where(np.arange(57) == 5, -1, np.arange(57) % 2).astype(np.int8)
            sparse = file.create_group("X")
            sparse.attrs.update({"encoding-type": "csr_matrix", "shape": (57, 1000)})
            sparse["indptr"] = np.zeros(58, np.int64)
            sparse["indices"], sparse["data"] = np.zeros(0, np.int32), np.zeros(0, np.float32)
            file["obs/barcode"] = [f"cell {row}" for row in range(57)]
            file["obs"].attrs["_index"] = "barcode"
            file["varm/PCs"] = np.zeros((1000, 5))
        return path

    def test_embedding_and_categories(self, cells: Path) -> None:
        with open_features(cells, dataset="obsm/X_pca", labels_dataset="obs/cell_type") as features:
            np.testing.assert_array_equal(features.array(), MATRIX)
            assert features.labels is not None
            assert features.labels[:6].tolist() == ["B", "T", "B", "T", "B", ""]

    def test_choice_is_left_to_the_user(self, cells: Path) -> None:
        complaint = r"several matrices; choose one with --dataset: X \(57, 1000\) a sparse matrix \(csr\), obsm/X_pca"
        with pytest.raises(FileContentError, match=complaint):
            open_features(cells)

    def test_names_of_the_observations(self, cells: Path) -> None:
        for dataset in ("X", "obsm/X_pca"):
            with open_features(cells, dataset=dataset, keep=["obs/cell_type"]) as features:
                assert features.names is not None
                assert features.names[56] == "cell 56"
                assert features.kept["obs/cell_type"][1] == "T"
        with open_features(cells, dataset="varm/PCs") as features:
            assert features.names is None
        with open_features(cells, dataset="X", names_dataset="obs/cell_type") as features:
            assert features.names is not None
            assert features.names[1] == "T"


class TestBadFiles:
    @pytest.mark.parametrize("name", SAVERS)
    def test_missing_file(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(FileError, match=f"there is no file .*{name}"):
            open_features(tmp_path / name)

    def test_device(self) -> None:
        with pytest.raises(FileError, match="is a pipe or a device"):
            open_features("/dev/null")

    @pytest.mark.parametrize("name", SAVERS)
    def test_empty_file(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).touch()
        with pytest.raises(FileContentError, match=r"is empty \(0 bytes\)"):
            open_features(tmp_path / name)

    @pytest.mark.parametrize("name", SAVERS)
    def test_something_else_under_that_name(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("label,x,y\n1,2,3\n" * 10)
        with pytest.raises(FileContentError, match="is damaged or not a"):
            open_features(tmp_path / name)

    def test_unknown_ending(self, tmp_path: Path) -> None:
        (tmp_path / "x.xlsx").write_text("x")
        with pytest.raises(FileContentError, match=r"end in '.xlsx'; expected one of .h5, .hdf5, .h5ad, .npy"):
            open_features(tmp_path / "x.xlsx")

    @pytest.mark.parametrize("name", SAVERS)
    @pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
    def test_truncated_file(self, tmp_path: Path, name: str, share: float) -> None:
        path = tmp_path / name
        SAVERS[name](path, features=MATRIX, labels=LABELS)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(FileContentError, match="is damaged or not a"):
            open_features(path)

    @pytest.mark.parametrize("name", SAVERS)
    def test_damaged_bytes_never_escape_as_other_errors(self, tmp_path: Path, name: str) -> None:
        path, generator = tmp_path / name, np.random.default_rng(0)
        SAVERS[name](path, features=MATRIX, labels=LABELS)
        whole = np.frombuffer(path.read_bytes(), np.uint8)
        refused = 0
        for _ in range(60):
            damaged = whole.copy()
            places = generator.integers(0, min(len(whole), 1500), 4)
            damaged[places] = generator.integers(0, 256, 4)
            path.write_bytes(damaged.tobytes())
            try:
                with open_features(path) as features:
                    features.read(slice(None))
            except CceclustError:
                refused += 1
        assert refused > 10

    def test_damaged_chunk_is_reported_when_read(self, tmp_path: Path) -> None:
        path = tmp_path / "x.h5"
        chunked(MATRIX, path, chunks=(10, 5), compression="gzip", fletcher32=True).close()
        with h5py.File(path) as file:
            offset = file["features"].id.get_chunk_info(3).byte_offset
        with path.open("r+b") as raw:
            raw.seek(offset)
            raw.write(b"damage")
        with open_features(path) as features:
            np.testing.assert_array_equal(features.read(slice(0, 10)), MATRIX[:10])
            with pytest.raises(FileContentError, match=r"x\.h5, rows 30 to 40, is damaged or not compressed"):
                features.read(slice(30, 40))

    @pytest.mark.parametrize("name", NAMED)
    def test_no_such_dataset_lists_those_there_are(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](tmp_path / name, first=MATRIX, second=LABELS)
        with pytest.raises(FileContentError) as caught:
            open_features(tmp_path / name, dataset="third")
        assert "no dataset 'third'; it has " in str(caught.value)
        assert "first (57, 5) float32" in str(caught.value)
        assert "second (57,) int64" in str(caught.value)

    def test_npy_arrays_have_no_names(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", MATRIX)
        with pytest.raises(FileContentError, match=r"no dataset 'features'; it has \(57, 5\) float32"):
            open_features(tmp_path / "x.npy", dataset="features")

    @pytest.mark.parametrize("name", SAVERS)
    @pytest.mark.parametrize("shape", [(12,), (2, 3, 2)])
    def test_arrays_that_are_no_matrix(self, tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
        SAVERS[name](tmp_path / name, features=np.zeros(shape))
        with pytest.raises(FileContentError) as caught:
            open_features(tmp_path / name)
        assert f"has shape {shape}; expected a matrix (n_samples, n_features)" in str(caught.value)

    def test_no_matrix_at_all(self, tmp_path: Path) -> None:
        save_hdf5(tmp_path / "x.h5", a=np.zeros(3), b=np.zeros((2, 2, 2)))
        with pytest.raises(FileContentError, match=r"no matrix of numbers .*; it has a \(3,\) float64, b \(2, 2, 2\)"):
            open_features(tmp_path / "x.h5")

    @pytest.mark.parametrize("name", SAVERS)
    @pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
    def test_no_rows_or_no_columns(self, tmp_path: Path, name: str, shape: tuple[int, int]) -> None:
        SAVERS[name](tmp_path / name, features=np.zeros(shape))
        with pytest.raises(FileContentError) as caught:
            open_features(tmp_path / name)
        assert f"has shape {shape}; expected" in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "array"),
        [
            ("x.h5", np.array([["a", "b"]], object)),
            ("x.h5", np.array([[b"a", b"b"]])),
            ("x.h5", np.ones((2, 2), complex)),
            ("x.h5", np.zeros((2, 2), [("a", int)])),
            ("x.npy", np.array([["a", "b"]])),
            ("x.npy", np.ones((2, 2), complex)),
            ("x.npz", np.array([["a", "b"]])),
        ],
    )
    def test_what_is_not_numbers(self, tmp_path: Path, name: str, array: NDArray[Any]) -> None:
        SAVERS[name](tmp_path / name, features=array)
        with pytest.raises(FileContentError, match=r"holds .*; expected numbers"):
            open_features(tmp_path / name)

    def test_types_that_numpy_lacks(self, tmp_path: Path) -> None:
        header = b'{"features":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'
        (tmp_path / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
        with pytest.raises(FileContentError, match="features holds BF16; expected numbers"):
            open_features(tmp_path / "x.safetensors")

    @pytest.mark.parametrize("name", ["x.npy", "x.npz", "pickle.npy", "pickle.npz"])
    def test_objects_are_never_unpickled(self, tmp_path: Path, name: str) -> None:
        class Trap:
            def __reduce__(self) -> object:
                return (Path.touch, (tmp_path / "trapped",))

        objects = np.array([[Trap()]], object)
        if name == "x.npy":
            np.save(tmp_path / name, objects, allow_pickle=True)
        elif name == "x.npz":
            np.savez(tmp_path / name, allow_pickle=True, features=objects)
        else:
            (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        with pytest.raises(FileContentError):
            open_features(tmp_path / name)
        assert not (tmp_path / "trapped").exists()


class TestOurFormat:
    def test_newer_format_is_refused_with_advice(self, small_features: Path) -> None:
        with h5py.File(small_features, "r+") as file:
            file.attrs["format_version"] = "99"
        with pytest.raises(FileContentError, match=r"format version 99, but cceclust.*use a newer cceclust"):
            open_features(small_features)

    def test_incomplete_file(self, small_features: Path) -> None:
        with h5py.File(small_features, "r+") as file:
            file.attrs["complete"] = False
        with pytest.raises(FileContentError, match="is not complete: its extraction was stopped"):
            open_features(small_features)

    def test_attributes_of_other_tools_mean_what_they_like(self, tmp_path: Path) -> None:
        save_hdf5(tmp_path / "x.h5", features=MATRIX)
        with h5py.File(tmp_path / "x.h5", "r+") as file:
            file.attrs.update({"format": "theirs", "format_version": "2024", "complete": False})
        with open_features(tmp_path / "x.h5") as features:
            assert features.attributes["format"] == "theirs"

    def test_written_files_follow_the_contract(self, small_features: Path) -> None:
        with h5py.File(small_features) as file:
            assert file.attrs["format"] == "cceclust-features"
            assert file.attrs["format_version"] == "1"
            assert file.attrs["complete"]
            assert file.attrs["backbone"] == "none"
            assert file["features"].chunks[1] == 6
            assert set(file) == {"features", "labels", "paths"}

    @pytest.mark.parametrize(
        "wrong", [np.zeros(3), np.zeros((0, 3)), np.zeros((3, 3), int), np.zeros((3, 3), complex), [["a"]]]
    )
    def test_writer_takes_only_matrices_of_floats(self, tmp_path: Path, wrong: Any) -> None:
        with pytest.raises(InputError, match=r"expected a matrix .* of float16, float32, float64"):
            write_features(tmp_path / "x.h5", wrong)
        assert not (tmp_path / "x.h5").exists()

    def test_writer_wants_a_label_a_row(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"labels have shape \(3,\); expected one for each row: \(57,\)"):
            write_features(tmp_path / "x.h5", MATRIX, labels=[1, 2, 3])


def test_rows_here_and_there_read_each_chunk_once() -> None:
    dataset = FakeDataset(np.zeros((8_000, 700)), 200)
    FeatureFile(Path("x.h5"), "features", dataset).read([5, 7_000, 6, 450, 7_001, 399])
    assert dataset.chunks_read == [0, 1, 2, 35]


SPARSE = sparse.random(57, 40, 0.1, format="csr", dtype=np.float32, random_state=0)


def save_anndata(path: Path, matrix: Any) -> None:
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": f"{matrix.format}_matrix", "shape": matrix.shape})
        group.update({"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data})


class TestSparse:
    @pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
    @pytest.mark.parametrize("name", ["x.npz", "x.h5ad"])
    def test_a_sparse_matrix_stays_sparse(self, tmp_path: Path, name: str, kind: str) -> None:
        if (name, kind) == ("x.h5ad", "coo"):
            pytest.skip("AnnData has no such matrices")
        save = sparse.save_npz if name == "x.npz" else save_anndata
        save(tmp_path / name, SPARSE.asformat(kind))
        with open_features(tmp_path / name) as features:
            assert features.is_sparse
            assert (features.array() != SPARSE).nnz == 0
            assert (features.take(np.array([2, 7])) != SPARSE[[2, 7]]).nnz == 0
            assert (sparse.vstack([block for _, block in features.blocks()]) != SPARSE).nnz == 0
            np.testing.assert_array_equal(features.read([7, 2]), SPARSE[[7, 2]].toarray())

    @pytest.mark.parametrize(("part", "place", "wrong"), [("indices", 3, 40), ("indices", 0, -1), ("indptr", 1, 10**6)])
    @pytest.mark.parametrize("name", ["x.npz", "x.h5ad"])
    def test_indices_outside_the_matrix_are_refused(
        self, tmp_path: Path, name: str, part: str, place: int, wrong: int
    ) -> None:
        broken = SPARSE.copy()
        getattr(broken, part)[place] = wrong
        save = sparse.save_npz if name == "x.npz" else save_anndata
        save(tmp_path / name, broken)
        with pytest.raises(FileContentError, match="is damaged or not"):
            open_features(tmp_path / name)


class FakeDataset:
    """What FeatureFile needs of an h5py dataset, with a record of the chunks that were read."""

    def __init__(self, matrix: NDArray[Any], chunk_rows: int) -> None:
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype
        self.chunks = (chunk_rows, matrix.shape[1])
        self.chunks_read: list[int] = []

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        assert 0 <= rows.start <= rows.stop
        self.chunks_read += range(rows.start // self.chunks[0], -(-min(rows.stop, len(self.matrix)) // self.chunks[0]))
        return self.matrix[rows]
