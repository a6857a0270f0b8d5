"""Sorted and binned columns against the twin."""

import numpy as np
import pytest
from reference.problems import SIZES, random_matrix, random_weight
from reference.sort import rank_bins, select_codes, sort_columns

import pboost as pb
from pboost._core.binning import list_rows


def check_order(X):
    columns = pb.data.sort_columns(X)
    order, values, tied = sort_columns(X)
    assert (columns.n_rows, columns.n_features) == X.shape
    for j in range(X.shape[1]):
        np.testing.assert_array_equal(columns.order(j), order[j])
        np.testing.assert_array_equal(columns.sorted_values(j), values[j])
        np.testing.assert_array_equal(columns.tied(j), tied[j])
        np.testing.assert_array_equal(columns.codes[j], rank_bins(X[:, j])[0])


def check_bins(X, max_bins, weight):
    columns = pb.data.bin_columns(X, max_bins=max_bins, sample_weight=weight)
    for j, x in enumerate(X.T):
        codes, edges = rank_bins(x, weight, max_bins)
        np.testing.assert_array_equal(columns.codes[j], codes)
        assert columns.n_bins[j] == len(edges) + 1 <= max_bins
        thresholds = [columns.threshold(j, b, 0) for b in range(len(edges))]
        np.testing.assert_array_equal(thresholds, edges)
        # The bins are those that the thresholds make.
        np.testing.assert_array_equal(np.searchsorted(edges, x, side="left"), codes)


@pytest.mark.parametrize("n", SIZES)
def test_order(n):
    rng = np.random.default_rng([41, n])
    for _ in range(5):
        check_order(random_matrix(rng, n, 4))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("max_bins", [2, 3, 16, 255, 256])
def test_bins(n, max_bins):
    rng = np.random.default_rng([42, n, max_bins])
    for _ in range(4):
        X = random_matrix(rng, n, 4)
        check_bins(X, max_bins, None)
        weight = random_weight(rng, n)
        if weight is None or not weight.any():
            weight = rng.uniform(0.5, 1, n)
        check_bins(X, max_bins, weight + (weight == 0) * 0.125)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("d", [1, 3, 4, 9])
def test_codes_of_some_rows(n, d):
    rng = np.random.default_rng([43, n, d])
    columns = pb.data.bin_columns(random_matrix(rng, n, d))
    lists = rng.permutation(n), np.flatnonzero(rng.random(n) < 0.3), rng.integers(0, n, 2 * n)
    for rows in lists:
        actual = columns.select(rows.astype(np.int32))
        codes, below = select_codes(columns.codes, rows)
        np.testing.assert_array_equal(actual.codes, codes)
        places = slice(columns.n_bins.max() + 1)
        np.testing.assert_array_equal(actual.bin_start, below[:, places])
    codes, below = select_codes(columns.codes, lists[0])
    actual = columns.select(lists[0].astype(np.int32), all_rows=True)
    np.testing.assert_array_equal(actual.codes, codes)
    for j, n_bins in enumerate(columns.n_bins):
        edges = slice(n_bins + 1)
        np.testing.assert_array_equal(actual.bin_start[j, edges], below[j, edges])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
def test_rows_of_a_kind(n, share):
    kind = (np.random.default_rng([44, n]).random(n) < share).astype(np.uint8)
    for wanted in (0, 1):
        expected = np.flatnonzero(kind == wanted)
        rows = np.empty(len(expected), dtype=np.int32)
        list_rows(kind, wanted, rows)
        np.testing.assert_array_equal(rows, expected)
        with pytest.raises(ValueError, match="fewer rows"):
            list_rows(kind, wanted, np.empty(len(expected) + 1, dtype=np.int32))


def both_kinds(X):
    return [(pb.data.bin_columns(X), ()), (pb.data.sort_columns(X), (255,))]


