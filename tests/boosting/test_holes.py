"""Graphs of rows with missing values: each column stands twice, NaN = +infinity and -infinity."""

import pickle

import numpy as np
import pandas as pd
import pytest

import pboost as pb

BIG = 1e300
MOST = np.finfo(np.float64).max
FLIP, SOFT = pb.observation.flip(0.1), pb.observation.adatree2()
FITS = {
    "adaboost": lambda X, y, **o: pb.fit_adaboost(X, y, n_estimators=12, **o),
    "symmetric": lambda X, y, **o: pb.fit_adaboost(X, y, n_estimators=12, votes="symmetric", **o),
    "flipped": lambda X, y, **o: pb.fit_adaboost(X, y, n_estimators=8, observation=FLIP, **o),
    "tree": lambda X, y, **o: pb.fit_boosted_tree(X, y, max_nodes=9, **o),
    "look_ahead": lambda X, y, **o: pb.fit_boosted_tree(
        X, y, max_nodes=9, growth="look_ahead", **o
    ),
    "soft": lambda X, y, **o: pb.fit_boosted_tree(X, y, max_nodes=9, observation=SOFT, **o),
    "matryoshka": lambda X, y, **o: pb.fit_matryoshka(X, y, shape=(3, 3), **o),
    "soft matryoshka": lambda X, y, **o: pb.fit_matryoshka(
        X, y, shape=(3, 3), observation=FLIP, **o
    ),
    "greedy": lambda X, y, **o: pb.fit_matryoshka(X, y, growth="greedy", max_nodes=9, **o),
}
builders = pytest.mark.parametrize("fit", list(FITS.values()), ids=list(FITS))


def rows_with_holes(seed, n=80, d=3, share=0.25):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1) + 0.0
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0, "b", "a")
    X[rng.random((n, d)) < share] = np.nan
    X[(y == "b") & (rng.random(n) < 0.2), 2] = np.nan
    weight = [None, rng.integers(1, 4, n).astype(float), rng.exponential(size=n)][seed % 3]
    return X, y, weight


def twice(X):
    """Return every column twice: where values are missing they are large, then small."""
    holes = np.isnan(X)
    copies = [np.where(holes, BIG, X), np.where(holes, -BIG, X)]
    return np.stack(copies, axis=2).reshape(len(X), -1)


