"""Heads for raw rows, with and without curves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cceclust.training.head import Curves, Head, products_of_pairs
from cceclust.training.logits import all_logits
from cceclust.training.rows import in_memory

GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.normal(size=(40, 5))
STRAIGHT = Head(GENERATOR.normal(size=(3, 5)), GENERATOR.normal(size=3))
CURVES = Curves(GENERATOR.normal(size=(2, 5)), GENERATOR.normal(size=2), GENERATOR.normal(size=(3, 3)))
CURVED = Head(STRAIGHT.coef, STRAIGHT.intercept, CURVES)


def by_the_formula(row: np.ndarray) -> np.ndarray:
    """The logits of a row, written out."""
    places = [CURVES.axes[i] @ row + CURVES.offsets[i] for i in range(2)]
    pairs = [(0, 0), (0, 1), (1, 1)]
    return np.array(
        [
            STRAIGHT.coef[k] @ row
            + STRAIGHT.intercept[k]
            + sum(CURVES.weights[k, number] * places[i] * places[j] for number, (i, j) in enumerate(pairs))
            for k in range(3)
        ]
    )


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_curved_logits_are_those_of_the_formula(convert: type) -> None:
    np.testing.assert_allclose(
        all_logits(CURVED, in_memory(convert(ROWS))), [by_the_formula(row) for row in ROWS], rtol=1e-10
    )


def test_heads_without_curves_are_linear() -> None:
    np.testing.assert_allclose(
        all_logits(STRAIGHT, in_memory(ROWS)), ROWS @ STRAIGHT.coef.T + STRAIGHT.intercept, rtol=1e-12
    )


def test_products_have_every_pair_once() -> None:
    places = GENERATOR.normal(size=(6, 4))
    found = products_of_pairs(places)
    assert found.shape == (6, 10)
    np.testing.assert_allclose(found.sum(axis=1), ((places.sum(axis=1) ** 2) + (places**2).sum(axis=1)) / 2)
