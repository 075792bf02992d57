"""Several processes: they do what one does, and if one of them ends, all of them do, with one message."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from cceclust.cli.main import run
from cceclust.torch import resnet18
from cceclust.torch.objectives import OBJECTIVES

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits"
JOBS = Path(__file__).with_name("rank_jobs.py")
DEEP = ["--k", "4", "--network", "vgg4-32-small", "--batch-size", "20", "--device", "cpu"]
LOST = "another of torchrun's processes has ended or is out of reach"

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes"),
    pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning"),
]


class Pair:
    """Two processes for each job, forked from one that has already imported torch."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "error", str(JOBS)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, name: str, folder: Path, *arguments: Any) -> list[int]:
        """Do a job and return both exit codes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, str(folder), *arguments]) + "\n")
        self.process.stdin.flush()
        codes: list[int] = json.loads(self.process.stdout.readline())
        return codes


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.process.communicate()


def messages(folder: Path) -> str:
    """Return what both processes wrote to stderr."""
    return "".join((folder / f"err{rank}").read_text() for rank in range(2))


@pytest.fixture(scope="module")
def outcomes(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the outcomes of all objectives: of both processes, and of one that works alone."""
    folder = tmp_path_factory.mktemp("outcomes")
    assert pair.run("every_objective", folder) == [0, 0], messages(folder)
    assert pair.run("one_process", folder) == [0, 0], messages(folder)
    return [torch.load(folder / f"{name}.pt", weights_only=False) for name in ("0", "1", "alone")]


class TestTraining:
    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_two_processes_follow_one(self, name: str, outcomes: list[dict[str, Any]]) -> None:
        first, _, alone = (outcome.get(name) for outcome in outcomes)
        assert first is not None
        assert alone is not None
        np.testing.assert_allclose(first["losses"], alone["losses"], rtol=1e-10, atol=1e-12)
        for key, value in alone["weights"].items():
            torch.testing.assert_close(first["weights"][key], value, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(first["probabilities"], alone["probabilities"], rtol=1e-6)

    @pytest.mark.parametrize("name", [*OBJECTIVES, "batch norm", "dropout"])
    def test_both_have_the_same_network_to_the_bit(self, name: str, outcomes: list[dict[str, Any]]) -> None:
        first, second = (outcome[name]["weights"] for outcome in outcomes[:2])
        assert all(torch.equal(first[key], second[key]) for key in first)

    def test_processes_with_other_files_are_refused(self, pair: Pair, tmp_path: Path) -> None:
        assert pair.run("other_settings", tmp_path)[1] == 1
        assert re.search(r"process 1 on .* differs from the first: number is 1, not 0;", messages(tmp_path))


class TestDeep:
    def test_a_killed_process_ends_the_other_and_any_number_of_processes_can_resume(
        self, pair: Pair, tmp_path: Path
    ) -> None:
        def arguments(name: str, *options: str) -> list[str]:
            return ["deep", str(DIGITS), "-o", str(tmp_path / name), *DEEP, "--epochs", "3", "--quiet", *options]

        # Two steps an epoch: the kill comes in the middle of the second.
        assert pair.run("killed_command", tmp_path, "training", 3, *arguments("killed")) == [1, -signal.SIGKILL]
        advice = "the same command with --resume continues after the last complete epoch"
        assert messages(tmp_path) == f"Error: {LOST}; {advice}\n"
        assert not (tmp_path / "killed" / "clusters.h5").exists()
        assert len(self.losses(tmp_path / "killed")) == 1
        assert run(arguments("killed", "--resume")) == 0
        assert run(arguments("alone")) == 0
        assert pair.run("command", tmp_path, *arguments("pair", "--json")) == [0, 0], messages(tmp_path)
        # Only the first process prints.
        assert json.loads((tmp_path / "out0").read_text())["n_samples"] == 40
        assert (tmp_path / "out1").read_text() == ""
        networks = {}
        for name in ("alone", "killed", "pair"):
            networks[name] = load_file(tmp_path / name / "model.safetensors")
            assert networks[name].keys() == networks["alone"].keys()
            # On CPUs every process has batch norms of its own, so the training differs a little.
            np.testing.assert_allclose(self.losses(tmp_path / name), self.losses(tmp_path / "alone"), rtol=0.2)

    def losses(self, folder: Path) -> list[float]:
        return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


class TestExtract:
    @pytest.fixture
    def arguments(self, tmp_path: Path) -> list[str]:
        torch.manual_seed(0)
        save_file(resnet18(n_classes=None).state_dict(), tmp_path / "weights.safetensors")
        options = ["--backbone", "resnet18", "--weights", str(tmp_path / "weights.safetensors"), "--size", "32"]
        return ["extract", str(DIGITS), *options, "--batch-size", "3"]

    def test_killed_under_torchrun_it_continues_to_the_same_file(
        self, pair: Pair, arguments: list[str], tmp_path: Path
    ) -> None:
        target = tmp_path / "features.h5"
        arguments = [*arguments, "-o", str(target)]
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        killed = subprocess.run([*torchrun, str(JOBS), "extraction", "3", *arguments], capture_output=True, text=True)
        assert killed.returncode != 0
        # If the other process was busy, torchrun ended it before it noticed; if stuck, by a kill, without a word.
        if "forcefully exiting via 9" not in killed.stderr:
            told = re.findall("^Error: (.*)", killed.stderr, re.MULTILINE)
            assert len(told) == 1, killed.stderr
            assert re.fullmatch(f"({LOST};|terminated; .*, and) the same command continues where it stopped", told[0])
        assert not target.exists()
        assert pair.run("command", tmp_path, *arguments) == [0, 0], messages(tmp_path)
        told = (tmp_path / "out0").read_text()
        assert re.search(r"features\.h5: 40 × 512 float32; continued from image \d+ of 40\nNext: ", told)
        both = target.read_bytes()
        assert run([*arguments, "--restart", "--quiet"]) == 0
        assert target.read_bytes() == both
        assert not (tmp_path / "features.h5.part").exists()

    def test_a_failure_of_any_process_is_told_once(self, pair: Pair, arguments: list[str], tmp_path: Path) -> None:
        target = ["-o", str(tmp_path / "features.h5")]
        assert pair.run("command", tmp_path, *arguments, *target, "--dtype", "float16") == [0, 0], messages(tmp_path)
        # Both see that there are no images, and only the first that it would overwrite something.
        for wrong, message in ((["extract", "nowhere"], "nowhere"), (arguments, "features.h5 exists already")):
            assert pair.run("command", tmp_path, *wrong, *target) == [1, 1]
            assert messages(tmp_path).count("Error: ") == messages(tmp_path).count("\n") == 1
            assert message in messages(tmp_path)
