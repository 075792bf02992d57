"""The README does what it says: its commands are those of CI, and its other code blocks run."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETUP = "python3 -m venv"


def code_blocks() -> list[tuple[str, str]]:
    """Return (language, code) of all blocks that are meant to be run."""
    return re.findall(r"^```(bash|python)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_two_commands_are_those_of_ci() -> None:
    commands = [code.strip() for language, code in code_blocks() if language == "bash" and code.startswith(SETUP)]
    assert len(commands) == 2
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for name, command in zip(("try_command", "test_command"), commands, strict=True):
        assert "\n" not in command
        assert f"{name}='{command}'\n" in script


def test_code_blocks_run_in_order(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    command = tmp_path / "bin" / "cceclust"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cceclust "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    environment = {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    runners = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
    blocks = [block for block in code_blocks() if not block[1].startswith(SETUP)]
    assert {language for language, _ in blocks} == set(runners)
    for language, code in blocks:
        result = subprocess.run(
            [*runners[language], code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert result.returncode == 0, f"{code}\n{result.stdout}\n{result.stderr}"
        assert "Traceback" not in result.stderr
