"""Sums over points are precise, and their bits depend on the points alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cceclust.pseudo_labels import (
    AlternatingDirectionSolver,
    EMSolver,
    ExactSolver,
    OptimalTransportSolver,
    PGDSolver,
)
from cceclust.pseudo_labels.summation import sum_in_pairs


@pytest.mark.parametrize("n_terms", [1, 2, 3, 7, 8, 255, 256, 1001])
def test_all_terms_are_added_once(n_terms):
    terms = np.random.default_rng(n_terms).normal(size=n_terms)
    assert sum_in_pairs(terms.copy()) == pytest.approx(math.fsum(terms), rel=1e-12, abs=1e-12)


def test_rounding_grows_slowly():
    terms = np.random.default_rng(0).random(100_000).astype(np.float32)
    assert sum_in_pairs(terms.copy()) == pytest.approx(math.fsum(terms), rel=1e-6)


@pytest.mark.parametrize(
    "solver",
    [
        EMSolver(fairness=100, max_iter=20, tol=0),
        ExactSolver(fairness=100),
        PGDSolver(fairness=1, max_iter=20, tol=0),
        OptimalTransportSolver(max_iter=20),
        AlternatingDirectionSolver(fairness=1, max_iter=20, tol=0),
    ],
    ids=["EM", "exact", "PGD", "optimal transport", "alternating direction"],
)
def test_it_does_not_matter_where_arrays_lie_in_memory(solver):
    # Compiled loops are run vectorised or one by one, as their operands are near each other or not.
    n_clusters, n_points = 3, 300
    generator = np.random.default_rng(0)
    odds = np.exp(3 * generator.normal(size=(n_clusters, n_points)))
    probabilities = (odds / odds.sum(axis=0)).astype(np.float32)
    known = np.log(probabilities) if solver.takes_logarithms else probabilities
    weights = np.full(n_points, 1 / n_points, np.float32)
    answers = set()
    for _ in range(200):
        sigma, labels, w = packed([known, probabilities, weights], generator)
        solver.solve(sigma, labels, w)
        answers.add(labels.tobytes())
    assert len(answers) == 1


def packed(arrays, generator):
    """Copy arrays into one piece of memory, in any order and with small gaps."""
    memory = np.empty(sum(array.nbytes + 256 for array in arrays), np.uint8)
    place, copies = 0, list(arrays)
    for index in generator.permutation(len(arrays)):
        array = arrays[index]
        place += 16 * generator.integers(1, 8)
        copies[index] = memory[place : place + array.nbytes].view(array.dtype).reshape(array.shape)
        copies[index][...] = array
        place = -(-(place + array.nbytes) // 16) * 16
    return copies
