"""Extraction: the right rows, the same file whatever happens on the way, and changed inputs refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from cceclust.errors import FileContentError, InputError
from cceclust.io import open_features
from cceclust.io.images import open_images
from cceclust.torch import extract_features, extraction, weights
from cceclust.torch.extraction import Extraction
from cceclust.torch.pixels import MEAN, STANDARD_DEVIATION, resize_and_crop

N_IMAGES = 42
DAMAGED = (5, 17)
SIZE = 16

Extract = Callable[..., Extraction]


class TinyNetwork(nn.Module):
    """A convolution and what follows it, with the names that a ResNet uses."""

    def __init__(self, n_classes: None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 5, stride=4, bias=False)
        self.bn1 = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.bn1(self.conv1(x))).flatten(1)


@pytest.fixture
def tiny_weights(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    save_file(TinyNetwork().state_dict(), tmp_path / "tiny.safetensors")
    return tmp_path / "tiny.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of two classes of images, two of which are damaged."""
    generator = np.random.default_rng(0)
    for number in range(N_IMAGES):
        file = tmp_path / "images" / ("even" if number < 20 else "odd") / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        shape = (int(generator.integers(8, 40)), int(generator.integers(8, 40)), 3)
        Image.fromarray(generator.integers(0, 256, shape, np.uint8)).save(file)
        if number in DAMAGED:
            file.write_bytes(file.read_bytes()[:60])
    return tmp_path / "images"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "features.h5"


@pytest.fixture
def extract(folder: Path, target: Path, tiny_weights: Path, monkeypatch: pytest.MonkeyPatch) -> Extract:
    """Return a function that extracts the features of the images to the target by the tiny network."""
    monkeypatch.setitem(weights.BACKBONES, "tiny", TinyNetwork)

    def run(images: Path = folder, target: Path = target, **options: Any) -> Extraction:
        options = {"backbone": "tiny", "weights": tiny_weights, "size": SIZE, "batch_size": 4} | options
        return extract_features(open_images(images), target, **options)

    return run


def stop_after(n_images: int, extract: Extract) -> None:
    """Begin an extraction and interrupt it."""

    def interrupt(n_done: int, _: int) -> None:
        if n_done >= n_images:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(progress=interrupt)


