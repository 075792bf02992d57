"""HTML and SVG from Python functions; everything that is not yet markup is escaped.

Lines, bars and dots are SVG. The text of axes is HTML, so that it keeps its size on a phone.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cceclust.text import printable

# Width and height of the box that charts are drawn in; it is stretched to the room that there is.
CHART = (1000, 400)


class Html(str):
    """Text that is markup already; any other string is escaped when it is put into an element."""


def escape(text: str) -> str:
    """Return text that is safe in a page: without markup and without unprintable characters."""
    return html.escape(printable(text))


def element(tag: str, *children: str, **attributes: str | float | None) -> Html:
    """Return an element; ``class_`` stands for ``class``, other underscores for hyphens; None is left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag == "img":
        return Html(f"<{tag}{written}>")
    contents = "".join(child if isinstance(child, Html) else escape(child) for child in children)
    return Html(f"<{tag}{written}>{contents}</{tag}>")


def card(title: str, *contents: str, note: str = "", anchor: str | None = None) -> Html:
    """Return a titled part of the page with a note on how to read it."""
    explanation = element("p", note, class_="note") if note else Html("")
    return element("section", element("h2", title), explanation, *contents, class_="card", id=anchor)


def folded(title: str, *contents: str) -> Html:
    """Return contents that only show when the reader unfolds them."""
    return element("details", element("summary", title), *contents)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, class_: str | None = None) -> Html:
    """Return a table whose first column names its rows; it scrolls sideways where the screen is narrow."""
    head = element("thead", element("tr", *(element("th", header, scope="col") for header in headers)))
    lines = [element("tr", element("th", name, scope="row"), *map(cell, cells)) for name, *cells in rows]
    contents = [element("caption", caption), head if headers else Html(""), element("tbody", *lines)]
    return element("div", element("table", *contents, class_=class_), class_="scroll", tabindex=0)


def cell(content: str) -> Html:
    """Return a cell of a table, unless it is one already."""
    return content if isinstance(content, Html) and content.startswith("<td") else element("td", content)


def meter(share: float, text: str = "") -> Html:
    """Return a bar as long as a share, below a text."""
    filled = element("i", style=f"width:{100 * min(1.0, max(0.0, share)):.1f}%")
    bar = element("i", filled, class_="meter", aria_hidden="true")
    return element("span", text, bar, class_="metered") if text else bar


def data_uri(content: bytes, kind: str) -> str:
    """Return bytes as a data URL, which needs no other file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def percent(share: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.1f}\N{NARROW NO-BREAK SPACE}%"


def number(value: float) -> str:
    """Format a number with four significant digits."""
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def drawing(*shapes: str, size: tuple[int, int], description: str, **attributes: str | None) -> Html:
    """Return shapes in a box of some width and height as SVG."""
    box = f"0 0 {size[0]} {size[1]}"
    return element("svg", *shapes, viewBox=box, role="img", aria_label=description, **attributes)


def round_numbers(highest: float) -> list[float]:
    """Return about five round numbers from 0."""
    magnitude = 10.0 ** np.floor(np.log10(highest / 5))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if highest / (factor * magnitude) < 6)
    return [float(round(k * step, 12)) for k in range(int(highest / step + 1e-9) + 1)]


def plot(shapes: Iterable[str], *, last: float, highest: float, x_label: str, y_label: str, description: str) -> Html:
    """Put axes, both from 0, around shapes in a box of the size CHART."""
    (width, height), levels = CHART, [(tick, tick / highest) for tick in round_numbers(highest)]
    tops = [f"{height * (1 - share):.1f}" for _, share in levels]
    grid = [element("line", x1=0, x2=width, y1=top, y2=top, class_="grid") for top in tops]
    y_axis = [element("span", number(tick), style=f"bottom:{100 * share:.2f}%") for tick, share in levels]
    x_axis = [element("span", number(tick), style=f"left:{100 * tick / last:.2f}%") for tick in round_numbers(last)]
    return element(
        "div",
        element("div", y_label, class_="y-label"),
        element("div", *y_axis, class_="y-axis", aria_hidden="true"),
        drawing(*grid, *shapes, size=CHART, description=description, preserveAspectRatio="none"),
        element("div", *x_axis, class_="x-axis", aria_hidden="true"),
        element("div", x_label, class_="x-label"),
        class_="plot",
    )


def bars(heights: NDArray[np.float64]) -> Html:
    """Draw upright bars side by side, of heights from 0 to 1."""
    width, height = CHART[0] / max(1, len(heights)), CHART[1]
    path = "".join(
        f"M{(k + 0.05) * width:.1f},{height}V{height * (1 - share):.1f}h{0.9 * width:.2f}V{height}z"
        for k, share in enumerate(heights)
        if share
    )
    return element("path", d=path, class_="bar")
