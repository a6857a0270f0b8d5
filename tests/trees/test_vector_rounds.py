"""Rounds of softmax with one tree for all labels: the twin, bits, the order of rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import softmax_cases
from reference import vector_rounds
from round_cases import as_copies, assert_equals_twin, comparing
from softmax_cases import (
    against_twin,
    assert_rows_have_no_order,
    assert_same,
    restrained_case,
    special_case,
    wide_case,
)

from pboost import threads
from pboost._core import boost, softmax
from pboost._core import softmax as softmax_core
from pboost.trees import multi_output_rounds as fitted
from pboost.trees.multi_output_rounds import VectorRounds

compiled = partial(softmax_cases.compiled, rounds=VectorRounds)


@pytest.mark.parametrize("make", [special_case, restrained_case, comparing(restrained_case)])
@pytest.mark.parametrize("seed", range(0, 80, 20))
def test_equals_the_twin(seed, make):
    for number in range(seed, seed + 20):
        assert_twin(make(number), number)


@pytest.mark.parametrize("make", [special_case, restrained_case])
def test_weights_that_are_copies_equal_the_twin_of_the_copies(make):
    for seed in range(20):
        case, copied, rows = as_copies(make(seed), seed, (2, 9, 64)[seed % 3])
        if case[4] is None or all(map(len, case[4])):
            assert_twin(copied, seed, case, rows)


def assert_twin(case, seed, weighted=None, of_rows=slice(None)):
    """Compare rounds with the twin's; `weighted` has weights in place of copies of rows."""
    actual = compiled(*(case if weighted is None else weighted))
    for tree, nodes, values in against_twin(vector_rounds.fit, actual, case, seed, of_rows):
        assert np.array_equal(tree.value, values), seed
        tree.nodes["mean"] = 0.0  # what a tree of one label has
        assert_equals_twin(tree, nodes, np.zeros(len(nodes)), seed, weighted is not None)


@pytest.fixture
def restored():
    yield
    for module in (boost, softmax_core, softmax):
        module.use_simd_level(2)


@pytest.mark.parametrize("level", [0, 1])
def test_without_simd_the_bits_are_the_same(level, restored):
    cases = [wide_case(), *(special_case(seed) for seed in range(8))]
    fast = [compiled(*case) for case in cases]
    for module in (boost, softmax_core, softmax):
        module.use_simd_level(level)
    for case, item in zip(cases, fast, strict=True):
        assert_same(compiled(*case), item)


def test_neither_the_order_of_rows_matters_nor_rows_of_weight_0():
    assert_rows_have_no_order(compiled)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_change_no_bit(n_threads, monkeypatch):
    monkeypatch.setattr(threads, "MIN_CELLS", 1000)
    for case in (wide_case(), special_case(2)):
        with threads.Workers(n_threads) as workers:
            assert_same(compiled(*case), compiled(*case, workers=workers))


def test_nodes_whose_sums_are_dropped_are_counted_again(monkeypatch):
    *case, options = wide_case()
    options["max_leaf_nodes"] = 25
    kept = compiled(*case, options)
    monkeypatch.setattr(fitted, "SLOT_BYTES", 0)
    assert_same(kept, compiled(*case, options))


def test_labels_change_places():
    """Sums over labels are rounded in their order, no more."""
    columns, y, n_classes, weight, _, options = wide_case()
    order = np.array([3, 0, 4, 1, 2])
    first = compiled(columns, y, n_classes, weight, None, options, n_estimators=1)
    options["bias"] = options["bias"][order]
    other = compiled(
        columns, np.argsort(order)[y], n_classes, weight, None, options, n_estimators=1
    )
    (a,), (b,) = first[1][0], other[1][0]
    assert np.array_equal(a.nodes["feature"], b.nodes["feature"])
    np.testing.assert_allclose(a.value[:, order], b.value, rtol=1e-9)
