"""Networks that turn images into features, and the files their weights come from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.export.passes import move_to_device_pass

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.io.reading import listed, reading
from cceclust.torch.resnet import ResNet, fuse_batch_norms, resnet18, resnet50

__all__ = [
    "BACKBONES",
    "DEFAULT_WEIGHTS",
    "OFFICIAL_WEIGHTS",
    "Backbone",
    "load_backbone",
    "load_weights",
    "read_state",
]

BACKBONES: dict[str, Callable[[None], ResNet]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "resnet50-v1": partial(resnet50, v1=True),
}
# torchvision's names for its files; a file's name ends with the start of its SHA-256.
OFFICIAL_WEIGHTS = {
    "resnet18": {"IMAGENET1K_V1": "resnet18-f37072fd.pth"},
    "resnet50": {"IMAGENET1K_V1": "resnet50-0676ba61.pth", "IMAGENET1K_V2": "resnet50-11ad3fa6.pth"},
}
DEFAULT_WEIGHTS = "IMAGENET1K_V1"
OFFICIAL_URL = "https://download.pytorch.org/models/"

# Prefixes of the backbone's parameters in checkpoints: files of plain weights, then SCAN and
# solo-learn, MoCo, and SimCLR. Networks that several GPUs trained have "module." before that.
PREFIXES = ("", "backbone.", "encoder_q.", "encoder.")
# Parameters that training adds on top of a backbone, or keeps beside it.
OTHERS = (
    "fc.",
    "head.",
    "standardize.",
    "contrastive_head.",
    "cluster_head.",
    "projector.",
    "projection_head.",
    "predictor.",
    "classifier.",
    "encoder_k.",
    "momentum_",
    "queue",
)
# NumPy's numbers, such as a best accuracy, which training scripts save beside the weights. They cannot run code.
SCALAR: Any = np.float64(0).__reduce__()[0]
NUMPY_SCALARS: list[Any] = [
    (SCALAR, "numpy.core.multiarray.scalar"),
    (SCALAR, "numpy._core.multiarray.scalar"),
    np.dtype,
    *(type(np.dtype(kind)) for kind in (np.float32, np.float64, np.int32, np.int64, np.bool_)),
]


@dataclass
class Backbone:
    """A network that maps normalised images to features, and where it came from.

    Attributes
    ----------
    network : callable
        Maps a float tensor (n, 3, size, size) to (n, n_features).
    name : str
        ``resnet50``, … or the file's name.
    weights : str
        Name of the weights.
    weights_sha256 : str
        Digest of their file.
    batch_size : int or None
        The only batch size that the network accepts; None for any.
    size : int or None
        The only image size that the network accepts; None for any.
    """

    network: nn.Module
    name: str
    weights: str
    weights_sha256: str
    batch_size: int | None = None
    size: int | None = None


def load_backbone(
    backbone: str | Path = "resnet50",
    weights: str | Path | None = None,
    device: torch.device | str = "cpu",
    *,
    trust: bool = False,
) -> Backbone:
    """Build a network, ready for inference.

    Parameters
    ----------
    backbone : str or Path
        ``resnet18``, ``resnet50`` (strides as in torchvision), ``resnet50-v1`` (strides as in the paper and Keras), or
        a ``.pt2`` file that :func:`torch.export.save` wrote.
    weights : str or Path, optional
        The name of official weights (``IMAGENET1K_V1``, the default, or ``IMAGENET1K_V2``), or a ``.pth`` or
        ``.safetensors`` file. A ``.pt2`` file has its own.
    device : torch.device or str
        Where to run the network.
    trust : bool
        Load a ``.pt2`` file. It is a program: loading it can unpickle its contents, and so run any code, and
        running it calls any function that it names. Weight files run no code and need no trust.
    """
    if str(backbone).lower().endswith(".pt2"):
        if weights is not None:
            raise InputError(f"{backbone} brings its own weights; leave out --weights (weights={str(weights)!r})")
        if not trust:
            raise InputError(
                f"{backbone} is a program, which can run any code when it is loaded; if you trust who made it, repeat "
                "the command with --trust (trust=True)"
            )
        return load_exported(Path(backbone), torch.device(device))
    if backbone not in BACKBONES:
        raise InputError(f"backbone={str(backbone)!r}; expected one of {', '.join(BACKBONES)}, or a .pt2 file")
    name = str(backbone)
    file = find_weights(name, weights)
    network = BACKBONES[name](None)
    load_weights(network, file)
    # PyTorch's CPU and GPU convolutions are fastest with the channels last.
    network = fuse_batch_norms(network).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Backbone(network, name, file.name, sha256(file))


def load_exported(path: Path, device: torch.device) -> Backbone:
    """Load a network that ``torch.export`` wrote; the file states whether its input sizes are fixed."""
    with reading(path, "a network saved by torch.export"):
        program = torch.export.load(path)
        if device.type != "cpu":
            program = move_to_device_pass(program, device)
        inputs = [node.meta["val"] for node in program.graph.nodes if node.name in program.graph_signature.user_inputs]
        shapes = [tuple(length if isinstance(length, int) else "any" for length in value.shape) for value in inputs]
        if len(shapes) != 1 or len(shapes[0]) != 4 or shapes[0][1] != 3 or shapes[0][2] != shapes[0][3]:
            raise FileContentError(f"{path} takes inputs {shapes}; expected one batch (n, 3, size, size)")
        batch_size, size = (length if isinstance(length, int) else None for length in (shapes[0][0], shapes[0][2]))
        return Backbone(program.module(), path.name, path.name, sha256(path), batch_size, size)


def find_weights(backbone: str, weights: str | Path | None) -> Path:
    """Return the file of the weights; official weights are downloaded if necessary."""
    official = OFFICIAL_WEIGHTS.get(backbone, {})
    name = DEFAULT_WEIGHTS if weights is None else str(weights)
    if name.upper() in official:
        return fetch(official[name.upper()])
    if Path(name).is_file():
        return Path(name)
    known = f"one of {', '.join(official)}" if official else f"(for {backbone} none is official)"
    raise InputError(f"weights={name!r} is no file; expected a .pth or .safetensors file, or {known}")


def fetch(file_name: str) -> Path:
    """Return an official file from torch's cache, downloaded first if necessary, with its digest checked."""
    target = Path(torch.hub.get_dir()) / "checkpoints" / file_name
    digest_start = target.stem.rpartition("-")[2]
    if not target.is_file():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(OFFICIAL_URL + file_name, str(target), digest_start)
        except (URLError, OSError, RuntimeError) as error:
            raise FileError(
                f"cannot download {OFFICIAL_URL}{file_name} ({error}); without a network, put the file at {target}, "
                "or give another with --weights"
            ) from None
    elif not sha256(target).startswith(digest_start):
        raise FileContentError(f"{target} is damaged: its SHA-256 is not {digest_start}…; delete it and try again")
    return target


