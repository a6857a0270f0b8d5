"""Bins of large tables: edges from the rows of least hash, bins of all rows between them."""

import numpy as np
import pytest
from reference.problems import random_matrix, random_weight
from reference.sampled_bins import rows_of_edges, sampled_bins

import pboost as pb
from pboost._core import binning
from pboost.data.columns import sampled_bin_edges as module


def lower_limit(monkeypatch, rows):
    monkeypatch.setattr(module, "SAMPLE_ROWS", rows)


@pytest.fixture
def few(monkeypatch):
    """Edges from 50 rows."""
    lower_limit(monkeypatch, 50)


def random_table(rng, n, d):
    """Draw columns of every kind, copies of rows, holes, levels: X, and the numbers of levels."""
    X, n_levels = random_matrix(rng, n, d), np.zeros(d, dtype=int)
    if rng.random() < 0.5:
        X[rng.random(X.shape) < rng.choice([0.01, 0.3])] = np.nan
        j = rng.integers(d)
        X[:, j] = np.nan
        if rng.random() < 0.5:  # known in a few rows, maybe in none of those that make the edges
            X[rng.integers(n, size=3), j] = rng.normal(size=3)
    if rng.random() < 0.5:
        j = rng.integers(d)
        X[:, j] = rng.integers(0, rng.choice([2, 30, 255]), n)
        n_levels[j] = 1
        if rng.random() < 0.5:
            X[rng.random(n) < 0.2, j] = np.nan
    if rng.random() < 0.5:
        X = X[rng.integers(n // 2, size=n)]
    for j in np.flatnonzero(n_levels):
        known = ~np.isnan(X[:, j])
        levels, X[known, j] = np.unique(X[known, j], return_inverse=True)
        n_levels[j] = len(levels)
    return X, n_levels


def as_table(X, n_levels):
    """Return X with levels as strings that have their order."""
    if not n_levels.any():
        return X
    columns = {str(j): column for j, column in enumerate(X.T)}
    for j in np.flatnonzero(n_levels):
        column = [None if value != value else f"{int(value):03d}" for value in X[:, j]]
        columns[str(j)] = np.array(column, dtype=object)
    return pytest.importorskip("pandas").DataFrame(columns)


def assert_same_columns(one, other):
    for name in ("codes", "n_bins", "lower", "upper", "bin_start", "special"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def check_columns(columns, X, weight, max_bins, part, n_levels):
    codes, ends = sampled_bins(X, weight, max_bins, part, n_levels)
    np.testing.assert_array_equal(columns.codes, codes)
    assert columns.n_bins.tolist() == [len(of) for of in ends]
    for j, of_column in enumerate(ends):
        actual = np.column_stack(columns.bin_ranges(j)) + 0.0
        assert actual.tobytes() == of_column.tobytes()
        b = np.arange(len(of_column) + 1)
        below = (codes[j][:, None] < b).sum(axis=0)
        np.testing.assert_array_equal(columns.bin_start[j, : len(b)], below)
        if np.isnan(X[:, j]).any():
            assert columns.special[j] == 1 + 2 * (n_levels[j] > 0)
            assert columns.bin_start[j, len(b)] == len(X)
            assert np.isnan([columns.lower[j, len(b) - 1], columns.upper[j, len(b) - 1]]).all()


@pytest.mark.parametrize("case", range(120))
def test_bins_are_those_of_the_definition(monkeypatch, case):
    rng = np.random.default_rng([61, case])
    n, d = int(rng.choice([300, 700, 2100])), int(rng.integers(1, 5))
    X, n_levels = random_table(rng, n, d)
    given = random_weight(rng, n)
    weight = np.ones(n) if given is None else given
    maximum = int(rng.choice([7, 50, 280]))
    lower_limit(monkeypatch, maximum)
    part, max_bins = rows_of_edges(X, weight, maximum), int(rng.choice([2, 16, 255, 256]))
    table = as_table(X, n_levels)
    columns = pb.data.bin_columns(table, max_bins=max_bins, sample_weight=given)
    if part is not None:
        check_columns(columns, X, weight, max_bins, part, n_levels)
        return
    lower_limit(monkeypatch, n)  # all rows
    assert_same_columns(columns, pb.data.bin_columns(table, max_bins=max_bins, sample_weight=given))


def normal_rows(n, d, seed=0):
    rng = np.random.default_rng([62, seed])
    X = rng.normal(size=(n, d))
    X[:, 0] = np.round(X[:, 0])
    X[rng.random(n) < 0.1, -1] = np.nan
    return X


@pytest.mark.usefixtures("few")
def test_the_order_of_the_rows_is_nothing_to_the_edges():
    X = normal_rows(900, 4)
    columns = pb.data.bin_columns(X, max_bins=16)
    order = np.random.default_rng(0).permutation(len(X))
    other = pb.data.bin_columns(np.asfortranarray(X[order]), max_bins=16)
    np.testing.assert_array_equal(other.codes, columns.codes[:, order])
    for name in ("n_bins", "lower", "upper", "bin_start", "special"):
        np.testing.assert_array_equal(getattr(other, name), getattr(columns, name))


@pytest.mark.usefixtures("few")
def test_weights_are_copies():
    X = normal_rows(300, 4)
    weight = np.random.default_rng(1).integers(0, 5, len(X))
    columns = pb.data.bin_columns(X[weight > 0], max_bins=16, sample_weight=weight[weight > 0])
    copies = pb.data.bin_columns(np.repeat(X, weight, axis=0), max_bins=16)
    kept = weight[weight > 0]
    np.testing.assert_array_equal(copies.codes, np.repeat(columns.codes, kept, axis=1))
    for name in ("n_bins", "lower", "upper", "special"):
        np.testing.assert_array_equal(getattr(copies, name), getattr(columns, name))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y, w: pb.fit_adaboost(
            X,
            y,
            n_estimators=5,
            sample_weight=w,
            weak_learner=pb.weak.stump(search="binned", max_bins=16),
        ),
        lambda X, y, w: pb.fit_gradient_boosting(
            X, y, n_estimators=3, max_depth=3, search="binned", max_bins=16, sample_weight=w
        ),
        lambda X, y, w: pb.fit_cart(X, y, search="binned", max_bins=16, sample_weight=w),
    ],
    ids=["adaboost", "stagewise", "cart"],
)
def test_rows_without_weight_are_left_out(fit):
    X = normal_rows(900, 4)
    rng = np.random.default_rng(2)
    y = (X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
    weight = rng.integers(0, 3, len(X)).astype(float)
    X[(weight == 0) & (rng.random(len(X)) < 0.3), 0] = np.nan  # one bin less, if they counted
    kept = weight > 0
    models = fit(X, y, weight), fit(X[kept], y[kept], weight[kept])
    first, second = (pb.decision_function(m, np.nan_to_num(X)) for m in models)
    assert first.tobytes() == second.tobytes()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("max_bins", [5, 256])
def test_thresholds_separate_all_rows(max_bins):
    X = normal_rows(3000, 3)
    columns = pb.data.bin_columns(X, max_bins=max_bins)
    for j, code in enumerate(columns.codes):
        last = columns.n_bins[j] - 1
        threshold = columns.threshold(j, np.arange(last), None)
        known = ~np.isnan(X[:, j])
        actual = np.searchsorted(threshold, X[known, j], side="left")
        np.testing.assert_array_equal(actual, code[known])
        assert (code[~known] == last + 1).all()
        assert columns.lower[j, 0] == X[known, j].min()
        assert columns.upper[j, last] == X[known, j].max()


def test_any_number_of_threads(monkeypatch):
    lower_limit(monkeypatch, 3000)
    X = normal_rows(30_000, 35)
    first, two = (pb.data.bin_columns(X, n_threads=n) for n in (1, 2))
    assert_same_columns(first, two)


@pytest.mark.usefixtures("few")
def test_variants_of_simd_and_kinds_of_numbers():
    X = normal_rows(1001, 5).astype(np.float32)
    columns = pb.data.bin_columns(X)
    assert_same_columns(columns, pb.data.bin_columns(X.astype(np.float64)))
    try:
        binning.use_simd_level(0)
        assert_same_columns(columns, pb.data.bin_columns(X))
    finally:
        binning.use_simd_level(2)


@pytest.mark.usefixtures("few")
def test_bins_of_sums_of_columns():
    """The edges of projections are made from the rows that their contents choose, too."""
    X = normal_rows(900, 4)[:, :3]
    y = X[:, 1] + X[:, 2] > 0
    weak = pb.weak.affine(search="binned", max_bins=16)
    order = np.random.default_rng(3).permutation(len(X))
    models = [
        pb.fit_adaboost(X[i], y[i], n_estimators=4, weak_learner=weak) for i in (slice(None), order)
    ]
    first, second = (pb.decision_function(model, X) for model in models)
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.usefixtures("few")
def test_infinities_are_refused():
    X = normal_rows(900, 4)
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match="inf in column 2, row 7"):
        pb.data.bin_columns(X)


def test_the_kernels_refuse_arrays_that_do_not_fit():
    X, rows = np.zeros((3, 2)), np.arange(3, dtype=np.int32)
    key, hashed = np.empty(2, dtype=np.uint64), np.empty(3, dtype=np.uint64)
    with pytest.raises(ValueError, match="hash_rows: arrays of different sizes"):
        binning.hash_rows(X, rows, key[:1], hashed)
    arrays = [
        np.zeros((2, 255)),
        np.ones(2, dtype=np.int32),
        np.zeros((2, 3), dtype=np.uint8),
        np.zeros((2, 256)),
        np.zeros((2, 256)),
        np.zeros((2, 256), dtype=np.int32),
    ]
    binning.code_columns(X.T.copy(), 0, *arrays)
    with pytest.raises(ValueError, match="code_columns: arrays of different sizes"):
        binning.code_columns(X.T.copy(), 1, *arrays)
