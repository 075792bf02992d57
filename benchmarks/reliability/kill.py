"""Commands killed, or ended with Ctrl-C, at any moment.

No file is lost or torn, the next run ends the same and tidies up; Ctrl-C leaves nothing to tidy up.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from cases import campaign
from samples import samples

from cceclust.cli.main import SIGNALS, run, stop
from cceclust.errors import CceclustError
from cceclust.io import open_features, read_clusters, read_model

WATCHED = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
# What Ctrl-C may come to: the usual exit code, or the end of a command that was quicker.
ENDED_BY_CTRL_C = (130, 0)
FIT = ["fit", "features.h5", "-k", "3", "-q"]
EXTRACT = ["extract", "images.zip", "-o", "new.h5", "--backbone", "resnet18", "--weights", "weights.safetensors"]
COMMANDS: dict[str, list[str]] = {
    "fit": [*FIT, "-f"],
    "fit new": FIT,
    "predict": ["predict", "model.safetensors", "features.h5", "-o", "new.h5", "-f", "-q"],
    "report": ["report", "clusters.h5", "-o", "report.html", "-f", "-q"],
    "export": ["export", "model.safetensors", "model.onnx", "-f", "-q"],
    "extract": [*EXTRACT, "--size", "32", "--batch-size", "1", "-q"],
    "deep": ["deep", "images.npz", "-o", "run", "-k", "2", "--epochs", "2", "--batch-size", "6", "--resume", "-q"],
}
# Training takes long, so it is killed less often.
NAMES = ["predict", "report", "export", "extract"] * 4 + ["fit", "fit new"] * 2 + ["deep"]
INPUTS = ("features.h5", "model.safetensors", "clusters.h5", "images.zip", "images.npz")


@cache
def weights() -> Path:
    """Return a file of random weights."""
    import torch
    from safetensors.torch import save_file

    from cceclust.torch import resnet18

    torch.manual_seed(0)
    path = Path(tempfile.mkdtemp(prefix="weights-"), "weights.safetensors")
    save_file(resnet18(n_classes=None).state_dict(), path)
    return path


def prepare(folder: Path, name: str) -> None:
    """Put the inputs of a command into a folder, and for some the output of an earlier run."""
    for file in INPUTS:
        (folder / file).write_bytes(samples()[file])
    if name == "extract":
        shutil.copy(weights(), folder / "weights.safetensors")
    if name == "fit":
        shutil.copy(folder / "clusters.h5", folder / "features.clusters.h5")
        shutil.copy(folder / "model.safetensors", folder / "features.model.safetensors")
    # Fingerprints of images contain the time of their last change.
    for file in folder.iterdir():
        os.utime(file, (1, 1))


def start(folder: Path, arguments: list[str], before: Callable[[], None] = lambda: None) -> int:
    """Run a command in a child process."""
    # A signal that comes at once waits until the child is ready for it.
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.chdir(folder)
            for name in SIGNALS:
                signal.signal(getattr(signal, name), stop)
            before()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as messages:
                signal.pthread_sigmask(signal.SIG_SETMASK, earlier)
                code = run(arguments)
        except SystemExit as ended:
            # Ctrl-C before the command had begun.
            code = int(ended.code or 0)
        else:
            if code not in ENDED_BY_CTRL_C:
                os.write(2, messages.getvalue().encode())
        finally:
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_SETMASK, earlier)
    return child


def finish(child: int) -> int:
    """Wait for a child and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder and its subfolders."""
    files = (file for file in folder.rglob("*") if file.is_file())
    # Metrics hold the speed of the machine, and so does what a training keeps of them.
    varying = ("checkpoint.pt", "metrics.jsonl")
    return {str(file.relative_to(folder)): b"" if file.name in varying else file.read_bytes() for file in files}


@cache
def reference(name: str) -> tuple[dict[str, bytes], float]:
    """Return what an undisturbed run leaves, and how long it takes."""
    folder = Path(tempfile.mkdtemp(prefix="reference-"))
    prepare(folder, name)
    began = time.monotonic()
    code = finish(start(folder, COMMANDS[name]))
    assert code == 0, f"{name} fails undisturbed"
    return contents(folder), time.monotonic() - began


def die_at_operation(count: int, folder: Path) -> None:
    """Have this process killed at its n-th operation on a file of the folder."""
    left = [count]

    def watch(event: str, details: tuple[object, ...]) -> None:
        if event in WATCHED and str(folder) in os.path.abspath(str(details[0])):  # noqa: PTH100
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def is_whole(file: Path) -> bool:
    """Tell whether a file under its final name can be read."""
    try:
        if file.name.endswith("clusters.h5") or (file.name == "new.h5" and b"cceclust-clusters" in file.read_bytes()):
            read_clusters(file)
        elif file.suffix == ".h5":
            open_features(file).close()
        elif file.name.endswith("model.safetensors") and file.parent.name != "run":
            read_model(file)
        elif file.suffix == ".html":
            return file.read_text().rstrip().endswith("</html>")
    except CceclustError:
        return False
    return True


def debris(folder: Path, before: set[str], expected: dict[str, bytes]) -> list[str]:
    """Return the files that neither were there nor should be; what extraction has done stays for the next run."""
    return sorted(file for file in set(contents(folder)) - before - set(expected) if "new.h5.part" not in file)


def interrupt(generator: random.Random, folder: Path, name: str, seconds: float) -> int:
    """Run a command, kill it at an operation or a moment or press Ctrl-C, and return its exit code."""
    how = generator.choice(["operation", "moment", "Ctrl-C"])
    if how == "operation":
        operation = generator.randrange(40)
        return finish(start(folder, COMMANDS[name], lambda: die_at_operation(operation, folder)))
    child = start(folder, COMMANDS[name])
    time.sleep(generator.uniform(0, 1.1 * seconds))
    os.kill(child, signal.SIGINT if how == "Ctrl-C" else signal.SIGKILL)
    return finish(child)


def case(generator: random.Random, folder: Path) -> str:
    """Interrupt one command and look at what it leaves."""
    name = generator.choice(NAMES)
    expected, seconds = reference(name)
    prepare(folder, name)
    before = set(contents(folder))
    code = interrupt(generator, folder, name, seconds)
    if code not in (-signal.SIGKILL, *ENDED_BY_CTRL_C):
        return f"exit code {code}: {name}"
    if code == ENDED_BY_CTRL_C[0] and debris(folder, before, expected):
        return f"debris: {debris(folder, before, expected)} after Ctrl-C in {name}"
    for file in folder.rglob("[!.]*"):
        inside = any(part.endswith(".part") for part in file.relative_to(folder).parts)
        if file.is_file() and not inside and not is_whole(file):
            return f"corrupt: {file.name} after {name}"
    # A run that was quicker has left its files, which "fit new" does not replace.
    again = COMMANDS["fit"] if name == "fit new" else COMMANDS[name]
    if finish(start(folder, again)) != 0:
        return f"next run failed: {name}"
    left = contents(folder)
    if set(left) != set(expected):
        return f"leftover: {sorted(set(left) ^ set(expected))} after {name}"
    differing = [file for file in left if left[file] != expected[file]]
    return f"differs: {differing} after {name}" if differing else "ok"


if __name__ == "__main__":
    # Loaded once, for all children.
    import cceclust.clustering
    import cceclust.report
    import cceclust.torch.extraction
    import cceclust.torch.runs  # noqa: F401

    samples()
    weights()
    # A case is several whole runs.
    campaign(case, __doc__, hang=300)
