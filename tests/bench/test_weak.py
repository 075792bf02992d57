"""Weak supervision: every method sees the same few labels, and is judged on the other rows."""

import json

import numpy as np
import pytest

from cceclust.bench.weak import METHODS, compare_weak, draw_labels, fit_and_score
from cceclust.cli.main import run
from cceclust.errors import InputError
from cceclust.pseudo_labels import EMSolver


def test_every_method_takes_part_and_solves_easy_data(blobs):
    results = compare_weak(*blobs, ratios=[0.1], n_draws=1)
    assert [result.method for result in results] == list(METHODS)
    for result in results:
        assert len(result.accuracies) == 1
        assert min(result.accuracies) > 0.85, result.method


def test_a_loss_with_neighbours_differs_from_the_same_without_in_nothing_else():
    pairs = [name for name in METHODS if f"{name}, neighbours" in METHODS]
    assert pairs == ["+ SeLa", "+ MIADM", "+ CCE"]
    for name in pairs:
        plain, joined = (METHODS[each](random_state=0).get_params() for each in (name, f"{name}, neighbours"))
        differing = {key for key in plain if repr(plain[key]) != repr(joined[key])} - {"clusterer"}
        assert differing == {"n_neighbors"}, name


def test_both_rows_of_cce_have_the_papers_fairness(blobs, monkeypatch):
    used = []

    def make_solver(**settings):
        used.append(settings["fairness"])
        return EMSolver(**settings)

    monkeypatch.setattr("cceclust.pseudo_labels.EMSolver", make_solver)
    for method in ("+ CCE", "+ CCE, neighbours"):
        used.clear()
        compare_weak(*blobs, ratios=[0.1], methods=[method], n_draws=1)
        assert set(used) == {100.0}, method


def test_labels_are_drawn_class_by_class_and_at_least_one():
    labels = np.repeat([0, 1, 2], [100, 40, 3])
    given = draw_labels(labels, 0.1, seed=1)
    assert np.bincount(given[given >= 0]).tolist() == [10, 4, 1]
    assert (given[given >= 0] == labels[given >= 0]).all()
    assert not np.array_equal(given, draw_labels(labels, 0.1, seed=2))


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_no_label_and_all_labels_are_no_weak_supervision(ratio):
    with pytest.raises(InputError, match="expected a part of the labels"):
        draw_labels(np.array([0, 1]), ratio, seed=0)


def test_some_row_is_left_to_judge_by():
    with pytest.raises(InputError, match="leaves none of 4 rows without a label"):
        draw_labels(np.array([0, 0, 1, 1]), 0.9, seed=0)


def test_only_rows_without_a_label_judge():
    class Parrot:
        """Repeats the labels that it was given, and says 0 of all other rows."""

        def fit(self, X, y):
            self.transduction_ = np.where(y < 0, 0, y)

    labels = np.repeat([0, 1], 20)
    given = np.where(np.arange(40) % 2 == 0, labels, -1)
    given[:10] = labels[:10]
    # Five rows of class 0 and ten of class 1 are left.
    assert fit_and_score(Parrot(), np.zeros((40, 2)), labels, given, {}) == pytest.approx(5 / 15)


def test_command_prints_a_column_a_ratio(blob_file, capsys):
    arguments = ["bench", "weak", str(blob_file), "--draws", "1", "--ratio", "0.2", "--ratio", "0.1"]
    chosen = ["--method", "only seeds", "--method", "+ CCE"]
    assert run([*arguments, *chosen]) == 0
    printed = capsys.readouterr().out
    assert "only seeds" in printed
    assert "0.2" in printed
    assert run([*arguments, *chosen, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4
    assert run([*arguments, "--method", "magic"]) == 2
