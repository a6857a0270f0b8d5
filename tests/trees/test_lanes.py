"""Columns that exclude each other share a lane: which do, and that models stay the same."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from reference import lanes as twin

import pboost as pb
from pboost.trees.one_hot_bundles import lanes_of


def one_hot(rng, n, size, rate=1.0):
    """Return a one-hot table of random levels, some more frequent; a share of rows has none."""
    share = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 30.0])))
    level = rng.choice(size, n, p=share)
    level[rng.random(n) > rate] = -1
    return (level[:, None] == np.arange(size)).astype(float)


def table(rng, n=None, parts=4):
    """Return columns of several kinds, most of two bins."""
    n = int(rng.choice([1, 2, 7, 63, 64, 65, 200, 700])) if n is None else n
    actual = []
    for _ in range(parts):
        some = one_hot(rng, n, int(rng.integers(1, 9)), rng.choice([0.5, 1.0]))
        kind = rng.integers(6)
        if kind == 0:
            some = 1.0 - some
        elif kind == 1:  # as thermometers
            some = np.cumsum(some, axis=1)
        elif kind == 2:
            some = rng.normal(size=(n, 2))
        elif kind == 3:
            some = (rng.random((n, 3)) < rng.random(3)).astype(float)
        elif kind == 4 and rng.random() < 0.5:
            some[rng.random(n) < 0.1, 0] = np.nan
        actual.append(some)
    return np.hstack(actual)


def wanted_of(bins):
    holes = np.zeros(bins.n_features, bool) if bins.special is None else bins.special > 0
    return (bins.n_bins <= 2) & ~holes


def check_lanes(bins):
    """Compare lanes with the twin's; returns them."""
    actual, rng = lanes_of(bins), np.random.default_rng(0)
    expected = twin.lanes(bins.codes, bins.n_bins, wanted_of(bins))
    assert len(actual.column) == len(expected)
    plain = actual.groups.transpose(0, 2, 1).reshape(-1, bins.codes.shape[1])
    assert not plain[len(expected) :].any()
    alone = []
    for number, (columns, sides, codes) in enumerate(expected):
        assert np.array_equal(plain[number], codes)
        assert actual.lane[columns].tolist() == [number] * len(columns)
        if sides is None:
            assert actual.column[number] == columns[0]
            assert actual.code[columns[0]] == 0
            alone += columns
            continue
        assert actual.column[number] == -1
        assert actual.bins[number] == len(columns) + 1
        assert actual.code[columns].tolist() == list(range(1, len(columns) + 1))
        assert actual.side[columns].tolist() == sides
        values = rng.integers(-1000, 1000, len(codes)).astype(float)
        for j, side, code in zip(columns, sides, actual.code[columns], strict=True):
            below = twin.sum_below(codes, int(code), side, values)
            assert below == values[bins.codes[j] == 0].sum()
    assert sorted([*actual.bundled.tolist(), *alone]) == list(range(bins.n_features))
    return actual


@pytest.mark.parametrize("seed", range(0, 200, 50))
def test_bundles_equal_the_twin(seed):
    for number in range(seed, seed + 50):
        rng = np.random.default_rng(number)
        check_lanes(pb.data.bin_columns(table(rng), max_bins=int(rng.choice([2, 16, 255]))))


def test_one_hot_columns_share_a_lane():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(3000, 10)), one_hot(rng, 3000, 4), one_hot(rng, 3000, 40)])
    actual = check_lanes(pb.data.bin_columns(X))
    assert len(actual.column) == 12
    assert actual.bins[10:].tolist() == [5, 41]
    assert actual.groups.shape == (2, 3000, 8)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_two_columns_of_two_levels_share_a_lane(share):
    first = (np.random.default_rng(0).random(999) < share).astype(float)
    for other in (1.0 - first, first):
        actual = check_lanes(pb.data.bin_columns(np.column_stack([first, other])))
        assert len(actual.column) == 1


def test_the_level_of_most_rows_comes_first():
    level = np.random.default_rng(0).choice(5, 2000, p=[0.9, 0.03, 0.03, 0.02, 0.02])
    actual = check_lanes(pb.data.bin_columns((level[:, None] == np.arange(5)).astype(float)))
    assert len(actual.column) == 1