def load_weights(network: nn.Module, path: str | Path) -> None:
    """Load a file of tensors into a network: plain weights, or a checkpoint of SCAN, SimCLR, MoCo or solo-learn.

    No code in the file is run. Entries of a checkpoint that are not parameters of the network are ignored.

    Parameters
    ----------
    network : nn.Module
        A backbone, or any network whose parameters have the same names in the file.
    path : str or Path
        A ``.pth``, ``.pth.tar``, ``.ckpt`` or ``.safetensors`` file.
    """
    path = Path(path)
    load_state(network, named_as(read_state(path), network), path)


def named_as(state: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Rename the tensors of a checkpoint to their names in the network, and drop those of other parts."""
    expected = network.state_dict()
    # SCAN's own ResNet has another name for what torchvision calls "downsample".
    plain = {name.removeprefix("module.").replace(".shortcut.", ".downsample."): state[name] for name in state}
    prefix = max(PREFIXES, key=lambda prefix: sum(prefix + name in plain for name in expected))
    own = {name.removeprefix(prefix): value for name, value in plain.items() if name.startswith(prefix)}
    return {name: value for name, value in own.items() if name in expected or not name.startswith(OTHERS)}


def load_state(network: nn.Module, state: Mapping[str, Tensor], path: Path) -> None:
    """Load named tensors, which came from ``path``, into a network whose parameters they must match."""
    expected = network.state_dict()
    # Counters that only training reads; older files lack them.
    required = [name for name in expected if not name.endswith("num_batches_tracked")]
    missing = [name for name in required if name not in state]
    unexpected = [name for name in state if name not in expected]
    if missing or unexpected:
        raise FileContentError(
            f"{path} does not fit the network; missing: {listed(missing)}; unexpected: {listed(unexpected)}"
        )
    for name in required:
        if state[name].shape != expected[name].shape:
            raise FileContentError(
                f"{path} does not fit the network: {name} has the shape {tuple(state[name].shape)}, "
                f"expected {tuple(expected[name].shape)}"
            )
    network.load_state_dict(state, strict=False)


def read_state(path: Path) -> Mapping[str, Tensor]:
    """Read named tensors without running any code that the file might hold."""
    with reading(path, "a file of weights"):
        if path.suffix == ".safetensors":
            return load_file(path)
        try:
            with torch.serialization.safe_globals(NUMPY_SCALARS):
                state: Any = torch.load(path, map_location="cpu", weights_only=True)
        except Exception:  # damaged pickles raise nearly any exception
            raise FileContentError(
                f"{path} is refused: it is damaged, or holds more than tensors and numbers, which could run code when "
                "loaded; where it was made, save its state_dict() alone"
            ) from None
    # Training scripts often save their state dict under one of these names, beside other things.
    for name in ("state_dict", "model", "model_state_dict"):
        state = state[name] if isinstance(state, dict) and isinstance(state.get(name), dict) else state
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise FileContentError(f"{path} holds no state dict: expected tensors by name, found {type(state).__name__}")
    return state


def sha256(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
