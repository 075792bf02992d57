"""What every cceclust file states about itself: its kind, its format version and the tool that wrote it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cceclust.errors import FileContentError, InputError
from cceclust.text import without_folders
from cceclust.version import __version__

__all__ = ["as_plain_value", "check_classes", "check_stamp", "from_json", "stamp", "to_json"]

# Those that are read; a file states the oldest that has all it needs.
VERSIONS = ("1", "2")
KINDS = {
    "features": "a feature file",
    "clusters": "a cluster file",
    "model": "a model file",
    "network": "a network that cceclust deep trained",
    "run": "a run of cceclust deep",
}
# Entries that our readers use, with their type; all others are only shown.
KNOWN_ENTRIES: dict[str, type] = {
    **dict.fromkeys(("dataset", "features", "labels_dataset", "method", "names_dataset"), str),
    **dict.fromkeys(("classes", "keep", "warnings"), list),
    **dict.fromkeys(("candidates", "number_of_clusters"), dict),
    "n_clusters": int,
}


def stamp(kind: str, version: int = 1) -> dict[str, str]:
    """Return the attributes that every file has: ``format``, ``format_version``, ``tool_version``."""
    return {"format": f"cceclust-{kind}", "format_version": str(version), "tool_version": __version__}


def check_stamp(attributes: Mapping[str, Any], kind: str, path: Path) -> None:
    """Raise unless ``attributes`` belong to a file of this kind that this version can read."""
    found = attributes.get("format")
    if found != f"cceclust-{kind}":
        unknown = f"of an unknown format ({found!r})" if found else "a file that states no format"
        came = KINDS.get(str(found).removeprefix("cceclust-"), unknown)
        raise FileContentError(f"{path} is {came}; expected {KINDS[kind]}")
    version = str(attributes.get("format_version"))
    if version not in VERSIONS:
        raise FileContentError(
            f"{path} has format version {version}, but cceclust {__version__} reads {' and '.join(VERSIONS)}; use a "
            "newer cceclust"
        )


def to_json(values: Mapping[str, Any]) -> str:
    """Serialise parameters or provenance, NumPy values included; of absolute paths only the names of files are kept."""
    return json.dumps(without_folders(as_plain_value(values)), allow_nan=False)


def as_plain_value(value: Any) -> Any:
    """Convert to values that standard JSON can hold; NaN and infinity become null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_plain_value(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): as_plain_value(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return as_plain_value(value.tolist())
    if isinstance(value, list | tuple):
        return [as_plain_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def from_json(text: Any, name: str, path: Path) -> dict[str, Any]:
    """Parse what :func:`to_json` wrote; a missing text gives an empty mapping."""
    try:
        values = {} if text is None else json.loads(text, parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError) as error:
        raise FileContentError(f"{path} is damaged: its {name} are not JSON ({error})") from None
    if not isinstance(values, dict):
        raise FileContentError(f"{path} is damaged: its {name} are not a JSON object")
    for entry, kind in KNOWN_ENTRIES.items():
        if values.get(entry) is not None and not isinstance(values[entry], kind):
            raise FileContentError(f"{path} is damaged: {entry!r} in its {name} is {values[entry]!r}")
    return values


def check_classes(parameters: Mapping[str, Any], n_clusters: int) -> None:
    classes = parameters.get("classes")
    if classes is not None and [type(name) in (int, str) for name in classes] != [True] * n_clusters:
        raise InputError(f"the names of the classes are {classes}; expected {n_clusters} integers or texts")
