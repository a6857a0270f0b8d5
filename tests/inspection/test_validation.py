"""Cross-validation: every row tested once, by a model that has not seen it."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

import pboost as pb

STUMPS = partial(pb.fit_adaboost, n_estimators=5)


def problem(n=90, d=3, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, "sick", "healthy")
    X = rng.normal(size=(n, d)) + (y == "sick")[:, None]
    return X, y


class Recorder:
    """A fit that keeps what it was given."""

    def __init__(self, fit=STUMPS):
        self.fit = fit
        self.calls = []

    def __call__(self, X, y, **options):
        model = self.fit(X, y, **options)
        self.calls.append((X, y, options, model))
        return model


def test_each_row_is_tested_once_by_a_model_that_has_not_seen_it():
    X, y = problem()
    X[:, 0] = np.arange(len(X))
    fit = Recorder()
    result = pb.cross_validate(fit, X, y, cv=7, rng=1)
    assert result.test_fold.shape == (len(X),)
    assert result.test_fold.dtype == np.int32
    assert set(result.test_fold) == set(range(7))
    for fold, (rows, labels, options, _) in enumerate(fit.calls):
        expected = np.flatnonzero(result.test_fold != fold)
        np.testing.assert_array_equal(rows[:, 0], expected)
        np.testing.assert_array_equal(labels, y[expected])
        assert options == {}


def test_numbers_equal_those_computed_by_hand():
    X, y = problem()
    fit = Recorder()
    result = pb.cross_validate(fit, X, y, cv=4, rng=1)
    for fold, (_, _, _, model) in enumerate(fit.calls):
        test = result.test_fold == fold
        assert result.error[fold] == np.mean(pb.predict(model, X[test]) != y[test])
        assert result.cost[fold] == pb.prediction_cost(model, X[test]).mean()
        assert result.certificate[fold] == pb.certificate(model)
        assert result.n_nodes[fold] == model.n_nodes
    assert 0 < result.error.mean() < 0.5
    assert (result.fit_seconds > 0).all()
    assert (result.predict_seconds > 0).all()


def test_cost_of_trees_is_the_depth_that_rows_reach():
    X, y = problem()
    fit = partial(pb.fit_boosted_tree, max_nodes=7)
    result = pb.cross_validate(fit, X, y, cv=3, rng=0)
    assert (result.cost < 7).all()
    assert (result.cost >= 1).all()
    np.testing.assert_array_equal(result.n_nodes, 7)


@pytest.mark.parametrize("n", [20, 31, 90])
@pytest.mark.parametrize("folds", [2, 3, 4])
def test_folds_are_stratified(n, folds):
    X, y = problem(n, seed=n)
    result = pb.cross_validate(STUMPS, X, y, cv=folds, rng=3)
    for rows in (np.ones(n, bool), y == "sick", y == "healthy"):
        sizes = np.bincount(result.test_fold[rows], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


def test_weighted_error_and_cost():
    X, y = problem()
    weight = np.random.default_rng(0).random(len(y)) * 5e307
    fit = Recorder(partial(pb.fit_boosted_tree, max_nodes=5))
    result = pb.cross_validate(fit, X, y, cv=4, rng=1, sample_weight=weight)
    for fold, (_, _, options, model) in enumerate(fit.calls):
        test = result.test_fold == fold
        np.testing.assert_array_equal(options["sample_weight"], weight[~test])
        wrong = pb.predict(model, X[test]) != y[test]
        expected = np.sum(wrong * (weight[test] / 5e307)) / np.sum(weight[test] / 5e307)
        assert result.error[fold] == pytest.approx(expected, rel=1e-12)
        cost = np.sum(pb.prediction_cost(model, X[test]) * (weight[test] / 5e307))
        expected = cost / np.sum(weight[test] / 5e307)
        assert result.cost[fold] == pytest.approx(expected, rel=1e-12)
        assert result.cost[fold] != pb.prediction_cost(model, X[test]).mean()
    plain = pb.cross_validate(STUMPS, X, y, cv=4, rng=1)
    np.testing.assert_array_equal(plain.test_fold, result.test_fold)
    assert (plain.error != result.error).any()


def test_rows_of_weight_zero_do_not_count():
    X, y = problem(60)
    weight = np.ones(60)
    sick = np.flatnonzero(y == "sick")
    weight[sick[4:]] = 0
    result = pb.cross_validate(STUMPS, X, y, cv=4, rng=0, sample_weight=weight)
    assert sorted(result.test_fold[sick[:4]]) == [0, 1, 2, 3]
    assert np.isfinite(result.error).all()
    with pytest.warns(UserWarning, match="class 'sick' has 4 rows of positive weight, fewer than"):
        pb.cross_validate(STUMPS, X, y, cv=5, rng=0, sample_weight=weight)


def test_seed_decides_the_folds():
    X, y = problem()
    folds = [
        pb.cross_validate(STUMPS, X, y, cv=3, rng=rng).test_fold
        for rng in (5, 5, np.random.default_rng(5), 6, None, None)
    ]
    np.testing.assert_array_equal(folds[0], folds[1])
    np.testing.assert_array_equal(folds[0], folds[2])
    assert (folds[0] != folds[3]).any()
    assert (folds[4] != folds[5]).any()


def test_data_frames_reach_fit_as_data_frames():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pytest.importorskip("narwhals")
    X, y = problem()
    plain = pb.cross_validate(STUMPS, X, y, cv=3, rng=0)
    names = ["a", "b", "c"]
    # An index that is not 0, 1, 2 ...: rows are taken by position.
    shuffled = pandas.DataFrame(X, columns=names, index=np.arange(len(y))[::-1] % 7)
    for frame, labels in [
        (shuffled, pandas.Series(y, index=shuffled.index)),
        (polars.DataFrame(X, schema=names), polars.Series(y)),
        (X.tolist(), list(y)),
        (pb.data.sort_columns(X), y),
        (pb.data.sort_columns(shuffled), y),
    ]:
        fit = Recorder()
        result = pb.cross_validate(fit, frame, labels, cv=3, rng=0)
        np.testing.assert_array_equal(result.test_fold, plain.test_fold)
        np.testing.assert_array_equal(result.error, plain.error)
        np.testing.assert_array_equal(result.certificate, plain.certificate)
        if isinstance(frame, list):
            continue
        assert type(fit.calls[0][0]) is type(frame)


def test_inputs_may_be_read_only_and_stay_as_they_are():
    X, y = problem()
    weight = np.ones(len(y))
    for array in (X, y, weight):
        array.flags.writeable = False
    before = X.tobytes(), y.tobytes(), weight.tobytes()
    pb.cross_validate(STUMPS, X, y, cv=3, rng=0, sample_weight=weight)
    assert before == (X.tobytes(), y.tobytes(), weight.tobytes())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"cv": 1}, ValueError, "cv: .*got 1"),
        ({"cv": 0}, ValueError, "cv: .*got 0"),
        ({"cv": 2.0}, TypeError, r"cv: .*got 2\.0"),
        ({"cv": True}, TypeError, "cv: .*got True"),
        ({"cv": 16}, ValueError, "cv: expected at most 15 folds, .* most frequent class, got 16"),
        ({"rng": "x"}, TypeError, "rng: .*got str"),
        ({"rng": np.random}, TypeError, "rng: .*RandomState, got module"),
        ({"y": ["a"] * 20}, ValueError, "y: .*two"),
        ({"y": [0, 1] * 9}, ValueError, "y: .*20"),
        ({"X": np.zeros(20)}, ValueError, "X: .*two dimensions"),
        ({"sample_weight": np.ones(19)}, ValueError, "sample_weight: "),
        ({"sample_weight": -np.ones(20)}, ValueError, "sample_weight: "),
        ({"sample_weight": np.zeros(20)}, ValueError, "sample_weight: "),
    ],
    ids=str,
)
def test_bad_input(change, error, message):
    X = np.arange(40.0).reshape(20, 2)
    y = np.array(["sick"] * 5 + ["healthy"] * 15)
    arguments = {"X": X, "y": y, "cv": 3, **change}
    with pytest.raises(error, match=message):
        pb.cross_validate(STUMPS, arguments.pop("X"), arguments.pop("y"), **arguments)


def test_binned_columns_are_refused():
    X, y = problem()
    with pytest.raises(TypeError, match=r"X: expected values .*, got BinnedColumns without values"):
        pb.cross_validate(STUMPS, pb.data.bin_columns(X), y)


def test_callback_sees_each_fold_and_can_stop():
    X, y = problem()
    seen = []
    full = pb.cross_validate(
        STUMPS, X, y, cv=4, rng=0, callback=lambda fold, error: seen.append((fold, error))
    )
    assert seen == list(enumerate(full.error, 1))
    part = pb.cross_validate(STUMPS, X, y, cv=4, rng=0, callback=lambda fold, error: fold == 2)
    np.testing.assert_array_equal(part.error, full.error[:2])
    np.testing.assert_array_equal(part.test_fold, full.test_fold)


def test_errors_of_fit_pass_through():
    X, y = problem()
    X[17, 1] = np.inf
    with pytest.raises(ValueError, match="X: "):
        pb.cross_validate(STUMPS, X, y, cv=3, rng=0)


def test_result_is_frozen_readable_and_pickles():
    X, y = problem()
    result = pb.cross_validate(STUMPS, X, y, cv=4, rng=0)
    with pytest.raises(AttributeError):
        result.error = 0
    with pytest.raises(ValueError, match="read-only"):
        result.error[0] = 0
    text = str(result)
    assert text == result.summary()
    assert "4-fold" in text
    assert f"{result.error.mean():.2%}" in text
    assert f"{np.std(result.error, ddof=1):.2%}" in text
    assert f"{result.certificate.mean():.4g}" in text
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == text
    np.testing.assert_array_equal(again.test_fold, result.test_fold)


@pytest.mark.parametrize("weighted", [False, True])
def test_regression(weighted):
    X, _ = problem()
    y = X[:, 0] + 3 * X[:, 1] ** 2
    weight = np.random.default_rng(0).integers(0, 3, len(y)) * 1.0 if weighted else None
    fit = Recorder(partial(pb.fit_cart, task="regression", max_depth=3))
    result = pb.cross_validate(fit, X, y, task="regression", cv=4, rng=1, sample_weight=weight)
    assert np.bincount(result.test_fold).max() - np.bincount(result.test_fold).min() <= 1
    for fold, (_, _, _, model) in enumerate(fit.calls):
        test = result.test_fold == fold
        square = (pb.predict(model, X[test]) - y[test]) ** 2
        expected = np.average(square, weights=None if weight is None else weight[test])
        np.testing.assert_allclose(result.error[fold], expected)
    assert f"mean squared error   {result.error.mean():.4g} ± {result.error_sd:.4g}" in str(result)
    assert "test error" not in str(result)
    assert pickle.loads(pickle.dumps(result)).task == "regression"


def test_regression_bad_input():
    X, _ = problem()
    fit = partial(pb.fit_cart, task="regression")
    few = (np.arange(90) < 3) * 1.0
    with pytest.raises(ValueError, match="y: expected finite"):
        pb.cross_validate(fit, X, np.full(90, np.nan), task="regression")
    with pytest.raises(TypeError, match="y: expected numbers"):
        pb.cross_validate(fit, X, ["a"] * 90, task="regression")
    with pytest.raises(ValueError, match="cv: expected at most 3"):
        pb.cross_validate(fit, X, X[:, 0], task="regression", cv=4, sample_weight=few)
    with pytest.raises(ValueError, match="task: expected"):
        pb.cross_validate(fit, X, X[:, 0], task="ranking")
