"""Model files: a linear softmax head for raw features, in safetensors. Loading one never runs code.

The contract of the format is in ``docs/files.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from cceclust.errors import FileContentError
from cceclust.files.atomic import replacing
from cceclust.files.features import refuse_what_is_no_file
from cceclust.files.provenance import check_stamp, from_json, stamp, to_json

__all__ = ["Model", "read_model", "write_model"]


@dataclass
class Model:
    """A fitted head: ``softmax(features @ coef.T + intercept)``.

    Attributes
    ----------
    coef : ndarray of shape (n_clusters, n_features)
        Weights for raw features; any standardisation is folded in.
    intercept : ndarray of shape (n_clusters,)
        Biases.
    parameters : dict
        The parameters of the fit.
    provenance : dict
        Where the features came from.
    """

    coef: NDArray[Any]
    intercept: NDArray[Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


def write_model(path: str | Path, model: Model, *, force: bool = False) -> None:
    """Write a model file."""
    tensors = {
        "coef": np.ascontiguousarray(model.coef),
        "intercept": np.ascontiguousarray(model.intercept),
    }
    metadata = {
        **stamp("model"),
        "parameters": to_json(model.parameters),
        "provenance": to_json(model.provenance),
    }
    with replacing(path, force=force) as part:
        try:
            save_file(tensors, part, metadata)
        except SafetensorError as error:
            raise OSError(str(error)) from error


def read_model(path: str | Path) -> Model:
    """Read a model file that :func:`write_model` wrote."""
    path = Path(path)
    refuse_what_is_no_file(path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            check_stamp(metadata, "model", path)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except SafetensorError as error:
        raise FileContentError(f"{path} is damaged or not a model file (safetensors: {error})") from None
    coef, intercept = tensors.get("coef"), tensors.get("intercept")
    if coef is None or intercept is None or coef.ndim != 2 or intercept.shape != coef.shape[:1]:
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        raise FileContentError(f"{path} is damaged: expected coef (K, d) and intercept (K,), found {shapes or 'none'}")
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise FileContentError(f"{path} is damaged: its weights contain NaN or infinity")
    return Model(
        coef,
        intercept,
        from_json(metadata.get("parameters"), path),
        from_json(metadata.get("provenance"), path),
    )
