"""Numbered cases run by child processes: a case that hangs, crashes or fills the memory costs nothing but itself.

A case is a function of a random generator and an empty folder that returns a word: ``"ok"`` or what went wrong. What
came of each is kept in a file of one JSON line a case, from which a campaign that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

Case = Callable[[random.Random, Path], str]

HANG_SECONDS = 10
MOST_BYTES = 1_000_000_000


def run_cases(case: Case, count: int, *, seed: int = 0, first: int = 0, hang: float = HANG_SECONDS) -> Iterator[str]:
    """Yield what comes of the cases ``first`` to ``count - 1``."""
    number = first
    while number < count:
        read_end, write_end = os.pipe()
        worker = os.fork()
        if worker == 0:
            os.close(read_end)
            work(case, range(number, count), seed, write_end)
        os.close(write_end)
        is_hanging = False
        try:
            while number < count:
                is_hanging = not select.select([read_end], [], [], hang)[0]
                # A line is written at once, and the next only after its case.
                lines = b"" if is_hanging else os.read(read_end, 1 << 16)
                if not lines:
                    break
                for line in lines.decode().splitlines():
                    yield line
                    number += 1
        finally:
            os.close(read_end)
            ended = stop(worker)
        if number < count:
            yield "hang" if is_hanging else f"crash: {ended}"
            number += 1


def work(case: Case, numbers: range, seed: int, pipe: int) -> None:
    """Be the worker: run cases one after the other and send what comes of each."""
    os.setsid()
    # Readers of the pipe wait line by line, so every line is sent at once.
    for number in numbers:
        folder = Path(tempfile.mkdtemp(prefix="case-"))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            outcome = case(random.Random(f"{seed}-{number}"), folder)
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            outcome = f"traceback: {type(error).__name__} in {place.name}: {' '.join(str(error).split())[:200]}"
        if (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 > MOST_BYTES:
            outcome = "allocation"
        shutil.rmtree(folder, ignore_errors=True)
        os.write(pipe, outcome.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n")
    os._exit(0)


def stop(worker: int) -> str:
    """End a worker and all it has started, and say how it ended."""
    try:
        ended = os.waitpid(worker, os.WNOHANG)
        if ended == (0, 0):
            time.sleep(0.05)
            ended = os.waitpid(worker, os.WNOHANG)
        if ended == (0, 0):
            os.killpg(worker, signal.SIGKILL)
            ended = os.waitpid(worker, 0)
    except ProcessLookupError:
        ended = os.waitpid(worker, 0)
    return f"code {os.waitstatus_to_exitcode(ended[1])}"


def campaign(case: Case, description: str | None, *, hang: float = HANG_SECONDS) -> None:
    """Run cases from the command line until a number or a time is reached."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=1000, help="Cases in all, earlier ones included.")
    parser.add_argument("--seconds", type=float, default=600, help="Stop after this time.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, required=True, help="One JSON line a case; goes on where it ends.")
    options = parser.parse_args()
    earlier = [json.loads(line)["outcome"] for line in read_lines(options.results)]
    counts, end = Counter(word.split(":")[0] for word in earlier), time.monotonic() + options.seconds
    with options.results.open("a") as results:
        outcomes = run_cases(case, options.count, seed=options.seed, first=len(earlier), hang=hang)
        for number, outcome in enumerate(outcomes, len(earlier)):
            results.write(json.dumps({"case": number, "outcome": outcome}) + "\n")
            results.flush()
            counts[outcome.split(":")[0]] += 1
            if time.monotonic() > end:
                break
        outcomes.close()
    print(f"{sum(counts.values()):,} cases: " + ", ".join(f"{word} {count:,}" for word, count in counts.most_common()))
    sys.exit(0 if set(counts) <= {"ok"} else 1)


def read_lines(path: Path) -> list[str]:
    """Read the whole lines of an earlier campaign; a kill can leave the last one torn."""
    if not path.exists():
        return []
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    return whole.splitlines()
