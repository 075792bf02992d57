"""Model files: a linear softmax head for raw features, in safetensors. Loading one never runs code.

The contract of the format is in ``docs/files.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from cceclust.errors import FileContentError, InputError
from cceclust.files.atomic import replacing
from cceclust.files.provenance import check_stamp, from_json, stamp, to_json
from cceclust.files.reading import reading

__all__ = ["Model", "check_model_name", "read_model", "write_model"]


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

    def __post_init__(self) -> None:
        if self.coef.ndim != 2 or self.intercept.shape != self.coef.shape[:1]:
            raise InputError(
                f"expected coef (n_clusters, n_features) and intercept (n_clusters,), got shapes {self.coef.shape} and "
                f"{self.intercept.shape}"
            )
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InputError("the weights contain NaN or infinity")


def write_model(path: str | Path, model: Model, *, force: bool = False) -> None:
    """Write a model file.

    Parameters
    ----------
    path : str or Path
        The file to write; it must end in ``.safetensors``.
    model : Model
        What to write.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cceclust.files import Model, read_model, write_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/tiny.safetensors", Model(np.eye(2, 3), np.zeros(2)))
    ...     read_model(f"{folder}/tiny.safetensors").coef.shape
    (2, 3)
    """
    path = Path(path)
    check_model_name(path)
    tensors = {"coef": np.ascontiguousarray(model.coef), "intercept": np.ascontiguousarray(model.intercept)}
    metadata = {
        **stamp("model"),
        "parameters": to_json(model.parameters),
        "provenance": to_json(model.provenance),
    }
    with replacing(path, force=force) as part:
        part.write_bytes(save(tensors, metadata))


def check_model_name(path: str | Path) -> None:
    """Raise unless a model can be written to a file of this name: worth calling before long work."""
    if Path(path).suffix.lower() != ".safetensors":
        raise InputError(f"cannot write a model to {path}: it ends in {Path(path).suffix!r}; expected .safetensors")


def read_model(path: str | Path) -> Model:
    """Read a model file that :func:`write_model` wrote.

    Parameters
    ----------
    path : str or Path
        A ``.safetensors`` file.

    Returns
    -------
    Model
    """
    path = Path(path)
    with reading(path, "a model file (safetensors)"), safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        check_stamp(metadata, "model", path)
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    missing = {"coef", "intercept"} - tensors.keys()
    if missing:
        raise FileContentError(f"{path} is damaged: it has no {' and no '.join(sorted(missing))}")
    parameters, provenance = (from_json(metadata.get(name), path) for name in ("parameters", "provenance"))
    try:
        return Model(tensors["coef"], tensors["intercept"], parameters, provenance)
    except InputError as error:
        raise FileContentError(f"{path} is damaged: {error}") from error
