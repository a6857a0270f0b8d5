"""Gradient boosting on sparse matrices, which must give the trees of dense rows in equal bins."""

from __future__ import annotations

import numpy as np
import pytest
from reference import sparse as twin
from scipy import sparse

import pboost as pb
from pboost._core.sparse import LANES
from pboost.data.columns import sparse_columns
from pboost.data.columns.sparse_columns import bin_sparse, read_sparse
from pboost.trees import sparse_rounds
from pboost.trees.sparse_rounds import SparseRounds, sparse_table

ARRAYS = ("root", "feature", "threshold", "children", "value", "weight", "n_rows", "impurity")


def assert_same(model, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(model.trees, name), getattr(other.trees, name)), name
    assert np.array_equal(model.bias, other.bias)
    assert np.array_equal(model.training_loss, other.training_loss)


def draw(seed):
    """Return a matrix with few nonzero values, classes, weights and options."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 120)), int(rng.integers(1, 30))
    is_stored = rng.random((n, d)) < rng.choice([0.02, 0.2, 0.6, 1.0], d)
    values = rng.integers(1, 4, (n, d)) * 1.0
    if rng.random() < 0.5:
        values = np.round(rng.gamma(1, 3, (n, d)), 1) + 0.1
    sign = (1, -1, rng.choice([1, -1], (n, d)))[rng.integers(3)]
    X = np.where(is_stored, values * sign, 0.0)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    if rng.random() < 0.7:
        y = (X @ rng.normal(size=d) + rng.normal(size=n) > 0).astype(int)
        y[:2] = 0, 1
    weight = (None, rng.integers(0, 3, n) * 1.0, rng.random(n))[rng.integers(3)]
    if weight is not None:
        weight[:2] = 1.0

    def one_of(*choices):
        return choices[rng.integers(len(choices))]

    options = {
        "n_estimators": 3,
        "max_depth": one_of(1, 3, None),
        "max_leaf_nodes": one_of(None, None, 2, 6),
        "min_samples_leaf": one_of(1, 1, 2, 7),
        "min_child_weight": one_of(0.0, 0.3),
        "min_split_gain": one_of(0.0, 0.2),
        "subsample": one_of("auto", None),
        "histogram_precision": one_of("auto", "wide"),
        "leaf_update": one_of("line_search", "newton"),
        "leaf_shrinkage": one_of("auto", 0.0),
        "random_strength": 0.0,
    }
    loss = one_of("log_loss", "squared_error", "softmax")
    return rng, X, (X[:, 0] + y) / 3 if loss == "squared_error" else y, weight, loss, options


def assert_equals_dense(seed):
    """Compare a fit to a sparse matrix with a fit to the bins of the twin."""
    rng, X, y, weight, loss, options = draw(seed)
    max_bins, min_samples = int(rng.choice([2, 5, 256])), int(rng.choice([1, 3, 20]))
    is_used = None if weight is None else weight > 0
    columns = pb.data.BinnedColumns(*twin.binned(X, is_used, max_bins, min_samples), None)
    options.update(loss=loss, sample_weight=weight)
    dense = pb.fit_gradient_boosting(columns, y, growth="independent", **options)
    given = getattr(sparse, rng.choice(["csr_array", "csc_matrix", "coo_array"]))(X)
    model = pb.fit_gradient_boosting(
        given, y, max_bins=max_bins, min_samples_in_bin=min_samples, **options
    )
    assert_same(model, dense)


@pytest.mark.parametrize("seed", range(8))
def test_equals_dense_rows_in_the_same_bins(seed):
    for number in range(5 * seed, 5 * seed + 5):
        assert_equals_dense(number)


@pytest.mark.full
@pytest.mark.parametrize("start", range(1000, 11000, 1000))
def test_ten_thousand_structures_equal_dense_rows(start):
    for number in range(start, start + 1000):
        assert_equals_dense(number)


RNG = np.random.default_rng(0)
X = np.where(RNG.random((400, 60)) < 8 / (8 + np.arange(60)), RNG.integers(-2, 4, (400, 60)), 0.0)
Y = (X[:, :6].sum(axis=1) + RNG.logistic(size=400) > 3).astype(int)
SHORT = {"n_estimators": 4, "min_samples_in_bin": 1, "random_strength": 0}


@pytest.mark.parametrize("size", [20, None])
def test_bins_equal_the_twin(size):
    values = np.where(RNG.random((900, 3)) < [0.7, 0.2, 0.7], RNG.normal(size=(900, 3)), 0.0)
    values[:, 1], values[:, 2] = np.abs(values[:, 1]) + 1, np.round(values[:, 2])
    weight = RNG.integers(0, 2, 900) * 1.0
    columns = bin_sparse(read_sparse(sparse.csr_array(values), size), weight, 30)
    codes, n_bins, lower, upper = twin.binned(values, weight > 0, 30, size)
    assert np.diff(columns.first_bin).tolist() == n_bins.tolist()
    for j in range(3):
        part = slice(*columns.first_bin[j : j + 2])
        assert np.array_equal(columns.lower[part], lower[j, : n_bins[j]])
        assert np.array_equal(columns.upper[part], upper[j, : n_bins[j]])
        own = np.full(900, columns.zero[j])
        for side in range(2):
            rows = slice(*columns.list_start[2 * j + side : 2 * j + side + 2])
            bins = columns.list_bins[rows].astype(int)
            first = columns.zero[j] + (columns.has_zero[j] if side else -1)
            own[columns.list_rows[rows]] = first + (bins if side else -bins)
        assert np.array_equal(own, codes[j])


def test_cells_of_rows_and_lanes():
    columns = bin_sparse(read_sparse(sparse.csr_array(X), 1), None, 256)
    table = sparse_table(columns, block=30, min_samples_leaf=5)
    assert table.n_heavy > 0
    assert (np.diff(table.bins[table.n_heavy :]) <= 0).all()
    for row in (0, 17, 399):
        cells = table.cells[slice(*table.row_start[row : row + 2])].astype(int)
        group = np.searchsorted(table.place, cells, "right") - 1
        lane, bins = LANES * group + cells % LANES, (cells - table.place[group]) // LANES
        known = []
        for k, b in zip(lane, bins, strict=True):
            at = np.flatnonzero(table.list_rows[table.list_start[k] : table.list_stop[k]] == row)
            assert table.list_bins[table.list_start[k] + at].tolist() == [b]
            known.append((table.feature[k], table.is_above[k]))
        many = (X > 0).sum(axis=0) >= 5, (X < 0).sum(axis=0) >= 5
        wanted = [(j, 1) for j in np.flatnonzero((X[row] > 0) & many[0])]
        wanted += [(j, 0) for j in np.flatnonzero((X[row] < 0) & many[1])]
        assert sorted(known) == sorted(wanted)


@pytest.mark.parametrize("level", [0, 1])
def test_simd_levels(level, monkeypatch):
    given = sparse.csr_array(X)
    model = pb.fit_gradient_boosting(given, Y, **SHORT)
    monkeypatch.setattr(SparseRounds, "simd_level", level)
    assert_same(pb.fit_gradient_boosting(given, Y, **SHORT), model)


def test_formats_stored_zeros_and_threads_give_the_same_model():
    model = pb.fit_gradient_boosting(sparse.csr_array(X), Y, **SHORT)
    rows, columns = np.nonzero(np.ones_like(X))  # all zeros are stored
    order = RNG.permutation(len(rows))
    stored = sparse.coo_array((X[rows, columns][order], (rows[order], columns[order])), X.shape)
    halves = sparse.coo_array(
        (np.tile(X[rows, columns] / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), X.shape
    )
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    unsorted = sparse.csr_array(X)
    for values in (unsorted.indices, unsorted.data):
        values[:2] = values[1::-1].copy()
    unsorted.has_sorted_indices = False
    others = sparse.lil_array(X), sparse.dok_array(X), sparse.bsr_array(X), sparse.dok_matrix(X)
    for given in (stored, halves, wide, unsorted, sparse.csc_matrix(X), *others):
        before = given.copy()
        assert_same(pb.fit_gradient_boosting(given, Y, **SHORT), model)
        assert given.nnz == before.nnz
        if hasattr(given, "indices"):
            assert np.array_equal(given.indices, before.indices)
            assert np.array_equal(given.data, before.data)
    for n_threads in (2, 4):
        assert_same(
            pb.fit_gradient_boosting(sparse.csr_array(X), Y, n_threads=n_threads, **SHORT), model
        )


def test_the_order_of_rows_does_not_matter():
    order = RNG.permutation(len(X))
    model = pb.fit_gradient_boosting(sparse.csr_array(X), Y, **SHORT)
    assert_same(pb.fit_gradient_boosting(sparse.csr_array(X[order]), Y[order], **SHORT), model)


def test_weights_are_copies():
    weight = RNG.integers(1, 4, len(X))
    copies = np.repeat(np.arange(len(X)), weight)
    options = {**SHORT, "max_depth": 3}
    model = pb.fit_gradient_boosting(sparse.csr_array(X), Y, sample_weight=weight, **options)
    copied = pb.fit_gradient_boosting(sparse.csr_array(X[copies]), Y[copies], **options)
    for name in ("feature", "threshold", "value"):
        assert np.array_equal(getattr(model.trees, name), getattr(copied.trees, name))


@pytest.mark.parametrize("rows", ["given", "drawn"])
def test_early_stopping_equals_that_of_dense_rows(rows):
    options = {**SHORT, "n_estimators": 12, "n_iter_no_change": 3, "rng": 5}
    held = (X[300:], Y[300:]) if rows == "given" else 0.2
    dense = pb.fit_gradient_boosting(
        X[:300], Y[:300], validation=held, growth="independent", **options
    )
    if rows == "given":
        held = sparse.csr_matrix(held[0]), held[1]
    model = pb.fit_gradient_boosting(sparse.csr_array(X[:300]), Y[:300], validation=held, **options)
    assert_same(model, dense)
    assert np.array_equal(model.validation_loss, dense.validation_loss)


def test_few_histograms_are_enough_for_best_first_growth(monkeypatch):
    options = {**SHORT, "max_leaf_nodes": 20, "max_depth": None}
    model = pb.fit_gradient_boosting(sparse.csr_array(X), Y, **options)
    monkeypatch.setattr(sparse_rounds, "SLOT_BYTES", 0)
    assert_same(pb.fit_gradient_boosting(sparse.csr_array(X), Y, **options), model)


def test_several_kernel_calls_give_the_same_model(monkeypatch):
    model = pb.fit_gradient_boosting(sparse.csr_array(X), Y, **SHORT)
    monkeypatch.setattr(sparse_columns, "CALL_VALUES", 100)
    assert len([*sparse_columns.ranges_of_cost([50] * 9)]) > 3
    assert_same(pb.fit_gradient_boosting(sparse.csr_array(X), Y, **SHORT), model)


def test_a_model_is_saved_and_predicts(tmp_path):
    given = sparse.csr_array(X)
    model = pb.fit_gradient_boosting(given, Y, **SHORT)
    assert model.settings["growth"] == "independent"
    pb.save(model, tmp_path / "model.pboost")
    loaded = pb.load(tmp_path / "model.pboost")
    assert np.array_equal(pb.predict_proba(loaded, given), pb.predict_proba(model, X))


def test_continued_fits_equal_whole_fits():
    options = {**SHORT, "sample_weight": RNG.integers(0, 3, 400)}
    whole = pb.fit_gradient_boosting(sparse.csr_array(X), Y, **options)
    half = pb.fit_gradient_boosting(sparse.csr_array(X), Y, **{**options, "n_estimators": 2})
    weight = options["sample_weight"]
    for given in (half, pb.models.truncate(whole, 2)):
        model = pb.continue_fit(given, sparse.csc_array(X), Y, n_estimators=2, sample_weight=weight)
        assert_same(model, whole)
    with pytest.raises(ValueError, match=r"^X: expected 60 columns, got 59"):
        pb.continue_fit(half, sparse.csr_array(X[:, 1:]), Y, n_estimators=1)
    with pytest.raises(NotImplementedError, match=r"^state: expected None with a sparse matrix"):
        pb.continue_fit(half, sparse.csr_array(X), Y, n_estimators=1, state=pb.models.FitState())


def test_a_matrix_without_values_gives_constant_trees():
    model = pb.fit_gradient_boosting(sparse.csr_array((6, 9)), [0, 1, 1, 0, 1, 1], **SHORT)
    assert model.trees.feature.tolist() == [-1] * 4


UNSUPPORTED = {
    "random_strength": 0.1,
    "max_features": 3,
    "max_features_per_tree": 3,
    "monotonic_cst": {0: 1},
    "interaction_cst": [[0, 1]],
    "feature_costs": {0: 1.0},
    "multi_strategy": "multi_output_tree",
    "growth": "symmetric",
    "search": "exact",
    "categorical_features": [0],
    "y_proba": np.full((400, 2), 0.5),
}


def test_unsupported_options_are_refused():
    for name, value in UNSUPPORTED.items():
        with pytest.raises(NotImplementedError, match=rf"^{name}: expected .* sparse matrix"):
            pb.fit_gradient_boosting(sparse.csr_array(X), Y, **{name: value})
    with pytest.raises(NotImplementedError, match=r"^min_samples_in_bin: expected .* unless X is"):
        pb.fit_gradient_boosting(X, Y, min_samples_in_bin=3)


def test_invalid_values_are_refused():
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(NotImplementedError, match=r"^X: .* got NaN in column 2, row 7; impute"):
        pb.fit_gradient_boosting(sparse.csr_array(bad), Y)
    bad[7, 2] = -np.inf
    with pytest.raises(ValueError, match=r"^X: expected finite .* -inf in column 2, row 7"):
        pb.fit_gradient_boosting(sparse.csr_array(bad), Y)
    held = sparse.csr_array(X[:, 1:]), Y
    with pytest.raises(ValueError, match=r"^validation: X: expected 60 columns, got 59"):
        pb.fit_gradient_boosting(sparse.csr_array(X), Y, validation=held)
    with pytest.raises(TypeError, match=r"^X: expected a sparse matrix of numbers, got dtype comp"):
        pb.fit_gradient_boosting(sparse.csr_array(X + 0j), Y)
