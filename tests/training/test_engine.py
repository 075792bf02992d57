from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from cceclust.errors import InputError
from cceclust.pseudo_labels import EMSolver
from cceclust.training import engine
from cceclust.training.engine import TrainingPlan, has_settled, has_stalled, learning_rate, train
from cceclust.training.heads import HeadStack
from cceclust.training.objectives import SelfLabeling
from cceclust.training.progress import Progress
from cceclust.training.rows import ArrayRows
from cceclust.training.standardization import Standardization

AS_IT_IS = Standardization(np.zeros(6), 1.0)


def plan(**changes: Any) -> TrainingPlan:
    settings: dict[str, Any] = {
        "n_clusters": 3, "n_restarts": 3, "batch_size": 50, "max_epochs": 4, "learning_rate": 0.3,
        "constant_rate": False, "weight_decay": 0.05, "tol": 0.0,
    }  # fmt: skip
    return TrainingPlan(**{**settings, **changes})


def three_groups(n_rows: int = 240) -> ArrayRows:
    generator = np.random.default_rng(0)
    return ArrayRows(generator.normal(size=(n_rows, 6)) + 6 * np.eye(3, 6)[np.arange(n_rows) % 3])


def run(rows: Any = None, settings: TrainingPlan | None = None, **options: Any) -> Any:
    rows = rows or three_groups()
    options = {"seed": 0, "sample_weight": np.ones(rows.shape[0]), **options}

    def draw_heads(members: Any, generator: np.random.Generator) -> HeadStack:
        return HeadStack.random(len(members), 3, rows.shape[1], rows.dtype, generator)

    def same_for_all(members: Any) -> SelfLabeling:
        return SelfLabeling(EMSolver(max_iter=10))

    make_objective = options.pop("make_objective", same_for_all)

    return train(rows, settings or plan(), draw_heads, make_objective, AS_IT_IS, **options)


