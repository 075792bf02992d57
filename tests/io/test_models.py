import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from cceclust.errors import FileContentError, InputError
from cceclust.fit.head import Curves
from cceclust.io import Model, read_model, write_features, write_model
from cceclust.io.provenance import stamp

MODEL = Model(
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array([0.5, -0.5], np.float32),
    parameters={"n_clusters": 2, "prior": None, "weight_decay": np.float64(0.5)},
    provenance={"features": "x.h5", "paths": Path("a/b")},
)


def test_models_come_back_bit_for_bit(tmp_path: Path) -> None:
    write_model(tmp_path / "m.safetensors", MODEL)
    model = read_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(model.coef, MODEL.coef)
    np.testing.assert_array_equal(model.intercept, MODEL.intercept)
    assert model.coef.dtype == np.float32
    assert model.parameters == {"n_clusters": 2, "prior": None, "weight_decay": 0.5}
    assert model.provenance == {"features": "x.h5", "paths": "a/b"}


def test_non_contiguous_weights_are_written_right(tmp_path: Path) -> None:
    coef = np.arange(12.0).reshape(4, 3).T
    write_model(tmp_path / "m.safetensors", Model(coef, np.zeros(3)))
    np.testing.assert_array_equal(read_model(tmp_path / "m.safetensors").coef, coef)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"end in '.pkl'; expected one of .safetensors"):
        write_model(tmp_path / "m.pkl", MODEL)


def test_truncated_model(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    write_model(path, MODEL)
    whole = path.read_bytes()
    for length in (1, 7, 8, 40, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(FileContentError, match="is damaged or not a safetensors file"):
            read_model(path)


def test_pickles_are_not_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> object:
            return (Path.touch, (tmp_path / "trapped",))

    (tmp_path / "m.safetensors").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(FileContentError, match="is damaged or not a safetensors file"):
        read_model(tmp_path / "m.safetensors")
    assert not (tmp_path / "trapped").exists()


def test_newer_format_is_refused_with_advice(tmp_path: Path) -> None:
    save_file({"coef": MODEL.coef}, tmp_path / "m.safetensors", {**stamp("model"), "format_version": "3"})
    with pytest.raises(FileContentError, match=r"format version 3, but cceclust.*use a newer cceclust"):
        read_model(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("name", "said"), [("x.h5", "is a feature file; expected a model"), ("x.npy", "states no format")]
)
def test_features_in_the_place_of_a_model_are_named(name: str, said: str, tmp_path: Path) -> None:
    write_features(tmp_path / "x.h5", MODEL.coef)
    np.save(tmp_path / "x.npy", MODEL.coef)
    with pytest.raises(FileContentError, match=said):
        read_model(tmp_path / name)


def test_curved_models_come_back_bit_for_bit_and_state_a_later_version(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    curves = Curves(generator.normal(size=(2, 3)), generator.normal(size=2), generator.normal(size=(2, 3)))
    model = Model(np.eye(2, 3), np.zeros(2), curves=curves)
    write_model(tmp_path / "m.safetensors", model)
    read = read_model(tmp_path / "m.safetensors")
    rows = generator.normal(size=(20, 3))
    np.testing.assert_array_equal(read.predict_proba(rows), model.predict_proba(rows))
    assert not np.allclose(read.predict_proba(rows), Model(np.eye(2, 3), np.zeros(2)).predict_proba(rows))
    with safe_open(tmp_path / "m.safetensors", "numpy") as file:
        assert file.metadata()["format_version"] == "2"
    assert model.id != Model(np.eye(2, 3), np.zeros(2)).id


@pytest.mark.parametrize("lost", ["curve_axes", "curve_offsets", "curve_weights"])
def test_curves_that_miss_a_part_are_refused(tmp_path: Path, lost: str) -> None:
    tensors = {
        "coef": np.eye(2, 3),
        "intercept": np.zeros(2),
        "curve_axes": np.ones((2, 3)),
        "curve_offsets": np.ones(2),
        "curve_weights": np.ones((2, 3)),
    }
    del tensors[lost]
    save_file(tensors, tmp_path / "m.safetensors", stamp("model", 2))
    with pytest.raises(FileContentError, match="it has no complete curves"):
        read_model(tmp_path / "m.safetensors")


def test_curves_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match="curve_weights is float64 of shape"):
        Model(np.eye(2, 3), np.zeros(2), curves=Curves(np.ones((2, 3)), np.ones(2), np.ones((2, 4))))


def test_models_of_version_0_2_are_read(tmp_path: Path) -> None:
    tensors = {"coef": MODEL.coef, "intercept": MODEL.intercept, "column_scales": np.ones(3)}
    save_file(tensors, tmp_path / "m.safetensors", {**stamp("model"), "model_id": MODEL.id})
    np.testing.assert_array_equal(read_model(tmp_path / "m.safetensors").coef, MODEL.coef)


def test_names_of_folders_are_not_kept(tmp_path: Path) -> None:
    write_model(tmp_path / "m.safetensors", Model(np.eye(2), np.zeros(2), {}, {"features": "/home/ann/x.h5"}))
    assert read_model(tmp_path / "m.safetensors").provenance == {"features": "x.h5"}
