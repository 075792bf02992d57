"""Noisy labels: as many are wrong as said, both losses get the same, and the figure is drawn."""

import json

import numpy as np
import pytest

from cceclust.bench.noisy_labels import compare_losses, corrupt
from cceclust.cli.main import run
from cceclust.errors import InputError


@pytest.mark.parametrize("noise", [0.0, 0.5, 0.9])
def test_noise_replaces_its_part_of_the_labels_by_any_label(noise):
    labels = np.repeat(np.arange(4), 5000)
    wrong = (corrupt(labels, noise, seed=0) != labels).mean()
    assert wrong == pytest.approx(0.75 * noise, abs=0.01)


def test_noise_must_leave_something():
    with pytest.raises(InputError, match="below 1"):
        corrupt(np.array([0, 1]), 1.0, seed=0)


def test_losses_agree_without_noise_and_part_with_it(blobs):
    clean, noisy = compare_losses(*blobs, noises=[0.0, 0.8], n_draws=2)
    assert clean.cce == clean.ce
    assert min(clean.cce) > 0.9
    assert noisy.cce != noisy.ce
    assert np.mean(noisy.cce) < np.mean(clean.cce)


def test_command_prints_and_draws(blob_file, tmp_path, capsys):
    figure = tmp_path / "noise.png"
    arguments = ["bench", "noisy-labels", str(blob_file), "--draws", "1", "--noise", "0", "--noise", "0.5"]
    assert run([*arguments, "-o", str(figure)]) == 0
    assert "collision" in capsys.readouterr().out
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert run([*arguments, "-o", str(figure)]) == 1
    assert "noise.png" in capsys.readouterr().err
    assert run([*arguments, "-o", str(figure), "--force", "--json"]) == 0
    assert [result["noise"] for result in json.loads(capsys.readouterr().out)] == [0.0, 0.5]