@builders
@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("seed", range(6))
def test_models_are_those_of_columns_that_stand_twice(fit, search, seed):
    X, y, weight = rows_with_holes(seed)
    weak = pb.weak.stump(search=search, min_samples_leaf=1 + seed % 2)
    model = fit(X, y, sample_weight=weight, weak_learner=weak)
    twin = fit(twice(X), y, sample_weight=weight, weak_learner=weak)
    assert np.array_equal(model.feature, twin.feature // 2)
    threshold = np.where(np.abs(twin.threshold) > BIG / 4, MOST, twin.threshold)
    # Bins end at edges of all rows; whether a value is missing is asked by the greatest number.
    queries = (search == "binned") & (model.threshold == MOST) & (twin.feature % 2 == 0)
    assert np.array_equal(model.threshold, np.where(queries, MOST, threshold))
    assert np.array_equal(model.next, twin.next)
    assert np.array_equal(model.vote, twin.vote)
    assert np.array_equal(model.record.certificate, twin.record.certificate)
    if fit not in (FITS["flipped"], FITS["soft"], FITS["soft matryoshka"]):
        # Where no row at a node was missing, new ones go to the exit of larger reach.
        score = pb.decision_function(model, X)
        assert np.array_equal(score, pb.decision_function(twin, twice(X)))
        bound = pb.certificate(model, X, y, sample_weight=weight)
        assert bound == pytest.approx(model.record.certificate[-1], rel=1e-9, abs=1e-12)
        wrong = (pb.predict(model, X) != y) @ (np.ones(len(y)) if weight is None else weight)
        total = len(y) if weight is None else weight.sum()
        assert wrong / total <= model.record.certificate[-1] + 1e-12


@builders
def test_the_rule_where_no_row_was_missing(fit):
    """Models of clean rows send missing values to the exit of larger reach."""
    X, y, _ = rows_with_holes(1, share=0.0)
    X = np.nan_to_num(X)
    model = fit(X, y)
    assert set(model.missing) <= {0.0, 1.0}
    if fit not in (FITS["flipped"], FITS["soft"], FITS["soft matryoshka"]):
        reach = pb.inspection.reach(model, X)
        arrives = reach.mean(axis=0) if np.ndim(reach) == 2 else None
        for node in range(model.n_nodes):
            here = arrives[node] if arrives is not None else 1.0
            assert here > 0
    at_root = (X[:, model.feature[0]] > model.threshold[0]).mean()
    assert model.missing[0] == (at_root > 0.5)


ROOTS = {
    "chain": lambda X, y, **o: pb.fit_adaboost(X, y, n_estimators=1, **o),
    "flipped": lambda X, y, **o: pb.fit_adaboost(X, y, n_estimators=1, observation=FLIP, **o),
    "gaussian": lambda X, y, **o: pb.fit_adaboost(
        X, y, n_estimators=1, observation=pb.observation.gaussian(0.0), **o
    ),
    "tree": lambda X, y, **o: pb.fit_boosted_tree(X, y, max_nodes=1, **o),
    "soft": lambda X, y, **o: pb.fit_boosted_tree(X, y, max_nodes=1, observation=FLIP, **o),
    "matryoshka": lambda X, y, **o: pb.fit_matryoshka(X, y, shape=(1,), **o),
}


@pytest.mark.parametrize("fit", list(ROOTS.values()), ids=list(ROOTS))
@pytest.mark.parametrize(("more", "side"), [(0.0, 0), (1e-12, 0), (1e-6, 1)])
def test_exits_that_differ_by_rounding_are_of_equal_reach(fit, more, side):
    """0.1 + 0.2 is more than 0.3 by the last bit."""
    X, y = np.c_[[1.0, 2.0, 3.0]], ["a", "b", "b"]
    model = fit(X, y, sample_weight=[0.3, 0.1, 0.2 + more])
    assert model.missing.tolist() == [side]


@builders
def test_further_fitting_knows_the_sides(fit):
    X, y, weight = rows_with_holes(2)
    full_model = fit(X, y, sample_weight=weight)
    if fit is FITS["adaboost"]:
        part = pb.fit_adaboost(X, y, n_estimators=5, sample_weight=weight)
        more = pb.continue_fit(part, X, y, n_estimators=7, sample_weight=weight)
        assert np.array_equal(more.vote, full_model.vote)
        assert np.array_equal(more.missing, full_model.missing)


def test_columns_made_once_serve_many_fits():
    X, y, _ = rows_with_holes(3)
    model = pb.fit_adaboost(X, y, n_estimators=6)
    for columns in (pb.data.sort_columns(X), pb.data.bin_columns(X)):
        other = pb.fit_adaboost(columns, y, n_estimators=6)
        assert np.array_equal(other.vote, model.vote)
        assert np.array_equal(other.threshold, model.threshold)
        assert np.array_equal(other.missing, model.missing)


def test_missing_everywhere():
    X, y, _ = rows_with_holes(4)
    X[:, 1] = np.nan
    assert (pb.fit_adaboost(X, y, n_estimators=10).feature != 1).all()
    nothing = pb.fit_adaboost(np.full((10, 2), np.nan), [0, 1] * 5, n_estimators=5)
    assert nothing.n_nodes == 0


@pytest.mark.parametrize("n", [1, 3, 40, 5000])
@pytest.mark.parametrize("weak", [pb.weak.affine(), pb.weak.linear(), pb.weak.separator()])
def test_models_without_nodes_take_rows_without_values(weak, n):
    """Whatever memory held before is no decision value."""
    X, y = np.full((60, 3), np.nan), np.arange(60) % 3 == 0
    model = pb.fit_adaboost(X, y, n_estimators=3, weak_learner=weak)
    assert model.n_nodes == 0
    rows = np.full((n, 3), np.nan)
    np.full(n, 7.0)  # what is freed is often what is allocated next
    for item in (pb.decision_function(model, rows), *pb.staged_decision_function(model, rows)):
        np.testing.assert_array_equal(item, np.full(n, model.bias))
    expected = pb.decision_function(model, rows, route="expected")
    np.testing.assert_allclose(expected, np.full(n, model.bias))
    assert not pb.prediction_cost(model, rows).any()
    with pytest.raises(ValueError, match="got inf in column 1, row 0"):
        pb.decision_function(model, np.where(np.arange(3) == 1, np.inf, rows))


def test_holes_can_be_refused():
    X, y, _ = rows_with_holes(5)
    with pytest.raises(ValueError, match="missing"):
        pb.fit_adaboost(X, y, n_estimators=3, weak_learner=pb.weak.stump(missing="error"))


@pytest.mark.parametrize("made", [pb.data.sort_columns, pb.data.bin_columns])
def test_columns_with_holes_and_levels_are_pickled(made):
    X, y, _ = rows_with_holes(6)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["d"] = np.where(y == "a", "red", np.where(X[:, 0] > 0, "blue", "green"))
    columns = made(frame)
    again = pickle.loads(pickle.dumps(columns))
    assert np.array_equal(again.special, [1, 1, 1, 2])
    assert again.table == columns.table
    model, other = (pb.fit_adaboost(part, y, n_estimators=8) for part in (frame, again))
    assert np.array_equal(model.vote, other.vote)
    assert np.array_equal(model.feature, other.feature)
    assert np.array_equal(model.missing, other.missing)
    assert np.array_equal(model.inputs.member, other.inputs.member)
