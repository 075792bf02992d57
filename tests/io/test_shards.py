from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.io import open_features, write_features
from cceclust.io.features import named_after

MATRIX = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Return a folder of three files of rows."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for name, rows in (("b", slice(20, 21)), ("a", slice(0, 20)), ("c", slice(21, 50))):
        numbers = np.arange(50)[rows]
        write_features(
            folder / f"{name}.h5",
            MATRIX[rows],
            labels=numbers % 3,
            names=[f"row {number}" for number in numbers],
            attributes={"backbone": "none", "part": name},
        )
    (folder / "notes.txt").write_text("not features")
    (folder / ".a.h5.1234.part").write_text("unfinished")
    return folder


@pytest.mark.parametrize("pattern", ["shards", "shards/*.h5", "sha*/?.h5"])
def test_folders_and_patterns_are_one_matrix(shards: Path, pattern: str) -> None:
    with open_features(shards.parent / pattern) as features:
        assert features.shape == (50, 4)
        np.testing.assert_array_equal(features.array(), MATRIX)
        np.testing.assert_array_equal(features.read(slice(18, 23)), MATRIX[18:23])
        np.testing.assert_array_equal(features.read(slice(40, 10, -7)), MATRIX[40:10:-7])
        np.testing.assert_array_equal(features.read([49, 0, 20, 19]), MATRIX[[49, 0, 20, 19]])
        np.testing.assert_array_equal(np.concatenate([rows for _, rows in features.blocks()]), MATRIX)
        assert features.labels is not None
        np.testing.assert_array_equal(features.labels, np.arange(50) % 3)
        assert features.names is not None
        assert features.names[20] == "row 20"
        assert features.attributes["backbone"] == "none"
        assert "part" not in features.attributes


def test_relative_patterns(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shards)
    with open_features("*.h5") as features:
        assert features.shape == (50, 4)


def test_several_files_keep_their_order(shards: Path) -> None:
    with open_features([shards / "c.h5", shards / "a.h5"]) as features:
        np.testing.assert_array_equal(features.array(), np.concatenate([MATRIX[21:], MATRIX[:20]]))
    with pytest.raises(InputError, match=r"a\.h5 is given twice"):
        open_features([shards / "a.h5", shards / "a.h5"])


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path: Path) -> None:
    write_features(tmp_path / "a[1].h5", MATRIX)
    with open_features(tmp_path / "a[1].h5") as features:
        assert features.shape == MATRIX.shape


def test_types_are_joined_and_what_only_some_have_is_left_out(shards: Path) -> None:
    np.save(shards / "d.npy", np.ones((2, 4)))
    with open_features(shards) as features:
        assert features.dtype == np.float64
        assert features.labels is None
        np.testing.assert_array_equal(features.read([0, 51]), [MATRIX[0], np.ones(4)])


def test_sparse_files_stay_sparse(tmp_path: Path) -> None:
    for number in range(2):
        sparse.save_npz(tmp_path / f"{number}.npz", sparse.csr_matrix(MATRIX[25 * number : 25 * number + 25]))
    with open_features(tmp_path) as features:
        assert sparse.issparse(features.array())
        np.testing.assert_array_equal(features.array().toarray(), MATRIX)
        np.testing.assert_array_equal(features.read([1, 26]), MATRIX[[1, 26]])


def test_other_columns_are_told_with_both_files(shards: Path, tmp_path: Path) -> None:
    write_features(shards / "d.h5", MATRIX[:, :3])
    with pytest.raises(FileContentError, match=r"d\.h5 has other columns \(3\) than .*a\.h5 \(4\)"):
        open_features(shards)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,x\n1,2\n")
    with pytest.raises(FileContentError, match=r"b\.csv has other columns .*in the same order"):
        open_features(tmp_path / "*.csv")


def test_nothing_found(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no file that matches"):
        open_features(tmp_path / "*.h5")
    with pytest.raises(FileError, match="is a folder without feature files"):
        open_features(tmp_path)
    with pytest.raises(InputError, match="there are no features"):
        open_features([])


def test_all_files_are_closed(shards: Path) -> None:
    open_features(shards).close()
    write_features(shards / "d.h5", MATRIX[:, :3])
    with pytest.raises(FileContentError):
        open_features(shards)
    # Other parts of the process may open and close files of their own meanwhile.
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not any(os.path.realpath(link).startswith(str(shards.resolve())) for link in links)


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        ([Path("data/*.h5")], Path("data")),
        ([Path("/x/data/a.h5"), Path("/x/data/b.h5")], Path("/x/data")),
        ([Path("data/part*/x.h5")], Path("data")),
        ([Path("*.h5")], None),
        ([Path("../*.h5")], None),
        ([Path("a/x.h5"), Path("b/x.h5")], None),
    ],
)
def test_results_of_several_files_are_named_after_their_folder(paths: list[Path], folder: Path | None) -> None:
    assert named_after(paths) == folder
