"""Stumps of columns with missing values and of levels, against brute force."""

import numpy as np
import pytest
from holed_data import CRITERIA, edges_of, random_holes, random_levels, searched
from reference.holes import MOST, best_stump, best_subset, of_sides
from reference.tables import best_cut

from pboost.weak import stump
from pboost.weak.base import Weights


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("binned", [False, True])
def test_threshold_and_side_are_the_best(criterion, binned):
    for case in range(100):
        rng = np.random.default_rng([11, case, binned])
        X, y, w = random_holes(rng)
        options = {
            "min_samples_leaf": int(rng.choice([1, 1, 2, 5])),
            "min_weight_fraction": rng.choice([0.0, 0.07]),
        }
        learner = stump(
            criterion,
            "binned" if binned else "exact",
            max_bins=int(rng.choice([2, 5, 256])),
            **options,
        )
        data, search, weights = searched(X, y, w, learner)
        expected = best_stump(
            X, y, w, criterion, edges=edges_of(data.columns) if binned else None, **options
        )
        cut = search.best(weights)
        if expected is None:
            assert cut is None
            continue
        threshold = float(search.thresholds([cut])[0])
        assert (cut.feature, threshold, cut.side) == expected, case
        check_sides(X, y, w, data, search, weights, cut, threshold)


def check_sides(X, y, w, data, search, weights, cut, threshold):
    """Sides, masses and reweighted masses are those of the rows."""
    x = X[data.rows, cut.feature]
    above = np.where(np.isnan(x), cut.side == 1, x > threshold)
    assert (search.sides(cut) == above).all()
    masses = [data.by_class(weights.fixed * side) for side in (~above, above)]
    assert np.array_equal(np.array(cut.masses), np.array(masses, dtype=float))
    target = Weights(np.empty(len(x)), np.empty(len(x), dtype=np.int64), weights.scale / 8, (0, 0))
    factors = np.array([[0.5, 1.5], [2.0, 0.25]])
    search.reweight(cut, factors, weights.real, target)
    is_positive = y[data.rows] > 0
    expected = weights.real * factors[above.astype(int), is_positive.astype(int)]
    assert np.array_equal(target.real, expected)
    assert target.masses == data.by_class(target.fixed)


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_many_values(search):
    """More values than bins, so that the best cut lies inside a bin."""
    for case in range(6):
        rng = np.random.default_rng([12, case])
        n = 3000
        X = rng.normal(size=(n, 3))
        y = np.where(X[:, 1] > 0.3 + rng.normal(size=n), 1, -1)
        X[rng.random((n, 3)) < 0.2] = np.nan
        X[(y > 0) & (rng.random(n) < 0.3), 1] = np.nan
        w = rng.exponential(size=n)
        criterion = CRITERIA[case % 4]
        learner = stump(criterion, search)
        data, actual, weights = searched(X, y, w, learner)
        edges = edges_of(data.columns) if search == "binned" else None
        cut = actual.best(weights)
        threshold = float(actual.thresholds([cut])[0])
        assert (cut.feature, threshold, cut.side) == best_stump(X, y, w, criterion, edges=edges)
        check_sides(X, y, w, data, actual, weights, cut, threshold)


def test_is_it_missing():
    X = np.array([[1.0], [np.nan], [3.0], [np.nan]])
    y = np.array([-1, 1, -1, 1])
    _, search, weights = searched(X, y, np.ones(4), stump())
    cut = search.best(weights)
    assert cut.side == 1
    assert search.thresholds([cut])[0] == MOST


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", ["exact", "binned"])
def test_sets_of_levels_are_the_best(criterion, kind):
    for case in range(125):
        rng = np.random.default_rng([13, case])
        level, n_levels, y, w = random_levels(rng)
        learner = stump(criterion, kind, categorical_smoothing=0.0)
        data, search, weights = searched(level[:, None], y, w, learner, [n_levels])
        expected = best_subset(level, y, w, criterion)
        cut = search.best(weights)
        if not np.isfinite(expected):
            assert cut is None
            continue
        above = members_above(level[data.rows], cut)
        assert (search.sides(cut) == above).all()
        masses = [data.by_class(weights.fixed * side) for side in (~above, above)]
        assert np.array_equal(np.array(cut.masses), np.array(masses, dtype=float))
        actual = of_sides(above, y[data.rows], w[data.rows], criterion)
        assert actual <= expected + 1e-9 * w.sum(), case


