from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cceclust.fit.source import Source, as_source

X = np.random.default_rng(0).normal(size=(70_000, 20)).astype(np.float32)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_blocks_and_taken_rows_are_those_of_the_matrix(as_rows: Any) -> None:
    source = as_source(as_rows(X))
    assert isinstance(source, Source)
    blocks = list(source.blocks())
    assert len(blocks) > 1
    for where, block in blocks:
        np.testing.assert_array_equal(block.toarray() if sparse.issparse(block) else block, X[where])
    assert sum(block.shape[0] for _, block in blocks) == len(X)
    taken = source.take(np.array([5, 69_999]))
    np.testing.assert_array_equal(taken.toarray() if sparse.issparse(taken) else taken, X[[5, 69_999]])


@pytest.mark.parametrize(
    ("stored", "computed"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("u1", "f4"), ("i8", "f4"), ("?", "f4")]
)
def test_numbers_of_any_type_are_handed_out_as_floats(stored: str, computed: str) -> None:
    source = as_source(np.ones((3, 2), stored))
    assert source.dtype == source.take(np.arange(2)).dtype == next(source.blocks())[1].dtype == computed


def test_a_source_is_returned_as_it_is() -> None:
    source = as_source(X)
    assert as_source(source) is source
