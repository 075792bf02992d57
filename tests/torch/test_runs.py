"""Runs: what a folder holds, going on after a kill at any moment, all kinds of images, and collapse reported."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file
from torch import nn

from cceclust.cli import deep
from cceclust.errors import ClusteringWarning, FileContentError, FileError, InputError, TargetExistsError
from cceclust.io import Clusters, read_clusters
from cceclust.io.images import open_images
from cceclust.torch import networks
from cceclust.torch.objectives import OBJECTIVES
from cceclust.torch.pixels import load_pixels, look_at
from cceclust.torch.runs import (
    RunSettings,
    cluster_images,
    find_collapse,
    make_trainer,
    predict_images,
    resolve,
)

K = 4
SETTINGS = RunSettings(n_epochs=3, batch_size=20, network="vgg4-28", learning_rate=0.01)


# Tiny networks find little in a few steps, and say so.
pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")


class TinyBackbone(nn.Sequential):
    """A single convolution in the place of VGG-4."""

    n_features = 36

    def __init__(self, size: int) -> None:
        n_channels = 1 if size == 28 else 3
        super().__init__(
            nn.Conv2d(n_channels, 4, 5, stride=size // 4 + 1, padding=2, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
        )


@pytest.fixture(autouse=True)
def tiny_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, form in networks.NETWORKS.items():
        monkeypatch.setitem(networks.NETWORKS, name, form._replace(build=TinyBackbone))


def stripes(n: int, size: int = 28) -> np.ndarray:
    """Return images with bright stripes in one of four places."""
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 60, (n, size, size), np.uint8)
    for number, image in enumerate(pixels):
        start = (number % K) * size // K
        image[:, start : start + size // K] += 180
    return pixels


@pytest.fixture
def images_file(tmp_path: Path) -> Path:
    np.savez(tmp_path / "stripes.npz", images=stripes(60), labels=np.arange(60) % K)
    return tmp_path / "stripes.npz"


def run(images_file: Path, folder: Path, settings: RunSettings = SETTINGS, **options: Any) -> Clusters:
    return cluster_images(open_images(images_file), folder, K, settings, device="cpu", **options)[0]


def outcome(folder: Path) -> tuple[list[dict[str, object]], dict[str, object], list[int]]:
    """Return the metrics without the speed, the weights and the labels of a run."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["images_per_second"]
    weights = {name: value.tolist() for name, value in load_file(folder / "model.safetensors").items()}
    return lines, weights, read_clusters(folder / "clusters.h5").labels.tolist()


class TestFolder:
    def test_predictions_for_the_same_images_are_the_same(self, images_file: Path, tmp_path: Path) -> None:
        result = run(images_file, tmp_path / "run")
        again = predict_images(tmp_path / "run", open_images(images_file), device="cpu")
        assert again.labels.tolist() == result.labels.tolist()
        np.testing.assert_array_equal(again.probabilities, result.probabilities)
        # Others, whose mean brightness must not matter.
        few = predict_images(tmp_path / "run", open_images(images_file).first(3), device="cpu")
        assert few.labels.tolist() == result.labels[:3].tolist()

    def test_nothing_is_overwritten_unasked(self, images_file: Path, tmp_path: Path) -> None:
        run(images_file, tmp_path / "run")
        with pytest.raises(TargetExistsError, match=r"holds a run; use --resume to go on with it, --force"):
            run(images_file, tmp_path / "run")
        run(images_file, tmp_path / "run", replace(SETTINGS, seed=1, n_epochs=1), force=True)
        assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 1

    def test_folders_of_something_else_are_left_alone(self, images_file: Path, tmp_path: Path) -> None:
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "holiday.jpg").write_bytes(b"precious")
        with pytest.raises(FileError, match=r"is no run of cceclust: it holds holiday\.jpg"):
            run(images_file, tmp_path / "photos", force=True)
        with pytest.raises(FileError, match="it is a file"):
            run(images_file, images_file)
        with pytest.raises(FileError, match="there is no directory"):
            run(images_file, tmp_path / "nowhere" / "run")

    def test_damaged_runs_are_told(self, images_file: Path, tmp_path: Path) -> None:
        run(images_file, tmp_path / "run")
        (tmp_path / "run" / "checkpoint.pt").write_bytes(b"rubbish")
        with pytest.raises(FileContentError, match=r"checkpoint\.pt is damaged"):
            run(images_file, tmp_path / "run", resume=True)
        (tmp_path / "run" / "config.json").write_text("[]")
        with pytest.raises(FileContentError, match=r"config\.json is a file that states no format"):
            predict_images(tmp_path / "run", open_images(images_file))

    def test_a_run_can_start_from_the_network_of_another(self, images_file: Path, tmp_path: Path) -> None:
        run(images_file, tmp_path / "first")
        model = tmp_path / "first" / "model.safetensors"
        images = open_images(images_file)
        settings = resolve(replace(SETTINGS, init=str(model), seed=5), images, K)
        network = make_trainer(settings, K, load_pixels(images, 28, 1).pixels, "cpu").network
        trained, begun = load_file(model), network.state_dict()
        for name in begun:
            # The head is a new one.
            assert (begun[name] == trained[name]).all() == (name != "head.weight" and name != "head.bias"), name
        run(images_file, tmp_path / "second", replace(SETTINGS, init=str(model)))
        with pytest.raises(InputError, match=r"there is no file nowhere\.pth"):
            run(images_file, tmp_path / "fourth", replace(SETTINGS, init="nowhere.pth"))


