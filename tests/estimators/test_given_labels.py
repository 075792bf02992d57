"""Whatever way labels are given, they become distributions over classes, or the way is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cceclust.errors import InputError
from cceclust.estimators.given_labels import read_labels, transition_matrix

GAPS = [
    np.array([3, -1, 1, 3]),
    np.array([3.0, np.nan, 1.0, 3.0]),
    np.array([3, None, 1, 3], object),
    [3, -1, 1, 3],
]
TEXT_GAPS = [
    np.array(["dog", "", "cat", "dog"]),
    np.array(["dog", -1, "cat", "dog"]),
    np.array(["dog", -1, "cat", "dog"], object),
    np.array(["dog", None, "cat", "dog"], object),
    np.array(["dog", np.nan, "cat", "dog"], object),
]


@pytest.mark.parametrize(("y", "classes"), [(y, [1, 3]) for y in GAPS] + [(y, ["cat", "dog"]) for y in TEXT_GAPS])
def test_every_mark_of_an_unknown_label_is_understood(y, classes):
    given = read_labels(y)
    assert given.classes.tolist() == classes
    assert given.rows.tolist() == [0, 2, 3]
    assert given.targets.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert not given.is_complete


def test_minus_one_beside_one_is_a_class_unless_one_class_is_enough():
    assert read_labels([-1, 1, 1]).classes.tolist() == [-1, 1]
    assert read_labels([-1, 1, 1], one_class_is_enough=True).rows.tolist() == [1, 2]
    assert read_labels([-1, 1, 2]).rows.tolist() == [1, 2]


def test_soft_labels_are_kept_and_rows_of_nan_are_unknown():
    given = read_labels([[0.25, 0.75], [np.nan, np.nan], [1, 0]])
    assert given.rows.tolist() == [0, 2]
    assert given.targets.tolist() == [[0.25, 0.75], [1, 0]]
    assert given.classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0.5, 0.5], [0.7, 0.4]], r"1 of 2 rows .* row 1 sums to 1.1; expected"),
        ([[0.5, 0.5], [1.5, -0.5]], r"row 1 holds NaN, infinite or negative values"),
        ([[0.5, 0.5], [np.nan, 1.0]], r"row 1 holds NaN"),
        ([["a", "b"], ["c", "d"]], r"soft labels are of type <U1; expected numbers"),
    ],
)
def test_soft_rows_that_are_no_distributions_are_refused(y, message):
    with pytest.raises(InputError, match=message):
        read_labels(y)


def test_a_transition_matrix_gives_its_row_for_a_label():
    matrix = np.array([[0.9, 0.2], [0.1, 0.8]])
    given = read_labels([0, 1]).with_noise(matrix)
    np.testing.assert_allclose(given.targets, [[0.9 / 1.1, 0.2 / 1.1], [0.1 / 0.9, 0.8 / 0.9]])


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (1.0, "label_noise=1; expected less than 1"),
        (-0.1, "label_noise=-0.1; expected a number of at least 0"),
        (np.eye(3), r"shape \(3, 3\); expected a number, or a matrix of 2 × 2"),
        (
            np.array([[0.9, 0.1], [0.2, 0.8]]),
            r"columns that sum to 1.*\[1.1, 0.9\] \(its rows do: is it transposed\?\)",
        ),
    ],
)
def test_noise_that_is_none_is_refused(noise, message):
    with pytest.raises(InputError, match=message):
        transition_matrix(noise, 2)


def test_extra_clusters_are_named_and_no_label_is_in_them():
    given = read_labels([0, 5]).with_extra_clusters(2)
    assert given.classes.tolist() == [0, 5, 6, 7]
    assert given.targets.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert read_labels(["x", "y"]).with_extra_clusters(1).classes.tolist() == ["x", "y", "extra 1"]
