"""``--set NAME=VALUE``: settings that are too rarely used for an option of their own.

Their names, types, defaults and descriptions are read from a dataclass or a function, so nothing is stated twice.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import typer

from cceclust.cli.console import results
from cceclust.cli.options import LARGEST_COUNT

__all__ = ["Setting", "parse_settings", "print_settings", "settings_of"]

TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes
    ----------
    name : str
        As in ``NAME=VALUE``.
    kinds : tuple
        The types that a value may have: None, words (strings), bool, int, float, ``list[float]`` or str.
    default : object
        The value if none is given.
    description : str
        One sentence.
    """

    name: str
    kinds: tuple[Any, ...]
    default: Any
    description: str


def settings_of(target: Callable[..., Any], *, skip: Collection[str] = ()) -> dict[str, Setting]:
    """Return the settings that a dataclass, another class or a function has.

    Parameters
    ----------
    target : class or function
        What takes the settings as keyword arguments. Those without a default are left out, and so are those that
        cannot be written as text.
    skip : collection of str
        Names to leave out.

    Examples
    --------
    >>> def draw(path, size: int = 3, color: str | None = None): ...
    >>> list(settings_of(draw))
    ['size', 'color']
    """
    # A dataclass knows which module the names in each of its annotations belong to; its __init__ does not.
    is_plain_class = isinstance(target, type) and not dataclasses.is_dataclass(target)
    hinted: Any = getattr(target, "__init__") if is_plain_class else target  # noqa: B009
    hints = typing.get_type_hints(hinted)
    descriptions = described_parameters(inspect.getdoc(target) or "")
    settings = {}
    for name, parameter in inspect.signature(target).parameters.items():
        kinds = kinds_of(hints.get(name))
        if name not in skip and set(kinds) - {None} and parameter.default is not inspect.Parameter.empty:
            settings[name] = Setting(name, kinds, parameter.default, descriptions.get(name, ""))
    return settings


def kinds_of(annotation: Any) -> tuple[Any, ...]:
    """Split a union into the types that a text can be parsed as, the most specific first."""
    members = typing.get_args(annotation) if is_union(annotation) else (annotation,)
    if complex in members:
        # NumPy's ArrayLike is a union of nearly everything; as text, only numbers make sense.
        members = (*(member for member in members if member not in (bool, int, float, str)), float, list[float])
    found: list[Any] = []
    for member in members:
        if typing.get_origin(member) is Literal:
            found.extend(typing.get_args(member))
        elif member is type(None):
            found.append(None)
        elif member in (bool, int, float, str, list[float]):
            found.append(member)
    order = [bool, int, float, list[float], str]
    return tuple(sorted(found, key=lambda kind: order.index(kind) + 1 if kind in order else 0))


def is_union(annotation: Any) -> bool:
    """Tell whether an annotation is ``A | B`` or ``Union[A, B]``."""
    return typing.get_origin(annotation) in (types.UnionType, typing.Union)


def described_parameters(docstring: str) -> dict[str, str]:
    """Return the first sentence about each parameter from a numpydoc docstring, without markup."""
    descriptions = {}
    for names, text in re.findall(r"^([\w, ]+?)(?: : .*)?\n((?: {4}.*\n?)+)", docstring, re.MULTILINE):
        sentence = re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]
        plain = re.sub(r"(:\w+:)?`+", "", sentence)
        descriptions.update(dict.fromkeys(names.split(", "), plain))
    return descriptions


def parse_settings(texts: Sequence[str], settings: Mapping[str, Setting], option: str = "--set") -> dict[str, Any]:
    """Turn ``NAME=VALUE`` texts into values.

    Parameters
    ----------
    texts : sequence of str
        What the user gave.
    settings : mapping of str to Setting
        The known settings, see :func:`settings_of`.
    option : str
        The option's name, for errors.

    Examples
    --------
    >>> def draw(size: int = 3, color: str | None = "red"): ...
    >>> parse_settings(["size=5", "color=none"], settings_of(draw))
    {'size': 5, 'color': None}
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        problem = None
        if not equals:
            problem = f"{text!r}; expected NAME=VALUE; {option} help lists what there is"
        elif name not in settings:
            near = difflib.get_close_matches(name, settings, n=1)
            hint = f"did you mean {near[0]}?" if near else f"{option} help lists what there is"
            problem = f"there is no setting {name!r} here; {hint}"
        elif name in values:
            problem = f"{name} is given twice"
        if problem is not None:
            raise typer.BadParameter(problem, param_hint=option)
        try:
            values[name] = parse_value(value, settings[name].kinds)
        except ValueError:
            expected = describe_kinds(settings[name].kinds)
            raise typer.BadParameter(f"{text}; expected {expected}", param_hint=option) from None
    return values


def parse_value(text: str, kinds: tuple[Any, ...]) -> Any:
    """Parse a text as the first of the kinds that accepts it."""
    for kind in kinds:
        if kind is None or isinstance(kind, str):
            if text == as_text(kind):
                return kind
            continue
        try:
            return READERS[kind](text)
        except ValueError:
            continue
    raise ValueError(text)


def read_truth(text: str) -> bool:
    """Read true or false."""
    if text.lower() not in TRUTH:
        raise ValueError(text)
    return TRUTH[text.lower()]


def read_whole_number(text: str) -> int:
    """Read a whole number that compiled code can hold."""
    number = int(text)
    if abs(number) > LARGEST_COUNT:
        raise ValueError(text)
    return number


def read_numbers(text: str) -> list[float]:
    """Read numbers separated by commas."""
    return [float(part) for part in text.split(",")]


def read_text(text: str) -> str:
    """Accept any text that is not empty."""
    if not text:
        raise ValueError(text)
    return text


READERS: dict[Any, Callable[[str], Any]] = {
    bool: read_truth,
    int: read_whole_number,
    float: float,
    list[float]: read_numbers,
    str: read_text,
}
WORDS = {
    bool: "true or false",
    int: f"a whole number up to {LARGEST_COUNT:,}",
    float: "a number",
    list[float]: "numbers separated by commas",
    str: "a text",
}


def describe_kinds(kinds: tuple[Any, ...]) -> str:
    """Describe the values that a setting accepts."""
    return " or ".join(WORDS[kind] if kind in WORDS else as_text(kind) for kind in kinds)


def as_text(value: Any) -> str:
    """Format a value as a user would type it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def print_settings(groups: Mapping[str, Mapping[str, Setting]], option: str = "--set") -> None:
    """Print all settings with their defaults, one group after the other.

    Parameters
    ----------
    groups : mapping of str to settings
        Settings by title.
    option : str
        The option's name.
    """
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = results()
    console.print(f"{option} NAME=VALUE, here with the defaults; it may be repeated.")
    for title, settings in groups.items():
        table = Table.grid(padding=(0, 2))
        for setting in settings.values():
            table.add_row(Text(f"{setting.name}={as_text(setting.default)}", "cyan"), Text(setting.description))
        console.print(Text(f"\n{title}", "bold"), Padding(table, (0, 0, 0, 2)), sep="\n")
