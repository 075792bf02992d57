"""Exported models, run by onnxruntime."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from cceclust.errors import MissingExtraError
from cceclust.fit.head import Curves
from cceclust.io import Model, write_onnx

GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.normal(size=(500, 7))
COEF, INTERCEPT = GENERATOR.normal(size=(4, 7)), GENERATOR.normal(size=4)
CURVES = GENERATOR.normal(size=(3, 7)), GENERATOR.normal(size=3), GENERATOR.normal(size=(4, 6))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", [None, [3, 1, 8, 5], ["Äpfel", "b", "c", "d"]])
@pytest.mark.parametrize("curved", [False, True])
def test_exported_models_predict_the_same(dtype, classes, curved: bool, tmp_path: Path) -> None:
    parameters = {} if classes is None else {"classes": classes}
    curves = Curves(*(part.astype(dtype) for part in CURVES)) if curved else None
    model = Model(COEF.astype(dtype), INTERCEPT.astype(dtype), parameters, curves=curves)
    write_onnx(tmp_path / "m.onnx", model)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    rows = ROWS.astype(np.float64 if dtype == np.float64 else np.float32)
    label, probabilities = session.run(["label", "probabilities"], {"features": rows})
    assert label.tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), atol=1e-5)
    metadata = session.get_modelmeta().custom_metadata_map
    assert metadata["model_id"] == model.id
    assert json.loads(metadata.get("classes", "null")) == classes


def test_equal_models_make_equal_files(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        write_onnx(tmp_path / name, Model(COEF, INTERCEPT, {"classes": [1, 2, 3, 4]}))
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    onnx.checker.check_model(onnx.load(tmp_path / "a.onnx"), full_check=True)


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\.\[onnx\]"):
        write_onnx(tmp_path / "m.onnx", Model(COEF, INTERCEPT))
    assert not list(tmp_path.iterdir())
