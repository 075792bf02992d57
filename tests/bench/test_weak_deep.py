"""Weak supervision of networks: the same few labels by every method, and the other images judge, unmatched."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cceclust.bench.weak_deep import METHODS, compare_weak_deep
from cceclust.cli.main import run
from cceclust.errors import InputError
from cceclust.files.images import open_images
from cceclust.torch.runs import RunSettings

QUICK = RunSettings(network="vgg4-32", batch_size=15, n_epochs=1)


def test_clusters_are_the_classes_that_the_labels_name(stripes):
    settings = dict.fromkeys(["only seeds", "+ CCE"], replace(QUICK, n_epochs=4))
    results = compare_weak_deep(open_images(stripes), settings, ratios=[0.2], n_draws=1, device="cpu")
    for result in results:
        assert min(result.accuracies) > 0.9, result.method


def test_only_images_without_a_label_judge(stripes, monkeypatch):
    class Parrot:
        """Repeats the labels that it was given, and says 0 of all other images."""

        def fit(self, pixels, n_epochs, *, given, on_epoch):
            self.answers = np.where(given < 0, 0, given)

        def predict(self, pixels):
            return self.answers

    monkeypatch.setattr("cceclust.torch.runs.make_trainer", lambda *_: Parrot())
    (result,) = compare_weak_deep(open_images(stripes), {"+ CCE": QUICK}, ratios=[0.5], n_draws=1, device="cpu")
    assert result.accuracies == [pytest.approx(1 / 3)]


def test_every_method_adds_its_own_loss_to_that_of_the_labels(stripes):
    epochs = {}
    results = compare_weak_deep(
        open_images(stripes),
        dict.fromkeys(METHODS, QUICK),
        ratios=[0.1],
        n_draws=1,
        device="cpu",
        on_epoch=epochs.__setitem__,
    )
    assert [result.method for result in results] == list(METHODS)
    added = {name: metrics.loss - metrics.parts["labels"] for name, metrics in epochs.items()}
    assert added.pop("only seeds") == 0
    assert all(added.values())
    assert len(set(added.values())) == len(added)


def test_draws_differ_and_repeat(stripes):
    losses = []
    for n_draws in (2, 1):
        compare_weak_deep(
            open_images(stripes),
            {"only seeds": QUICK},
            ratios=[0.1],
            n_draws=n_draws,
            device="cpu",
            on_epoch=lambda _, metrics: losses.append(metrics.loss),
        )
    first, second, again = losses
    assert first == again
    assert first != second


def test_what_cannot_work_is_refused_before_training(stripes, tmp_path):
    def fail(*_):
        pytest.fail("training has begun")

    images = open_images(stripes)
    with pytest.raises(InputError, match="'magic' is none of only seeds"):
        compare_weak_deep(images, {"only seeds": QUICK, "magic": QUICK}, on_epoch=fail)
    with pytest.raises(InputError, match=r"ratio=0\.99 leaves none of 30 rows"):
        compare_weak_deep(images, {"only seeds": QUICK}, ratios=[0.1, 0.99], on_epoch=fail)
    np.save(tmp_path / "images.npy", np.zeros((20, 28, 28), np.uint8))
    with pytest.raises(InputError, match="has no labels to learn from"):
        compare_weak_deep(open_images(tmp_path / "images.npy"), {"only seeds": QUICK}, on_epoch=fail)


def test_command_prints_a_column_a_ratio(stripes, capsys):
    options = ["--network", "vgg4-32", "--batch-size", "15", "--epochs", "1", "--device", "cpu", "--draws", "1"]
    arguments = ["bench", "weak", str(stripes), "--deep", *options, "--ratio", "0.2", "--ratio", "0.1"]
    assert run([*arguments, "--method", "+ CCE"]) == 0
    printed = capsys.readouterr().out
    assert "accuracy on unlabelled images, 1 draws" in printed
    assert printed.count("±") == 2
    assert run([*arguments, "--method", "only seeds", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["method"], row["ratio"], len(row["accuracies"])) for row in rows] == [
        ("only seeds", 0.2, 1),
        ("only seeds", 0.1, 1),
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--epochs", "1"], "needs --deep"),
        (["--network", "vgg4-28"], "needs --deep"),
        (["--limit", "5"], "needs --deep"),
        (["--deep", "--restarts", "2"], "has no meaning with --deep"),
        (["--deep", "--method", "self-training"], "'self-training' is none of"),
    ],
)
def test_options_that_would_do_nothing_are_misuse(blob_file, capsys, options, problem):
    assert run(["bench", "weak", str(blob_file), *options]) == 2
    assert problem in " ".join(capsys.readouterr().err.split())
