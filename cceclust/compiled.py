"""Numba's compiler behind one typed decorator, with one switch for its on-disk cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., Any])

# Where the package's folder cannot be written to, numba falls back to a folder of the user's.
CACHE_ON_DISK = os.environ.get("CCECLUST_NUMBA_CACHE", "1") != "0"


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba: without the interpreter's lock, cached on disk.

    Sums keep their order: with fast-math, the compiler may vectorise a sum or not as its operands lie in memory, and
    the last bits change from fit to fit. Where a running sum is too slow, see :mod:`cceclust.pseudo_labels.summation`.

    A compiled function that is called by another must be compiled with ``inline="always"``: otherwise there are two
    copies of it, and which one runs depends on whether the caller comes from the cache.
    """
    options.setdefault("nogil", True)
    options.setdefault("cache", CACHE_ON_DISK)

    def decorate(function: Function) -> Function:
        kernel: Function = numba.njit(**options)(function)
        return kernel

    return decorate