class Killed(BaseException):
    """Stands for a kill."""


def kill_at(operation: int, patch: pytest.MonkeyPatch) -> None:
    """Make one file operation, counted from 1, the last that the process does."""
    count = 0

    def counted(original: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal count
            count += 1
            if count == operation:
                raise Killed
            return original(*arguments, **options)

        return call

    for name in ("replace", "open", "write_text", "write_bytes", "unlink"):
        patch.setattr(Path, name, counted(getattr(Path, name)))


class TestContinuing:
    def test_stopped_at_any_file_operation_it_ends_the_same(
        self, images_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run(images_file, tmp_path / "whole")
        for operation in range(1, 100, 4):
            folder = tmp_path / f"stopped-{operation}"
            try:
                with monkeypatch.context() as patch:
                    kill_at(operation, patch)
                    run(images_file, folder)
            except Killed:
                run(images_file, folder, resume=True)
                assert outcome(folder) == outcome(tmp_path / "whole")
            else:
                break
        assert operation > 20

    def test_more_epochs_later_are_as_good_as_at_once(self, images_file: Path, tmp_path: Path) -> None:
        run(images_file, tmp_path / "whole", replace(SETTINGS, n_epochs=4))
        run(images_file, tmp_path / "longer")
        steps: list[int] = []
        longer = replace(SETTINGS, n_epochs=4)
        run(images_file, tmp_path / "longer", longer, resume=True, on_step=lambda done, _: steps.append(done))
        assert steps[0] == 9
        assert outcome(tmp_path / "longer") == outcome(tmp_path / "whole")

    def test_a_complete_run_is_not_trained_again(self, images_file: Path, tmp_path: Path) -> None:
        run(images_file, tmp_path / "run")
        before = outcome(tmp_path / "run")
        run(images_file, tmp_path / "run", resume=True, on_epoch=lambda _: pytest.fail("trained again"))
        assert outcome(tmp_path / "run") == before

    def test_changed_settings_are_refused_with_both_values(self, images_file: Path, tmp_path: Path) -> None:
        run(images_file, tmp_path / "run")
        with pytest.raises(InputError, match=r"begun with something else: batch_size was 20, is 30; seed was 0, is 4;"):
            run(images_file, tmp_path / "run", replace(SETTINGS, seed=4, batch_size=30), resume=True)
        with pytest.raises(InputError, match="n_epochs was 3, is 2"):
            run(images_file, tmp_path / "run", replace(SETTINGS, n_epochs=2), resume=True)


class TestImages:
    def test_without_labels_only_the_scores_are_missing(self, tmp_path: Path) -> None:
        np.save(tmp_path / "stripes.npy", stripes(60))
        result = run(tmp_path / "stripes.npy", tmp_path / "run")
        assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])["accuracy"] is None
        assert result.true_labels is None

    def test_damaged_images_leave_no_row(self, tmp_path: Path) -> None:
        for number, pixels in enumerate(stripes(24)):
            file = tmp_path / "images" / str(number % K) / f"{number:02}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(file)
            if number == 5:
                file.write_bytes(b"rubbish")
        result = run(tmp_path / "images", tmp_path / "run", replace(SETTINGS, n_epochs=1))
        (skipped,) = result.diagnostics["skipped"]
        assert "05.png" in skipped
        assert result.labels.shape == (23,)
        assert result.paths is not None
        assert not any("05.png" in path for path in result.paths)

    @pytest.mark.parametrize("shape", [(50, 37), (28, 28, 3), (9, 200, 3), (96, 96)])
    @pytest.mark.parametrize("network", ["auto", "vgg4-28", "resnet18"])
    def test_odd_sizes_and_any_channels_are_fitted_to_the_network(
        self, shape: tuple[int, ...], network: str, tmp_path: Path
    ) -> None:
        pixels = np.random.default_rng(0).integers(0, 256, (12, *shape), np.uint8)
        np.save(tmp_path / "odd.npy", pixels)
        settings = replace(SETTINGS, network=network, n_epochs=1)
        assert len(run(tmp_path / "odd.npy", tmp_path / "run", settings).labels) == 12

    def test_grey_is_told_from_colour_and_kept_exactly(self, tmp_path: Path) -> None:
        np.save(tmp_path / "grey.npy", stripes(8))
        grey = open_images(tmp_path / "grey.npy")
        assert look_at(grey) == (28, True)
        np.testing.assert_array_equal(load_pixels(grey, 28, 1).pixels[:, 0].numpy(), stripes(8))
        np.save(tmp_path / "colour.npy", np.zeros((3, 30, 40, 3), np.uint8) + np.array([9, 0, 0], np.uint8))
        assert look_at(open_images(tmp_path / "colour.npy")) == (30, False)

    @pytest.mark.parametrize("size", [5, 10])
    def test_the_middle_square_is_kept(self, size: int, tmp_path: Path) -> None:
        image = np.zeros((1, 10, 30, 3), np.uint8)
        image[:, :, 10:20] = 200
        np.save(tmp_path / "wide.npy", image)
        assert (load_pixels(open_images(tmp_path / "wide.npy"), size, 3).pixels == 200).all()


