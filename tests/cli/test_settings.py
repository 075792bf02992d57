"""``--set NAME=VALUE``: names, types and defaults come from a signature, and what does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
import typer
from numpy.typing import ArrayLike

from cceclust.cli.settings import parse_settings, print_settings, settings_of


def train(
    path: str,
    rate: float | Literal["auto"] = "auto",
    size: int | None = None,
    fast: bool = False,
    shares: list[float] | None = None,
    color: Literal["red", "green"] = "red",
    title: str = "",
    place: str | int = 0,
    on_step: Callable[[], None] | None = None,
) -> None:
    """Train.

    Parameters
    ----------
    path : str
        Where.
    rate : float or "auto"
        How fast, at
        first. Later it falls.
    size, fast : int or None, bool
        Both of ``these``, as in :func:`train`.
    """


SETTINGS = settings_of(train)


@dataclass
class Base:
    """Has ``depth``."""

    depth: int = 2


@dataclass
class Derived(Base):
    """Has more.

    Attributes
    ----------
    depth : int
        How deep.
    """

    width: float = 0.5


class Plain:
    """Not a dataclass."""

    def __init__(self, depth: int = 2) -> None:
        self.depth = depth


def test_settings_have_a_default_and_can_be_written() -> None:
    assert list(SETTINGS) == ["rate", "size", "fast", "shares", "color", "title", "place"]
    assert "on_step" not in SETTINGS
    assert list(settings_of(train, skip=["rate", "fast"])) == ["size", "shares", "color", "title", "place"]
    assert [setting.default for setting in SETTINGS.values()] == ["auto", None, False, None, "red", "", 0]


def test_descriptions_are_the_first_sentences() -> None:
    assert SETTINGS["rate"].description == "How fast, at first."
    assert SETTINGS["size"].description == SETTINGS["fast"].description == "Both of these, as in train."
    assert SETTINGS["color"].description == ""


def test_classes_are_read_like_functions() -> None:
    assert {name: setting.default for name, setting in settings_of(Derived).items()} == {"depth": 2, "width": 0.5}
    assert settings_of(Derived)["depth"].description == "How deep."
    assert parse_settings(["depth=3"], settings_of(Plain)) == {"depth": 3}


def test_arrays_are_numbers_separated_by_commas() -> None:
    def fit(prior: ArrayLike | None = None, noise: float | ArrayLike = 0.0) -> None: ...

    settings = settings_of(fit)
    assert settings["noise"].kinds == (float, list[float])
    assert parse_settings(["prior=0.5,0.5", "noise=0.1"], settings) == {"prior": [0.5, 0.5], "noise": 0.1}
    assert parse_settings(["prior=none"], settings) == {"prior": None}
    with pytest.raises(typer.BadParameter, match="expected none or a number or numbers separated by commas"):
        parse_settings(["prior=even"], settings)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rate=auto", "auto"),
        ("rate=1e-3", 0.001),
        ("size=none", None),
        ("size=7", 7),
        ("fast=true", True),
        ("fast=No", False),
        ("shares=0.5,0.25,0.25", [0.5, 0.25, 0.25]),
        ("color=green", "green"),
        ("title=a=b", "a=b"),
        ("title=7", "7"),
        ("place=7", 7),
        ("place=left", "left"),
    ],
)
def test_values_have_the_type_of_the_annotation(text: str, value: Any) -> None:
    (parsed,) = parse_settings([text], SETTINGS).values()
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["rate"], "'rate'; expected NAME=VALUE; --set help lists what there is"),
        (["rat=1"], "there is no setting 'rat' here; did you mean rate?"),
        (["x=1"], "there is no setting 'x' here; --set help lists what there is"),
        (["path=x"], "there is no setting 'path' here; --set help lists what there is"),
        (["rate=1", "rate=2"], "rate is given twice"),
        (["rate=fast"], "rate=fast; expected auto or a number"),
        (["size=2.5"], "size=2.5; expected none or a whole number up to 2,147,483,647"),
        (["size=2147483648"], "size=2147483648; expected none or a whole number up to 2,147,483,647"),
        (["fast=1"], "fast=1; expected true or false"),
        (["shares=0.5;0.5"], "shares=0.5;0.5; expected none or numbers separated by commas"),
        (["color=blue"], "color=blue; expected red or green"),
        (["title="], "title=; expected a text"),
    ],
)
def test_what_does_not_fit_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        parse_settings(texts, SETTINGS)
    assert refused.value.message == message


def test_the_listing_shows_defaults_and_descriptions(capsys: pytest.CaptureFixture[str]) -> None:
    print_settings({"Training": SETTINGS, "Network": settings_of(Derived)})
    lines = capsys.readouterr().out.splitlines()
    assert "Training" in lines
    assert any(line.split() == ["rate=auto", "How", "fast,", "at", "first."] for line in lines)
    assert (
        lines.index("Training")
        < lines.index("Network")
        < next(number for number, line in enumerate(lines) if line.split() == ["depth=2", "How", "deep."])
    )
