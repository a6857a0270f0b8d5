"""Rounds of softmax: the twin, bits, the order of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference import softmax
from round_cases import as_copies, assert_equals_twin, comparing
from softmax_cases import (
    against_twin,
    assert_rows_have_no_order,
    assert_same,
    compiled,
    restrained_case,
    special_case,
    wide_case,
)

from pboost._core import boost
from pboost._core import softmax as softmax_core
from pboost.trees import softmax_rounds


@pytest.mark.parametrize("make", [special_case, restrained_case, comparing(restrained_case)])
@pytest.mark.parametrize("seed", range(0, 80, 20))
def test_equals_the_twin(seed, make):
    for number in range(seed, seed + 20):
        assert_twin(make(number), number)


@pytest.mark.parametrize("make", [special_case, restrained_case])
@pytest.mark.parametrize("seed", range(0, 80, 20))
def test_weights_that_are_copies_equal_the_twin_of_the_copies(seed, make):
    for number in range(seed, seed + 20):
        case, copied, rows = as_copies(make(number), number, (2, 9, 64)[number % 3])
        if case[4] is None or all(map(len, case[4])):
            assert_twin(copied, number, case, rows)


def assert_twin(case, seed, weighted=None, of_rows=slice(None)):
    """Compare rounds with the twin's; `weighted` has weights in place of copies of rows."""
    actual = compiled(*(case if weighted is None else weighted))
    for tree, nodes, values in against_twin(softmax.fit, actual, case, seed, of_rows):
        assert_equals_twin(tree, nodes, values, seed, weighted is not None)


@pytest.fixture
def restored():
    yield
    boost.use_simd_level(2)
    softmax_core.use_simd_level(2)


@pytest.mark.parametrize("level", [0, 1])
def test_without_simd_the_bits_are_the_same(level, restored):
    cases = [wide_case(), *(special_case(seed) for seed in range(8))]
    cases += [as_copies(case, seed)[0] for seed, case in enumerate(cases)]
    fast = [compiled(*case) for case in cases]
    boost.use_simd_level(level)
    softmax_core.use_simd_level(level)
    for case, item in zip(cases, fast, strict=True):
        assert_same(compiled(*case), item)


def test_neither_the_order_of_rows_matters_nor_rows_of_weight_0():
    assert_rows_have_no_order(compiled)


@pytest.mark.parametrize("most", [None, 40])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 11])
def test_roots_counted_together_are_those_counted_alone(n_classes, most, monkeypatch):
    columns, y, _, weight, _, options = wide_case()
    if most is not None:
        weight = np.random.default_rng(2).integers(0, most + 1, len(y)).astype(float)
    y = y * 3 % n_classes
    case = columns, y, n_classes, weight, None, {**options, "bias": np.zeros(n_classes)}
    together = compiled(*case)
    few = np.arange(2000)
    bins = columns.columns
    part = replace(
        columns, label=columns.label[few], columns=replace(bins, codes=bins.codes[:, few])
    )
    small = compiled(part, y[few], *case[2:3], weight[few], *case[4:])
    monkeypatch.setattr(softmax_rounds, "LEAST_ROWS", 10**9)
    assert_same(together, compiled(*case))
    assert_same(small, compiled(part, y[few], *case[2:3], weight[few], *case[4:]))
    for memory in (10**5, 3 * 10**5, 0):
        monkeypatch.setattr(softmax_rounds, "LEAST_ROWS", 0)
        monkeypatch.setattr(softmax_rounds, "SLOT_BYTES", memory)
        assert_same(together, compiled(*case))
