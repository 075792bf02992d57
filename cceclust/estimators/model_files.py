"""Fitted estimators as model files, the same that the command line writes."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.files import Model, read_model, write_model

__all__ = ["SavedAsModel", "model_of"]

# What a model file can hold of a parameter. A generator of random numbers, for one, is left out.
STORED_TYPES = (str, int, float, list, tuple, range, np.ndarray, np.generic, type(None))


class SavedAsModel:
    """Saving and loading of an estimator with a softmax head."""

    n_features_in_: int
    feature_names_in_: NDArray[Any]
    # The method that model files of this estimator state.
    _method: ClassVar[str]
    _names_classes: ClassVar[bool] = False

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the fitted head and the parameters to a model file, as ``cceclust fit`` does.

        Parameters
        ----------
        path : str or Path
            The file to write; it must end in ``.safetensors``.
        force : bool
            Overwrite an existing file.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        write_model(path, model_of(self), force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return an estimator that predicts as the saved one did, to the bit. Loading never runs code from the file.

        It has the parameters of the fit (the number of clusters that was found, if it was searched for) and what
        describes the head. What describes the rows of the fit, such as `labels_`, is in cluster files instead.

        Parameters
        ----------
        path : str or Path
            A model file of this kind of estimator, from :meth:`save` or ``cceclust fit``.

        Returns
        -------
        estimator
        """
        model = read_model(path)
        _refuse_another_kind(cls, model, path)
        names = cls._get_param_names()  # type: ignore[attr-defined]
        estimator = cls(**{name: model.parameters[name] for name in names if name in model.parameters})
        estimator.n_features_in_ = model.coef.shape[1]
        features = model.provenance.get("feature_names")
        if isinstance(features, list) and len(features) == estimator.n_features_in_:
            estimator.feature_names_in_ = np.array(features, object)
        estimator._take(model, Path(path))
        return estimator

    @abstractmethod
    def _take(self, model: Model, path: Path) -> None:
        """Set the fitted attributes that a model has."""


def model_of(estimator: Any, **provenance: Any) -> Model:
    """Return the model of a fitted estimator."""
    parameters = {name: value for name, value in estimator.get_params().items() if isinstance(value, STORED_TYPES)}
    # What a model has is a number; how it was chosen is said beside it.
    parameters.update(method=estimator._method, n_clusters=len(estimator.intercept_))
    if estimator._names_classes:
        parameters["classes"] = estimator.classes_.tolist()
    if hasattr(estimator, "feature_names_in_"):
        provenance["feature_names"] = estimator.feature_names_in_.tolist()
    return Model(
        estimator.coef_,
        estimator.intercept_,
        parameters,
        provenance,
        cluster_centers=getattr(estimator, "cluster_centers_", None),
        column_scales=getattr(estimator, "_columns", None),
        curves=getattr(estimator, "curves_", None),
    )


def _refuse_another_kind(kind: type[SavedAsModel], model: Model, path: str | Path) -> None:
    """Raise if a model was not made by this kind of estimator."""
    found = (model.parameters.get("method"), "classes" in model.parameters)
    if found == (kind._method, kind._names_classes):
        return
    from cceclust import estimators

    kinds = [getattr(estimators, name) for name in estimators.__all__]
    owners = [other.__name__ for other in kinds if (other._method, other._names_classes) == found]
    made_by = f"by {owners[0]}: use {owners[0]}.load" if owners else "by none of the estimators: use read_model"
    raise FileContentError(f"{path} is not a model of {kind.__name__}; it was made {made_by}")
