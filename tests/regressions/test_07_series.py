"""A pandas Series was read by position: its names were ignored, and another row explained.

A Series is one row, and its index the names of the columns, wherever rows are predicted from.
"""

import numpy as np
import pytest

import pboost as pb

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["length", "width", "weight"])
Y = X["width"].to_numpy() > 0.3 * X["length"].to_numpy()
FITS = {
    "tree": lambda X: pb.fit_boosted_tree(X, Y, max_nodes=5),
    "affine": lambda X: pb.fit_adaboost(X, Y, n_estimators=3, weak_learner=pb.weak.affine(seed=0)),
    "real": lambda X: pb.fit_real_adaboost(X, Y, n_estimators=3, weak_learner=pb.weak.feature()),
    "cart": lambda X: pb.fit_cart(X, Y),
    "forest": lambda X: pb.fit_random_forest(X, Y, n_estimators=3, rng=0),
    "stagewise": lambda X: pb.fit_gradient_boosting(X, Y, loss="log_loss", n_estimators=3),
    "probit": lambda X: pb.fit_probitboost(X, Y, max_iter=3),
    "probit tree": lambda X: pb.fit_probit_tree(X, Y, max_depth=1, max_iter=3),
    "sbpmt": lambda X: pb.fit_sbpmt(X, Y, n_estimators=2, n_boosting_rounds=2, max_iter=3, rng=0),
    "rest": lambda X: pb.fit_one_vs_rest(pb.fit_adaboost, X, Y, n_estimators=3),
    "samme": lambda X: pb.fit_samme(X, Y, base_learner=pb.fit_cart, n_estimators=2),
    "bagging": lambda X: pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=3, rng=0),
}
same = np.testing.assert_array_equal
FUNCTIONS = (pb.predict, pb.predict_proba, pb.decision_function, pb.prediction_cost)
kinds = pytest.mark.parametrize("kind", FITS)


@kinds
def test_a_series_is_one_row(kind):
    model = FITS[kind](X)
    for row in range(6):
        given = X.iloc[row]
        for function in FUNCTIONS:
            expected = function(model, X.iloc[[row]])
            assert len(expected) == 1
            same(function(model, given), expected)
            same(function(model, given.iloc[::-1]), expected)


@kinds
def test_names_that_are_not_those_of_training(kind):
    model = FITS[kind](X)
    for wrong in (X.iloc[0].rename({"width": "height"}), X.iloc[0, :2], X["width"]):
        with pytest.raises(ValueError, match=r"X: expected the features of the.*missing"):
            pb.predict(model, wrong)


def test_a_model_without_names_takes_the_values_in_order():
    model = FITS["tree"](X.to_numpy())
    same(pb.predict(model, X.iloc[3]), pb.predict(model, X.to_numpy()[[3]]))
    with pytest.raises(
        ValueError, match=r"expected 3 (columns|features), got 60; a Series is one row"
    ):
        pb.predict(model, X["width"])


def test_explain():
    model = FITS["tree"](X)
    for row in range(10):
        expected = pb.explain(model, X.iloc[[row]])
        assert pb.explain(model, X.iloc[row, ::-1]) == expected
        assert pb.explain(model, X.iloc[row].to_numpy()) == expected
        assert expected.label == pb.predict(model, X.iloc[row])[0]
    with pytest.raises(ValueError, match="missing: length"):
        pb.explain(model, X.iloc[0, 1:])


def test_stages_and_other_functions():
    model = FITS["tree"](X)
    first, reversed_ = X.iloc[[4]], X.iloc[4, ::-1]
    for function in (pb.staged_predict, pb.staged_predict_proba, pb.staged_decision_function):
        for left, right in zip(function(model, reversed_), function(model, first), strict=True):
            same(left, right)
    assert pb.certificate(model, reversed_, Y[[4]]) == pb.certificate(model, first, Y[[4]])
    same(
        pb.inspection.margins(model, reversed_, Y[[4]]), pb.inspection.margins(model, first, Y[[4]])
    )


def test_standard_errors_go_with_the_names():
    model = pb.fit_adaboost(
        X, Y, n_estimators=3, observation=pb.observation.gaussian([0.1, 0.2, 0.3])
    )
    sigma = [0.5, 0.6, 0.7]
    expected = pb.decision_function(model, X.iloc[[2]], "expected", sigma=sigma)
    scores = pb.decision_function(model, X.iloc[2, ::-1], "expected", sigma=sigma[::-1])
    same(scores, expected)


def test_a_row_of_mixed_numbers():
    mixed = X.assign(width=np.arange(60), length=np.arange(60) % 2 == 0)
    model = pb.fit_boosted_tree(mixed, Y, max_nodes=4)
    row = mixed.iloc[5]
    assert row.dtype == object
    same(pb.predict(model, row), pb.predict(model, mixed.iloc[[5]]))


def test_rows_of_functions():
    def train(rows, labels, weight, rng):
        return lambda rows, rng: np.where(rows["width"] > 0, 1, -1)

    model = pb.fit_adaboost(X, Y, n_estimators=1, weak_learner=pb.weak.oracle(train))
    for row in range(4):
        same(pb.predict(model, X.iloc[row]), pb.predict(model, X.iloc[[row]]))
        assert pb.explain(model, X.iloc[row]).label == pb.predict(model, X.iloc[row])[0]


def test_rows_that_are_single_values_stay_many():
    words = pd.Series(["ash", "oak"] * 10)

    def train(rows, labels, weight, rng):
        return lambda rows, rng: np.array([1 if word == "oak" else -1 for word in rows])

    model = pb.fit_adaboost(
        words, words == "oak", n_estimators=1, weak_learner=pb.weak.oracle(train)
    )
    assert (pb.predict(model, words) == (words == "oak").to_numpy()).all()


def test_a_series_without_names_is_refused():
    polars = pytest.importorskip("polars")
    model = FITS["tree"](X)
    for function in (pb.predict, pb.predict_proba, pb.decision_function, pb.explain):
        for nameless in (polars.Series([1.0, 2.0, 3.0]), pd.Index([1.0, 2.0, 3.0])):
            with pytest.raises(TypeError, match=r"X: .*without names"):
                function(model, nameless)


def test_a_list_of_series_is_refused():
    model, rows = FITS["tree"](X), [X.iloc[0], X.iloc[1]]
    for function in (pb.predict, pb.decision_function):
        for given in (rows, tuple(rows)):
            with pytest.raises(TypeError, match=r"X: .*of Series, whose names would be ignored"):
                function(model, given)
    same(pb.predict(model, pd.DataFrame(rows)), pb.predict(model, X.iloc[:2]))


def test_builders_take_no_series():
    for fit in (FITS["tree"], FITS["cart"], pb.data.sort_columns):
        with pytest.raises(
            TypeError, match=r"X: .*got a Series; pass a single column as X.to_frame\(\)"
        ):
            fit(X["width"])
