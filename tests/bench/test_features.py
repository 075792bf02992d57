"""The comparison of methods: every one takes part, settings are the preset's, the pick needs no labels."""

import json

import numpy as np
import pytest
from scipy.special import softmax

from cceclust.bench.features import PAPER_ITERATIONS, PRESETS, compare_methods, settings_of
from cceclust.cli.main import run
from cceclust.errors import InputError
from cceclust.estimators.methods import METHODS
from cceclust.pseudo_labels import EMSolver, PGDSolver, solve_pseudo_labels


def test_every_method_takes_part_and_solves_easy_data(blobs):
    results = compare_methods(*blobs, n_trials=2, n_restarts=2)
    assert [result.method for result in results] == list(METHODS)
    for result in results:
        assert len(result.accuracies) == 2
        assert result.picked_accuracy in result.accuracies
        assert result.picked_accuracy > 0.9, result.method


def test_paper_preset_has_the_settings_of_the_supplement():
    (settings,) = settings_of("cce", "paper", None, 1.0)
    expected = {"learning_rate": 0.1, "batch_size": 250, "max_epochs": 10, "fairness": 100.0, "weight_decay": 0.02}
    assert expected.items() <= settings.items()
    assert settings["standardize"] is False
    (settings,) = settings_of("migd", "paper", 0.001, 1.0)
    assert settings["fairness"] == 1.3
    assert settings["weight_decay"] == 0.001


# What means something else in each method, and the number of restarts, which the comparison gives to all.
OWN = {"fairness", "max_iter", "sharpness", "step_size", "n_init"}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_treats_all_methods_alike(preset):
    tried = {}
    for method in METHODS.keys() - {"kmeans"}:
        estimators = [METHODS[method](10, **settings) for settings in settings_of(method, preset, None, 0.5)]
        params = [estimator.get_params() for estimator in estimators]
        tried[method] = {name: {repr(each[name]) for each in params} for name in params[0].keys() - OWN}
    assert len(tried) == 5
    for name in set().union(*tried.values()):
        values = {method: tried[method][name] for method in tried if name in tried[method]}
        assert len(set(map(frozenset, values.values()))) == 1, (name, values)
    # What only one method can do would be its advantage.
    assert tried["cce"].get("graph_candidates", {"False"}) == {"False"}


@pytest.mark.parametrize(
    "solver",
    [
        EMSolver(fairness=100, max_iter=PAPER_ITERATIONS["cce"], tol=0),
        PGDSolver(fairness=100, max_iter=PAPER_ITERATIONS["cce-pgd"], tol=0, loss="cce", step_size=1e-3),
    ],
    ids=["cce", "cce-pgd"],
)
def test_solvers_of_the_paper_preset_nearly_reach_the_minimum(solver):
    sigma = softmax(np.random.default_rng(0).normal(size=(250, 10)), axis=1)
    curve = solve_pseudo_labels(solver, sigma, return_loss_curve=True).loss_curve
    # The minimum is that of 100,000 iterations.
    assert curve[0] - curve[-1] > 0.4
    assert curve[-1] == pytest.approx(1.1954, abs=0.02)


def test_best_preset_keeps_the_settings_with_the_highest_mean_accuracy(blobs, monkeypatch):
    # With the smallest rate heads stay where they began, which is at random.
    monkeypatch.setattr("cceclust.bench.features.BEST_WEIGHT_DECAYS", (1.0,))
    monkeypatch.setattr("cceclust.bench.features.BEST_LEARNING_RATES", (1e-7, 0.5, 2e-7))
    monkeypatch.setattr("cceclust.bench.features.BEST_PARAMETERS", {"sela": {"sharpness": (25.0,)}})
    fits = []
    (best,) = compare_methods(*blobs, methods=["sela"], preset="best", n_trials=2, on_fit=fits.append)
    assert len(fits) == 6
    assert best.settings["learning_rate"] == 0.5
    assert best.mean_accuracy > 0.9


def test_the_pick_is_the_trial_with_the_lowest_loss_whatever_its_accuracy(blobs, monkeypatch):
    features, labels = blobs

    class Fixed:
        """Trials 0, 1 and 2: only the second has the true labels, and only the third the lowest loss."""

        def __init__(self, n_clusters, *, n_init, random_state):
            self.labels_ = labels if random_state == 1 else labels // 2
            self.loss_ = [3.0, 2.0, 1.0][random_state]

        def fit(self, X):
            return self

    monkeypatch.setitem(METHODS, "cce", Fixed)
    (result,) = compare_methods(features, labels, methods=["cce"], n_trials=3)
    assert result.accuracies == [pytest.approx(2 / 3), 1.0, pytest.approx(2 / 3)]
    assert result.picked_accuracy == pytest.approx(2 / 3)


def test_unknown_preset_is_refused(blobs):
    with pytest.raises(InputError, match="preset='fast'"):
        compare_methods(*blobs, preset="fast")


def test_command_prints_a_row_a_method(blob_file, capsys):
    assert run(["bench", "features", str(blob_file), "--trials", "1", "--method", "cce", "--method", "kmeans"]) == 0
    printed = capsys.readouterr().out
    assert "cce" in printed
    assert "kmeans" in printed
    assert "sela" not in printed


def test_command_prints_json(blob_file, capsys):
    assert run(["bench", "features", str(blob_file), "--trials", "1", "--method", "migd", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["method"] == "migd"
    assert result["accuracies"][0] > 0.9


def test_parameters_go_to_the_methods_that_have_them(blob_file, capsys):
    methods = ["--method", "kmeans", "--method", "sela", "--preset", "paper", "--trials", "1"]
    changes = ["--set", "sharpness=5", "--set", "standardize=true"]
    assert run(["bench", "features", str(blob_file), *methods, *changes, "--json"]) == 0
    kmeans, sela = (result["settings"] for result in json.loads(capsys.readouterr().out))
    assert kmeans == {}
    assert (sela["sharpness"], sela["standardize"], sela["learning_rate"]) == (5.0, True, 0.1)


@pytest.mark.parametrize("option", [["--preset", "fast"], ["--method", "magic"], ["--set", "magic=1"]])
def test_unknown_names_are_misuse(blob_file, option):
    assert run(["bench", "features", str(blob_file), *option]) == 2


def test_file_without_labels_is_refused(tmp_path, capsys):
    np.save(tmp_path / "bare.npy", np.eye(4))
    assert run(["bench", "features", str(tmp_path / "bare.npy")]) == 1
    assert "has no labels" in capsys.readouterr().err
