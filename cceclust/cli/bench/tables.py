"""Shared code for the tables of the benchmarks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["mean_and_deviation", "plain_table"]


def plain_table(title: str, *headers: str) -> Table:
    """Return an empty table with names aligned left and numbers aligned right."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for position, header in enumerate(headers):
        table.add_column(header, justify="right" if position else "left")
    return table


def mean_and_deviation(values: Sequence[float]) -> str:
    """Write several values as mean ± standard deviation."""
    return f"{statistics.fmean(values):.3f} ± {statistics.pstdev(values):.3f}"
