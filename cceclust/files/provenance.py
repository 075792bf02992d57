"""What every file of ours says about itself: its kind, its format version and the tool that wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cceclust.errors import FileContentError
from cceclust.version import __version__

__all__ = ["FORMAT_VERSION", "check_stamp", "from_json", "is_stamped", "stamp", "to_json"]

FORMAT_VERSION = 1


def stamp(kind: str) -> dict[str, str]:
    """Return the attributes that open every file: ``format``, ``format_version``, ``tool_version``."""
    return {
        "format": f"cceclust-{kind}",
        "format_version": str(FORMAT_VERSION),
        "tool_version": __version__,
    }


def is_stamped(attributes: Mapping[str, Any]) -> bool:
    """Tell whether a file is one of ours; others may use the attribute ``format`` for what they like."""
    return str(attributes.get("format", "")).startswith("cceclust-")


def check_stamp(attributes: Mapping[str, Any], kind: str, path: Path) -> None:
    """Raise unless ``attributes`` are those of a file of this kind that this version can read."""
    expected = f"cceclust-{kind}"
    found = attributes.get("format")
    if found != expected:
        came = f"its format is {found!r}" if found else "it states no format"
        raise FileContentError(f"{path} is not a {kind} file of cceclust ({came}, expected {expected!r})")
    version = str(attributes.get("format_version", ""))
    if not version.isdecimal() or int(version) < 1:
        raise FileContentError(f"{path} states the format version {version!r}; expected a positive number")
    if int(version) > FORMAT_VERSION:
        raise FileContentError(
            f"{path} has format version {version}, newer than {FORMAT_VERSION}, the newest this cceclust "
            f"({__version__}) reads; upgrade it: pip install -U cceclust"
        )


def to_json(values: Mapping[str, Any]) -> str:
    """Serialise parameters or provenance, NumPy values included."""
    return json.dumps(values, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value))


def from_json(text: Any, path: Path) -> dict[str, Any]:
    """Parse what :func:`to_json` wrote; an absent text is an empty mapping."""
    if text is None:
        return {}
    try:
        values = json.loads(text)
    except (TypeError, ValueError) as error:
        raise FileContentError(f"{path} is damaged: an attribute is not JSON ({error})") from None
    if not isinstance(values, dict):
        raise FileContentError(f"{path} is damaged: an attribute is not a JSON object")
    return values
