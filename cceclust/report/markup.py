"""HTML from Python functions; everything that is not yet markup is escaped."""

from __future__ import annotations

import base64
import html

from cceclust.text import printable

__all__ = ["Html", "card", "data_block", "data_uri", "element", "facts_table", "number", "percent", "table"]

VOID_ELEMENTS = frozenset({"col", "img", "link", "meta"})


class Html(str):
    """Text that is markup already; any other string is escaped when it is put into an element."""


def escape(text: str) -> str:
    """Return text that is safe in a page: without markup and without unprintable characters."""
    return html.escape(printable(text))


def element(tag: str, *children: str, **attributes: str | float | bool | None) -> Html:
    """Return an element.

    Parameters
    ----------
    tag : str
        Its name.
    *children : str
        Its contents: ``Html`` is kept as it is, other strings are escaped.
    **attributes
        ``class_`` stands for ``class``, other underscores for hyphens; None and False are left out.

    Examples
    --------
    >>> from cceclust.report.markup import element
    >>> element("p", "1 < 2 ", element("b", "always"), class_="note")
    '<p class="note">1 &lt; 2 <b>always</b></p>'
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str("" if value is True else value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID_ELEMENTS:
        return Html(f"<{tag}{written}>")
    contents = "".join(child if isinstance(child, Html) else escape(child) for child in children)
    return Html(f"<{tag}{written}>{contents}</{tag}>")


def card(title: str, *contents: str, note: str = "", wide: bool = False, anchor: str | None = None) -> Html:
    """Return a titled part of the page with a note on how to read it."""
    explanation = element("p", note, class_="note") if note else Html("")
    heading = element("h2", title)
    return element("section", heading, explanation, *contents, class_="card wide" if wide else "card", id=anchor)


def table(headers: list[str], rows: list[list[str]], *, caption: str, class_: str | None = None) -> Html:
    """Return a table whose first column names its rows; it scrolls sideways where the screen is narrow."""
    head = element("tr", *(element("th", header, scope="col") for header in headers))
    body = [
        element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells))
        for name, *cells in rows
    ]
    contents = [element("caption", caption), element("thead", head), element("tbody", *body)]
    return element("div", element("table", *contents, class_=class_), class_="scroll", tabindex=0)


def facts_table(caption: str, facts: dict[str, str]) -> Html:
    """Return a table of names and values."""
    rows = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in facts.items()]
    return element("table", element("caption", caption), element("tbody", *rows), class_="facts")


def data_uri(content: bytes, kind: str) -> str:
    """Return bytes as a data URL, which needs no other file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def data_block(name: str, text: str) -> Html:
    """Return JSON for the page's script, which browsers never run; no text can end the block."""
    safe = text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
    return Html(f'<script type="application/json" id="{escape(name)}">{safe}</script>')


def percent(share: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.1f}\N{NARROW NO-BREAK SPACE}%"


def number(value: float) -> str:
    """Format a number with four significant digits."""
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