def test_one_thread_equals_two() -> None:
    one, two = run(n_threads=1), run(n_threads=2)
    for name in ("weights", "biases", "loss_curves"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_the_seed_decides_everything() -> None:
    one, same, other = run(), run(), run(seed=1)
    np.testing.assert_array_equal(one.weights, same.weights)
    assert not np.array_equal(one.weights, other.weights)


def test_restarts_differ_and_the_loss_falls_in_each() -> None:
    trained = run(settings=plan(n_restarts=7, max_epochs=6))
    assert trained.weights.shape == (7, 3, 6)
    assert trained.loss_curves.shape == (7, 6)
    assert len(np.unique(trained.weights[:, 0, 0])) == 7
    assert (trained.loss_curves[:, -1] < trained.loss_curves[:, 0]).all()


def test_no_batch_is_larger_than_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = []

    def gather(matrix: Any, indices: Any, mean: Any, scale: Any, rows: Any) -> None:
        gathered.append((len(indices), len(rows)))
        rows[:] = matrix[indices]

    monkeypatch.setattr("cceclust.training.heads.gather_standardized", gather)
    run(three_groups(230), plan(batch_size=60))
    assert all(wanted == given for wanted, given in gathered)
    assert {wanted for wanted, _ in gathered} == {57, 58}


def test_rows_without_weight_teach_nothing() -> None:
    rows, weights = three_groups(), np.ones(240)
    weights[::2] = 0
    spoiled = ArrayRows(np.where(weights[:, None] > 0, rows.matrix, 1e6))
    np.testing.assert_array_equal(run(rows, sample_weight=weights).weights, run(spoiled, sample_weight=weights).weights)


def test_weights_count_as_repetitions_in_one_batch() -> None:
    matrix, counts = three_groups(60).matrix, np.arange(60) % 4
    repeated = ArrayRows(np.repeat(matrix, counts, axis=0))
    everything = plan(batch_size=1000)
    weighted = run(ArrayRows(matrix), everything, sample_weight=counts.astype(float))
    np.testing.assert_allclose(weighted.weights, run(repeated, everything).weights, atol=1e-6)


def test_the_scale_of_weights_does_not_matter() -> None:
    weights = np.random.default_rng(0).random(240)
    np.testing.assert_allclose(run(sample_weight=weights).weights, run(sample_weight=1000 * weights).weights, atol=1e-9)


def test_companions_are_drawn_from_those_given(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []

    def gather(matrix: Any, indices: Any, mean: Any, scale: Any, rows: Any) -> None:
        own, companions = np.split(np.asarray(indices), 2)
        steps.extend((companions - own) % 240)
        rows[:] = matrix[indices]

    monkeypatch.setattr("cceclust.training.heads.gather_standardized", gather)
    run(companions=(np.arange(240)[:, None] + [3, 6, 9]) % 240)
    assert set(steps) == {3, 6, 9}


def test_every_epoch_is_reported() -> None:
    reports: list[Progress] = []
    trained = run(on_progress=reports.append)
    assert [(report.done, report.total) for report in reports] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert [report.detail for report in reports[1:]] == [f"loss {loss:.4f}" for loss in trained.loss_curves.min(axis=0)]


def test_the_rate_falls_along_a_cosine_or_stays() -> None:
    falling = [learning_rate(plan(), done) for done in np.linspace(0, 4, 9)]
    assert falling[0] == 0.3
    assert falling[4] == pytest.approx(0.3 * 0.6)
    assert falling[-1] == pytest.approx(0.3 * 0.2)
    assert (np.diff(falling) < 0).all()
    assert learning_rate(plan(constant_rate=True), 3) == 0.3


def test_training_stops_early_only_in_its_second_half() -> None:
    trained = run(settings=plan(max_epochs=40, tol=0.5))
    assert trained.loss_curves.shape[1] == 21
    assert trained.converged
    assert run(settings=plan(max_epochs=40, tol=0.0)).loss_curves.shape[1] == 40


def test_training_stalls_when_no_restart_improves() -> None:
    flat, falling = np.full(6, 0.5), np.linspace(1, 0.5, 6)
    assert has_stalled(list(np.array([flat, flat]).T), 1e-4)
    assert not has_stalled(list(np.array([flat, falling]).T), 1e-4)
    assert has_stalled(list(np.array([flat, np.full(6, np.nan)]).T), 1e-4)
    assert not has_stalled(list(np.array([falling, np.full(6, np.nan)]).T), 1e-4)
    assert not has_stalled(list(np.array([flat, flat]).T), 0.0)
    assert not has_stalled(list(np.array([flat, flat]).T)[:3], 1e-4)


@pytest.mark.parametrize(
    ("curve", "settled"),
    [
        (np.linspace(2, 1, 10), False),
        (np.geomspace(10, 0.1, 40), False),
        (1 + np.geomspace(1, 1e-6, 40), True),
        (0.3 + 0.03 * np.cos(np.arange(40)), True),
        (np.geomspace(1, 1e-4, 40), True),
        ([0.7], False),
    ],
    ids=["falling", "falling fast", "flat", "noisy", "nearly zero", "one epoch"],
)
def test_convergence_is_seen_through_noise(curve: Any, settled: bool) -> None:
    assert has_settled([np.array([loss]) for loss in curve]) is settled


def test_divergence_is_an_error_that_says_what_to_lower() -> None:
    with pytest.raises(InputError, match=r"diverged in epoch \d+ with learning_rate=100 and weight_decay=1"):
        run(settings=plan(learning_rate=100.0, weight_decay=1.0, max_epochs=100, constant_rate=True))


def test_an_interrupt_stops_the_other_groups_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, waiting = [], threading.Event()
    original = engine.RestartGroup._step

    def step(self: Any, *arguments: Any) -> Any:
        steps.append(self)
        if len(self.heads.weights) == 3:  # The second group has one restart, the first has two.
            waiting.wait(timeout=10)
            raise KeyboardInterrupt
        waiting.set()
        time.sleep(0.001)
        return original(self, *arguments)

    monkeypatch.setattr(engine.RestartGroup, "_step", step)
    with pytest.raises(KeyboardInterrupt):
        run(settings=plan(batch_size=1, max_epochs=1), n_threads=2)
    assert len(steps) < 240


def test_blas_has_one_thread_while_training_and_its_own_number_afterwards() -> None:
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before, during = threads(), []
    run(on_progress=lambda _: during.extend(threads()))
    assert set(during) == {1}
    assert threads() == before


def test_restarts_may_differ_in_decay_and_solver() -> None:
    """Each of several settings trains as it would if all restarts had it."""
    decays, fairness = np.array([0.01, 0.05, 0.2]), [1.0, 3.0, 10.0]

    def mixed(members: Any) -> SelfLabeling:
        return SelfLabeling([EMSolver(fairness=fairness[i], max_iter=10) for i in members])

    together = run(settings=plan(weight_decay=decays), make_objective=mixed)
    for i in range(3):
        alone = run(
            settings=plan(weight_decay=float(decays[i])),
            make_objective=lambda _, i=i: SelfLabeling(EMSolver(fairness=fairness[i], max_iter=10)),
        )
        np.testing.assert_array_equal(together.weights[i], alone.weights[i])
        np.testing.assert_array_equal(together.loss_curves[i], alone.loss_curves[i])
