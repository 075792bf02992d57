"""Sums over points in a fixed order that can still be vectorised."""

from __future__ import annotations

from typing import Any

from cceclust.compiled import compiled
from cceclust.validation import FloatArray

__all__ = ["sum_in_pairs"]


@compiled(inline="always")
def sum_in_pairs(terms: FloatArray) -> Any:
    """Return the sum of the terms, which are overwritten; there must be at least one.

    One running sum would wait for each addition before the next, and compilers may split it into several only if
    they are free to round differently each time. Adding the second half to the first, again and again, fixes the
    order; and rounding errors grow with the logarithm of the number of terms instead of the number itself.
    """
    n = len(terms)
    while n > 1:
        half = (n + 1) // 2
        for i in range(n - half):
            terms[i] += terms[half + i]
        n = half
    return terms[0]
