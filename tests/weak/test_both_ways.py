"""Stumps whose missing rows go both ways, against brute force."""

import numpy as np
import pytest
from holed_data import CRITERIA, edges_of, random_holes, random_levels, searched
from reference.both_ways import best_stump, best_subset, scored
from reference.tables import best_cut

from pboost.weak import stump
from pboost.weak.base import Weights


def reach_of(rng, w):
    """Return reach that is the weights, or of its own."""
    return w if rng.random() < 0.5 else rng.integers(1, 5, len(w)).astype(float)


def found_by(search, data, weights, w, reach):
    """Return the best cut for rows that arrive with the given reach."""
    if reach is w:
        return search.best(weights)
    return search.best_for_reach(weights, reach[data.rows])


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("binned", [False, True])
def test_threshold_and_share_are_the_best(criterion, binned):
    for case in range(100):
        rng = np.random.default_rng([21, case, binned])
        X, y, w = random_holes(rng)
        reach = reach_of(rng, w)
        limits = {"min_leaf": int(rng.choice([1, 1, 2, 5])), "min_weight": rng.choice([0.0, 0.07])}
        bins = int(rng.choice([2, 5, 256]))
        kind = "binned" if binned else "exact"
        learner = stump(criterion, kind, max_bins=bins, missing="both", **limits)
        data, search, weights = searched(X, y, w, learner)
        if not search.needs_reach:
            continue
        edges = edges_of(data.columns) if binned else None
        expected = best_stump(X, y, w, reach, criterion, edges=edges, **limits)
        cut = found_by(search, data, weights, w, reach)
        if expected is None:
            assert cut is None
            continue
        threshold = float(search.thresholds([cut])[0])
        assert (cut.feature, threshold) == expected[:2], case
        assert (cut.share is None) == (expected[2] is None)
        if cut.share is not None:
            assert cut.share == pytest.approx(expected[2], rel=1e-12), case
        check_masses(X[data.rows, cut.feature], threshold, data, search, weights, cut)


def check_masses(x, threshold, data, search, weights, cut):
    """Masses and reweighted masses are those of rows that are on both sides."""
    q = 0.0 if cut.share is None else cut.share
    above = np.where(np.isnan(x), q, x > threshold)
    assert (search.sides(cut) == (above > 0.5)).all()
    masses = [data.by_class(weights.fixed * part) for part in (1 - above, above)]
    assert np.allclose(np.array(cut.masses), masses, rtol=1e-14)
    target = Weights(np.empty(len(x)), np.empty(len(x), dtype=np.int64), weights.scale / 8, (0, 0))
    factors = np.array([[0.5, 1.5], [2.0, 0.25]])
    search.reweight(cut, factors, weights.real, target)
    is_positive = (np.arange(len(x)) >= data.n_negative).astype(int)
    below, over = factors[:, is_positive]
    assert np.allclose(target.real, weights.real * ((1 - above) * below + above * over), rtol=1e-15)
    assert target.masses == data.by_class(target.fixed)


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_many_values(search):
    """More values than bins, so that the best cut lies inside a bin."""
    for case in range(4):
        rng = np.random.default_rng([22, case])
        n = 1000
        X = rng.normal(size=(n, 3))
        y = np.where(X[:, 1] > 0.3 + rng.normal(size=n), 1, -1)
        X[rng.random((n, 3)) < 0.2] = np.nan
        w = rng.exponential(size=n)
        data, found, weights = searched(X, y, w, stump(CRITERIA[case], search, missing="both"))
        edges = edges_of(data.columns) if search == "binned" else None
        cut = found.best(weights)
        threshold = float(found.thresholds([cut])[0])
        expected = best_stump(X, y, w, w, CRITERIA[case], edges=edges)
        assert (cut.feature, threshold) == expected[:2]
        assert cut.share == pytest.approx(expected[2], rel=1e-12)
        check_masses(X[data.rows, cut.feature], threshold, data, found, weights, cut)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", ["exact", "binned"])
def test_sets_of_levels_are_the_best(criterion, kind):
    for case in range(125):
        rng = np.random.default_rng([23, case])
        level, n_levels, y, w = random_levels(rng)
        level[rng.integers(len(level))] = np.nan
        reach = reach_of(rng, w)
        learner = stump(criterion, kind, missing="both", level_smoothing=0.0)
        data, search, weights = searched(level[:, None], y, w, learner, [n_levels])
        expected = best_subset(level, y, w, reach, criterion)
        cut = found_by(search, data, weights, w, reach)
        if not np.isfinite(expected):
            assert cut is None
            continue
        above, known = inside(level, cut), ~np.isnan(level)
        value, q = scored(above, known, y, w, reach, criterion)
        assert value <= expected + 1e-9 * w.sum(), case
        assert cut.share == pytest.approx(q, rel=1e-12)
        check_masses(np.where(known, above, np.nan)[data.rows], 0.5, data, search, weights, cut)


def inside(level, cut):
    """Return whether levels are in the set of a cut."""
    bits = np.array([cut.levels[0] >> b & 1 for b in range(256)], dtype=bool)
    return bits[np.nan_to_num(level).astype(int)]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_smoothed_sets(criterion):
    """They are those of rows of which each missing one is divided over the levels."""
    for case in range(100):
        rng = np.random.default_rng([24, case])
        level, n_levels, y, w = random_levels(rng)
        level[rng.integers(len(level))] = np.nan
        reach, smoothing = reach_of(rng, w), float(rng.choice([0.1, 0.5, 2.0]))
        learner = stump(criterion, missing="both", level_smoothing=smoothing)
        data, search, weights = searched(level[:, None], y, w, learner, [n_levels])
        cut, known = found_by(search, data, weights, w, reach), ~np.isnan(level)
        present = np.unique(level[known])
        if not len(present):
            assert cut is None
            continue
        part = np.array([reach[level == k].sum() for k in present]) / reach[known].sum()
        hole = np.flatnonzero(~known)
        X = np.concatenate([level[known], np.tile(present, len(hole))])[:, None]
        label = np.concatenate([y[known], np.repeat(y[hole], len(present))])
        mass = np.concatenate([w[known], np.outer(w[hole], part).ravel()])
        more = len(X) / len(level)  # chance is that of as many rows as there are
        expected = best_cut(
            X, (label > 0).astype(int), mass, criterion, 2, levels=[0], smoothing=smoothing * more
        )
        if expected is None:
            assert cut is None
            continue
        above = np.isin(level, sorted(expected.subset))
        assert np.array_equal(inside(level, cut)[known], above[known]), case


def test_few_known_values_win_nothing():
    """Nor does it help that rows of one class have no value: that is not asked."""
    y = np.repeat([-1, 1], 50)
    X = np.c_[np.full(100, np.nan), np.where(np.arange(100) % 50 < 30, y, -y)].astype(float)
    X[[0, 99], 0] = 0.0, 1.0  # known of two rows, which it tells apart
    _, search, weights = searched(X, y, np.ones(100), stump(missing="both"))
    assert search.best(weights).feature == 1
    X[:, 0] = np.where(y > 0, np.nan, np.arange(100) % 7)
    _, search, weights = searched(X, y, np.ones(100), stump(missing="both"))
    assert search.best(weights).feature == 1


def test_without_holes_it_is_as_learn():
    X, y, w = random_holes(np.random.default_rng(3), 50)
    X = np.nan_to_num(X)
    cuts = []
    for missing in ("learn", "both"):
        _, search, weights = searched(X, y, w, stump(missing=missing))
        assert not search.needs_reach
        cuts.append(search.best(weights))
    assert cuts[0] == cuts[1]
