"""How far long work has come, for those who wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["OnProgress", "Progress", "counting_rows", "silent"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Progress:
    """The state of one phase of long work.

    Attributes
    ----------
    phase : str
        What is being done.
    done, total : int
        How much of it is done, and how much there is; a total of 0 stands for not known.
    detail : str
        What else can be said.
    """

    phase: str
    done: int = 0
    total: int = 0
    detail: str = ""


OnProgress = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Report to nobody."""


def counting_rows(
    results: Iterator[tuple[slice, Result]], phase: str, total: int, on_progress: OnProgress
) -> Iterator[tuple[slice, Result]]:
    """Pass on the results of successive blocks of rows, and report the number of rows done."""
    on_progress(Progress(phase, 0, total))
    for where, result in results:
        yield where, result
        on_progress(Progress(phase, where.stop, total))