class TestResult:
    def test_rows_equal_the_network_applied_to_each_image_alone(
        self, extract: Extract, folder: Path, target: Path, tiny_weights: Path
    ) -> None:
        extract()
        images = open_images(folder)
        network = TinyNetwork().eval()
        weights.load_weights(network, tiny_weights)
        kept = [index for index in range(N_IMAGES) if index not in DAMAGED]
        with open_features(target) as features, torch.inference_mode():
            assert features.shape == (N_IMAGES - 2, 4 * 3 * 3)
            for row, index in enumerate(kept):
                pixels = torch.tensor(resize_and_crop(images.read(index), SIZE)).permute(2, 0, 1) / 255
                mean, deviation = (torch.tensor(values)[:, None, None] for values in (MEAN, STANDARD_DEVIATION))
                expected = network(((pixels - mean) / deviation)[None])[0].numpy()
                np.testing.assert_allclose(features.array()[row], expected, atol=1e-5)
            assert images.paths is not None
            assert features.paths is not None
            assert features.labels is not None
            assert features.paths.tolist() == images.paths[kept].tolist()
            assert features.labels.tolist() == [Path(path).parent.name for path in features.paths]

    def test_damaged_images_are_listed_and_leave_no_row(self, extract: Extract, target: Path) -> None:
        result = extract()
        assert (result.n_images, result.n_rows) == (N_IMAGES, N_IMAGES - 2)
        assert [reason.split(".png")[0][-2:] for reason in result.skipped] == ["05", "17"]
        with h5py.File(target) as file:
            assert file["skipped"].asstr()[...].tolist() == result.skipped

    def test_nothing_but_damaged_images_is_refused(self, extract: Extract, folder: Path) -> None:
        for file in folder.rglob("*.png"):
            file.write_bytes(b"rubbish")
        with pytest.raises(FileContentError, match="none of the 42 images"):
            extract()

    def test_provenance_is_in_the_attributes(
        self, extract: Extract, folder: Path, target: Path, tiny_weights: Path
    ) -> None:
        extract(dtype="float16")
        with h5py.File(target) as file:
            assert file["features"].dtype == np.float16
            attributes = dict(file.attrs)
        assert (attributes["backbone"], attributes["weights"]) == ("tiny", "tiny.safetensors")
        assert attributes["weights_sha256"] == weights.sha256(tiny_weights)
        assert (attributes["image_size"], attributes["input_count"]) == (SIZE, N_IMAGES)
        assert attributes["input"] == folder.name
        assert attributes["torch_version"] == torch.__version__
        assert attributes["complete"]
        assert {"preprocessing", "tool_version", "device"} <= set(attributes)

    def test_threads_do_not_change_a_bit(
        self, extract: Extract, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        extract(target=tmp_path / "one.h5")
        several = partial(ThreadPoolExecutor, 4)
        monkeypatch.setattr(extraction, "ThreadPoolExecutor", lambda n_threads: several())
        extract(target=tmp_path / "several.h5")
        assert (tmp_path / "several.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()

    def test_features_that_overflow_are_refused(self, extract: Extract, tiny_weights: Path) -> None:
        huge = TinyNetwork().state_dict()
        huge["conv1.weight"] *= 1e8
        save_file(huge, tiny_weights)
        with pytest.raises(InputError, match="NaN or infinity"):
            extract(dtype="float16")
        extract(dtype="float32", restart=True)


# Runs extractions in forks of itself, so that torch is imported once, and kills them: each time at as many file
# operations as the next line of its input says. An endless number lets one finish.
VICTIM = """
import os, signal, sys
from cceclust.io.images import open_images
from cceclust.torch import extract_features, weights
import torch
from test_extraction import TinyNetwork
folder, target, weights_file = sys.argv[1:]
torch.set_num_threads(1)
weights.BACKBONES["tiny"] = TinyNetwork

def die_after_file_operations(count):
    left = [count]
    def watch(event, arguments):
        if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"):
            if target in str(arguments[0]):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        die_after_file_operations(float(line))
        extract_features(open_images(folder), target, backbone="tiny", weights=weights_file, size=16, batch_size=20)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks")
def test_killed_at_any_file_operation_it_ends_with_the_same_file(
    extract: Extract, folder: Path, target: Path, tiny_weights: Path
) -> None:
    extract(batch_size=20)
    whole = target.read_bytes()
    target.unlink()
    command = [sys.executable, "-c", VICTIM, str(folder), str(target), str(tiny_weights)]
    here = Path(__file__).parent
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=here, text=True, bufsize=1, **pipes) as victim:

        def finishes(n_operations: float) -> bool:
            """Run until the kill, and tell whether the extraction was quicker."""
            assert victim.stdin is not None
            assert victim.stdout is not None
            victim.stdin.write(f"{n_operations}\n")
            status = int(victim.stdout.readline())
            assert status in (0, -signal.SIGKILL)
            return status == 0

        operation = 0
        while not finishes(operation):
            assert not target.exists() or target.read_bytes() == whole
            assert finishes(float("inf"))
            assert target.read_bytes() == whole
            assert not target.with_name("features.h5.part").exists()
            target.unlink()
            operation += 1
    assert operation > 8


class TestContinuing:
    def test_an_interrupted_run_continues_where_it_was(self, extract: Extract) -> None:
        stop_after(20, extract)
        assert extract().n_resumed == 20

    def test_batches_behind_a_missing_one_are_made_again(self, extract: Extract, target: Path) -> None:
        extract()
        whole = target.read_bytes()
        target.unlink()
        stop_after(20, extract)
        first, *_ = sorted(target.with_name("features.h5.part").glob("*.npz"))
        first.unlink()
        assert extract().n_resumed == 0
        assert target.read_bytes() == whole

    def test_a_damaged_batch_is_named(self, extract: Extract, target: Path) -> None:
        stop_after(20, extract)
        _, last, *_ = sorted(target.with_name("features.h5.part").glob("*.npz"))
        os.truncate(last, last.stat().st_size - 1)
        with pytest.raises(FileContentError, match=f"{last.name} is damaged or not an archive of arrays"):
            extract()
        assert extract(restart=True).n_resumed == 0

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ("image", "input_fingerprint was"),
            ("weights", "weights_sha256 was"),
            ("size", "image_size was 16, is 20"),
            ("dtype", "dtype was 'float32', is 'float16'"),
        ],
    )
    def test_changes_are_refused_until_a_restart(
        self, extract: Extract, folder: Path, tiny_weights: Path, change: str, told: str
    ) -> None:
        stop_after(20, extract)
        options: dict[str, dict[str, object]] = {"size": {"size": 20}, "dtype": {"dtype": "float16"}}
        if change == "image":
            Image.new("RGB", (9, 9)).save(folder / "even" / "01.png")
        elif change == "weights":
            torch.manual_seed(1)
            save_file(TinyNetwork().state_dict(), tiny_weights)
        with pytest.raises(InputError, match=f"{told}.*--restart"):
            extract(**options.get(change, {}))
        assert extract(restart=True, **options.get(change, {})).n_rows == N_IMAGES - 2


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"size": 0}, "size=0"),
            ({"batch_size": 0}, "batch_size=0"),
            ({"dtype": "int8"}, "dtype='int8'"),
            ({"device": "tpu9000"}, "there is no device 'tpu9000'"),
            ({"device": "cuda:77"}, "the device cuda:77 is not there"),
            ({"target": Path("features.csv")}, r"name a file that ends in \.h5"),
        ],
    )
    def test_bad_values_are_named(self, extract: Extract, options: dict[str, object], message: str) -> None:
        with pytest.raises(InputError, match=message):
            extract(**options)


class TestPreprocessing:
    @pytest.mark.parametrize("shape", [(1, 1), (1, 5000), (5000, 2), (224, 224), (255, 3000)])
    def test_odd_shapes_give_the_wanted_size(self, shape: tuple[int, int]) -> None:
        assert resize_and_crop(np.zeros((*shape, 3), np.uint8), 224).shape == (224, 224, 3)

    @pytest.mark.parametrize("shape", [(300, 400), (401, 233), (60, 45)])
    def test_equals_resizing_the_whole_image_and_cropping_then(self, shape: tuple[int, int]) -> None:
        image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
        short = 224 if min(shape) < 224 else 256
        height, width = (length * short // min(shape) for length in shape)
        whole = np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)).astype(int)
        top, left = round((height - 224) / 2), round((width - 224) / 2)
        # In noise, a shift by a hundredth of a pixel would change more than the rounding of grey values does.
        assert np.abs(resize_and_crop(image, 224) - whole[top : top + 224, left : left + 224]).max() <= 1