@pytest.mark.parametrize("row", [-1, 5, 2**31 - 1, 2**32])
@pytest.mark.parametrize("kind", [0, 1])
def test_selections_of_no_row(kind, row):
    columns, more = both_kinds(np.arange(10.0).reshape(5, 2))[kind]
    for dtype in (np.int32, np.int64) if row < 2**31 else (np.int64,):
        with pytest.raises(IndexError, match=rf"rows: expected indices in 0\.\.4, got {row}"):
            columns.select(np.array([0, row], dtype=dtype), *more)


@pytest.mark.parametrize("kind", [0, 1])
def test_selections_by_numbers_of_any_type(kind):
    columns, more = both_kinds(np.random.default_rng(45).normal(size=(9, 2)))[kind]
    expected = columns.select(np.array([7, 5, 3], dtype=np.int32), *more)
    for rows in (np.arange(9)[7:2:-2], np.arange(9, dtype=np.uint8)[7:2:-2], [7, 5, 3]):
        actual = columns.select(rows, *more)
        np.testing.assert_array_equal(actual.codes, expected.codes)
    assert columns.select([], *more).n_rows == 0
    for wrong in (np.arange(9) > 4, np.zeros((2, 1), dtype=np.int32), [0.0]):
        with pytest.raises(TypeError, match="rows: expected integers"):
            columns.select(wrong, *more)


def test_order_of_special_values():
    tiny, huge = 5e-324, np.finfo(float).max
    x = [0.0, -0.0, tiny, -tiny, huge, -huge, 1.0, np.nextafter(1, 2), -1.0, 0.0, -0.0, 1e-310]
    rng = np.random.default_rng(43)
    for _ in range(10):
        check_order(rng.permutation(x * 3)[:, None])


@pytest.mark.parametrize("shape", ["sorted", "reversed", "constant", "saw", "one outlier"])
@pytest.mark.parametrize("n", [255, 4097, 70_000])
def test_order_of_patterns(shape, n):
    i = np.arange(n, dtype=float)
    x = {
        "sorted": i,
        "reversed": -i,
        "constant": 0 * i,
        "saw": i % 7,
        "one outlier": np.where(i == n // 2, 1e300, i % 3 * 1e-300),
    }[shape]
    check_order(x[:, None])


@pytest.mark.parametrize("n", [1, 2, 5, 255, 256, 257, 3000])
def test_order_of_two_values(n):
    rng = np.random.default_rng([45, n])
    for low, high in [(0, 1), (-3.5, 2e-300), (-0.0, 0.0), (7, 7), (-np.finfo(float).max, 5e-324)]:
        for share in (0.0, 0.01, 0.5, 0.99, 1.0):
            x = np.where(rng.random(n) < share, high, low)
            check_order(x[:, None])
            x[rng.integers(n)] = 1.5  # three
            check_order(x[:, None])


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinity_is_no_second_value(bad):
    x = np.where(np.arange(600) % 3 == 0, bad, 1.0)[:, None]
    for X in (x, x[::-1], np.full((9, 1), bad)):
        with pytest.raises(ValueError, match=r"finite|infinit"):
            pb.data.sort_columns(X)


def test_float32_columns():
    rng = np.random.default_rng(44)
    X = rng.normal(size=(3000, 2)).astype(np.float32)
    X[::3] = np.round(X[::3])
    check_order(X)
    check_bins(X.astype(np.float64), 100, None)
    narrow, wide = pb.data.bin_columns(X), pb.data.bin_columns(X.astype(np.float64))
    np.testing.assert_array_equal(narrow.codes, wide.codes)
    np.testing.assert_array_equal(narrow.lower, wide.lower)
    np.testing.assert_array_equal(narrow.upper, wide.upper)


def test_heavy_values_fill_a_bin():
    """One value holds most of the weight; the other bins share the rest fairly."""
    x = np.concatenate([np.zeros(10_000), np.arange(1.0, 1001)])
    codes, _ = rank_bins(x, None, 11)
    assert np.bincount(codes).tolist() == [10_000] + [100] * 10
    check_bins(x[:, None], 11, None)
