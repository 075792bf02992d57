"""The trainer: it lowers the loss, says how it goes, goes on exactly where it was, and refuses what cannot work."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cceclust.errors import InputError
from cceclust.scoring import clustering_accuracy
from cceclust.torch import DeepTrainer
from cceclust.torch.objectives import OBJECTIVES

N_CLUSTERS = 3


class OwnNetwork(nn.Module):
    """What a user might bring: batch norm, dropout, any names."""

    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(16, N_CLUSTERS)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.body(x))
        return result


def blobs(n: int = 90) -> tuple[Tensor, np.ndarray]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % N_CLUSTERS
    return torch.randn(n, 6, generator=generator) + 6 * torch.eye(N_CLUSTERS, 6)[labels], labels.numpy()


def jitter(batch: Tensor) -> Tensor:
    return batch + 0.5 * torch.randn_like(batch)


def trainer(objective: str = "cce", seed: int = 0, **settings: object) -> DeepTrainer:
    torch.manual_seed(seed)
    chosen = {"batch_size": 30, "learning_rate": 0.01, "device": "cpu"} | settings
    return DeepTrainer(OwnNetwork(), jitter, objective, seed=seed, **chosen)  # type: ignore[arg-type]


def without_speed(history: list) -> list:
    return [replace(metrics, images_per_second=0.0) for metrics in history]


class TestTraining:
    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_every_objective_lowers_its_loss_and_finds_the_groups(self, name: str) -> None:
        images, labels = blobs()
        clusterer = trainer(name, learning_rate=0.03, weight_decay=1e-4)
        history = clusterer.fit(images, 10, labels=labels)
        assert history[-1].loss < history[0].loss
        assert clustering_accuracy(labels, clusterer.predict(images)) > 0.6

    def test_metrics_say_how_it_goes(self) -> None:
        images, labels = blobs()
        metrics = trainer(learning_rate=0.03).fit(images, 10, labels=labels)[-1]
        assert metrics.epoch == 10
        assert set(metrics.parts) == {"images", "views", "unfairness"}
        total = metrics.parts["images"] + metrics.parts["views"] + 100 * metrics.parts["unfairness"]
        assert metrics.loss == pytest.approx(total, rel=1e-4)
        assert metrics.cluster_entropy > 0.95
        assert metrics.accuracy is not None
        assert metrics.accuracy > 0.8
        assert metrics.images_per_second > 0

    def test_the_callers_random_numbers_are_left_alone(self) -> None:
        clusterer = trainer()
        torch.manual_seed(7)
        expected = torch.rand(3)
        torch.manual_seed(7)
        clusterer.fit(blobs()[0], 1)
        assert torch.equal(torch.rand(3), expected)

    def test_batch_norms_predict_with_the_statistics_of_the_trained_network(self) -> None:
        images, _ = blobs()
        clusterer = DeepTrainer(OwnNetwork(dropout=0.0), lambda batch: batch, learning_rate=0.1, batch_size=90)
        clusterer.fit(images, 3)
        predicted = clusterer.predict_proba(images)
        norm = clusterer.network.get_submodule("body.1")
        assert isinstance(norm, nn.BatchNorm1d)
        assert norm.momentum == 0.1
        norm.train()
        with torch.no_grad():
            as_in_training = clusterer.network(images).softmax(dim=1).numpy()
        # One batch of all images has the statistics themselves, but for the variance's n − 1.
        np.testing.assert_allclose(predicted, as_in_training, atol=0.01)


class TestGivenLabels:
    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
    def test_clusters_follow_the_labels_however_they_are_permuted(self, order: list[int]) -> None:
        images, labels = blobs()
        permuted = np.array(order)[labels]
        clusterer = trainer(learning_rate=0.03)
        history = clusterer.fit(images, 15, given=np.where(np.arange(90) < 9, permuted, -1))
        assert (clusterer.predict(images) == permuted).mean() > 0.95
        assert history[-1].parts["labels"] < history[0].parts["labels"]


class TestContinuing:
    @pytest.mark.parametrize("objective", ["cce", "imsat"])
    def test_a_restored_trainer_ends_like_one_that_was_never_stopped(self, objective: str) -> None:
        images, labels = blobs()
        whole = trainer(objective)
        whole.fit(images, 4, labels=labels)
        first = trainer(objective)
        first.fit(images, 2, labels=labels)
        second = trainer(objective, seed=0)
        torch.manual_seed(99)
        second.network.load_state_dict(OwnNetwork().state_dict())
        second.load_state_dict(first.state_dict())
        second.fit(images, 4, labels=labels)
        assert without_speed(second.history) == without_speed(whole.history)
        for name, value in whole.network.state_dict().items():
            assert torch.equal(second.network.state_dict()[name], value), name

    def test_seeds_decide_and_repeat(self) -> None:
        images, _ = blobs()
        same, again, other = (trainer(seed=seed).fit(images, 1)[0].loss for seed in (0, 0, 1))
        assert same == again != other


class TestBatches:
    @pytest.mark.parametrize(
        ("n_images", "batch_size", "sizes"), [(31, 30, [16, 15]), (90, 30, [30, 30, 30]), (7, 30, [7])]
    )
    def test_no_batch_is_left_with_a_few_images(self, n_images: int, batch_size: int, sizes: list[int]) -> None:
        seen = []

        def count(batch: Tensor) -> Tensor:
            seen.append(len(batch))
            return batch

        clusterer = DeepTrainer(OwnNetwork(), count, batch_size=batch_size, device="cpu")
        clusterer.fit(blobs(n_images)[0], 1)
        # Once for training, once for the statistics of batch norms.
        assert seen == [*sizes, *sizes]


class TestRefusals:
    def test_networks_that_return_no_logits(self) -> None:
        clusterer = DeepTrainer(nn.Sequential(nn.Linear(6, 6), nn.Flatten(0)), jitter, device="cpu")
        with pytest.raises(InputError, match=r"returns \(360,\) for 60 images; expected \(60, n_clusters\)"):
            clusterer.fit(blobs(30)[0], 1)

    def test_augmentations_that_change_the_shape(self) -> None:
        clusterer = DeepTrainer(OwnNetwork(), lambda batch: batch[:, :3], device="cpu")
        with pytest.raises(InputError, match=r"turned \(30, 6\) into \(30, 3\)"):
            clusterer.fit(blobs(30)[0], 1)

    def test_a_loss_that_is_no_number_stops_the_run(self) -> None:
        with pytest.raises(InputError, match="the loss became nan in epoch 1; lower the learning rate"):
            trainer().fit(torch.full((30, 6), math.nan), 1)

    @pytest.mark.parametrize("wrong", [{"learning_rate": 0.0}, {"batch_size": 0}, {"weight_decay": -1.0}])
    def test_settings_out_of_range(self, wrong: dict[str, float]) -> None:
        with pytest.raises(InputError, match=next(iter(wrong))):
            trainer(**wrong)
