"""Model files: a softmax head for raw features, in safetensors. Loading one never runs code.

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
from cceclust.fit.head import Curves, Head
from cceclust.io.atomic import replacing
from cceclust.io.provenance import check_classes, check_stamp, from_json, stamp, to_json
from cceclust.io.reading import by_ending
from cceclust.io.stored import load_array, stored_file

__all__ = ["Model", "in_fixed_order", "read_model", "write_model"]

FLOAT_TYPES = ("float16", "float32", "float64")
# Those of a head with curved borders, which has all three. A reader that does not know them would predict wrongly, so
# such a file states a later version of the format.
CURVE_TENSORS = ("curve_axes", "curve_offsets", "curve_weights")
CURVED_VERSION = 2


@dataclass
class Model:
    """A fitted head: its probabilities are ``softmax(features @ coef.T + intercept)``, unless its borders curve.

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
    cluster_centers : ndarray of shape (n_clusters, n_features) or None
        The mean of the rows of each cluster in the fit.
    curves : Curves or None
        What is added to the logits where borders curve.

    Examples
    --------
    >>> import numpy as np
    >>> from cceclust.io import Model
    >>> model = Model(np.eye(2), np.zeros(2), {"classes": ["left", "right"]})
    >>> model.predict([[3.0, 1.0], [0.0, 2.0]])
    array(['left', 'right'], dtype='<U5')
    """

    coef: NDArray[Any]
    intercept: NDArray[Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    cluster_centers: NDArray[Any] | None = None
    curves: Curves | None = None

    def __post_init__(self) -> None:
        if self.coef.ndim != 2 or 0 in self.coef.shape:
            raise InputError(f"coef has shape {self.coef.shape}; expected (n_clusters, n_features), not empty")
        n_clusters, n_features = self.coef.shape
        n_axes = 0 if self.curves is None else len(self.curves.axes)
        shapes = {
            "intercept": (n_clusters,),
            "cluster_centers": (n_clusters, n_features),
            "curve_axes": (n_axes, n_features),
            "curve_offsets": (n_axes,),
            "curve_weights": (n_clusters, n_axes * (n_axes + 1) // 2),
        }
        for name, array in self.tensors.items():
            expected = shapes.get(name, self.coef.shape)
            if array.shape != expected or array.dtype.name not in FLOAT_TYPES:
                raise InputError(f"{name} is {array.dtype} of shape {array.shape}; expected floats of shape {expected}")
            if not np.isfinite(array).all():
                raise InputError(f"{name} contains NaN or infinity")
        check_classes(self.parameters, n_clusters)

    @property
    def id(self) -> str:
        """A digest of the weights, which is also stored with the clusters that the model makes."""
        digest = hashlib.sha256()
        for name, array in self.tensors.items():
            if name != "cluster_centers":
                digest.update(f"{array.dtype.name} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:32]

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, without those that are not there."""
        tensors = {"coef": self.coef, "intercept": self.intercept}
        if self.curves is not None:
            tensors |= zip(CURVE_TENSORS, (self.curves.axes, self.curves.offsets, self.curves.weights), strict=True)
        return tensors if self.cluster_centers is None else {**tensors, "cluster_centers": self.cluster_centers}

    @property
    def head(self) -> Head:
        return Head(self.coef, self.intercept, self.curves)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the cluster of each row of features, or its class if clusters have names."""
        labels = np.asarray(self._logits(X).argmax(axis=1), np.int64)
        classes = self.parameters.get("classes")
        return labels if classes is None else np.array(classes)[labels]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each cluster for each row of features, of shape (n_samples, n_clusters)."""
        from cceclust.fit.predict import probabilities_of

        return probabilities_of(self._logits(X))

    def _logits(self, X: Any) -> NDArray[Any]:
        # Loading these takes longer than reading a model, which may be all that is wanted.
        from cceclust.fit.predict import all_logits
        from cceclust.fit.source import as_source

        # Lists hold Python floats, so float64, as for scikit-learn.
        source = as_source(X if hasattr(X, "dtype") else np.asarray(X, np.float64))
        if source.shape[1] != self.coef.shape[1]:
            raise InputError(f"X has shape {source.shape}; expected (n_samples, {self.coef.shape[1]})")
        logits = all_logits(self.head, source)
        bad = ~np.isfinite(logits).all(axis=1)
        if bad.any():
            raise InputError(f"row {int(bad.argmax())} contains NaN, infinity or values too large for the model")
        return logits


def write_model(path: str | Path, model: Model, *, force: bool = False) -> None:
    """Write a model to a ``.safetensors`` file, over an existing one with ``force=True``.

    Of absolute paths in its mappings only the names of the files are kept.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cceclust.io import Model, read_model, write_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/tiny.safetensors", Model(np.eye(2, 3), np.zeros(2)))
    ...     read_model(f"{folder}/tiny.safetensors").coef.shape
    (2, 3)
    """
    path = Path(path)
    by_ending(path, {".safetensors": None}, "write a model to", InputError)
    tensors = {name: np.ascontiguousarray(array) for name, array in model.tensors.items()}
    metadata = {
        **(stamp("model") if model.curves is None else stamp("model", CURVED_VERSION)),
        "model_id": model.id,
        "parameters": to_json(model.parameters),
        "provenance": to_json(model.provenance),
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


def read_model(path: str | Path) -> Model:
    """Read a ``.safetensors`` file that :func:`write_model` wrote; the model has ``predict`` and ``predict_proba``."""
    path = Path(path)
    with stored_file(path) as file:
        check_stamp(file.attributes, "model", path)
        names = ("coef", "intercept", "cluster_centers", *CURVE_TENSORS)
        tensors = {name: array for name in names if (array := load_array(path, file.arrays, name)) is not None}
    missing = [name for name in ("coef", "intercept") if name not in tensors]
    curves = [tensors[name] for name in CURVE_TENSORS if name in tensors]
    if missing or len(curves) not in (0, len(CURVE_TENSORS)):
        raise FileContentError(f"{path} is damaged: it has no {missing[0] if missing else 'complete curves'}")
    mappings: dict[str, Any] = {
        name: from_json(file.attributes.get(name), name, path) for name in ("parameters", "provenance")
    }
    weights: dict[str, Any] = {name: tensors.get(name) for name in ("coef", "intercept", "cluster_centers")}
    try:
        model = Model(**weights, **mappings, curves=Curves(*curves) if curves else None)
    except InputError as error:
        raise FileContentError(f"{path} is damaged: {error}") from error
    if file.attributes.get("model_id", model.id) != model.id:
        raise FileContentError(f"{path} is damaged: its weights are not those that it was written with")
    return model
