from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from cceclust.cli.main import run
from cceclust.io import Model, write_model


def test_a_model_becomes_an_onnx_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "m.safetensors", Model(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)))
    assert run(["export", str(tmp_path / "m.safetensors"), str(tmp_path / "m.onnx")]) == 0
    assert "m.onnx" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    rows = np.array([[1, 0], [0, 1]], np.float32)
    assert session.run(["label"], {"features": rows})[0].tolist() == [0, 1]
