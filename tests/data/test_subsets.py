"""Sets of levels: the numbers that are made of a row, and how they are written."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from pboost.data.node_inputs.inputs import ColumnNames, Subsets
from pboost.data.read.table import Table

RNG = np.random.default_rng(3)


def bits(*levels):
    words = [0, 0, 0, 0]
    for level in levels:
        words[level // 64] |= 1 << (level % 64)
    return words


SETS = Subsets(3, [1, 0], [bits(0, 3, 64), bits(254)])
TABLE = SimpleNamespace(categories=(None, np.array(["blue", "green", "red"]), None))


def numbers(column, levels, X):
    """The definition, row by row."""
    actual = []
    for value in X[:, column].tolist():
        is_level = value == value and value in range(255)
        actual.append(float(int(value) in levels) if is_level else np.nan)
    return actual


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(dtype):
    X = RNG.integers(-2, 300, (400, 3)).astype(dtype)
    X[::7] = RNG.integers(0, 5, X[::7].shape)
    X[::5] += dtype(0.5)
    X[RNG.random(X.shape) < 0.1] = np.nan
    X[0] = -0.0
    actual = SETS.values(X)
    assert actual.shape == (400, 5)
    np.testing.assert_array_equal(actual[:, :3], X)
    np.testing.assert_array_equal(actual[:, 3], numbers(1, {0, 3, 64}, X))
    np.testing.assert_array_equal(actual[:, 4], numbers(0, {254}, X))
    rows = np.array([5, 0, 399], dtype=np.int32)
    np.testing.assert_array_equal(SETS.at(X, rows), actual[rows])
    assert SETS.values(X[:0]).shape == (0, 5)


def test_equal_sets_are_kept_once():
    column = np.array([2, 1, 1, 0, 1, 2], dtype=np.int32)
    member = np.array([bits(1), bits(0, 3), bits(), bits(0, 3), bits(0, 3), bits(1, 2)], np.uint64)
    feature, sets = Subsets.of_tests(3, column, member)
    assert feature.dtype == np.int32
    assert feature.tolist() == [3, 4, 1, 5, 4, 6]
    assert sets.column.tolist() == [2, 1, 0, 2]
    assert sets.member.tolist() == member[[0, 1, 3, 5]].tolist()
    feature, sets = Subsets.of_tests(3, column, np.zeros_like(member))
    assert feature.tolist() == column.tolist()
    assert sets is None


def test_of_nodes_keeps_what_is_read():
    feature, sets = SETS.of_nodes(np.array([4, 0, 4, 2], dtype=np.int32))
    assert feature.tolist() == [3, 0, 3, 2]
    assert feature.dtype == np.int32
    assert sets.column.tolist() == [0]
    assert SETS.of_nodes(np.array([1, 0], dtype=np.int32))[1] is None


def test_columns_read_and_shares():
    start, index = SETS.columns_read()
    assert [index[a:b].tolist() for a, b in pairwise(start)] == [
        [0],
        [1],
        [2],
        [1],
        [0],
    ]
    assert SETS.column_shares(np.array([5.0, 0.0, 1.0])).tolist() == [1.0] * 5
    assert SETS.projected(np.array([[1.0, np.nan, 2.0]])).tolist()[0][3:] == [0.0, 0.0]


def test_long_sets_are_shown_by_the_other_categories():
    """The text of a condition is true for the same categories, whichever set it shows."""
    table = Table((np.array([f"town {k:02}" for k in range(14)]),), np.zeros(1, dtype=np.bool_))
    columns = ColumnNames(("town",), 1, table)

    def sides(*levels):
        subsets = Subsets(1, [0], [bits(*levels)])
        names = subsets.names(columns)
        assert subsets.question(names, 1, 0.5) == f"town {subsets.side(names, 1, False)}"
        return [subsets.side(names, 1, is_in) for is_in in (False, True)], subsets, names

    (outside, inside), subsets, names = sides(*range(12))
    assert (outside, inside) == ("in {town 12, town 13}", "not in {town 12, town 13}")
    for level in range(14):
        is_in = float(level < 12)
        text = subsets.answer(names, 1, [float(level), is_in].__getitem__)
        assert text == f"town = town {level:02} {inside if is_in else outside}"
    ten, eleven, every = (sides(*range(n))[0] for n in (10, 11, 14))
    assert ten[1].startswith("in {town 00, town 01, ")  # it is shown in full
    assert eleven[1] == "not in {town 11, town 12, town 13}"
    assert every[1].endswith(", ... (14 levels)}")  # there are no others


def test_words():
    names = SETS.names(ColumnNames(("size", "colour in summer", "age"), 3, TABLE))
    assert list(names) == [
        "size",
        "colour in summer",
        "age",
        "colour in summer in {blue, other, other}",
        "size in {254}",
    ]
    assert names[1:3] == ["colour in summer", "age"]
    assert SETS.question(names, 3, 0.5) == "colour in summer not in {blue, other, other}"
    assert SETS.question(names, 2, 0.5) == "age <= 0.5"
    row = [7.0, 1.0, 3.0, 0.0, np.nan]
    assert SETS.answer(names, 3, row.__getitem__) == (
        "colour in summer = green not in {blue, other, other}"
    )
    assert SETS.answer(names, 3, [0.0, 0.0, 0.0, 1.0].__getitem__) == (
        "colour in summer = blue in {blue, other, other}"
    )
    assert SETS.answer(names, 4, row.__getitem__) == SETS.answer(names, 2, row.__getitem__) == ""
    plain = SETS.names(ColumnNames(None, 3))
    assert plain[3] == "x[1] in {0, 3, 64}"
    many = Subsets(1, [0], [bits(*range(30))]).names(ColumnNames(("a",), 1))
    assert many[1] == "a in {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (30 levels)}"
