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

# All of LLVM's floating-point freedoms except those that assume away NaN and infinity, which kernels guard against.
REORDERING = {"reassoc", "contract", "arcp", "nsz"}


def compiled(*, reorder_sums: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba: without the interpreter's lock, cached on disk.

    A compiled function that is called by another must be compiled with ``inline="always"``. Otherwise there are two
    copies of it, and whether the one or the other runs, with sums in another order, depends on whether the caller comes
    from the cache: the first run after an installation would differ from all later ones in the last bits.

    Parameters
    ----------
    reorder_sums : bool
        Let the compiler vectorise floating-point sums. NaN and infinity keep their meaning.
    **options
        Passed on to :func:`numba.njit`.
    """
    options.setdefault("nogil", True)
    options.setdefault("cache", CACHE_ON_DISK)
    options.setdefault("fastmath", REORDERING if reorder_sums else False)

    def decorate(function: Function) -> Function:
        kernel: Function = numba.njit(**options)(function)
        return kernel

    return decorate
