"""docs/paper.md names only what exists: every object of the package, every command and option."""

import importlib
import re
from pathlib import Path

import pytest

from cceclust.cli.main import run

TEXT = (Path(__file__).parent.parent / "docs/paper.md").read_text("utf-8")
TABLE = TEXT.partition("## Equations and algorithms")[2].partition("\n## ")[0]
NAMES = sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", TABLE)))
COMMANDS = sorted(
    {" ".join(block.split()) for block in re.findall(r"^\$ cceclust ((?:.*\\\n)*.*)", TEXT, re.MULTILINE)}
)


def test_something_is_named():
    assert len(NAMES) > 15
    assert len(COMMANDS) > 8


@pytest.mark.parametrize("name", NAMES)
def test_objects_exist(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(f"cceclust.{module}"), attribute)


@pytest.mark.parametrize("command", COMMANDS)
def test_options_exist(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    words = command.split()
    name = words[:2] if words[0] == "bench" else words[:1]
    assert run([*name, "--help"]) == 0
    printed = capsys.readouterr().out
    for option in re.findall(r"--[a-z-]+", command):
        assert option in printed, option
