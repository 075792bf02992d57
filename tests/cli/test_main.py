import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer

import cceclust
from cceclust.cli.main import app, run
from cceclust.errors import ClusteringWarning, InputError

HEAVY = {"torch", "sklearn", "numba", "scipy", "h5py", "matplotlib"}


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, **options)


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def describe(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("cceclust.io.description.describe", describe)


def commands(command: Any = None, name: str = "cceclust") -> Iterator[tuple[str, Any]]:
    """Yield all commands and groups with their full names."""
    command = command or typer.main.get_command(app)
    yield name, command
    for child_name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{name} {child_name}")


@pytest.mark.parametrize("arguments", [["-c", "import cceclust"], ["-m", "cceclust", "--help"]])
def test_start_loads_nothing_heavy(arguments: list[str]) -> None:
    result = python("-X", "importtime", *arguments)
    assert result.returncode == 0
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in result.stderr.splitlines() if "|" in line}
    assert "cceclust" in loaded
    assert not loaded & HEAVY


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"cceclust {cceclust.__version__}\n"


@pytest.mark.parametrize(("name", "command"), [pytest.param(*command, id=command[0]) for command in commands()])
def test_every_command_and_option_has_help(name: str, command: Any) -> None:
    assert command.help, f"{name} has no help"
    for parameter in command.params:
        text = getattr(parameter, "help", None)
        assert text, f"{name}: {parameter.name} has no help"
        # Rich takes words in brackets for styles, unless they are escaped, and drops those it does not know.
        assert "[default" not in text.replace("\\[", ""), f"{name}: {parameter.name}"


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_help_of_every_command_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split()[1:], "--help"]) == 0
    assert name in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_completion_knows_the_commands() -> None:
    environment = {**os.environ, "_CCECLUST_COMPLETE": "complete_bash", "COMP_WORDS": "cceclust in", "COMP_CWORD": "1"}
    result = python("-c", "from cceclust.cli.main import main; main()", env=environment)
    assert result.stdout.split() == ["info"]


@pytest.mark.parametrize("arguments", [["--nonsense"], ["nonsense"], ["info"], ["info", "x.h5", "--nonsense"]])
def test_misuse_exits_2_with_words_on_stderr(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("cceclust info: " if arguments[0] == "info" else "cceclust: ")
    assert "--help shows how" in err


@pytest.mark.parametrize(
    "error", [InputError("k=3\nis   wrong"), OSError(5, "k=3 is wrong"), MemoryError("k=3 is wrong")]
)
def test_failure_is_one_line_and_exits_1(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(monkeypatch, error)
    assert run(["info", "x.h5"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.endswith("k=3 is wrong\n")
    assert err.count("\n") == 1


def test_bugs_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        run(["info", "x.h5"])


WAITING = """
import signal, sys, time
from cceclust.cli import main
from cceclust.io import description
from cceclust.io.atomic import replacing
def wait(path, **_):
    with replacing(path) as part:
        part.write_text("half")
        print("started", flush=True)
        time.sleep(float(sys.argv.pop()))
        part.write_text("whole")
    return description.FileDescription(path, "features", 0, {}, {})
description.describe = wait
# In the background of a shell, Ctrl-C is ignored from the start.
signal.signal(signal.SIGINT, signal.default_int_handler)
main.main()
"""


@contextmanager
def waiting(target: Path, *launcher: str, seconds: float = 60) -> Iterator["subprocess.Popen[str]"]:
    """Start a command that is in the midst of writing ``target``."""
    script = WAITING.replace("float(sys.argv.pop())", str(seconds))
    with subprocess.Popen(
        [*launcher, sys.executable, "-c", script, "info", target],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The tests themselves may run under nohup.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(
    ("number", "code", "word"),
    [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated"), ("SIGHUP", 129, "terminal closed")],
)
def test_signals_leave_one_line_and_no_debris(tmp_path: Path, number: str, code: int, word: str) -> None:
    with waiting(tmp_path / "x.h5") as process:
        time.sleep(0.1)
        process.send_signal(getattr(signal, number))
        _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err == f"Error: {word}; no file was left half-written\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_nohup_goes_on_when_the_terminal_is_closed(tmp_path: Path) -> None:
    with waiting(tmp_path / "x.h5", "nohup", seconds=1) as process:
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert (tmp_path / "x.h5").read_text() == "whole"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize("options", [[], ["--json"], ["--nonsense"], ["--help"]])
def test_closed_pipes_are_no_failure(small_features: Path, options: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "cceclust", "info", small_features, *options],
            stdout=write_end,
            stderr=write_end if options == ["--nonsense"] else subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(write_end)
    assert not result.stderr
    assert result.returncode == 141


def test_warnings_are_lines_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def describe(*_: Any, **__: Any) -> None:
        warnings.warn("two clusters\nare empty", ClusteringWarning, stacklevel=1)
        raise InputError("enough")

    monkeypatch.setattr("cceclust.io.description.describe", describe)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        run(["info", "x.h5"])
    assert capsys.readouterr().err == "Warning: two clusters are empty\nError: enough\n"


def test_full_stdout_is_an_error(small_features: Path) -> None:
    for options in ([], ["--json"]):
        with Path("/dev/full").open("w") as full:
            result = subprocess.run(
                [sys.executable, "-m", "cceclust", "info", small_features, *options],
                stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
            )  # fmt: skip
        assert result.returncode == 1
        assert result.stderr == "Error: [Errno 28] No space left on device\n"


def test_terminals_without_unicode_are_served(small_features: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = python("-m", "cceclust", "info", str(small_features), env=environment)
    assert result.returncode == 0
    assert "120 ? 6" in result.stdout
