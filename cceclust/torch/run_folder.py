"""A training run as a folder: its settings, its metrics, a checkpoint of each epoch, and its results.

Each file is written under another name and renamed, so a kill leaves none of them half-written.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

from cceclust.errors import FileContentError, FileError, InputError, TargetExistsError
from cceclust.io.atomic import check_targets, replacing
from cceclust.io.models import in_fixed_order
from cceclust.io.provenance import check_stamp, stamp
from cceclust.io.reading import reading
from cceclust.io.run_folders import RUN_FILES, is_run, read_config
from cceclust.torch import ranks
from cceclust.torch.deep import DeepTrainer

__all__ = ["RunFolder"]


class RunFolder:
    """The files of a run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.files = [self.path / name for name in RUN_FILES]
        self.config, self.metrics, self.checkpoint, self.model, self.clusters = self.files

    def begin(self, config: Mapping[str, Any], *, inputs: Sequence[str | Path], resume: bool, force: bool) -> None:
        """Begin a run with this configuration, resume it, or start over; without either, the folder must hold no run.

        The inputs are the files that are read; none of them may be a file of the run.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FileError(f"cannot write {self.path}: it is a file; a run is a folder")
        others = [file.name for file in self.path.glob("[!.]*") if file.name not in RUN_FILES]
        if others and not is_run(self.path):
            raise FileError(f"{self.path} is no run of cceclust: it holds {others[0]}; name another folder")
        earlier = read_config(self.path) if self.config.exists() else None
        if earlier is not None and not (resume or force):
            raise TargetExistsError(f"{self.path} holds a run; use --resume to go on with it, --force to start over")
        # The checkpoint is deleted first: without it, files that a kill leaves behind are ignored.
        outdated = [self.checkpoint, *self.files]
        if earlier is not None and not force:
            refuse_changes(self.path, earlier, config)
            outdated = [] if earlier == config else [self.model, self.clusters]
        try:
            self.path.mkdir(exist_ok=True)
            check_targets(self.files, inputs=inputs, force=True)
            for file in outdated:
                file.unlink(missing_ok=True)
        except FileNotFoundError:
            raise FileError(f"cannot write {self.path}: there is no directory {self.path.parent}") from None
        with replacing(self.config, force=True) as part:
            part.write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def save(self, trainer: DeepTrainer) -> None:
        """Write the checkpoint, and then the metrics, which are also in it."""
        # Written to memory first: torch itself does not report that the disk is full.
        buffer = io.BytesIO()
        torch.save(trainer.state_dict(), buffer)
        with replacing(self.checkpoint, force=True) as part:
            part.write_bytes(buffer.getbuffer())
        self._write_metrics(trainer)

    def restore(self, trainer: DeepTrainer) -> None:
        """Resume from the checkpoint, if there is one; of several processes, only the first one reads and writes."""
        state = None
        try:
            if ranks.is_first() and self.checkpoint.exists():
                state = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
            state = ranks.share(state)
            if state is not None:
                trainer.load_state_dict(state)
        except Exception as error:  # damaged pickles raise nearly any exception
            raise FileContentError(f"{self.checkpoint} is damaged ({error}); use --force to start over") from None
        if ranks.is_first():
            self._write_metrics(trainer)

    def _write_metrics(self, trainer: DeepTrainer) -> None:
        with replacing(self.metrics, force=True) as part:
            part.write_text("".join(json.dumps(asdict(metrics)) + "\n" for metrics in trainer.history), "utf-8")

    def write_model(self, network: nn.Module, metadata: Mapping[str, str]) -> None:
        """Write a network as safetensors; loading it runs no code."""
        tensors = {name: value.cpu().contiguous() for name, value in network.state_dict().items()}
        with replacing(self.model, force=True) as part:
            part.write_bytes(in_fixed_order(save(tensors, {**stamp("network"), **metadata})))

    def read_model_metadata(self) -> dict[str, str]:
        """Read the metadata of the model."""
        with reading(self.model, "a network"), safe_open(self.model, framework="numpy") as file:
            metadata: dict[str, str] = file.metadata() or {}
        check_stamp(metadata, "network", self.model)
        return metadata


def refuse_changes(path: Path, earlier: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Raise unless a run is resumed with its original settings; only more epochs are allowed."""
    changed = [name for name in sorted({*earlier, *config}) if earlier.get(name) != config.get(name)]
    if changed == ["n_epochs"] and config["n_epochs"] > earlier["n_epochs"]:
        return
    if changed:
        changes = "; ".join(f"{name} was {earlier.get(name)!r}, is {config.get(name)!r}" for name in changed)
        raise InputError(
            f"the run in {path} was begun with something else: {changes}; repeat the first command, or use --force to "
            "start over"
        )