def test_a_lane_has_no_more_codes_than_a_byte():
    X = np.eye(600)
    actual = check_lanes(pb.data.bin_columns(X))
    assert actual.bins.tolist() == [256, 256, 91]


def test_columns_that_do_not_exclude_each_other_are_alone():
    rng = np.random.default_rng(0)
    X = (rng.random((500, 40)) < 0.4).astype(float)
    actual = check_lanes(pb.data.bin_columns(X))
    assert actual.column.tolist() == list(range(40))
    # One-hot columns behind them find each other all the same.
    actual = check_lanes(pb.data.bin_columns(np.hstack([X, one_hot(rng, 500, 30)])))
    assert len(actual.column) == 41


def test_columns_with_holes_or_levels_are_alone():
    rng = np.random.default_rng(0)
    X = one_hot(rng, 500, 8)
    X[:20, 3] = np.nan
    actual = lanes_of(pb.data.bin_columns(X))
    assert actual.column.tolist() == [-1, 3]


def fit_plainly(monkeypatch, *data, **options):
    """Fit while every column is alone."""
    with monkeypatch.context() as patched:
        patched.setattr("pboost._core.derived.bundle", lambda *arrays: None)
        return pb.fit_gradient_boosting(*data, **options)


def one_hot_table(seed, n=1500):
    """Return numbers beside one-hot columns, and targets that both are needed for."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 30, int(rng.integers(1, 5)))
    parts = [one_hot(rng, n, size, rng.choice([0.7, 1.0])) for size in sizes]
    parts = [1.0 - part if rng.random() < 0.2 else part for part in parts]
    numbers = rng.normal(size=(n, int(rng.integers(0, 12))))
    numbers[rng.random(numbers.shape) < 0.1 * (seed % 2)] = np.nan
    X = np.hstack([*parts[: seed % 3], numbers, *parts[seed % 3 :]])
    z = np.nan_to_num(X) @ rng.normal(size=X.shape[1]) + rng.normal(size=n)
    return X, z - np.median(z)


OPTIONS = [
    {},
    {"max_leaf_nodes": 20, "max_depth": None},
    {"min_samples_leaf": 25},
    {"min_child_weight": 5.0, "l2_regularization": 0.5},
    {"max_features_per_tree": 0.5, "max_features": 0.5, "rng": 1},
    {"histogram_precision": "wide"},
    {"monotonic_cst": {0: 1, 1: -1, 3: 1}},
    {"interaction_cst": [[0, 1], [1, 2, 3]]},
    {"subsample": 0.5, "rng": 2},
    {"min_split_gain": 0.5, "leaf_update": "newton"},
    {"loss": "softmax"},
    {"loss": "squared_error"},
]


@pytest.mark.full_for("{'loss': 'softmax'}")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_models_are_the_same_with_and_without_bundles(options, monkeypatch):
    for seed in range(10):
        X, z = one_hot_table(seed)
        y = z if options.get("loss") == "squared_error" else (z > 0).astype(int)
        if options.get("loss") == "softmax":
            y = np.digitize(z, [-1.0, 1.0])
        assert len(lanes_of(pb.data.bin_columns(X)).column) < X.shape[1]
        fit = {"n_estimators": 10, "max_depth": 5, **options}
        first_model = pb.fit_gradient_boosting(X, y, **fit)
        other = fit_plainly(monkeypatch, X, y, **fit)
        assert first_model.trees.n_nodes > 20
        for name in ("feature", "threshold", "missing", "children", "value", "impurity", "weight"):
            here = getattr(first_model.trees, name)
            assert np.array_equal(here, getattr(other.trees, name)), (seed, name)
        assert np.array_equal(first_model.training_loss, other.training_loss)


def test_little_memory_is_needed():
    rng = np.random.default_rng(0)
    X = one_hot(rng, 50_000, 60)
    bins = pb.data.bin_columns(X)
    tracemalloc.start()
    lanes_of(bins)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * len(X)
