"""Models as ONNX files, for programs that have neither cceclust nor Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from cceclust.errors import InputError, MissingExtraError
from cceclust.fit.head import FARTHEST
from cceclust.io.atomic import replacing
from cceclust.io.models import Model
from cceclust.io.reading import by_ending
from cceclust.version import __version__

__all__ = ["write_onnx"]

# All operators of the graph are as old as this version of the operator set, so that old runtimes can load it.
OPERATOR_SET = 13
# The version of the file format that came with it.
FORMAT_VERSION = 7


def write_onnx(path: str | Path, model: Model, *, force: bool = False) -> None:
    """Write a model as an ONNX file. Needs the package onnx.

    The input ``features`` is (n, d), of the model's type. The outputs are ``label`` (n,), the number or the name of the
    cluster, and ``probabilities`` (n, K). The metadata hold ``classes`` (a JSON list, if clusters have names) and
    ``model_id``.
    """
    path = Path(path)
    by_ending(path, {".onnx": None}, "export a model to", InputError)
    content = as_onnx(model).SerializeToString(deterministic=True)
    with replacing(path, force=force) as part:
        part.write_bytes(content)


def as_onnx(model: Model) -> Any:
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError as error:
        raise MissingExtraError.of("writing ONNX files", "onnx", "onnx") from error

    # Runtimes have no Gemm for half precision on CPUs.
    dtype = np.dtype(np.float64 if model.coef.dtype == np.float64 else np.float32)
    n_clusters, n_features = model.coef.shape
    classes = model.parameters.get("classes")
    constants = {"coef": model.coef.astype(dtype), "intercept": model.intercept.astype(dtype)}
    straight = "logits" if model.curves is None else "straight"
    nodes = [helper.make_node("Gemm", ["features", "coef", "intercept"], [straight], transB=1)]
    if model.curves is not None:
        first, second = np.triu_indices(len(model.curves.axes))
        parts = {"axes": model.curves.axes, "offsets": model.curves.offsets, "weights": model.curves.weights}
        parts |= {"least": np.array(-FARTHEST), "most": np.array(FARTHEST)}
        constants |= {name: array.astype(dtype) for name, array in parts.items()} | {"first": first, "second": second}
        nodes += [
            helper.make_node("Gemm", ["features", "axes", "offsets"], ["any_places"], transB=1),
            helper.make_node("Clip", ["any_places", "least", "most"], ["places"]),
            helper.make_node("Gather", ["places", "first"], ["one"], axis=1),
            helper.make_node("Gather", ["places", "second"], ["other"], axis=1),
            helper.make_node("Mul", ["one", "other"], ["products"]),
            helper.make_node("Gemm", ["products", "weights", "straight"], ["logits"], transB=1),
        ]
    nodes += [
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["logits"], ["label" if classes is None else "cluster"], axis=1, keepdims=0),
    ]
    has_text = classes is not None and np.array(classes).dtype.kind == "U"
    if classes is not None:
        constants["classes"] = np.array(classes).astype(object if has_text else np.int64)
        nodes.append(helper.make_node("Gather", ["classes", "cluster"], ["label"]))
    number = helper.np_dtype_to_tensor_dtype(dtype)
    label = TensorProto.STRING if has_text else TensorProto.INT64
    inputs = [helper.make_tensor_value_info("features", number, ["n", n_features])]
    outputs = [
        helper.make_tensor_value_info("label", label, ["n"]),
        helper.make_tensor_value_info("probabilities", number, ["n", n_clusters]),
    ]
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "cceclust", inputs, outputs, weights)
    exported = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPERATOR_SET)],
        ir_version=FORMAT_VERSION,
        producer_name="cceclust",
        producer_version=__version__,
    )
    named = {} if classes is None else {"classes": json.dumps(classes)}
    helper.set_model_props(exported, {"model_id": model.id, **named})
    checker.check_model(exported)
    return exported
