"""Networks that turn images into features, and the files their weights come from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.io.reading import listed, reading
from cceclust.torch.resnet import ResNet, fuse_batch_norms, resnet18, resnet50

__all__ = ["load_backbone", "load_weights", "sha256"]

BACKBONES: dict[str, Callable[[None], ResNet]] = {"resnet18": resnet18, "resnet50": resnet50}
# torchvision's names for its files; a file's name ends with the start of its SHA-256.
OFFICIAL_WEIGHTS = {
    "resnet18": {"IMAGENET1K_V1": "resnet18-f37072fd.pth"},
    "resnet50": {"IMAGENET1K_V1": "resnet50-0676ba61.pth", "IMAGENET1K_V2": "resnet50-11ad3fa6.pth"},
}
DEFAULT_WEIGHTS = "IMAGENET1K_V1"
OFFICIAL_URL = "https://download.pytorch.org/models/"
# Prefixes of the backbone's parameters: in files of plain weights such as torchvision's, in checkpoints of SCAN and
# networks of our runs, of SimCLR, and of MoCo. Networks that several GPUs trained have "module." before that.
PREFIXES = ("", "backbone.", "encoder.", "encoder_q.")


def load_backbone(name: str, weights: str | Path | None, device: torch.device) -> tuple[nn.Module, Path]:
    """Build a network of the given name without its last layer, ready for inference; return it and its file of weights.

    The weights are a file, or the name of official ones (``IMAGENET1K_V1``, the default, or ``IMAGENET1K_V2``), which
    are downloaded if necessary.
    """
    if name not in BACKBONES:
        raise InputError(f"backbone={name!r}; expected {' or '.join(BACKBONES)}")
    official = OFFICIAL_WEIGHTS.get(name, {})
    wanted = DEFAULT_WEIGHTS if weights is None else str(weights)
    if wanted.upper() in official:
        file = fetch(official[wanted.upper()])
    elif Path(wanted).is_file():
        file = Path(wanted)
    else:
        known = ", ".join(official)
        raise InputError(f"there is no file {wanted} of weights; expected a .pth or .safetensors file, or {known}")
    network = BACKBONES[name](None)
    load_weights(network, file)
    # PyTorch's CPU and GPU convolutions are fastest with the channels last.
    network = fuse_batch_norms(network).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network, file


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
    """Load a file of tensors into a network: plain weights, or a checkpoint of SCAN, SimCLR or MoCo.

    No code in the file is run. Parts of a checkpoint that the network does not have, such as heads, are ignored.
    """
    path, expected = Path(path), network.state_dict()
    # SCAN's own ResNet has another name for what torchvision calls "downsample".
    found = {
        name.removeprefix("module.").replace(".shortcut.", ".downsample."): value
        for name, value in read_state(path).items()
    }
    prefix = max(PREFIXES, key=lambda prefix: sum(prefix + name in found for name in expected))
    state = {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
    # Counters that only training reads; older files lack them.
    required = [name for name in expected if not name.endswith("num_batches_tracked")]
    missing = [name for name in required if name not in state]
    # A deeper network has all the parameters of a shallower one, but more in the same parts.
    parts = {name.partition(".")[0] for name in expected}
    unexpected = [name for name in state if name not in expected and name.partition(".")[0] in parts]
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
            state: Any = torch.load(path, map_location="cpu", weights_only=True)
        except Exception:  # damaged pickles raise nearly any exception
            raise FileContentError(
                f"{path} is refused: it is damaged, or holds more than tensors and numbers, which could run code when "
                "loaded; where it was made, save its state_dict() alone"
            ) from None
    # Training scripts often save their state dict under one of these names, beside other things.
    for name in ("state_dict", "model"):
        state = state[name] if isinstance(state, dict) and isinstance(state.get(name), dict) else state
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise FileContentError(f"{path} holds no state dict: expected tensors by name, found {type(state).__name__}")
    return state


def sha256(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
