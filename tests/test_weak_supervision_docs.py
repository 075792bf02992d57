"""The options that docs/weak-supervision.md lists exist."""

import re
from pathlib import Path

from cceclust.cli.main import run

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/weak-supervision.md").read_text("utf-8")


def test_options_exist(capsys):
    assert run(["fit", "--help"]) == 0
    printed = capsys.readouterr().out
    options = set(re.findall(r"`(--[a-z-]+)", TEXT)) - {"--k"}
    assert options
    for option in options:
        assert option in printed, option
    assert run(["fit", "--set", "help"]) == 0
    printed = capsys.readouterr().out
    settings = set(re.findall(r"`--set ([a-z_]+)=", TEXT))
    assert settings
    for setting in settings:
        assert f"{setting}=" in printed, setting
