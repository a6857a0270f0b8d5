"""Arrays by column and bin have as many places as bins are in use.

`fit_adaboost` held 7 kB for each column, however few rows there were: 257 places for bins of which
50 rows have at most 50.
"""

import tracemalloc

import numpy as np
import pytest

import pboost as pb
from pboost._core import binning

ROWS, COLUMNS = 50, 4000


@pytest.fixture(scope="module")
def wide():
    X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    return X, np.arange(ROWS) % 2


def peak_per_column(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / COLUMNS
    finally:
        tracemalloc.stop()


@pytest.mark.clock
@pytest.mark.parametrize(
    ("prepared", "most"),
    [(np.asarray, 2000), (pb.data.sort_columns, 2000), (pb.data.bin_columns, 2000)],
)
def test_memory_of_a_fit(prepared, most, wide):
    X, y = wide
    columns = prepared(X)
    assert peak_per_column(lambda: pb.fit_adaboost(columns, y, n_estimators=2, n_threads=1)) < most


@pytest.mark.clock
@pytest.mark.parametrize(
    ("make", "most"), [(pb.data.sort_columns, 1000), (pb.data.bin_columns, 1100)]
)
def test_memory_of_columns(make, most, wide):
    assert peak_per_column(lambda: make(wide[0])) < most


@pytest.mark.parametrize(
    ("X", "bins"),
    [
        (np.arange(50.0)[:, None], 50),
        (np.arange(1000.0)[:, None], 256),
        (np.column_stack([np.arange(1000) % 2, np.arange(1000) % 5]), 5),
        (np.ones((1, 2)), 1),
    ],
)
def test_places_are_those_of_the_column_with_most_bins(X, bins):
    by_rank, binned = pb.data.sort_columns(X), pb.data.bin_columns(X)
    d = X.shape[1]
    assert by_rank.bin_start.shape == (d, bins + 1)
    assert binned.lower.shape == binned.upper.shape == (d, bins)
    for j in range(d):
        n_bins = by_rank.n_bins[j]
        assert by_rank.bin_start[j, n_bins] == len(X)
        np.testing.assert_array_equal(by_rank.bin_ranges(j), binned.bin_ranges(j))


def test_columns_with_places_to_spare_are_taken(wide):
    X, y = wide[0][:, :20], wide[1]
    binned = pb.data.bin_columns(X)
    more = [np.pad(edges, [(0, 0), (0, 256 - ROWS)]) for edges in (binned.lower, binned.upper)]
    spacious = pb.data.BinnedColumns(binned.codes, binned.n_bins, *more, None)
    models = [pb.fit_adaboost(columns, y, n_estimators=4) for columns in (binned, spacious)]
    for name in ("feature", "threshold", "vote"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))


@pytest.mark.parametrize(("n", "max_bins", "least"), [(7, 256, 7), (7, 3, 3), (0, 256, 1)])
def test_the_kernel_refuses_fewer_places(n, max_bins, least):
    order, none = np.arange(n, dtype=np.int32)[None], np.empty(0, dtype=np.int64)
    n_bins, codes = np.empty(1, dtype=np.int32), np.empty((1, n), dtype=np.uint8)
    starts = np.empty((1, least + 1), dtype=np.int32)
    binning.bin_columns(order, max_bins, none, starts, n_bins, codes)
    assert starts[0, n_bins[0]] == n
    with pytest.raises(ValueError, match="arrays of different sizes"):
        binning.bin_columns(order, max_bins, none, starts[:, :-1].copy(), n_bins, codes)
