"""Which open exit is split next. Keys were rounded in three ways (40 bits; 41, ties up; 41, ties to
even), and there were four decreases for look-ahead growth. All builders now agree.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import keys

import pboost as pb
from pboost._core.voting import decrease, rounded_key
from pboost.growth import graph_growth as step
from pboost.growth import matryoshki as nested_growth

#: The last bit kept of a number in [1, 2).
LAST = 2.0**-40


def around_ties():
    """Return numbers of either sign at, just below and just above what is halfway, of any size."""
    r = np.random.default_rng(0)
    actual = [0.0, 1.0, 2.0 - 2.0**-52, 2.0 - LAST / 2]
    for full in [0, 1, 2, 3, 2**40 - 1, *r.integers(0, 2**40, 40).tolist()]:
        middle = 1.0 + full * LAST + LAST / 2
        actual += [math.nextafter(middle, 0), middle, math.nextafter(middle, 9)]
    sizes = r.integers(-900, 900, len(actual)).tolist()
    actual += [math.ldexp(key, size) for key, size in zip(actual, sizes, strict=True)]
    return actual + [-key for key in actual]


def test_rounding_around_ties():
    for key in around_ties():
        assert rounded_key(key) == keys.rounded(key), key.hex()
        assert rounded_key(rounded_key(key)) == rounded_key(key)


def test_ties_are_rounded_away_from_zero():
    assert rounded_key(1 + LAST / 2) == 1 + LAST
    assert rounded_key(1 + 3 * LAST / 2) == 1 + 2 * LAST
    assert rounded_key(-1 - LAST / 2) == -1 - LAST
    assert rounded_key(math.nextafter(1 + LAST / 2, 0)) == 1


def test_decreases_around_ties():
    r = np.random.default_rng(1)
    for before in (*around_ties(), *r.random(20)):
        if before <= 0:
            continue
        for share in (0.0, 2.0**-42, 2.0**-41, 3 * 2.0**-41, 0.5 + 2.0**-41, r.random()):
            for lowered in (before * share, math.nextafter(before * share, 0)):
                assert decrease(before, lowered) == keys.decrease(before, lowered)


def test_a_decrease_within_rounding_is_none():
    assert decrease(0.7, 0.7 * 2.0**-42) == 0
    assert decrease(0.7, -0.7 * 2.0**-42) == 0
    assert decrease(0.0, 0.0) == 0
    assert decrease(3.0, 1.5) == 1.5


def test_one_function_for_all_growths_in_python():
    for module in (step, nested_growth):
        assert module.rounded_key is rounded_key
    assert step.decrease is decrease


def tied(seed):
    """Two copies of one problem, told apart by a column: many exits whose keys are equal."""
    r = np.random.default_rng(seed)
    half = r.integers(0, 3, (30, 3)).astype(float)
    label = (half[:, 0] * half[:, 1] + half[:, 2] + r.integers(0, 2, 30) > 2).astype(int)
    X = np.column_stack([np.repeat([0.0, 1.0], 30), np.vstack([half, half])])
    return X, np.tile(label, 2)


@pytest.mark.parametrize("growth", ["largest_bound", "largest_error", "look_ahead"])
def test_builders_open_exits_in_the_same_order(growth):
    """The compiled loop, the loop for functions of the user and soft trees make one tree."""
    for seed in range(8):
        X, y = tied(seed)
        options = {"max_nodes": 12, "growth": growth}
        tree = pb.fit_boosted_tree(X, y, **options)
        custom_model = pb.fit_topdown_tree(
            X, y, impurity=lambda z: 2 * np.sqrt(z * (1 - z)), **options
        )
        soft = pb.fit_boosted_tree(X, y, observation=pb.observation.flip(0.0), **options)
        for other in (custom_model, soft):
            assert np.array_equal(tree.feature, other.feature)
            assert np.array_equal(tree.next, other.next)
            assert np.allclose(tree.vote, other.vote)


def test_regression_without_gain_takes_nodes_in_order():
    """No cut of either half lowers the squares: what rounding leaves must not choose."""
    X = np.array([[a, c] for a in (0.0, 1.0) for c in range(5) for _ in range(7)])
    for seed in range(20):
        r = np.random.default_rng(seed)
        numbers, weights = np.tile(r.random(7), 10), np.tile(r.random(7), 10)
        y = np.where(X[:, 0] > 0, 1e3 + 3 * numbers, numbers)
        tree = pb.fit_cart(X, y, task="regression", max_leaf_nodes=3, sample_weight=weights)
        assert tree.feature.tolist() == [0, 1, -1, -1, -1]
