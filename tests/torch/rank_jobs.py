"""Jobs for two processes on this machine. As a program it imports torch once and forks two processes for each job.

Every line of its input names a job and its arguments, as JSON; it answers with the two exit codes. Each process has its
own stderr, a file in the job's folder.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed import TCPStore

from cceclust.cli.main import main
from cceclust.errors import ClusteringWarning
from cceclust.torch import DeepTrainer, extraction, ranks
from cceclust.torch.objectives import OBJECTIVES
from cceclust.torch.ranks import joined

N_CLUSTERS = 3
# Two batches of 16 and 15 images: neither 31 nor 15 can be halved.
N_IMAGES, BATCH_SIZE = 31, 20


class Network(nn.Module):
    """A small network, which may have batch norms and dropout."""

    def __init__(self, *, batch_norm: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4) if batch_norm else nn.Identity(), nn.ReLU(), nn.Flatten(),
            nn.Linear(64, 16), nn.ReLU(), nn.Dropout(dropout),
        )  # fmt: skip
        self.head = nn.Linear(16, N_CLUSTERS)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.body(x))
        return result


def images() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(N_CLUSTERS, 1, 6, 6, generator=generator, dtype=torch.float64)
    noise = torch.randn(N_IMAGES, 1, 6, 6, generator=generator, dtype=torch.float64)
    return 2 * patterns[torch.arange(N_IMAGES) % N_CLUSTERS] + noise


def trained(objective: str, **kind: Any) -> DeepTrainer:
    """Train in double precision, so that rounding is far smaller than any error in the method."""
    torch.manual_seed(0)
    network = Network(**kind).double()
    trainer = DeepTrainer(
        network,
        lambda batch: batch + 0.3 * torch.randn_like(batch),
        objective,
        learning_rate=0.01,
        batch_size=BATCH_SIZE,
        device="cpu",
    )
    given = None
    if objective == "cce":
        # Five labelled images: 3 for one process, 2 for the other.
        given = torch.full((N_IMAGES,), -1).numpy()
        given[:5] = [0, 1, 2, 0, 1]
    trainer.fit(images(), 3, given=given)
    return trainer


def outcome(trainer: DeepTrainer) -> dict[str, Any]:
    """Return everything that must agree."""
    return {
        "losses": [[metrics.loss, *metrics.parts.values()] for metrics in trainer.history],
        "weights": trainer.network.state_dict(),
        "probabilities": trainer.predict_proba(images()),
    }


def every_objective(folder: Path) -> None:
    with joined():
        outcomes = {name: outcome(trained(name)) for name in OBJECTIVES}
        outcomes["batch norm"] = outcome(trained("cce", batch_norm=True))
        outcomes["dropout"] = outcome(trained("cce", dropout=0.5))
        torch.save(outcomes, folder / f"{ranks.number()}.pt")


def one_process(folder: Path) -> None:
    """Train without any others, in one of the two."""
    if os.environ["RANK"] == "0":
        torch.save({name: outcome(trained(name)) for name in OBJECTIVES}, folder / "alone.pt")


def other_settings(folder: Path) -> None:
    with joined():
        ranks.require_same({"same": 1, "number": ranks.number()})


def command(folder: Path, *arguments: str) -> None:
    sys.argv = ["cceclust", *arguments]
    main()


def killed_command(folder: Path, place: str, n_calls: int, *arguments: str) -> None:
    """Run a command whose second process is killed when it has called a function so many times."""
    owner, name = {"training": (DeepTrainer, "train_step"), "extraction": (extraction, "compute_rows")}[place]
    function, n_done = getattr(owner, name), 0

    def call(*args: Any, **options: Any) -> Any:
        nonlocal n_done
        n_done += 1
        if n_done > n_calls and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **options)

    setattr(owner, name, call)
    command(folder, *arguments)


def run_as(rank: int, port: int, name: str, folder: Path, arguments: list[Any]) -> None:
    """Do a job with the environment that torchrun makes."""
    environment = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
    os.environ |= {variable: str(value) for variable, value in environment.items()}
    os.environ |= {"TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    for descriptor, stream in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / f"{stream}{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    torch.set_num_threads(1)
    globals()[name](folder, *arguments)


def fork(*job: Any) -> int:
    """Return the id of a process that does a job."""
    child = os.fork()
    if child == 0:
        try:
            run_as(*job)
        except SystemExit as stop:
            sys.stderr.flush()
            os._exit(stop.code if isinstance(stop.code, int) else 1)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child


def serve() -> None:
    # So little training finds little, which is no error here.
    warnings.simplefilter("ignore", ClusteringWarning)
    # What the jobs need later is loaded before the forks.
    importlib.import_module("torch._dynamo")
    importlib.import_module("cceclust.torch.runs")
    importlib.import_module("kornia.augmentation")
    for line in sys.stdin:
        name, folder, *arguments = json.loads(line)
        # Kept here, as torchrun does it, so that it outlives the processes.
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        children = [fork(rank, store.port, name, Path(folder), arguments) for rank in range(2)]
        codes = {child: os.waitstatus_to_exitcode(status) for child, status in (os.wait(), os.wait())}
        print(json.dumps([codes[child] for child in children]), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        # Started by torchrun itself.
        killed_command(Path(), sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
    else:
        serve()
