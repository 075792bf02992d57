"""Noisy labels of images: both losses train the same ResNet-18 on the same soft targets, and others judge it."""

import numpy as np
import pytest

from cceclust.bench.noisy_images import compare_losses_on_images
from cceclust.cli.main import run
from cceclust.errors import InputError
from cceclust.files.images import open_images


def test_losses_agree_without_noise_and_learn(stripes):
    (clean,) = compare_losses_on_images(
        open_images(stripes), noises=[0.0], n_epochs=6, batch_size=8, device="cpu", seed=1
    )
    assert clean.cce == pytest.approx(clean.ce)
    assert clean.cce[0] > 0.9


def test_both_losses_get_the_same_soft_targets_and_weights(stripes, monkeypatch):
    seen = []

    def keep(network, images, targets, loss, **settings):
        first = next(network.parameters()).detach().clone()
        seen.append((first, images, targets, loss, settings))

    monkeypatch.setattr("cceclust.torch.classification.train_classifier", keep)
    compare_losses_on_images(open_images(stripes), noises=[0.6], n_draws=2, device="cpu")
    (weights, images, targets, cce, settings), (other_weights, other_images, other_targets, ce, same), *_ = seen
    assert cce is not ce
    assert len(seen) == 4
    assert (weights == other_weights).all()
    assert (images == other_images).all()
    assert (targets == other_targets).all()
    assert settings == same
    assert len(images) == 24
    # A label has what is left to it and its share of the noise.
    assert targets.amax(dim=1).numpy() == pytest.approx(0.4 + 0.6 / 3)
    assert targets.sum(dim=1).numpy() == pytest.approx(1)
    assert not (seen[2][0] == weights).all()


def test_images_without_labels_are_refused(tmp_path):
    np.save(tmp_path / "images.npy", np.zeros((20, 32, 32), np.uint8))
    with pytest.raises(InputError, match="has no labels to learn from"):
        compare_losses_on_images(open_images(tmp_path / "images.npy"))


def test_a_class_with_one_image_is_refused(tmp_path):
    np.savez(tmp_path / "few.npz", images=np.zeros((20, 32, 32), np.uint8), labels=np.array([1] + 19 * [0]))
    with pytest.raises(InputError, match="a fifth of each class cannot be held out"):
        compare_losses_on_images(open_images(tmp_path / "few.npz"))


def test_command_prints_and_draws(stripes, tmp_path, capsys):
    arguments = ["bench", "noisy-labels", str(stripes), "--deep", "--epochs", "1", "--draws", "1", "--noise", "0.5"]
    assert run([*arguments, "-o", str(tmp_path / "noise.svg"), "--device", "cpu"]) == 0
    assert "held-out images" in capsys.readouterr().out
    assert b"<svg" in (tmp_path / "noise.svg").read_bytes()


@pytest.mark.parametrize(
    ("options", "problem"),
    [(["--size", "32"], "needs --deep"), (["--deep", "--weight-decay", "1"], "has no meaning with --deep")],
)
def test_options_that_would_do_nothing_are_misuse(blob_file, tmp_path, capsys, options, problem):
    assert run(["bench", "noisy-labels", str(blob_file), *options, "-o", str(tmp_path / "noise.png")]) == 2
    assert problem in " ".join(capsys.readouterr().err.split())
