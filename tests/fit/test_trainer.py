from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from threadpoolctl import threadpool_info

from cceclust.errors import InputError
from cceclust.fit.objectives import SelfLabeling
from cceclust.fit.trainer import Trained, random_start, train_head
from cceclust.objective import gradient_by_logits, loss_cce_plus
from cceclust.pseudo_labels import EMSolver, solve_pseudo_labels

SOLVER = EMSolver(fairness=10.0, max_iter=5, tol=0.0)


def three_groups(n_rows: int = 240) -> Any:
    generator = np.random.default_rng(0)
    return generator.normal(size=(n_rows, 6)) + 6 * np.eye(3, 6)[np.arange(n_rows) % 3]


def run(rows: Any = None, *, seed: int = 0, **changes: Any) -> Trained:
    settings = {"learning_rate": 0.3, "weight_decay": 0.05, "batch_size": 50, "n_epochs": 4, **changes}
    generator = np.random.default_rng(seed)
    return train_head(
        three_groups() if rows is None else rows, 3, SelfLabeling(SOLVER), generator=generator, **settings
    )


def plain_loop(
    rows: Any, generator: Any, *, learning_rate: float, momentum: float, weight_decay: float, n_epochs: int
) -> tuple[Any, Any, list[float]]:
    """The same training, rate and weights constant, batches of 50, as one would write it down."""
    coef, intercept = random_start(rows.shape[1], 3, generator)
    velocity, intercept_velocity, curve = np.zeros_like(coef), np.zeros(3), []
    for _ in range(n_epochs):
        losses = []
        for points in np.array_split(generator.permutation(len(rows)), round(len(rows) / 50)):
            sigma = softmax(rows[points] @ coef.T + intercept, axis=1)
            labels = solve_pseudo_labels(SOLVER, sigma).pseudo_labels
            losses.append(loss_cce_plus(sigma, labels, fairness=10.0))
            gradient = gradient_by_logits(sigma, labels) / len(points)
            velocity = momentum * velocity + gradient.T @ rows[points] + weight_decay * coef
            intercept_velocity = momentum * intercept_velocity + gradient.sum(axis=0)
            coef, intercept = coef - learning_rate * velocity, intercept - learning_rate * intercept_velocity
        curve.append(float(np.mean(losses)))
    return coef, intercept, curve


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_training_is_the_plain_loop(momentum: float) -> None:
    settings: dict[str, Any] = {"learning_rate": 0.1, "momentum": momentum, "weight_decay": 0.05, "n_epochs": 3}
    expected = plain_loop(three_groups(), np.random.default_rng(0), **settings)
    for found, wanted in zip(run(**settings), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_the_seed_decides_everything() -> None:
    one, same, other = run(), run(), run(seed=1)
    for first, second in zip(one, same, strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(one.coef, other.coef)


def test_float32_and_sparse_rows_give_the_same_head_in_their_type() -> None:
    exact = run()
    narrow = run(three_groups().astype(np.float32))
    assert narrow.coef.dtype == narrow.intercept.dtype == np.float32
    np.testing.assert_allclose(narrow.coef, exact.coef, atol=1e-4)
    np.testing.assert_allclose(run(sparse.csr_array(three_groups())).coef, exact.coef, atol=1e-9)


def test_training_starts_from_a_given_head_and_leaves_it_alone() -> None:
    start = np.eye(3, 6), np.array([0.0, 1.0, 2.0])
    still = run(start=start, learning_rate=0.0)
    np.testing.assert_array_equal(still.coef, np.eye(3, 6))
    np.testing.assert_array_equal(still.intercept, [0, 1, 2])
    run(start=start)
    np.testing.assert_array_equal(start[0], np.eye(3, 6))


def test_the_rate_falls_along_a_cosine(monkeypatch: pytest.MonkeyPatch) -> None:
    # A constant gradient by the intercepts adds up the rates.
    class Constant:
        def gradient(self, logits: Any, weights: Any) -> tuple[Any, float]:
            return -weights * np.ones((len(logits), 1)), 0.0

    def moved(final_rate: float) -> float:
        trained = train_head(
            np.zeros((100, 1)), 1, Constant(), learning_rate=0.5, final_rate=final_rate, weight_decay=0.0,
            batch_size=10, n_epochs=4, generator=np.random.default_rng(0),
        )  # fmt: skip
        return float(trained.intercept[0])

    rates = 0.5 * (0.2 + 0.8 * 0.5 * (1 + np.cos(np.pi * np.arange(40) / 40)))
    assert moved(0.2) == pytest.approx(rates.sum())
    assert moved(1.0) == pytest.approx(40 * 0.5)


def test_rows_without_weight_teach_nothing_and_the_scale_of_weights_does_not_matter() -> None:
    rows, weights = three_groups(), np.random.default_rng(0).random(240)
    weights[::2] = 0
    spoiled = np.where(weights[:, None] > 0, rows, np.nan)
    weighted = run(rows, sample_weight=weights)
    np.testing.assert_array_equal(weighted.coef, run(spoiled, sample_weight=weights).coef)
    np.testing.assert_allclose(weighted.coef, run(rows, sample_weight=1000 * weights).coef, atol=1e-9)


def test_weights_count_as_repetitions_in_one_batch() -> None:
    rows, counts = three_groups(60), np.arange(60) % 4
    options: dict[str, Any] = {"batch_size": 1000, "start": random_start(6, 3, np.random.default_rng(0))}
    weighted = run(rows, sample_weight=counts.astype(float), **options)
    np.testing.assert_allclose(weighted.coef, run(np.repeat(rows, counts, axis=0), **options).coef, atol=1e-9)


def test_neighbors_are_drawn_from_those_given() -> None:
    rows = np.where(np.arange(240)[:, None] % 3 == 0, three_groups(), np.nan)
    weights = (np.arange(240) % 3 == 0).astype(float)
    near = (np.arange(240)[:, None] + [3, 6, 9]) % 240
    assert np.isfinite(run(rows, sample_weight=weights, neighbors=near).loss_curve).all()
    with pytest.raises(InputError, match="training diverged in epoch 1 "):
        run(rows, sample_weight=weights, neighbors=near + 1 - 240)


def test_blas_has_one_thread_meanwhile() -> None:
    counts: list[int] = []

    def count(*report: Any) -> None:
        counts.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")

    run(on_epoch=count)
    assert set(counts) == {1}
