"""Missing values where columns are added up: the twin fills them with the means of training."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from reference.holes import best_stump

import pboost as pb
from pboost._core import derived, walk
from pboost.data.node_inputs.imputation import column_means, filled
from pboost.data.node_inputs.sums import Projections, Separators, standard_deviations
from pboost.models.linear import sums_of


def table(seed, n=200, d=4, share=0.2, dtype=np.float64):
    r = np.random.default_rng([141, seed])
    X = r.normal(size=(n, d)) * 10.0 ** r.integers(-2, 3, d) + r.normal(size=d)
    score = X / X.std(axis=0) @ r.normal(size=d) + 0.5 * r.normal(size=n)
    y = score > np.median(score)
    X[r.random(X.shape) < share] = np.nan
    return X.astype(dtype), y, r.uniform(0.1, 3, n)


def some_sums(r, d, n_inputs, fill=None):
    """Return projections with coefficients of every size."""
    index = [np.sort(r.choice(d, r.integers(1, d + 1), replace=False)) for _ in range(n_inputs)]
    coefficient = [r.normal(size=len(j)) * 10.0 ** r.integers(-3, 4, len(j)) for j in index]
    return replace(Projections.of_terms(index, coefficient), fill=fill)


@pytest.mark.parametrize("weighted", [False, True])
def test_means_are_those_of_the_known(weighted):
    X, _, weight = table(0)
    X[:, 1] = np.nan
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 1e308)  # sums of these are not finite
    X[3:, 3] = np.nan
    rows = np.arange(0, 200, 2, dtype=np.int32)
    weight = weight[rows] if weighted else None
    actual = column_means(X, rows, weight)
    for j, column in enumerate(X[rows].T):
        known = np.flatnonzero(~np.isnan(column))
        share = [Fraction(1 if weight is None else float(weight[i])) for i in known]
        parts = (w * Fraction(float(column[i])) for w, i in zip(share, known, strict=True))
        total = sum(parts, Fraction(0))
        exact = float(total / sum(share)) if len(known) else 0.0
        size = np.abs(column[known]).max(initial=0.0)
        assert abs(actual[j] - exact) <= 1e-12 * size
    assert actual[1] == 0.0
    assert actual[2] == 1e308


def test_means_do_not_depend_on_copies():
    X, _, _ = table(4)
    count = np.random.default_rng(0).integers(1, 5, 200)
    once = column_means(X, np.arange(200, dtype=np.int32), count.astype(float))
    rows = np.repeat(np.arange(200, dtype=np.int32), count)
    np.testing.assert_array_equal(column_means(X, rows, None), once)


def test_spreads_are_those_of_the_known():
    X, _, weight = table(1)
    X[:, 1] = np.nan
    X[5:, 2] = np.nan
    X[:5, 2] = 3.0
    actual = standard_deviations(X, np.arange(200, dtype=np.int32), weight)
    for j in (0, 3):
        known = ~np.isnan(X[:, j])
        alone = standard_deviations(X[known][:, [j]], np.arange(known.sum()), weight[known])
        assert actual[j] == alone[0]
    assert actual[1] == actual[2] == 0.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(4))
def test_sums_are_those_of_filled_rows(seed, dtype):
    X, _, _ = table(seed, dtype=dtype)
    r = np.random.default_rng(seed)
    fill = r.normal(size=4)
    with_fill, without = some_sums(r, 4, 12, fill), None
    without = replace(with_fill, fill=None)
    expected = without.values(filled(X.astype(np.float64), fill))
    np.testing.assert_array_equal(with_fill.values(X), expected)
    rows = r.integers(0, 200, 50).astype(np.int32)
    np.testing.assert_array_equal(with_fill.at(X, rows), expected[rows])
    which = r.integers(0, 12, 50).astype(np.int32)
    np.testing.assert_array_equal(with_fill.pairs(X, rows, which), expected[rows, which])
    columns = np.empty((5, 50))
    with_fill.gather(X, rows, 3, columns)
    np.testing.assert_array_equal(columns, expected[rows, 3:8].T)
    assert np.isnan(without.values(X)).any()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_sum_adds_up_its_terms_in_order(dtype, order):
    X, _, _ = table(5, dtype=dtype)
    X = np.asarray(X, order=order)
    r = np.random.default_rng(5)
    slopes, fill, center, scale = np.append(r.normal(size=3), 0.0), *r.uniform(0.5, 2, (3, 4))
    read = np.flatnonzero(slopes)
    for units in ((), (center, scale)):
        total = np.full(200, 0.75)
        for j in read:
            column = filled(X[:, [j]].astype(np.float64), fill[[j]])[:, 0]
            total += slopes[j] * ((column - center[j]) / scale[j] if units else column)
        np.testing.assert_array_equal(sums_of(X, slopes, fill, 0.75, *units), total)
        index, given = read.astype(np.int32), [of[read] for of in (slopes, fill)]
        part = np.full(67, np.nan)
        units = [of[read] for of in units]
        derived.sum_rows(X, index, *given, 0.75, 131, part[:66], *units)
        np.testing.assert_array_equal(part[:66], total[131:197])
        assert np.isnan(part[66])
    with pytest.raises(ValueError, match="sum_rows"):
        derived.sum_rows(X, index, *given, 0.75, 131, np.empty(70))


def walked(inputs, X, feature, threshold, next_, vote):
    """Return the scores of all rows, which the kernel walks in one call, and in many."""
    n, d = X.shape
    tables = inputs.tables()
    pair = (tables, None) if isinstance(inputs, Projections) else (None, tables)
    actual = []
    for step in (n, walk.TILE_ROWS + 3, walk.MANY - 1, 1):
        score = np.full(n, np.nan)
        tile = np.empty((d + inputs.n_inputs) * walk.TILE_ROWS)
        for start in range(0, n, step):
            bad = walk.walk(
                X,
                feature,
                threshold,
                next_,
                vote,
                walk.is_chain(next_),
                0.25,
                d,
                start,
                min(start + step, n),
                score,
                tile,
                None,
                *pair,
            )
            if bad:
                return None
        actual.append(score)
    for other in actual[1:]:
        np.testing.assert_array_equal(other, actual[0])
    return actual[0]


def some_graph(r, n_nodes, n_inputs, values, chain):
    """Return the arrays of a graph: a chain, or a tree."""
    feature = r.integers(0, n_inputs, n_nodes).astype(np.int32)
    threshold = np.nan_to_num([r.choice(values[:, j]) for j in feature])
    next_ = np.full((n_nodes, 2), -1, dtype=np.int32)
    if chain:
        next_[:-1] = np.arange(1, n_nodes)[:, None]
    else:
        open_ = [(0, 0), (0, 1)]
        for node in range(1, n_nodes):
            before, exit_ = open_.pop(r.integers(len(open_)))
            next_[before, exit_] = node
            open_ += [(node, 0), (node, 1)]
    return feature, threshold, next_, r.normal(size=(n_nodes, 2))


def score_of(values, feature, threshold, next_, vote):
    """Return the scores of rows, one by one, given what the nodes compare."""
    actual = []
    for row in values:
        score, node = 0.25, 0
        while node >= 0:
            above = int(row[feature[node]] > threshold[node])
            score += vote[node, above]
            node = next_[node, above]
        actual.append(score)
    return np.array(actual)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_walks_fill_rows_before_they_project_them(seed, chain, order):
    X, _, _ = table(seed, dtype=np.float32 if seed == 2 else np.float64)
    X[100:170] = np.nan_to_num(X[100:170])  # a tile without holes
    X = np.asarray(X, order=order)
    r = np.random.default_rng(seed)
    fill = r.normal(size=4)
    inputs = some_sums(r, 4, 7, fill)
    values = inputs.values(filled(X.astype(np.float64), fill))
    graph = some_graph(r, 11, 7, values, chain)
    expected = score_of(values, *graph)
    for level in (0, 1, 2):
        walk.use_simd_level(level)
        np.testing.assert_array_equal(walked(inputs, X, *graph), expected)
    assert walked(replace(inputs, fill=None), X, *graph) is None
    X[17, 2] = np.inf
    assert walked(inputs, X, *graph) is None


def some_separators(r, d, n_inputs, X):
    """Return separators whose votes are sums without rounding, with sides."""
    size = r.integers(1, 9, n_inputs)
    feature = [r.integers(0, d, m) for m in size]
    threshold = [np.array([np.nan_to_num(r.choice(X[:, j])) for j in js]) for js in feature]
    vote = [np.ldexp(r.integers(-(2**20), 2**20, (m, 2)), -18) for m in size]
    missing = r.integers(0, 2, size.sum())
    return replace(Separators.of_terms(feature, threshold, vote), missing=missing)


def separated(inputs, X):
    """Return the sums of stumps, one after the other."""
    actual = np.zeros((len(X), inputs.n_inputs))
    for k in range(inputs.n_inputs):
        for s in range(inputs.start[k], inputs.start[k + 1]):
            x = X[:, inputs.feature[s]].astype(np.float64)
            above = np.where(np.isnan(x), inputs.missing[s], x > inputs.threshold[s]).astype(int)
            actual[:, k] += inputs.vote[s, above]
    return actual


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(4))
def test_separators_know_the_side_of_each_stump(seed, dtype):
    X, _, _ = table(seed, dtype=dtype)
    r = np.random.default_rng(seed)
    inputs = some_separators(r, 4, 9, X)
    values = separated(inputs, X)
    np.testing.assert_array_equal(inputs.values(X), values)
    kept = np.array([7, 2, 3])
    np.testing.assert_array_equal(inputs.select(kept).values(X), values[:, kept])
    singles = [inputs.select(np.array([k])) for k in kept]
    np.testing.assert_array_equal(Separators.joined(singles).values(X), values[:, kept])
    for chain in (True, False):
        graph = some_graph(r, 13, 9, values, chain)
        np.testing.assert_array_equal(walked(inputs, X, *graph), score_of(values, *graph))
    assert walked(replace(inputs, missing=None), X, *graph) is None


def test_what_missing_values_are_is_checked():
    r = np.random.default_rng(0)
    X = r.normal(size=(50, 4))
    sums, steps = some_sums(r, 4, 3, np.zeros(4)), some_separators(r, 4, 3, X)
    for fill in (np.zeros(3), np.array([0, np.nan, 0, 0]), np.zeros((4, 1))):
        with pytest.raises(ValueError, match=r"projections\.fill: expected 4 finite numbers"):
            replace(sums, fill=fill).validate(4)
    for missing in (steps.missing[1:], steps.missing + 1):
        with pytest.raises(ValueError, match=r"separators\.missing: expected \d+ numbers"):
            replace(steps, missing=missing).validate(4)


# Builders


def mask(X, seed, share=0.2):
    r = np.random.default_rng(seed)
    return np.where(r.random(X.shape) < share, np.nan, X)


def certified(model, X, y, weight):
    """The recorded certificate is that of the rows."""
    bound = pb.certificate(model, X, y, sample_weight=weight)
    np.testing.assert_allclose(bound, model.record.certificate[-1], rtol=1e-9)


FITS = {
    "adaboost": lambda *a, **k: pb.fit_adaboost(*a, n_estimators=6, **k),
    "tree": lambda *a, **k: pb.fit_boosted_tree(*a, max_nodes=6, **k),
    "soft": lambda *a, **k: pb.fit_boosted_tree(
        *a, max_nodes=5, observation=pb.observation.flip(0.1), **k
    ),
    "matryoshka": lambda *a, **k: pb.fit_matryoshka(*a, shape=(2, 2), **k),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("search", ["exact", "binned"])
def test_affine_is_that_of_filled_rows(fit, d, search, tmp_path):
    X, y, weight = table(5, d=d)
    weak = pb.weak.affine(n_directions=20, search=search)
    model = fit(X, y, weak_learner=weak, sample_weight=weight)
    fill = column_means(X, np.arange(200, dtype=np.int32), weight)
    full = filled(X, fill)
    # Spreads are those of the known, which decide on random directions.
    if d <= 2:
        twin = fit(full, y, weak_learner=weak, sample_weight=weight)
        np.testing.assert_array_equal(model.threshold, twin.threshold)
        np.testing.assert_array_equal(model.vote, twin.vote)
    np.testing.assert_array_equal(model.inputs.fill, fill)
    certified(model, X, y, weight)
    for route in ("hard", "expected"):
        kept = pb.decision_function(model, X, route=route)
        np.testing.assert_array_equal(pb.decision_function(model, full, route=route), kept)
    first = np.concatenate([pb.decision_function(model, X[i : i + 1]) for i in range(30)])
    np.testing.assert_array_equal(first, pb.decision_function(model, X)[:30])
    pb.save(model, tmp_path / "model")
    read = pb.load(tmp_path / "model")
    np.testing.assert_array_equal(pb.decision_function(read, X), pb.decision_function(model, X))
    pb.prediction_cost(model, X)
    pb.explain(model, X[:1])


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_linear_sums_are_those_of_filled_rows(fit, tmp_path):
    X, y, weight = table(6)
    weak = pb.weak.linear()
    model = fit(X, y, weak_learner=weak, sample_weight=weight)
    fill = column_means(X, np.arange(200, dtype=np.int32), weight)
    twin = fit(filled(X, fill), y, weak_learner=weak, sample_weight=weight)
    np.testing.assert_array_equal(model.threshold, twin.threshold)
    np.testing.assert_array_equal(model.vote, twin.vote)
    np.testing.assert_array_equal(model.inputs.coefficient, twin.inputs.coefficient)
    certified(model, X, y, weight)
    pb.save(model, tmp_path / "model")
    read = pb.load(tmp_path / "model")
    np.testing.assert_array_equal(pb.decision_function(read, X), pb.decision_function(model, X))


def inner_stumps(X, y, weight, stumps):
    """Return feature, threshold and side of the stumps of a separator: AdaBoost, by brute force."""
    actual, w = [], weight / weight.sum()
    start = w.copy()
    for _ in range(stumps):
        cut = best_stump(X, y, w)
        if cut is None:
            break
        j, threshold, side = cut
        x = X[:, j]
        above = np.where(np.isnan(x), side == 1, x > threshold)
        if side < 0:
            side = int(start[above].sum() > start.sum() / 2)
        actual.append((j, threshold, side))
        votes = []
        smooth = 1e-3 * w.sum()
        for here in (~above, above):
            p, n = w[here & (y > 0)].sum(), w[here & (y < 0)].sum()
            votes.append(0.5 * np.log((p + smooth) / (n + smooth)))
        w = w * np.exp(-y * np.where(above, votes[1], votes[0]))
    return actual


@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("seed", range(4))
def test_separators_are_boosted_stumps_with_sides(seed, search):
    X, y, weight = table(seed, n=90)
    X = X[:, :3].round(1)
    X[:, 1] = np.nan_to_num(X[:, 1])
    weak = pb.weak.separator(8, search=search)
    model = pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=weak, sample_weight=weight)
    expected = inner_stumps(X, np.where(y, 1, -1), weight, 8)
    actual = model.inputs
    assert actual.feature.tolist() == [j for j, _, _ in expected]
    np.testing.assert_array_equal(actual.threshold, [t for _, t, _ in expected])
    assert actual.missing.tolist() == [side for *_, side in expected]


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_models_of_separators(fit, tmp_path):
    X, y, weight = table(8)
    model = fit(X, y, weak_learner=pb.weak.separator(9), sample_weight=weight)
    certified(model, X, y, weight)
    np.testing.assert_array_equal(model.inputs.values(X), separated(model.inputs, X))
    pb.save(model, tmp_path / "model")
    read = pb.load(tmp_path / "model")
    np.testing.assert_array_equal(pb.decision_function(read, X), pb.decision_function(model, X))
    np.testing.assert_array_equal(read.inputs.missing, model.inputs.missing)
    first = np.concatenate([pb.decision_function(model, X[i : i + 1]) for i in range(30)])
    np.testing.assert_array_equal(first, pb.decision_function(model, X)[:30])


def test_clean_data():
    """Models of clean data take holes in rows to predict, wherever they compare sums."""
    X, y, weight = table(9, share=0.0)
    holed = mask(X, 1)
    for weak in (pb.weak.affine(n_directions=9), pb.weak.linear(), pb.weak.separator(5)):
        model = pb.fit_boosted_tree(X, y, max_nodes=5, weak_learner=weak, sample_weight=weight)
        assert np.isfinite(pb.decision_function(model, holed)).all()
    # Of clean columns the side is that of larger weight.
    sides = model.inputs.missing
    for s, side in enumerate(sides.tolist()[:5]):
        above = X[:, model.inputs.feature[s]] > model.inputs.threshold[s]
        if model.inputs.start[0] <= s < model.inputs.start[1]:
            assert side == (weight[above].sum() > weight.sum() / 2)


@pytest.mark.parametrize("center", ["mean", "midrange", "zero"])
def test_columns_as_hypotheses(center, tmp_path):
    X, y, weight = table(10)
    X[:, 3] = np.nan
    weak = pb.weak.feature(center)
    model = pb.fit_real_adaboost(X, y, n_estimators=30, weak_learner=weak, sample_weight=weight)
    answers = (X - model.center) / model.scale
    for j in range(3):
        known = ~np.isnan(X[:, j])
        low, high = X[known, j].min(), X[known, j].max()
        expected = {
            "mean": np.average(X[known, j], weights=weight[known]),
            "midrange": low / 2 + high / 2,
            "zero": 0.0,
        }[center]
        np.testing.assert_allclose(model.center[j], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.abs(answers[known, j]).max(), 1.0)
    assert 3 not in model.feature.tolist()
    terms = np.where(np.isnan(answers), 0.0, answers) * model.weights
    constant = model.bias + model.step[model.feature < 0].sum()
    np.testing.assert_allclose(pb.decision_function(model, X), terms.sum(axis=1) + constant)
    certified(model, X, y, weight)
    pb.save(model, tmp_path / "model")
    read = pb.load(tmp_path / "model")
    np.testing.assert_array_equal(pb.decision_function(read, X), pb.decision_function(model, X))
    with pytest.raises(ValueError, match="column 0, row 0"):
        pb.predict(replace(model, takes_missing=False), np.full((1, 4), np.nan))


def test_hypotheses_are_given_the_holes():
    X, y, _ = table(11)
    seen = []

    def train(X, y, weight, rng):
        seen.append(np.isnan(X).sum())
        return lambda X: np.where(np.isnan(X[:, 0]), 0.1, np.tanh(np.nan_to_num(X[:, 0])))

    model = pb.fit_real_adaboost(X, y, n_estimators=2, weak_learner=pb.weak.hypothesis(train))
    assert seen[0] == np.isnan(X).sum() > 0
    assert np.isfinite(pb.decision_function(model, X)).all()
