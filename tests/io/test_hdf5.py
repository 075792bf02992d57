from pathlib import Path

import h5py
import numpy as np
import pytest

from cceclust.errors import InputError
from cceclust.io.hdf5 import LateErrorFile, plain_attributes, read_column, write_column, writing_hdf5


@pytest.mark.parametrize("column", [["a", "ü", ""], [3, 1, 2], [0.5, 1.5], [True, False]])
def test_columns_come_back_as_they_went(tmp_path: Path, column: list[object]) -> None:
    with writing_hdf5(tmp_path / "x.h5") as (file, _):
        write_column(file, "column", column)
    with h5py.File(tmp_path / "x.h5") as file:
        assert read_column(file["column"]).tolist() == column


def test_file_names_that_are_not_text_keep_their_bytes(tmp_path: Path) -> None:
    name = b"caf\xe9.png".decode("utf-8", "surrogateescape")
    with writing_hdf5(tmp_path / "x.h5") as (file, _):
        write_column(file, "paths", [name])
    with h5py.File(tmp_path / "x.h5") as file:
        assert read_column(file["paths"])[0] == name


def test_objects_are_refused(tmp_path: Path) -> None:
    with writing_hdf5(tmp_path / "x.h5") as (file, _), pytest.raises(InputError, match="labels are of type object"):
        write_column(file, "labels", ["a", None])


def test_attributes_become_plain_values() -> None:
    attributes = {"a": b"bytes", "b": np.int64(3), "c": np.array([1.5, 2.5]), "d": "text", "e": h5py.Empty("f")}
    plain = plain_attributes(attributes)
    assert (plain["a"], plain["b"], plain["c"], plain["d"]) == ("bytes", 3, [1.5, 2.5], "text")
    assert isinstance(plain["e"], str)


def test_failed_writes_are_kept_and_read_back(tmp_path: Path) -> None:
    with LateErrorFile(tmp_path / "x", "w+b") as file:
        file.write(b"abcdef")
        file.error = OSError("the disk is full")
        file.seek(4)
        assert file.write(b"EFGH") == 4
        assert file.truncate(20) == 20
        file.seek(3)
        buffer = bytearray(b"?" * 7)
        assert file.readinto(buffer) == 7
        assert buffer == b"dEFGH\0\0"
        with pytest.raises(OSError, match="the disk is full"):
            file.raise_error()
    assert (tmp_path / "x").read_bytes() == b"abcdef"


def test_device_without_room_is_remembered() -> None:
    with LateErrorFile(Path("/dev/full"), "r+b") as file:
        assert file.write(b"abc") == 3
        with pytest.raises(OSError, match="No space left on device"):
            file.raise_error()
