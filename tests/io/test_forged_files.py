"""Files that are well-formed and lie: pointing elsewhere, or against the contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from safetensors.numpy import save_file

from cceclust.errors import FileContentError, InputError, TargetExistsError
from cceclust.io import (
    Clusters,
    Model,
    open_features,
    read_clusters,
    read_model,
    write_clusters,
    write_features,
    write_model,
)
from cceclust.io.description import describe
from cceclust.io.partial_labels import read_label_file


def hdf5(path: Path, **datasets: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name] = values
    return path


class TestOtherFiles:
    def test_values_and_links_outside_the_file_are_not_read(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret.bin"
        secret.write_bytes(np.arange(12, dtype="f4").tobytes())
        hdf5(tmp_path / "other.h5", features=np.ones((3, 2)), labels=[1, 2, 3])
        with h5py.File(tmp_path / "raw.h5", "w") as file:
            file.create_dataset("features", (3, 4), "f4", external=[(str(secret), 0, 48)])
        with h5py.File(tmp_path / "virtual.h5", "w") as file:
            layout = h5py.VirtualLayout((3, 2), "f8")
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "features", (3, 2))
            file.create_virtual_dataset("features", layout)
        for name in ("raw.h5", "virtual.h5"):
            with pytest.raises(FileContentError, match="holds values in other files"):
                open_features(tmp_path / name)
        with h5py.File(tmp_path / "link.h5", "w") as file:
            file["features"] = np.ones((3, 2))
            file["labels"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "labels")
        with open_features(tmp_path / "link.h5") as features:
            assert features.labels is None


def forged(path: Path, change: Callable[[h5py.File], None]) -> Path:
    """Write a cluster file and change it."""
    chances = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    clusters = Clusters(chances.argmax(axis=1), chances, true_labels=np.array([0, 1, 1]), levels=np.ones((2, 2)))
    write_clusters(path, clusters, force=True)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def put(name: str, values: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file.pop(name, None)
        file[name] = values

    return change


def say(name: str, value: Any) -> Callable[[h5py.File], None]:
    return lambda file: file.attrs.__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("labels", np.ones((3, 2), int)), "labels have shape"),
        (put("labels", np.array([0, 1, 7])), "labels go from 0 to 7; expected 0 to 1"),
        (put("labels", np.array([0, 1, -2])), "labels go from -2 to 1"),
        (put("labels", np.zeros(0, int)), "labels"),
        (put("labels", ["a", "b", "c"]), "no dataset 'labels' of integers"),
        (put("probabilities", np.ones(3)), "probabilities are float64 of shape"),
        (put("probabilities", np.ones((3, 0))), "labels go from 0 to 1"),
        (put("probabilities", np.ones((3, 2), int)), "probabilities are int64"),
        (put("probabilities", np.full((3, 2), 0.7)), "do not sum to 1"),
        (put("probabilities", np.array([[2.0, -1.0]] * 3)), "are negative"),
        (put("probabilities", np.full((3, 2), np.nan)), "not finite"),
        (put("true_labels", np.ones((3, 2))), "true_labels are float64 of shape"),
        (put("true_labels", np.ones(4)), r"true_labels have shape \(4,\), but there are 3 labels"),
        (put("paths", np.arange(3)), "paths are int64"),
        (put("levels", np.ones(3)), "levels are float64 of shape"),
        (put("outlier_scores", np.array([1, np.nan, 1])), "outlier_scores contain NaN"),
        (put("kept/a", np.ones((3, 2))), "kept/a are float64 of shape"),
        (say("parameters", "{"), "its parameters are not JSON"),
        (say("parameters", "[" * 100_000), "its parameters are not JSON"),
        (say("parameters", "[]"), "its parameters are not a JSON object"),
        (say("parameters", 3.5), "its parameters are not JSON"),
        (say("parameters", '{"classes": 3}'), "'classes' in its parameters is 3"),
        (say("parameters", '{"classes": ["a"]}'), "expected 2 integers or texts"),
        (say("parameters", '{"classes": ["a", ["b"]]}'), "expected 2 integers or texts"),
        (say("diagnostics", '{"candidates": []}'), r"'candidates' in its diagnostics is \[\]"),
        (say("diagnostics", '{"warnings": {"a": 1}}'), "'warnings' in its diagnostics is {"),
        (say("provenance", '{"features": ["x"]}'), r"'features' in its provenance is \['x"),
        (say("format_version", "99"), "has format version 99, but"),
    ],
)
def test_forged_clusters_are_refused_by_name(tmp_path: Path, change: Callable[[h5py.File], None], message: str) -> None:
    with pytest.raises(FileContentError, match=message) as caught:
        read_clusters(forged(tmp_path / "c.h5", change))
    assert "c.h5" in str(caught.value)


def test_attributes_that_are_no_text_are_shown(tmp_path: Path) -> None:
    path = hdf5(tmp_path / "x.h5", features=np.eye(3))
    with h5py.File(path, "r+") as file:
        file.attrs["bytes"] = np.array([b"caf\xe9", b"b"])
        file.attrs.create("broken", b"caf\xe9", dtype=h5py.string_dtype())
        file.attrs["empty"] = h5py.Empty("f")
    provenance = describe(path).provenance
    assert provenance["bytes"] == ["caf�", "b"]
    json.dumps(provenance)


@pytest.mark.parametrize(
    ("tensors", "parameters", "message"),
    [
        ({"coef": np.ones((0, 3)), "intercept": np.ones(0)}, "{}", "coef has shape"),
        ({"coef": np.ones((2, 0)), "intercept": np.ones(2)}, "{}", "coef has shape"),
        ({"coef": np.ones((2, 3), int), "intercept": np.ones(2)}, "{}", "coef is int64"),
        ({"coef": np.full((2, 3), np.nan), "intercept": np.ones(2)}, "{}", "NaN or infinity"),
        ({"coef": np.ones((2, 3))}, "{}", "it has no intercept"),
        ({"coef": np.ones((2, 3)), "intercept": np.ones(2)}, '{"classes": 7}', "'classes' in its parameters is 7"),
        ({"coef": np.ones((2, 3)), "intercept": np.ones(2)}, '{"classes": [1]}', "expected 2 integers or texts"),
        ({"coef": np.ones((2, 3)), "intercept": np.ones(2)}, "[[", "its parameters are not JSON"),
    ],
)
def test_forged_models_are_refused(tmp_path: Path, tensors: Any, parameters: str, message: str) -> None:
    path = tmp_path / "m.safetensors"
    save_file(tensors, path, {"format": "cceclust-model", "format_version": "1", "parameters": parameters})
    with pytest.raises(FileContentError, match=message):
        read_model(path)


def test_changed_weights_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    write_model(path, Model(np.eye(2, 3), np.zeros(2)))
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileContentError, match="its weights are not those that it was written with"):
        read_model(path)


def test_writers_refuse_what_readers_would(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not finite"):
        write_clusters(tmp_path / "c.h5", Clusters(np.array([0]), np.array([[np.nan, 1.0]])))
    with pytest.raises(InputError, match="NaN or infinity"):
        write_model(tmp_path / "m.safetensors", Model(np.eye(2), np.array([0, np.inf])))
    clusters = Clusters(np.array([0]), diagnostics={"agreement": float("nan"), "deep": [np.float32("inf")]})
    write_clusters(tmp_path / "c.h5", clusters)
    assert read_clusters(tmp_path / "c.h5").diagnostics == {"agreement": None, "deep": [None]}


def test_equal_contents_make_equal_files(tmp_path: Path) -> None:
    contents = set()
    for number in range(6):
        path = tmp_path / f"{number}.safetensors"
        write_model(path, Model(np.eye(2, 3), np.zeros(2), {"a": 1, "b": "ü"}, {"features": "x"}))
        contents.add(path.read_bytes())
    assert len(contents) == 1
    assert read_model(path).parameters == {"a": 1, "b": "ü"}


@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.npy", "x.h5", "x.npz", "x.safetensors"])
@pytest.mark.parametrize("content", [b"\x00" * 40, b"\xff\xfe" * 50, b"\x93NUMPY\x01\x00", b"PK\x03\x04" + bytes(90)])
def test_rubbish_is_an_error_of_ours(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    for read in (describe, read_label_file):
        with suppress(FileContentError):
            read(tmp_path / name)


@pytest.mark.parametrize("name", ["c.h5", "c.csv", "c.parquet", "c.npy", "m.safetensors", "x.h5"])
def test_no_writer_overwrites_without_force_and_all_refuse_other_endings(tmp_path: Path, name: str) -> None:
    clusters, model = Clusters(np.array([0, 1])), Model(np.eye(2), np.zeros(2))
    writers: dict[str, Callable[..., None]] = {
        "c": lambda path, **options: write_clusters(path, clusters, **options),
        "m": lambda path, **options: write_model(path, model, **options),
        "x": lambda path, **options: write_features(path, np.eye(2), **options),
    }
    write = writers[name[0]]
    (tmp_path / name).write_text("precious")
    with pytest.raises(TargetExistsError):
        write(tmp_path / name)
    assert (tmp_path / name).read_text() == "precious"
    write(tmp_path / name, force=True)
    assert (tmp_path / name).read_bytes() != b"precious"
    with pytest.raises(InputError, match=r"files that end in '\.pkl'; expected one of"):
        write(tmp_path / "x.pkl")
