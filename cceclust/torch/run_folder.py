"""A training run as a folder: its settings, its metrics and its results.

::

    config.json        all settings; a resumed run must have the same
    metrics.jsonl      a line for each epoch
    checkpoint.pt      the state after the last complete epoch
    model.safetensors  the trained network
    clusters.h5        the cluster of every image, as ``cceclust fit`` writes them
    features.h5        on request, the input of the head for every image

Each file is written under another name and renamed, so a kill leaves none of them half-written.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

from cceclust.errors import CceclustError, FileContentError, FileError, InputError, TargetExistsError
from cceclust.io.atomic import refuse_inputs, replacing
from cceclust.io.locks import locked
from cceclust.io.models import in_fixed_order
from cceclust.io.provenance import check_stamp, stamp
from cceclust.io.reading import reading
from cceclust.io.run_folders import RUN_FILES, is_run, read_config
from cceclust.torch.deep import DeepTrainer

__all__ = ["RunFolder"]


class RunFolder:
    """The files of a run.

    Parameters
    ----------
    path : str or Path
        The folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.files = [self.path / name for name in RUN_FILES]
        self.config, self.metrics, self.checkpoint, self.model, self.clusters, self.features = self.files

    @contextmanager
    def opened(
        self, config: Mapping[str, Any], *, inputs: Sequence[str | Path] = (), resume: bool, force: bool
    ) -> Iterator[None]:
        """Begin or resume a run with this configuration; no other process may do so meanwhile.

        Parameters
        ----------
        config : mapping
            Everything that the result depends on.
        inputs : sequence of str or Path
            The files that are read; none of them may be a file of the run.
        resume, force : bool
            Resume an existing run; start over. With neither, the folder must not hold a run.
        """
        self._refuse_other_folders()
        refuse_inputs(self.files, inputs)
        try:
            self.path.mkdir(exist_ok=True)
            with locked(self.path / "lock", self.path):
                self._begin(config, resume=resume, force=force)
                yield
        except CceclustError:
            raise
        except FileNotFoundError:
            raise FileError(f"cannot write {self.path}: there is no directory {self.path.parent}") from None
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {error.strerror or error}") from error

    def _refuse_other_folders(self) -> None:
        """Raise if the path holds anything other than a run."""
        if self.path.exists() and not self.path.is_dir():
            raise FileError(f"cannot write {self.path}: it is a file; a run is a folder")
        others = [file.name for file in self.path.glob("[!.]*") if file.name not in (*RUN_FILES, "lock")]
        if others and not is_run(self.path):
            raise FileError(f"{self.path} is no run of cceclust: it holds {others[0]}; name another folder")

    def _begin(self, config: Mapping[str, Any], *, resume: bool, force: bool) -> None:
        earlier = self.read_config() if self.config.exists() else None
        if earlier is not None and not (resume or force):
            raise TargetExistsError(f"{self.path} holds a run; use --resume to go on with it, --force to start over")
        outdated = [self.checkpoint, self.config, self.metrics, self.model, self.clusters, self.features]
        if earlier is not None and not force:
            refuse_changes(self.path, earlier, config)
            outdated = [] if earlier == config else [self.model, self.clusters, self.features]
        # The checkpoint is deleted first: without it, files that a kill leaves behind are ignored.
        for file in outdated:
            file.unlink(missing_ok=True)
        with replacing(self.config, force=True) as part:
            part.write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def read_config(self) -> dict[str, Any]:
        """Read the settings of the run."""
        return read_config(self.path)

    def save(self, trainer: DeepTrainer) -> None:
        """Write the checkpoint, and then the metrics, which are also in it."""
        # Written to memory first: torch itself does not report that the disk is full.
        buffer = io.BytesIO()
        torch.save(trainer.state_dict(), buffer)
        with replacing(self.checkpoint, force=True) as part:
            part.write_bytes(buffer.getbuffer())
        self._write_metrics(trainer)

    def restore(self, trainer: DeepTrainer) -> int:
        """Resume from the checkpoint, if there is one; return how many epochs were done.

        If several processes train together, only the first one reads and writes.
        """
        state = trainer.ranks.share(self._read_checkpoint() if trainer.ranks.is_first else None)
        if state is not None:
            try:
                trainer.load_state_dict(state)
            except Exception as error:
                raise self._damaged_checkpoint(error) from None
        if trainer.ranks.is_first:
            self._write_metrics(trainer)
        return len(trainer.history)

    def _read_checkpoint(self) -> dict[str, Any] | None:
        if not self.checkpoint.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
        except Exception as error:  # damaged pickles raise nearly any exception
            raise self._damaged_checkpoint(error) from None
        return state

    def _damaged_checkpoint(self, error: Exception) -> FileContentError:
        return FileContentError(f"{self.checkpoint} is damaged ({error}); use --force to start over")

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
            f"the run in {path} was begun with something else: {changes}; repeat the first command, or use --force "
            "(force=True) to start over"
        )
