"""Every objective against a small version of its own in NumPy: the value, and the gradient by finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from cceclust.pseudo_labels import (
    AlternatingDirectionSolver,
    EMSolver,
    OptimalTransportSolver,
    solve_pseudo_labels,
)
from cceclust.torch.objectives import (
    OBJECTIVES,
    adversarial_view,
    balanced_labels,
    make_objective,
    shannon_cross_entropy,
)

Array = NDArray[np.float64]
WEIGHT = 0.7


def logits_of(seed: int, n_samples: int = 24, n_clusters: int = 3, scale: float = 2.0) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    logits = scale * generator.normal(size=(n_samples, n_clusters))
    return logits, logits + generator.normal(size=logits.shape)


def collision(labels: Array, logits: Array) -> float:
    return float(-np.log((labels * softmax(logits, axis=1)).sum(axis=1)).mean())


def shannon(labels: Array, logits: Array) -> float:
    return float(-(labels * log_softmax(logits, axis=1)).sum(axis=1).mean())


def unfairness(labels: Array) -> float:
    mean = labels.mean(axis=0)
    return float((mean * np.log(mean * len(mean))).sum())


def reversed_unfairness(labels: Array) -> float:
    mean = labels.mean(axis=0)
    return float(-np.log(mean * len(mean)).mean())


def numpy_cce(logits: Array, view: Array) -> Callable[[Array, Array], float]:
    solver = EMSolver(fairness=100.0, max_iter=500, tol=0)
    labels = solve_pseudo_labels(solver, softmax(logits, axis=1)).pseudo_labels
    return lambda a, b: collision(labels, a) + WEIGHT * collision(labels, b) + 100 * reversed_unfairness(labels)


def numpy_miadm(logits: Array, view: Array) -> Callable[[Array, Array], float]:
    labels = solve_pseudo_labels(
        AlternatingDirectionSolver(max_iter=1000, tol=0), softmax(logits, axis=1)
    ).pseudo_labels
    return lambda a, b: shannon(labels, a) + WEIGHT * shannon(labels, b) + unfairness(labels)


def numpy_sela(logits: Array, view: Array) -> Callable[[Array, Array], float]:
    solver = OptimalTransportSolver(one_hot=True, tol=1e-9)
    labels = solve_pseudo_labels(solver, softmax(logits, axis=1)).pseudo_labels
    return lambda a, b: shannon(labels, a) + WEIGHT * shannon(labels, b)


def numpy_imsat(logits: Array, view: Array) -> Callable[[Array, Array], float]:
    fixed = softmax(logits, axis=1)

    def loss(a: Array, b: Array) -> float:
        sigma = softmax(a, axis=1)
        mean = sigma.mean(axis=0)
        information = -(sigma * np.log(sigma)).sum(axis=1).mean() + 4 * (mean * np.log(mean)).sum()
        return WEIGHT * shannon(fixed, b) + 0.1 * float(information)

    return loss


def numpy_iic(logits: Array, view: Array) -> Callable[[Array, Array], float]:
    def loss(a: Array, b: Array) -> float:
        joint = softmax(a, axis=1).T @ softmax(b, axis=1) / len(a)
        joint = (joint + joint.T) / 2
        independent = joint.sum(axis=0)[:, None] * joint.sum(axis=1)[None, :]
        return -float((joint * np.log(joint / independent)).sum())

    return loss


ORACLES = {
    "cce": (numpy_cce, {"augmentation_weight": WEIGHT}),
    "imsat": (numpy_imsat, {"augmentation_weight": WEIGHT}),
    "iic": (numpy_iic, {}),
    "sela": (numpy_sela, {"augmentation_weight": WEIGHT}),
    "miadm": (numpy_miadm, {"augmentation_weight": WEIGHT}),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_loss_and_gradient_are_those_of_numpy(name: str, seed: int) -> None:
    oracle, parameters = ORACLES[name]
    logits, view = logits_of(seed)
    loss = oracle(logits, view)
    first, second = (torch.tensor(array, requires_grad=True) for array in (logits, view))
    objective = make_objective(name, **parameters)
    # Enough for both to converge.
    objective.max_iter = 500
    value = objective(first, second)["loss"]
    assert value.item() == pytest.approx(loss(logits, view), rel=1e-3)
    value.backward()
    generator = np.random.default_rng(seed)
    for _ in range(4):
        # The derivative in a random direction; pseudo-labels stay as they are.
        step, other = (1e-5 * generator.normal(size=logits.shape) for _ in range(2))
        expected = (loss(logits + step, view + other) - loss(logits - step, view - other)) / 2
        assert first.grad is not None
        assert second.grad is not None
        found = float((first.grad.numpy() * step).sum() + (second.grad.numpy() * other).sum())
        assert found == pytest.approx(expected, rel=0.02, abs=1e-8)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_extreme_logits_give_finite_losses_and_gradients(name: str) -> None:
    logits = torch.zeros(8, 4)
    logits[:, 1] = 300.0
    logits.requires_grad_()
    parts = make_objective(name)(logits, -logits)
    parts["loss"].backward()
    assert all(torch.isfinite(value) for value in parts.values())
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("certainty", [30.0, 300.0, 3000.0])
def test_saturated_single_precision_logits_lose_no_cluster_in_the_transport(certainty: float) -> None:
    logits = logits_of(0, n_samples=240, n_clusters=6)[0]
    # A head that is sure of itself, and never predicts the last three clusters.
    logits[:, :3] += certainty * np.random.default_rng(1).random((240, 3))
    single, double = (
        balanced_labels(torch.tensor(logits, dtype=kind), 25.0, 50) for kind in (torch.float32, torch.float64)
    )
    assert torch.bincount(single.argmax(dim=1), minlength=6).min() >= 30
    assert (single.argmax(dim=1) == double.argmax(dim=1)).float().mean() > 0.99


def test_adversarial_views_change_predictions_more_than_random_ones_as_far_away() -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Tanh(), torch.nn.Linear(30, 4))
    images = torch.randn(50, 20)
    view = adversarial_view(network, images)
    nearest = torch.cdist(images, images).fill_diagonal_(torch.inf).amin(dim=1)
    torch.testing.assert_close((view - images).norm(dim=1), 0.25 * nearest)
    assert all(parameter.grad is None for parameter in network.parameters())
    random = torch.nn.functional.normalize(torch.randn_like(images)) * 0.25 * nearest[:, None]
    with torch.no_grad():
        targets = network(images).softmax(dim=1)
        of_view, of_random = (shannon_cross_entropy(network(moved), targets) for moved in (view, images + random))
        certain = shannon_cross_entropy(network(images), targets)
    assert of_view - certain > 4 * (of_random - certain)
