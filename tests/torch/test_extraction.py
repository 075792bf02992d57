"""Extraction: the right rows, the same file whatever happens on the way, and changed inputs refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from cceclust.errors import FileContentError, FileError, InputError, TargetExistsError
from cceclust.io import open_features
from cceclust.io.images import open_images
from cceclust.torch import extract_features, extraction, weights
from cceclust.torch.pixels import MEAN, STANDARD_DEVIATION, normalize, resize_and_crop

N_IMAGES = 42
DAMAGED = (5, 17)
SIZE = 16


class TinyNetwork(nn.Module):
    """A convolution and what follows it, with the names that a ResNet uses."""

    def __init__(self, n_classes: None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 5, stride=4, bias=False)
        self.bn1 = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.bn1(self.conv1(x))).flatten(1)


@pytest.fixture(autouse=True)
def tiny_backbone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(weights.BACKBONES, "tiny", TinyNetwork)


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


def extract(folder: Path, target: Path, tiny_weights: Path, **options: object) -> None:
    options = {"backbone": "tiny", "weights": tiny_weights, "size": SIZE, "batch_size": 4} | options
    extract_features(open_images(folder), target, **options)  # type: ignore[arg-type]


class TestResult:
    def test_rows_equal_the_network_applied_to_each_image_alone(
        self, folder: Path, tmp_path: Path, tiny_weights: Path
    ) -> None:
        extract(folder, tmp_path / "features.h5", tiny_weights)
        images = open_images(folder)
        network = TinyNetwork().eval()
        weights.load_weights(network, tiny_weights)
        with open_features(tmp_path / "features.h5") as features, torch.inference_mode():
            assert features.shape == (N_IMAGES - 2, 4 * 3 * 3)
            assert features.dtype == np.float32
            kept = [index for index in range(N_IMAGES) if index not in DAMAGED]
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

    def test_damaged_images_are_listed_and_leave_no_row(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        result = extract_features(
            open_images(folder), tmp_path / "features.h5", backbone="tiny", weights=tiny_weights, size=SIZE
        )
        assert (result.n_images, result.n_rows) == (N_IMAGES, N_IMAGES - 2)
        assert [reason.split(".png")[0][-2:] for reason in result.skipped] == ["05", "17"]
        with h5py.File(tmp_path / "features.h5") as file:
            assert file["skipped"].asstr()[...].tolist() == result.skipped
            assert np.isfinite(file["features"][...]).all()

    def test_a_damaged_image_stops_the_run_if_asked_to(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        with pytest.raises(FileContentError, match=r"05\.png is not a readable image.*--on-error skip"):
            extract(folder, tmp_path / "features.h5", tiny_weights, on_error="fail")
        assert not (tmp_path / "features.h5").exists()
        # The same work goes on once such images may be left out.
        extract(folder, tmp_path / "features.h5", tiny_weights)

    def test_nothing_but_damaged_images_is_refused(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        for file in folder.rglob("*.png"):
            file.write_bytes(b"rubbish")
        with pytest.raises(FileContentError, match="none of the 42 images"):
            extract(folder, tmp_path / "features.h5", tiny_weights)

    def test_provenance_is_in_the_attributes(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        extract(folder, tmp_path / "features.h5", tiny_weights, dtype="float16")
        with open_features(tmp_path / "features.h5") as features:
            attributes = features.attributes
        with h5py.File(tmp_path / "features.h5") as file:
            assert file["features"].dtype == np.float16
        assert attributes["backbone"] == "tiny"
        assert attributes["weights"] == "tiny.safetensors"
        assert attributes["weights_sha256"] == weights.sha256(tiny_weights)
        assert attributes["image_size"] == SIZE
        assert attributes["input"] == folder.name
        assert attributes["input_count"] == N_IMAGES
        assert attributes["torch_version"] == torch.__version__
        assert attributes["complete"] is True
        assert {"preprocessing", "tool_version", "device"} <= set(attributes)

    def test_names_that_are_not_utf8_survive(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        odd_folder = Path(os.fsdecode(b"%b-\xe9" % os.fsencode(folder)))
        try:
            folder.rename(odd_folder)
        except OSError:
            pytest.skip("this file system wants UTF-8")
        extract(odd_folder, tmp_path / "features.h5", tiny_weights)
        with open_features(tmp_path / "features.h5") as features:
            assert features.paths is not None
            assert all(Path(path).is_file() for path in features.paths)

    def test_threads_do_not_change_a_bit(
        self, folder: Path, tmp_path: Path, tiny_weights: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        extract(folder, tmp_path / "one.h5", tiny_weights)
        several = partial(ThreadPoolExecutor, 4)
        monkeypatch.setattr(extraction, "ThreadPoolExecutor", lambda n_threads: several())
        extract(folder, tmp_path / "several.h5", tiny_weights)
        assert (tmp_path / "several.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()

    def test_progress_counts_every_image(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        seen: list[tuple[int, int]] = []
        extract(folder, tmp_path / "f.h5", tiny_weights, batch_size=20, progress=lambda *counts: seen.append(counts))
        assert seen == [(0, N_IMAGES), (20, N_IMAGES), (40, N_IMAGES), (N_IMAGES, N_IMAGES)]

    def test_features_that_overflow_are_refused(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        huge = TinyNetwork().state_dict()
        huge["conv1.weight"] *= 1e8
        save_file(huge, tiny_weights)
        with pytest.raises(InputError, match="NaN or infinity"):
            extract(folder, tmp_path / "features.h5", tiny_weights, dtype="float16")
        extract(folder, tmp_path / "features.h5", tiny_weights, dtype="float32", restart=True)


# Runs extractions in forks of itself, so that torch is imported once, and kills them: each time at as many file
# operations as the next line of its input says. An endless number lets one finish.
VICTIM = """
import os, signal, sys
from cceclust.io.images import open_images
from cceclust.torch import extract_features, extraction, weights
import torch
folder, target, weights_file = sys.argv[1:]
torch.set_num_threads(1)

