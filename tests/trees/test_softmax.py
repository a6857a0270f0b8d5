"""Rounds of softmax: the twin, bits, the order of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference import rounds, softmax
from round_cases import (
    as_copies,
    assert_equals_twin,
    limits,
    restrained,
    restraints_of,
    weighed,
)
from special_problems import draw, problem

from pboost._core import boost
from pboost._core import softmax as softmax_core
from pboost.trees import softmax_rounds
from pboost.trees.rounds import Rounds
from pboost.trees.softmax_rounds import SoftmaxRounds
from pboost.trees.steps import Steps


def special_case(seed, n_classes=None):
    """Return columns, classes, weights and options, at random; classes can lack rows."""
    rng = np.random.default_rng(seed)
    n_classes = n_classes or (2, 3, 7, 26)[seed % 4]
    n = 30 if n_classes > 7 else None
    X, y, weight, levels = draw(rng, n_classes, n=n)
    n = len(y)
    if weight is None or not (weight > 0).any():
        weight = np.ones(n)
    columns = problem(X, y, None, levels, n_classes, int(rng.choice([4, 16, 255])))
    listed = None
    if seed % 5 == 0:
        used = np.flatnonzero(weight > 0)
        listed = [np.sort(rng.choice(used, max(1, len(used) // 2), replace=False)) for _ in "ab"]
    options = {
        "depth": int(rng.integers(1, 6 if n_classes < 7 else 3)),
        "min_leaf": int(rng.choice([1, 1, 2, 5])),
        "l2": float(rng.choice([0.0, 0.0, 0.5])), "smoothing": float(rng.choice([0.0, 0.0, 2.0])),
        "most": float(rng.choice([0.7, 4.0, np.inf])), "solved": bool(rng.random() < 0.6),
        "rate": float(rng.choice([0.1, 1.0])), "bias": rng.normal(size=n_classes),
        "sums": str(rng.choice(["auto", "wide"])),
    }  # fmt: skip
    return columns, y.astype(int), n_classes, weight / weight.max(), listed, options


def restrained_case(seed):
    """Return a case of three classes or seven, with one option more that makes trees smaller."""
    seed += seed % 6 == 3  # no column is monotone
    *case, options = special_case(seed, (3, 7)[seed // 6 % 2])
    return *case, restrained(seed, case, options)


def compiled(columns, y, n_classes, weight, listed, options, steps=2):
    """Return the rounds, and after each the trees, the scores and the mean loss."""
    limit = limits(
        options["depth"], options["min_leaf"], options["smoothing"], options.get("max_leaves")
    )
    held = restraints_of(options, columns)
    step = Steps(
        options["rate"], options["most"], options["solved"], options["l2"], options["sums"]
    )
    f = np.repeat(np.asarray(options["bias"])[:, None], len(y), axis=1)
    made = SoftmaxRounds(
        y.astype(float), weighed(weight), f, step,
        lambda y, loss, weight, f, step: Rounds(columns, y, loss, weight, f, limit, step, held),
    )  # fmt: skip
    found = [([], f.copy(), made.mean_loss)]
    for t in range(steps):
        rows = np.flatnonzero(weight > 0) if listed is None else listed[t]
        found.append((made.grow(rows), made.f.copy(), made.mean_loss))
    return found


@pytest.mark.parametrize("make", [special_case, restrained_case])
@pytest.mark.parametrize("start", range(0, 80, 20))
def test_equals_the_twin(start, make):
    for seed in range(start, start + 20):
        assert_twin(make(seed), seed)


@pytest.mark.parametrize("make", [special_case, restrained_case])
@pytest.mark.parametrize("start", range(0, 80, 20))
def test_weights_that_are_copies_equal_the_twin_of_the_copies(start, make):
    for seed in range(start, start + 20):
        case, copied, rows = as_copies(make(seed), seed, (2, 9, 64)[seed % 3])
        if case[4] is None or all(map(len, case[4])):
            assert_twin(copied, seed, case, rows)


def assert_twin(case, seed, weighted=None, of_rows=slice(None)):
    """Compare rounds with the twin's; `weighted` has weights in place of copies of rows."""
    columns, y, n_classes, weight, listed, options = case
    found = compiled(*(case if weighted is None else weighted))
    bins = columns.columns
    special = np.zeros(len(bins.n_bins), int) if bins.special is None else bins.special
    expected = softmax.fit(
        rounds.Columns(bins.codes, bins.n_bins, special), y, n_classes, weight, steps=2,
        listed=listed, **options,
    )  # fmt: skip
    assert [loss for _, _, loss in found] == expected.mean_loss, seed
    assert np.array_equal(found[-1][1][:, of_rows], expected.f), seed
    grown = [tree for trees, _, _ in found for tree in trees]
    for tree, nodes, values in zip(grown, expected.trees, expected.values, strict=True):
        assert_equals_twin(tree, nodes, values, seed, weighted is not None)


def wide_case(n=9000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 9))
    X[:, 3] = rng.integers(0, 6, n)
    X[:, 8] = np.where(rng.random(n) < 0.1, np.nan, X[:, 0])
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n), [-1.5, 0, 0.4, 2])
    weight = rng.uniform(0.1, 1, n) * (rng.random(n) < 0.9)
    options = {"depth": 5, "min_leaf": 3, "l2": 0.1, "smoothing": 1.0, "most": 4.0, "solved": True,
               "rate": 0.3, "bias": rng.normal(size=5), "sums": "auto"}  # fmt: skip
    return problem(X, y, None, {3: 6}, 5, 255), y, 5, weight / weight.max(), None, options


def assert_same(one, other):
    for (trees, f, loss), (more, g, value) in zip(one, other, strict=True):
        assert np.array_equal(f, g)
        assert loss == value
        for a, b in zip(trees, more, strict=True):
            for name in ("children", "mass", "subset"):
                assert np.array_equal(getattr(a, name), getattr(b, name)), name
            assert a.nodes.tolist() == b.nodes.tolist()


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
    for case, found in zip(cases, fast, strict=True):
        assert_same(compiled(*case), found)


def test_neither_the_order_of_rows_matters_nor_rows_of_weight_0():
    columns, y, n_classes, weight, _, options = wide_case()
    one = compiled(columns, y, n_classes, weight, None, options)
    rng, bins = np.random.default_rng(1), columns.columns
    for rows in (rng.permutation(len(y)), np.flatnonzero(weight)):
        other = replace(columns, label=columns.label[rows],
                        columns=replace(bins, codes=bins.codes[:, rows]))  # fmt: skip
        found = compiled(other, y[rows], n_classes, weight[rows], None, options)
        assert_same([(a, f[:, rows], m) for a, f, m in one], found)


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
    part = replace(columns, label=columns.label[few],
                   columns=replace(bins, codes=bins.codes[:, few]))  # fmt: skip
    small = compiled(part, y[few], *case[2:3], weight[few], *case[4:])
    monkeypatch.setattr(softmax_rounds, "LEAST_ROWS", 10**9)
    assert_same(together, compiled(*case))
    assert_same(small, compiled(part, y[few], *case[2:3], weight[few], *case[4:]))
    for memory in (10**5, 3 * 10**5, 0):
        monkeypatch.setattr(softmax_rounds, "LEAST_ROWS", 0)
        monkeypatch.setattr(softmax_rounds, "SLOT_BYTES", memory)
        assert_same(together, compiled(*case))