class TestRefusals:
    # Batches are made equally large: 60 images in batches of at most 59 are two of 30.
    @pytest.mark.parametrize(("k", "batch_size"), [(21, 20), (1, 20), (61, 200), (31, 59)])
    def test_more_clusters_than_a_batch_holds(self, k: int, batch_size: int, images_file: Path) -> None:
        images = open_images(images_file)
        with pytest.raises(InputError, match=f"{k} clusters for 60 images in batches of"):
            resolve(replace(SETTINGS, batch_size=batch_size), images, k)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"network": "alexnet"}, "there is no network 'alexnet'; expected auto, resnet18"),
            ({"objective": "dino"}, "objective='dino'"),
            ({"objective_parameters": {"temperature": 1}}, "no parameter 'temperature'"),
            ({"n_epochs": 0}, "n_epochs"),
        ],
    )
    def test_settings_are_checked_before_any_work(
        self, change: dict[str, object], message: str, images_file: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(InputError, match=message):
            run(images_file, tmp_path / "run", replace(SETTINGS, **change))  # type: ignore[arg-type]
        assert not (tmp_path / "run").exists()


class TestCollapse:
    def test_a_collapsed_run_is_reported(self, tmp_path: Path) -> None:
        # What is all alike ends up in one cluster.
        np.save(tmp_path / "black.npy", np.zeros((60, 28, 28), np.uint8))
        with pytest.warns(ClusteringWarning, match="3 of 4 clusters are empty; train for longer"):
            run(tmp_path / "black.npy", tmp_path / "run", replace(SETTINGS, n_epochs=1))
        problems = read_clusters(tmp_path / "run" / "clusters.h5").diagnostics["warnings"]
        assert problems[0].startswith("3 of 4 clusters are empty")

    def test_guessing_is_reported_and_a_good_run_is_not(self, images_file: Path, tmp_path: Path) -> None:
        clusters = run(images_file, tmp_path / "run", replace(SETTINGS, n_epochs=1))
        clusters.labels = np.arange(60) % K
        clusters.probabilities = np.full((60, K), 0.25)
        (problem,) = find_collapse(clusters)
        assert problem.startswith("the mean confidence is 0.25, hardly above the 0.25 of a guess")
        clusters.probabilities = np.eye(K)[clusters.labels]
        assert find_collapse(clusters) == []


def test_names_for_the_command_line_are_those_that_exist() -> None:
    assert set(get_args(deep.Objective)) == set(OBJECTIVES)
    assert set(get_args(deep.Network)) == {"auto", "resnet18"} | {
        name for name in networks.NETWORKS if not name.startswith("resnet18")
    }
    without = {name for name in OBJECTIVES if "fairness" not in inspect.signature(OBJECTIVES[name].__init__).parameters}
    assert set(deep.WITHOUT_FAIRNESS) == without


def test_the_command_line_has_the_defaults_of_the_settings() -> None:
    names = {"epochs": "n_epochs"}
    for name, parameter in inspect.signature(deep.deep).parameters.items():
        if hasattr(RunSettings, names.get(name, name)):
            assert parameter.default == getattr(RunSettings, names.get(name, name)), name
