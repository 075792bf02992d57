"""Model files: a linear softmax head for raw features, in safetensors. Loading one never runs code.

The contract of the format is in ``docs/files.md``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from cceclust.errors import FileContentError, InputError
from cceclust.files.atomic import replacing
from cceclust.files.provenance import check_classes, check_stamp, from_json, stamp, to_json
from cceclust.files.reading import by_ending, reading
from cceclust.files.stored import load_column, open_safetensors
from cceclust.text import without_folders

__all__ = ["Model", "check_model_name", "read_model", "write_model"]

FLOAT_TYPES = ("float16", "float32", "float64")


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
        The source of the features.
    """

    coef: NDArray[Any]
    intercept: NDArray[Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.coef.ndim != 2 or 0 in self.coef.shape or self.intercept.shape != self.coef.shape[:1]:
            raise InputError(
                f"expected coef (n_clusters, n_features) and intercept (n_clusters,), got shapes {self.coef.shape} and "
                f"{self.intercept.shape}"
            )
        for array in (self.coef, self.intercept):
            if array.dtype.name not in FLOAT_TYPES:
                raise InputError(f"the weights are of type {array.dtype}; expected one of {', '.join(FLOAT_TYPES)}")
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InputError("the weights contain NaN or infinity")
        check_classes(self.parameters, len(self.intercept))

    @property
    def id(self) -> str:
        """A digest of the weights, which is also stored with the clusters that the model makes."""
        digest = hashlib.sha256()
        for array in (self.coef, self.intercept):
            digest.update(f"{array.dtype.name} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:32]


def write_model(path: str | Path, model: Model, *, force: bool = False, full_paths: bool = False) -> None:
    """Write a model file.

    Parameters
    ----------
    path : str or Path
        The file to write; it must end in ``.safetensors``.
    model : Model
        What to write.
    force : bool
        Overwrite an existing file.
    full_paths : bool
        Keep absolute paths in the provenance, instead of file names only.

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
        "model_id": model.id,
        **{
            name: to_json(values if full_paths else without_folders(values))
            for name, values in (("parameters", model.parameters), ("provenance", model.provenance))
        },
    }
    with replacing(path, force=force) as part:
        part.write_bytes(in_fixed_order(save(tensors, metadata)))


def in_fixed_order(content: bytes) -> bytes:
    """Sort the header of a safetensors file, whose order is random, so that equal models make equal files."""
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True, ensure_ascii=False).encode()
    # In this format the tensors begin at a multiple of 8 bytes.
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def check_model_name(path: str | Path) -> None:
    """Raise unless a model can be written to a file of this name; call this before long work."""
    by_ending(path, {".safetensors": None}, "write a model to", InputError)


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
    with reading(path, "a model file (safetensors)"):
        file = open_safetensors(path)
        check_stamp(file.attributes, "model", path)
        coef, intercept = (load_column(path, file.arrays, name) for name in ("coef", "intercept"))
    if coef is None or intercept is None:
        raise FileContentError(f"{path} is damaged: it has no {'coef' if coef is None else 'intercept'}")
    parameters, provenance = (from_json(file.attributes.get(name), name, path) for name in ("parameters", "provenance"))
    try:
        # Copies, so that the file may be deleted.
        model = Model(np.array(coef), np.array(intercept), parameters, provenance)
    except InputError as error:
        raise FileContentError(f"{path} is damaged: {error}") from error
    if file.attributes.get("model_id", model.id) != model.id:
        raise FileContentError(f"{path} is damaged: its weights are not those that it was written with")
    return model
