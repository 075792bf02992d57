"""Disks that fill up: each command may write no file beyond some size. It says so in one line, and leaves no debris."""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import signal
from pathlib import Path

from cases import campaign
from kill import COMMANDS, contents, debris, finish, prepare, reference, start

from cceclust.cli.main import run

NAMES = list(COMMANDS)


def case(generator: random.Random, folder: Path) -> str:
    """Run a command on a disk without room, and again with room."""
    name = generator.choice(NAMES)
    expected, _ = reference(name)
    prepare(folder, name)
    before = set(contents(folder))
    limit = int(10 ** generator.uniform(0, 7.5))
    told = run_on_small_disk(folder, COMMANDS[name], limit)
    if told != "ok":
        return f"{told} from {name} at {limit}"
    if debris(folder, before, expected):
        return f"debris: {debris(folder, before, expected)} after {name} at {limit}"
    again = COMMANDS["fit"] if name == "fit new" else COMMANDS[name]
    if finish(start(folder, again)) != 0:
        return f"next run failed: {name} at {limit}"
    left = contents(folder)
    return "ok" if left == expected else f"differs: {[file for file in expected if left.get(file) != expected[file]]}"


def run_on_small_disk(folder: Path, arguments: list[str], limit: int) -> str:
    """Run a command that may write no file beyond ``limit`` bytes; "ok" if it works or fails in one line."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        outcome = "traceback: unknown"
        try:
            os.chdir(folder)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            messages = io.StringIO()
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(messages):
                code = run(arguments)
            lines = [line for line in messages.getvalue().splitlines() if not line.startswith("Warning: ")]
            outcome = "ok" if code == 0 or (code == 1 and len(lines) == 1) else f"not one line: {lines}"
        except BaseException as error:
            outcome = f"traceback: {type(error).__name__} {error}"
        finally:
            os.write(write_end, outcome.encode("utf-8", "replace")[:1000])
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        outcome = pipe.read()
    return outcome if finish(child) == 0 else "crash"


if __name__ == "__main__":
    campaign(case, __doc__, hang=300)
