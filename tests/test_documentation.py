"""Every page does what it says: its code runs, its links lead somewhere, and what it names exists.

Blocks marked ``bash`` and ``python`` are run, those of one page in order in one folder; ``console`` and ``text`` are
only shown.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from cceclust.fit.diagnosis import HEAD_ADVICE, NETWORK_ADVICE

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
SETUP = "python3 -m venv"
PUBLIC = ("cceclust", "cceclust.estimators", "cceclust.io", "cceclust.pseudo_labels", "cceclust.torch")


def code_blocks(page: Path) -> list[tuple[str, str]]:
    """Return (language, code) of all blocks of a page."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def blocks_to_run(page: Path) -> list[tuple[str, str]]:
    """Return the blocks of a page that the tests run: not those that make a new environment, which CI runs."""
    return [block for block in code_blocks(page) if block[0] in ("bash", "python") and not block[1].startswith(SETUP)]


def file_name(page: Path) -> str:
    return page.name


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the commands that the pages use: this Python, and cceclust run by it."""
    folder = tmp_path_factory.mktemp("bin")
    for name, words in {"cceclust": "-m cceclust", "python": ""}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_to_run(page)], ids=file_name)
def test_code_blocks_run_in_order(page: Path, commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    names: dict[str, Any] = {"__name__": "__main__"}
    for language, code in blocks_to_run(page):
        if language == "python":
            exec(compile(code, page.name, "exec"), names)
        else:
            result = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code], capture_output=True, text=True, timeout=600
            )
            assert result.returncode == 0, f"{code}\n{result.stdout}\n{result.stderr}"
            assert "Traceback" not in result.stderr


@pytest.mark.parametrize("page", PAGES, ids=file_name)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {language for language, _ in code_blocks(page)} <= {"bash", "python", "console", "text"}


@pytest.mark.parametrize("page", PAGES, ids=file_name)
def test_links_lead_to_files(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_commands_and_options_on_the_pages_exist() -> None:
    import typer

    from cceclust.cli.main import app

    known = {
        name: {"--help"}.union(*((*parameter.opts, *parameter.secondary_opts) for parameter in command.params))
        for name, command in typer.main.get_group(app).commands.items()
    }
    scripts = (ROOT / "benchmarks").rglob("*.py")
    anywhere = {"--version"}.union(*known.values())
    anywhere.update(option for file in scripts for option in re.findall(r'"(--[a-z-]+)"', file.read_text("utf-8")))
    for page in PAGES:
        code = "\n".join(code for _, code in code_blocks(page)).replace("\\\n", " ")
        for command, rest in re.findall(r"^(?:\$ )?cceclust ([a-z]+)([^\n|;&]*)", code, re.MULTILINE):
            assert command in known, f"{page.name}: cceclust {command}"
            assert set(re.findall(r"(?<!\S)--[a-z-]+", rest)) <= known[command], (
                f"{page.name}: cceclust {command}{rest}"
            )
        assert set(re.findall(r"`(--[a-z-]+)", page.read_text("utf-8"))) <= anywhere, page.name


def test_the_two_commands_are_those_of_ci() -> None:
    commands = [code.strip() for language, code in code_blocks(README) if language == "bash" and code.startswith(SETUP)]
    assert len(commands) == 2
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for name, command in zip(("try_command", "test_command"), commands, strict=True):
        assert "\n" not in command
        assert f"{name}='{command}'\n" in script


def sentences() -> list[str]:
    """Return a pattern for every warning and problem that the package can state, read from its source."""
    patterns = [re.escape(text) for kind in (HEAD_ADVICE, NETWORK_ADVICE) for text in astuple(kind)]
    for file in (ROOT / "cceclust").rglob("*.py"):
        saying = ["warnings.warn", "problems.append", *(["print_warning"] if file.name == "summary.py" else [])]
        for call in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in saying:
                said = call.args[0]
                parts = said.values if isinstance(said, ast.JoinedStr) else [said]
                texts = [part.value for part in parts if isinstance(part, ast.Constant)]
                patterns += [".+?".join(map(re.escape, texts))] if texts else []
    return patterns


def test_pages_are_few_and_short() -> None:
    longest = {"paper.md": 1500, "files.md": 2500, "measurements.md": 2500}
    pages = list((ROOT / "docs").glob("*.md"))
    assert len(pages) <= 15
    for page in pages:
        assert len(page.read_text("utf-8").split()) <= longest.get(page.name, 900), page.name


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    assert set(re.findall(r"[\w-]+\.md", menu)) == {page.name for page in (ROOT / "docs").glob("*.md")}


def test_every_warning_is_explained() -> None:
    text = (ROOT / "docs" / "if-you-see.md").read_text("utf-8")
    said = " ".join(re.sub(r"^> ", "", text, flags=re.MULTILINE).split())
    patterns = sentences()
    assert len(patterns) > 10
    for pattern in patterns:
        assert re.search(pattern, said), pattern


def test_the_reference_has_all_public_names() -> None:
    reference = (ROOT / "docs" / "pipelines.md").read_text("utf-8")
    listed = set(re.findall(r"^::: cceclust\.\S*?(\w+)$", reference, re.MULTILINE))
    for module in PUBLIC:
        assert set(importlib.import_module(module).__all__) - {"__version__", "Solver", "PaperClusterer"} <= listed


def test_objects_and_scripts_of_the_paper_exist() -> None:
    text = (ROOT / "docs" / "paper.md").read_text("utf-8")
    table = text.partition("## Equations and algorithms")[2].partition("\n## ")[0]
    names = set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", table))
    assert len(names) > 10
    for module, _, attribute in (name.rpartition(".") for name in names):
        assert hasattr(importlib.import_module(f"cceclust.{module}"), attribute), f"{module}.{attribute}"
    scripts = ROOT / "benchmarks" / "paper"
    commands = re.findall(r"^\$ python benchmarks/paper/(\w+)\.py((?:.*\\\n)*.*)", text, re.MULTILINE)
    tables = {path.stem for path in scripts.glob("*.py") if re.match(r"(table|figure)\d", path.stem)}
    assert {script for script, _ in commands} == tables
    for script, arguments in commands:
        known = "".join((scripts / f"{name}.py").read_text("utf-8") for name in (script, "table3", "tables"))
        for option in re.findall(r"--[a-z-]+", arguments):
            assert f'"{option}"' in known, option