def test_many_levels():
    """As many as there can be, some without rows."""
    rng = np.random.default_rng(15)
    level = rng.integers(0, 254, 4000).astype(float)
    level[rng.random(4000) < 0.1] = np.nan
    level[level == 77] = 200
    y = np.where(
        rng.random(4000) < rng.random(255)[np.nan_to_num(level, nan=254).astype(int)], 1, -1
    )
    data, search, weights = searched(
        level[:, None], y, None, stump(categorical_smoothing=0.0), [255]
    )
    cut = search.best(weights)
    above = members_above(level[data.rows], cut)
    assert (search.sides(cut) == above).all()
    masses = [data.by_class(weights.fixed * side) for side in (~above, above)]
    assert np.array_equal(np.array(cut.masses), np.array(masses, dtype=float))
    share = np.array(
        [(y[level == k] > 0).mean() if (level == k).any() else np.nan for k in range(255)]
    )
    inside = np.array([cut.levels[0] >> k & 1 for k in range(255)], dtype=bool)
    assert np.nanmin(share[inside]) >= np.nanmax(share[~inside])
    assert [k for k in range(255) if cut.levels[1] >> k & 1] == [77, 254]


def members_above(level, cut):
    holes = np.isnan(level)
    bits = np.array([cut.levels[0] >> b & 1 for b in range(256)], dtype=bool)
    return np.where(holes, cut.side == 1, bits[np.where(holes, 0, level).astype(int)])


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", ["exact", "binned"])
def test_smoothed_sets(criterion, kind):
    """The set is the twin's, of all that are tried the best."""
    for case in range(100):
        rng = np.random.default_rng([14, case])
        level, n_levels, y, w = random_levels(rng)
        smoothing, min_samples_leaf = float(rng.choice([0.1, 0.5, 2.0])), int(rng.choice([1, 1, 4]))
        learner = stump(
            criterion, kind, min_samples_leaf=min_samples_leaf, categorical_smoothing=smoothing
        )
        data, search, weights = searched(level[:, None], y, w, learner, [n_levels])
        cut, label = search.best(weights), (y > 0).astype(int)
        expected = best_cut(
            level[:, None],
            label,
            w,
            criterion,
            2,
            min_samples_leaf,
            levels=[0],
            smoothing=smoothing,
        )
        if cut is None:
            assert expected is None
            continue
        above = members_above(level[data.rows], cut)
        assert np.array_equal(above, expected.above[data.rows]), case
        masses = [data.by_class(weights.fixed * side) for side in (~above, above)]
        assert np.array_equal(np.array(cut.masses), np.array(masses, dtype=float))


def test_two_levels_are_not_smoothed():
    rng = np.random.default_rng(16)
    level, y = rng.integers(0, 2, 30).astype(float), np.where(rng.random(30) < 0.4, 1, -1)
    actual = []
    for smoothing in (0.0, 100.0):
        learner = stump(categorical_smoothing=smoothing)
        _, search, weights = searched(level[:, None], y, None, learner, [2])
        actual.append(search.best(weights))
    assert actual[0] == actual[1]


def test_smoothed_sets_of_many_levels():
    """Levels that say nothing give way to a column that says something."""
    for case in range(20):
        rng = np.random.default_rng([17, case])
        X = np.column_stack([rng.normal(size=600), rng.integers(0, 200, 600)])
        y = np.where(X[:, 0] + 2 * rng.normal(size=600) > 0, 1, -1)
        chosen = []
        for learner in (stump(), stump(categorical_smoothing=0.0)):
            _, search, weights = searched(X, y, None, learner, [0, 200])
            chosen.append(search.best(weights).feature)
        assert chosen == [0, 1]
