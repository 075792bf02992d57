import numpy as np
from scipy import special

from cceclust.training.head import Head
from cceclust.training.logits import all_logits, probabilities_of
from cceclust.training.rows import in_memory


def test_logits_are_those_of_the_head_in_any_number_of_blocks(monkeypatch) -> None:
    generator = np.random.default_rng(0)
    rows, coef, intercept = generator.normal(size=(50, 4)), generator.normal(size=(3, 4)), generator.normal(size=3)
    expected = rows @ coef.T + intercept
    np.testing.assert_allclose(all_logits(Head(coef, intercept), in_memory(rows)), expected)
    monkeypatch.setattr("cceclust.choices.BLOCK_BYTES", 7 * 4 * 8)
    np.testing.assert_allclose(all_logits(Head(coef, intercept), in_memory(rows)), expected)


def test_probabilities_are_the_softmax_even_of_huge_logits() -> None:
    logits = np.array([[1e4, 0.0, -1e4], [0.5, 0.25, -2.0]])
    np.testing.assert_allclose(probabilities_of(logits), special.softmax(logits, axis=1))
