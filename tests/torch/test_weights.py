"""Weights: by name with a checked download, from files that cannot run code, with names that must fit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.torch import weights
from cceclust.torch.resnet import resnet18, small_resnet18
from cceclust.torch.weights import load_backbone, load_weights

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return resnet18().state_dict()


def features_of_noise(path: Path) -> torch.Tensor:
    noise = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        features: torch.Tensor = load_backbone("resnet18", path, CPU)[0](noise)
    return features


def test_pth_and_safetensors_with_and_without_fc_give_the_same_network(
    tmp_path: Path, state: dict[str, torch.Tensor]
) -> None:
    # Neither the head nor the counters of training batches, which old files do not have.
    headless = {name: values for name, values in state.items() if "fc." not in name and "num_batches" not in name}
    torch.save(state, tmp_path / "full.pth")
    torch.save({"state_dict": headless, "epoch": 3}, tmp_path / "headless.pth")
    save_file(headless, tmp_path / "headless.safetensors")
    first, *others = (features_of_noise(file) for file in sorted(tmp_path.iterdir()))
    assert float(first.abs().max()) > 0
    for other in others:
        assert torch.equal(first, other)


def test_names_and_shapes_that_do_not_fit_are_told(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    wrong = dict(state)
    wrong["conv1.kernel"] = wrong.pop("conv1.weight")
    save_file(wrong, tmp_path / "wrong.safetensors")
    with pytest.raises(FileContentError, match=r"missing: conv1\.weight; unexpected: conv1\.kernel"):
        load_backbone("resnet18", tmp_path / "wrong.safetensors", CPU)
    save_file(state | {"conv1.weight": torch.zeros(64, 1, 7, 7)}, tmp_path / "grey.safetensors")
    with pytest.raises(
        FileContentError, match=r"conv1\.weight has the shape \(64, 1, 7, 7\), expected \(64, 3, 7, 7\)"
    ):
        load_weights(resnet18(), tmp_path / "grey.safetensors")


def scan(state: dict[str, torch.Tensor]) -> dict[str, object]:
    """Name a backbone's weights as SCAN's pretext task does."""
    named = {"backbone." + name.replace(".downsample.", ".shortcut."): value for name, value in state.items()}
    return named | {"contrastive_head.0.weight": torch.zeros(512, 512), "contrastive_head.2.bias": torch.zeros(128)}


def simclr(state: dict[str, torch.Tensor]) -> dict[str, object]:
    named = {f"encoder.{name}": value for name, value in state.items()}
    return named | {"projector.0.weight": torch.zeros(512, 512)}


def moco(state: dict[str, torch.Tensor]) -> dict[str, object]:
    query = {f"module.encoder_q.{name}": value for name, value in state.items()}
    key = {f"module.encoder_k.{name}": torch.zeros_like(value) for name, value in state.items()}
    others = {"module.encoder_q.fc.0.weight": torch.zeros(512, 512), "module.queue": torch.zeros(128, 9)}
    return {"epoch": 200, "arch": "resnet18", "state_dict": query | key | others}


LAYOUTS: dict[str, Callable[[dict[str, torch.Tensor]], dict[str, object]]] = {
    "plain": lambda state: dict(state),
    "scan": scan,
    "scan of several GPUs": lambda state: {"module." + name: value for name, value in scan(state).items()},
    "scan in a training state": lambda state: {"model": scan(state), "epoch": 3},
    "simclr": simclr,
    "moco": moco,
    "model of a run": lambda state: (
        {"backbone." + name: value for name, value in state.items()}
        | {"standardize.mean": torch.zeros(3, 1, 1), "head.weight": torch.zeros(4, 512)}
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_backbones_are_found_in_checkpoints_of_every_layout(layout: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    trained, fresh = small_resnet18(32), small_resnet18(32)
    torch.save(LAYOUTS[layout](trained.state_dict()), tmp_path / "checkpoint.pth.tar")
    load_weights(fresh, tmp_path / "checkpoint.pth.tar")
    for name, value in trained.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], value), name


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "broken-in"),)

    torch.save({"conv1.weight": Attack()}, tmp_path / "attack.pth")
    with pytest.raises(FileContentError, match="could run code"):
        load_backbone("resnet18", tmp_path / "attack.pth", CPU)
    assert not (tmp_path / "broken-in").exists()


@pytest.mark.parametrize(
    ("name", "said"), [("damaged.pth", "damaged"), ("damaged.safetensors", "damaged"), ("list.pth", "no state dict")]
)
def test_damaged_and_other_files_are_refused(tmp_path: Path, name: str, said: str) -> None:
    torch.save([1, 2], tmp_path / "list.pth")
    for damaged in ("damaged.pth", "damaged.safetensors"):
        (tmp_path / damaged).write_bytes(b"rubbish" * 10)
    with pytest.raises(FileContentError, match=said):
        load_backbone("resnet18", tmp_path / name, CPU)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="expected resnet18 or resnet50"):
        load_backbone("resnet99", None, CPU)
    with pytest.raises(InputError, match="IMAGENET1K_V1, IMAGENET1K_V2"):
        load_backbone("resnet50", "IMAGENET22K", CPU)


class TestOfficialWeights:
    @pytest.fixture
    def server(self, tmp_path: Path, state: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return a folder that stands for the server, with one file whose name ends in its digest."""
        folder = tmp_path / "server"
        folder.mkdir()
        torch.save(state, folder / "new.pth")
        digest = hashlib.sha256((folder / "new.pth").read_bytes()).hexdigest()
        file_name = f"resnet18-{digest[:8]}.pth"
        (folder / "new.pth").rename(folder / file_name)
        monkeypatch.setattr(weights, "OFFICIAL_URL", folder.as_uri() + "/")
        monkeypatch.setitem(weights.OFFICIAL_WEIGHTS, "resnet18", {"IMAGENET1K_V1": file_name})
        monkeypatch.setenv("TORCH_HOME", str(tmp_path / "cache"))
        return folder / file_name

    def test_are_downloaded_once_and_kept(self, server: Path) -> None:
        _, file = load_backbone("resnet18", "imagenet1k_v1", CPU)
        assert file.name == server.name
        assert weights.sha256(file).startswith(server.stem[-8:])
        server.unlink()
        assert load_backbone("resnet18", None, CPU)[1] == file

    def test_a_download_that_was_tampered_with_is_refused(self, server: Path, tmp_path: Path) -> None:
        server.write_bytes(server.read_bytes() + b"!")
        with pytest.raises(FileError, match="invalid hash"):
            load_backbone("resnet18", None, CPU)
        assert not list((tmp_path / "cache").rglob("*.pth"))

    def test_a_cached_file_that_was_damaged_is_refused(self, server: Path, tmp_path: Path) -> None:
        load_backbone("resnet18", None, CPU)
        cached = next((tmp_path / "cache").rglob("*.pth"))
        cached.write_bytes(cached.read_bytes()[:-1])
        with pytest.raises(FileContentError, match="delete it and try again"):
            load_backbone("resnet18", None, CPU)

    def test_without_a_network_the_error_says_where_to_put_the_file(self, server: Path, tmp_path: Path) -> None:
        server.unlink()
        with pytest.raises(FileError, match="put the file at") as caught:
            load_backbone("resnet18", None, CPU)
        assert str(tmp_path / "cache" / "hub" / "checkpoints" / server.name) in str(caught.value)
