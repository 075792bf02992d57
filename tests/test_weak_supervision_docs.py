"""The Python code in docs/weak-supervision.md runs as it stands, and the options it lists exist."""

import re
from pathlib import Path

from cceclust.cli.main import run

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/weak-supervision.md").read_text("utf-8")


def test_example_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    exec(compile(code, "docs/weak-supervision.md", "exec"), {})
    share = float(capsys.readouterr().out.split()[0])
    assert share > 0.85


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
