"""The torch losses agree with NumPy, have right gradients, and fit into training loops."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.nn import functional

from cceclust import estimate_pseudo_labels, objective
from cceclust.errors import InputError
from cceclust.torch import CollisionCrossEntropy, SelfLabelingLoss
from cceclust.torch import estimate_pseudo_labels as estimate_on_device

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def random_logits(n_samples=40, n_clusters=6, scale=2.0, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(n_samples, n_clusters, generator=generator, dtype=torch.float64)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_collision_cross_entropy_agrees_with_numpy(dtype):
    logits, targets = random_logits(dtype=dtype), random_logits(dtype=dtype, seed=1).softmax(dim=1)
    expected = objective.collision_cross_entropy(targets.numpy(), logits.softmax(dim=1).numpy())
    losses = CollisionCrossEntropy(reduction="none")(logits, targets)
    np.testing.assert_allclose(losses.numpy(), expected, atol=TOLERANCE[dtype])
    assert CollisionCrossEntropy()(logits, targets).item() == pytest.approx(expected.mean(), rel=1e-5)
    assert CollisionCrossEntropy(reduction="sum")(logits, targets).item() == pytest.approx(expected.sum(), rel=1e-5)


def test_indices_and_one_hot_targets_give_shannons_cross_entropy():
    logits, indices = random_logits(), torch.arange(40) % 6
    expected = functional.cross_entropy(logits, indices)
    torch.testing.assert_close(CollisionCrossEntropy()(logits, indices), expected)
    torch.testing.assert_close(CollisionCrossEntropy()(logits, functional.one_hot(indices, 6).double()), expected)


def test_gradients_are_right_for_logits_and_targets():
    logits = random_logits(5, 4).requires_grad_()
    targets = random_logits(5, 4, seed=1).softmax(dim=1).requires_grad_()
    assert torch.autograd.gradcheck(CollisionCrossEntropy(), (logits, targets))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_extreme_logits_stay_finite(dtype):
    logits = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]], dtype=dtype, requires_grad=True)
    targets = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    loss = CollisionCrossEntropy()(logits, targets)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("fairness", [0.0, 0.1, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0, 50.0])
def test_em_agrees_with_numpy(dtype, fairness, scale):
    prior = torch.tensor([0.0, 0.1, 0.2, 0.2, 0.2, 0.3], dtype=dtype)
    for n_samples, u in ((1, None), (60, None), (60, prior)):
        sigma = random_logits(n_samples, scale=scale, dtype=dtype).softmax(dim=1)
        found = estimate_on_device(sigma, fairness=fairness, prior=u, max_iter=15)
        expected = estimate_pseudo_labels(sigma.numpy(), fairness=fairness, prior=u, max_iter=15, tol=0)
        np.testing.assert_allclose(found.numpy(), expected.pseudo_labels, atol=TOLERANCE[dtype])


def test_self_labeling_loss_is_the_objective_and_teaches_all_views():
    loss = SelfLabelingLoss(fairness=3.0, prior=[0.1, 0.1, 0.2, 0.2, 0.2, 0.2], view_weight=0.5)
    logits, first, second = (random_logits(seed=seed).requires_grad_() for seed in range(3))
    labels = loss.pseudo_labels(logits).numpy()
    sigma, *others = (tensor.detach().softmax(dim=1).numpy() for tensor in (logits, first, second))
    expected = objective.loss_cce_plus(sigma, labels, fairness=3.0, prior=loss.prior.numpy())
    expected += 0.5 * np.mean([objective.collision_cross_entropy(labels, other).mean() for other in others])
    total = loss(logits, first, second)
    assert total.item() == pytest.approx(expected, rel=1e-9)
    total.backward()
    for tensor, weight in ((logits, 1.0), (first, 0.25), (second, 0.25)):
        gradient = weight / 40 * objective.gradient_by_logits(tensor.detach().softmax(dim=1).numpy(), labels)
        np.testing.assert_allclose(tensor.grad.numpy(), gradient, atol=1e-12)


def test_self_labeling_loss_is_in_single_precision_under_autocast():
    network = torch.nn.Linear(4, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = SelfLabelingLoss()(network(torch.randn(30, 4)))
    assert value.dtype == torch.float32
    value.backward()
    assert torch.isfinite(network.weight.grad).all()


def test_compiled_self_labeling_loss_equals_the_plain_one():
    torch.compiler.reset()
    loss = SelfLabelingLoss(fairness=2.0, max_iter=5)
    compiled = torch.compile(loss, backend="aot_eager")
    plain, traced = random_logits().requires_grad_(), random_logits().requires_grad_()
    loss(plain, plain).backward()
    compiled(traced, traced).backward()
    torch.testing.assert_close(traced.grad, plain.grad)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CollisionCrossEntropy(reduction="median"), "got 'median'"),
        (lambda: SelfLabelingLoss(fairness=-2), "fairness=-2; expected a number of at least 0"),
        (lambda: SelfLabelingLoss(prior=[0.5, 0.9]), "prior sums to 1.4, expected 1"),
        (lambda: SelfLabelingLoss(max_iter=1.5), "max_iter=1.5; expected a whole number"),
    ],
)
def test_bad_parameters_are_named(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_without_torch_one_line_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import cceclust.torch"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    assert "MissingExtraError" in last
    assert 'pip install -c constraints.txt ".[torch]"' in last
