"""Sums over points whose order is fixed and which vectorise all the same."""

from __future__ import annotations

from typing import Any

from cceclust.compiled import compiled
from cceclust.validation import FloatArray

__all__ = ["sum_in_pairs"]


@compiled(inline="always")
def sum_in_pairs(terms: FloatArray) -> Any:
    """Return the sum of the terms, at least one, which are overwritten.

    One running sum would wait for each addition before the next, and compilers may share it among several only if
    they are free to round differently each time. Adding the second half to the first, again and again, leaves nothing
    to choose; and rounding errors grow with the logarithm of the number of terms instead of the number.
    """
    n = len(terms)
    while n > 1:
        half = (n + 1) // 2
        for i in range(n - half):
            terms[i] += terms[half + i]
        n = half
    return terms[0]
