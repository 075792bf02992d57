"""The objectives that a network can be trained on, by name."""

from __future__ import annotations

import inspect
from typing import Any

from cceclust.errors import InputError
from cceclust.torch.objectives.baselines import IIC, MIADM, SeLa
from cceclust.torch.objectives.cce import CCE, CCEByPGD
from cceclust.torch.objectives.imsat import IMSAT
from cceclust.torch.objectives.objective import Objective

__all__ = ["OBJECTIVES", "Objective", "make_objective"]

OBJECTIVES: dict[str, type[Objective]] = {
    "cce": CCE,
    "cce-pgd": CCEByPGD,
    "imsat": IMSAT,
    "iic": IIC,
    "sela": SeLa,
    "miadm": MIADM,
}


def make_objective(name: str, **parameters: Any) -> Objective:
    """Return the objective of the given name, with these parameters; see :data:`OBJECTIVES`.

    Examples
    --------
    >>> from cceclust.torch.objectives import make_objective
    >>> make_objective("cce", fairness=10.0).fairness
    10.0
    """
    if name not in OBJECTIVES:
        raise InputError(f"objective={name!r}; expected one of {', '.join(OBJECTIVES)}")
    known = [parameter for parameter in inspect.signature(OBJECTIVES[name].__init__).parameters if parameter != "self"]
    for parameter in parameters:
        if parameter not in known:
            has = ", ".join(known) or "none"
            raise InputError(f"objective {name!r} has no parameter {parameter!r}; it has {has}")
    return OBJECTIVES[name](**parameters)
