"""docs/paper.md names only what exists: every object of the package, every script and option."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "benchmarks" / "paper"
TEXT = (ROOT / "docs/paper.md").read_text("utf-8")
TABLE = TEXT.partition("## Equations and algorithms")[2].partition("\n## ")[0]
NAMES = sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", TABLE)))
COMMANDS = re.findall(r"^\$ python benchmarks/paper/(\w+)\.py((?:.*\\\n)*.*)", TEXT, re.MULTILINE)


def test_every_script_is_named() -> None:
    assert len(NAMES) > 15
    tables = {path.stem for path in SCRIPTS.glob("*.py") if re.match(r"(table|figure)\d", path.stem)}
    assert {script for script, _ in COMMANDS} == tables


@pytest.mark.parametrize("name", NAMES)
def test_objects_exist(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(f"cceclust.{module}"), attribute)


@pytest.mark.parametrize(("script", "arguments"), COMMANDS)
def test_options_exist(script: str, arguments: str) -> None:
    known = "".join((SCRIPTS / f"{name}.py").read_text("utf-8") for name in (script, "table3", "tables"))
    for option in re.findall(r"--[a-z-]+", arguments):
        assert f'"{option}"' in known, option