class TinyNetwork(torch.nn.Module):
    def __init__(self, n_classes=None):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 4, 5, stride=4, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(4)
    def forward(self, x):
        return torch.relu(self.bn1(self.conv1(x))).flatten(1)

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


class Victim:
    """The process that runs and kills extractions of one folder to one target."""

    def __init__(self, folder: Path, target: Path, tiny_weights: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(folder), str(target), str(tiny_weights)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, n_operations: float) -> bool:
        """Run until the kill, and tell whether the extraction was quicker."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{n_operations}\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        assert status in (0, -signal.SIGKILL)
        return status == 0

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks")
def test_killed_at_any_file_operation_it_ends_with_the_same_file(
    folder: Path, tmp_path: Path, tiny_weights: Path
) -> None:
    target = tmp_path / "features.h5"
    extract(folder, target, tiny_weights, batch_size=20)
    whole = target.read_bytes()
    target.unlink()
    operation = 0
    with Victim(folder, target, tiny_weights) as victim:
        while not victim.run(operation):
            assert not target.exists() or target.read_bytes() == whole
            assert victim.run(float("inf"))
            assert target.read_bytes() == whole
            assert not (tmp_path / "features.h5.part").exists()
            target.unlink()
            operation += 1
    assert operation > 8


class TestContinuing:
    def stop_after(self, n_images: int, folder: Path, target: Path, tiny_weights: Path, **options: object) -> None:
        """Begin an extraction and interrupt it."""

        def interrupt(n_done: int, _: int) -> None:
            if n_done >= n_images:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            extract(folder, target, tiny_weights, progress=interrupt, **options)

    def test_an_interrupted_run_continues_where_it_was(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        target = tmp_path / "features.h5"
        self.stop_after(20, folder, target, tiny_weights)
        result = extract_features(
            open_images(folder), target, backbone="tiny", weights=tiny_weights, size=SIZE, batch_size=4
        )
        assert result.n_resumed == 20

    def test_half_written_rows_and_lines_are_cut_off(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        target = tmp_path / "features.h5"
        extract(folder, target, tiny_weights)
        whole = target.read_bytes()
        target.unlink()
        for torn in (b'{"images": 24, "ro', b'{"images": 24, "rows": 22, "columns": 36, "skipped": []}', b"\0\0\0"):
            self.stop_after(20, folder, target, tiny_weights)
            with (tmp_path / "features.h5.part" / "journal.jsonl").open("ab") as file:
                file.write(torn)
            with (tmp_path / "features.h5.part" / "features.bin").open("ab") as file:
                file.write(b"half a row")
            extract(folder, target, tiny_weights)
            assert target.read_bytes() == whole
            target.unlink()

    def test_rows_that_never_reached_the_disk_are_made_again(
        self, folder: Path, tmp_path: Path, tiny_weights: Path
    ) -> None:
        target = tmp_path / "features.h5"
        self.stop_after(20, folder, target, tiny_weights)
        rows = tmp_path / "features.h5.part" / "features.bin"
        os.truncate(rows, rows.stat().st_size - 1)
        seen: list[int] = []
        extract(folder, target, tiny_weights, progress=lambda n_done, _: seen.append(n_done))
        assert seen[0] == 16

    def test_a_finished_run_is_not_repeated(self, folder: Path, tmp_path: Path, tiny_weights: Path) -> None:
        target = tmp_path / "features.h5"
        extract(folder, target, tiny_weights)
        before = target.stat()
        result = extract_features(
            open_images(folder), target, backbone="tiny", weights=tiny_weights, size=SIZE, batch_size=4
        )
        assert result.n_resumed == N_IMAGES
        assert len(result.skipped) == 2
        assert target.stat() == before

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
        self, folder: Path, tmp_path: Path, tiny_weights: Path, change: str, told: str
    ) -> None:
        target = tmp_path / "features.h5"
        self.stop_after(20, folder, target, tiny_weights)
        options: dict[str, object] = (
            {"size": 20} if change == "size" else {"dtype": "float16"} if change == "dtype" else {}
        )
        if change == "image":
            Image.new("RGB", (9, 9)).save(folder / "even" / "01.png")
        elif change == "weights":
            torch.manual_seed(1)
            save_file(TinyNetwork().state_dict(), tiny_weights)
        with pytest.raises(InputError, match=f"{told}.*--restart"):
            extract(folder, target, tiny_weights, **options)
        extract(folder, target, tiny_weights, restart=True, **options)
        with open_features(target) as features:
            assert features.n_samples == N_IMAGES - 2

    def test_a_file_made_from_something_else_is_kept_unless_forced(
        self, folder: Path, tmp_path: Path, tiny_weights: Path
    ) -> None:
        target = tmp_path / "features.h5"
        extract(folder, target, tiny_weights)
        for options in ({"dtype": "float16"}, {"dtype": "float16", "restart": True}):
            with pytest.raises(TargetExistsError, match="--force"):
                extract(folder, target, tiny_weights, **options)
        extract(folder, target, tiny_weights, dtype="float16", force=True)
        with h5py.File(target) as file:
            assert file["features"].dtype == np.float16


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"size": 0}, "size=0"),
            ({"batch_size": 0}, "batch_size=0"),
            ({"dtype": "int8"}, "dtype='int8'"),
            ({"on_error": "ignore"}, "on_error='ignore'"),
            ({"device": "tpu9000"}, "device='tpu9000'"),
            ({"device": "cuda:77"}, "device='cuda:77' is not there"),
        ],
    )
    def test_bad_values_are_named(
        self, folder: Path, tmp_path: Path, tiny_weights: Path, options: dict[str, object], message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            extract(folder, tmp_path / "features.h5", tiny_weights, **options)

    def test_a_target_that_cannot_be_written_is_refused_before_any_work(
        self, folder: Path, tmp_path: Path, tiny_weights: Path
    ) -> None:
        with pytest.raises(FileError, match="no directory"):
            extract(folder, tmp_path / "nowhere" / "features.h5", tiny_weights)
        with pytest.raises(InputError, match=r"name a file that ends in \.h5"):
            extract(folder, tmp_path / "features.csv", tiny_weights)

    def test_too_little_memory_is_told_with_what_to_do(
        self, folder: Path, tmp_path: Path, tiny_weights: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def forward(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
            raise torch.OutOfMemoryError("no room")

        monkeypatch.setattr(TinyNetwork, "forward", forward)
        with pytest.raises(InputError, match=r"too little memory for 4 images.*--batch-size"):
            extract(folder, tmp_path / "features.h5", tiny_weights)


class TestPreprocessing:
    def test_large_images_show_their_middle_and_small_ones_all(self) -> None:
        image = np.zeros((256, 256, 3), np.uint8)
        image[16:-16, 16:-16] = 255
        assert (resize_and_crop(image, 224) == 255).all()
        small = np.zeros((32, 32, 3), np.uint8)
        small[:, 16:] = 255
        enlarged = resize_and_crop(small, 224)
        assert (enlarged[:, :100] == 0).all()
        assert (enlarged[:, -100:] == 255).all()

    def test_the_long_side_is_cropped_evenly(self) -> None:
        image = np.zeros((32, 96, 3), np.uint8)
        image[:, 32:64] = 255
        assert (resize_and_crop(image, 64)[:, 2:-2] == 255).all()

    def test_shrinking_averages_instead_of_picking_pixels(self) -> None:
        checks = (255 * (np.indices((512, 512)).sum(axis=0) % 2)).astype(np.uint8)
        shrunk = resize_and_crop(np.repeat(checks[..., None], 3, axis=2), 56)
        assert np.abs(shrunk.astype(int) - 127).max() < 8

    @pytest.mark.parametrize("shape", [(1, 1), (1, 5000), (5000, 2), (224, 224), (255, 3000)])
    def test_odd_shapes_give_the_wanted_size(self, shape: tuple[int, int]) -> None:
        assert resize_and_crop(np.zeros((*shape, 3), np.uint8), 224).shape == (224, 224, 3)

    def test_normalised_input_has_channels_last_in_memory(self) -> None:
        pixels = torch.randint(0, 256, (2, 8, 8, 3), dtype=torch.uint8)
        x = normalize(pixels)
        assert x.shape == (2, 3, 8, 8)
        assert x.is_contiguous(memory_format=torch.channels_last)
        expected = (pixels[1, 2, 3, 0] / 255 - MEAN[0]) / STANDARD_DEVIATION[0]
        assert float(x[1, 0, 2, 3]) == pytest.approx(float(expected), abs=1e-5)
