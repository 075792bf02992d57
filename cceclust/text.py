"""Text that others wrote, made harmless for terminals, spreadsheets and people's privacy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

__all__ = ["as_cell", "from_cell", "printable", "without_folders"]

# Control characters (escapes of terminals among them), line and paragraph separators, marks that reverse the order in
# which text is shown, and halves of characters, which stand for bytes that are no text. Line ends are left alone.
UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
FORMULA = re.compile(r"'*[=+\-@\t\r]")


def printable(text: str) -> str:
    """Replace what could steer a terminal or a browser instead of being shown."""
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def as_cell(value: Any) -> Any:
    """Return what to write into a table: text that a spreadsheet would take for a formula gets an apostrophe before."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def from_cell(text: str) -> str:
    """Undo :func:`as_cell`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def without_folders(value: Any) -> Any:
    """Shorten absolute paths to the names of their files, also inside lists and mappings."""
    if isinstance(value, Mapping):
        return {name: without_folders(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(item) for item in value]
    if not isinstance(value, str):
        return value
    for kind in (PurePosixPath, PureWindowsPath):
        if kind(value).is_absolute():
            return kind(value).name or value
    return value
