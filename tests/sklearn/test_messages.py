"""What estimators say of arguments, of text in arrays and of one sample, and how they are shown."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb

pytest.importorskip("sklearn")

from sklearn.base import clone

from pboost import sklearn as estimators

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def told(call, *arguments, **given):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(*arguments, **given)
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["GradientBoostingClassifier", "GradientBoostingRegressor", "AdaBoostClassifier"]
)
def test_arguments_of_fit_that_are_parameters(name):
    model = getattr(estimators, name)()
    end = f"; pass parameters to {name}(...)"
    if name == "AdaBoostClassifier":
        assert told(model.fit, X, Y, eval_set=[(X, Y)]) == (
            f"eval_set: {name}.fit has no such argument: use `validation`, a pair (X, y) or a "
            f"fraction of the rows{end}"
        )
    assert told(model.fit, X, Y, validation=(X, Y)) == (
        f"validation: {name}.fit has no such argument: `validation`{end}"
    )
    assert told(model.fit, X, Y, early_stopping_rounds=3).startswith(
        f"early_stopping_rounds: {name}.fit has no such argument: use `n_iter_no_change`, requires "
        "`validation`;"
    )
    assert told(model.fit, X, Y, cat_features=[0]).endswith(end)
    assert "unexpected keyword argument 'nonsense'" in told(model.fit, X, Y, nonsense=1)
    assert "required positional argument" in told(model.fit)


def test_wrong_names_and_text_in_arrays():
    kind = estimators.GradientBoostingClassifier
    assert told(kind, rng=0) == told(kind, rng=1) == "rng: use `random_state`"
    assert told(kind, num_threads=2) == "num_threads: use `n_jobs`"
    expected = "RandomForestClassifier has no such option; only gradient boosting has it"
    assert told(estimators.RandomForestClassifier, quality=3) == f"quality: {expected}"
    assert "pass the features first" in told(kind().fit, Y, X)
    text = X.astype(object)
    text[:, 1] = "north"
    for table in (text, text.tolist()):
        message = "X: column 1 is not numeric; pass categorical_features=[1] to Gradient"
        assert told(kind().fit, table, Y).startswith(message)
    assert told(kind(n_estimators=1).fit(X, Y).predict, text).startswith("X: column 1 is not num")
    assert kind(n_estimators=1, categorical_features=[1]).fit(text, Y).predict(text).shape == (60,)


def test_budgets_and_errors_from_within():
    model = estimators.BudgetClassifier()
    assert told(model.fit, X, Y, categorical_feature=[0]).startswith(
        "categorical_feature: BudgetClassifier.fit has no such argument: use `categorical_features`"
    )
    failing = estimators.GradientBoostingClassifier(validation=3.5)
    assert told(failing.fit, X, Y).startswith("validation: expected a number")


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        (
            "balanced_subsample",
            "got 'balanced_subsample'; class weights cannot depend on the bootstrap sample",
        ),
        ("balance", "got 'balance'"),
        (3, "got 3"),
        ([1, 2], "got [1, 2]"),
    ],
    ids=str,
)
@pytest.mark.parametrize("soft", [False, True])
def test_class_weights(class_weight, message, soft):
    proba = {"y": None, "y_proba": np.column_stack([1.0 - Y, Y])} if soft else {"y": Y}
    for name in ("RandomForestClassifier", "GradientBoostingClassifier"):
        model = getattr(estimators, name)(class_weight=class_weight)
        said = told(model.fit, X, **proba)
        assert said == "class_weight: expected 'balanced' or a dict of weights by class, " + message


@pytest.mark.parametrize("weight", [-1.0, np.nan, "a"])
def test_weights_of_classes_are_numbers(weight):
    model = estimators.GradientBoostingClassifier(class_weight={0: 1.0, 1: weight})
    assert told(model.fit, X, Y).startswith("class_weight[1]: expected")


def frame():
    pd = pytest.importorskip("pandas")
    colour = np.array(["red", "blue", "green"])[RNG.integers(0, 3, 60)]
    return pd.DataFrame({"age": X[:, 0], "colour": colour, "size": X[:, 1]})


@pytest.mark.parametrize("kind", ["object", "list", "tuple"])
@pytest.mark.parametrize(
    "name", ["GradientBoostingClassifier", "CartClassifier", "RandomForestClassifier"]
)
def test_text_in_arrays_for_models_of_frames(name, kind):
    """scikit-learn would say that it cannot make a number of 'red'."""
    table = frame()
    given = table.to_numpy()
    given = {"list": given.tolist(), "tuple": tuple(map(tuple, given.tolist()))}.get(kind, given)
    model = getattr(estimators, name)().fit(table, Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        predicted = model.predict(given)
    np.testing.assert_array_equal(predicted, model.predict(table))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_text_in_another_column_is_told_by_its_name():
    table = frame()
    model = estimators.GradientBoostingClassifier(n_estimators=2).fit(table, Y)
    turned = table.to_numpy()[:, [1, 0, 2]]
    assert "column 'age'" in told(model.predict, turned)
    numbers = X.astype(object)
    assert told(model.predict, numbers).startswith(
        "X: column 'colour': expected text as in training"
    )
    of_numbers = estimators.GradientBoostingClassifier(n_estimators=2).fit(
        table[["age", "size"]], Y
    )
    assert "column 'size'" in told(of_numbers.predict, table[["age", "colour"]].to_numpy())
    assert told(pb.predict, model.model_, X).startswith("X: column 'colour': expected text")


ONE = np.array([[1.0, 2.0]])


@pytest.mark.parametrize(
    "model",
    [
        estimators.CartRegressor(pruned=True),
        estimators.GradientBoostingRegressor(validation=0.2),
        estimators.BudgetRegressor(),
    ],
    ids=str,
)
def test_one_sample(model):
    """The words that scikit-learn looks for in `check_fit2d_1sample`."""
    said = told(model.fit, ONE, [1.5])
    assert "one sample" in said
    assert "class" not in said


def test_one_row_of_positive_weight():
    fits = (
        (pb.fit_pruned_cart, {"task": "regression"}),
        (pb.fit_gradient_boosting, {"loss": "squared_error", "validation": 0.3}),
    )
    for fit, options in fits:
        said = told(fit, X, X[:, 0], sample_weight=np.eye(60)[7], rng=0, **options)
        assert "two rows of positive weight" in said


def test_estimators_with_data_are_shown_in_short():
    pd = pytest.importorskip("pandas")
    wide = pd.DataFrame(RNG.normal(size=(500, 30)))
    target = np.arange(500.0)
    for valid, shown in (
        ((wide, target), "(<DataFrame of shape (500, 30)>, <ndarray of shape (500,)>)"),
        ((wide.to_numpy(), list(target)), "(<ndarray of shape (500, 30)>, <list of 500 items>)"),
        (0.25, "0.25"),
    ):
        model = estimators.GradientBoostingRegressor(validation=valid, n_estimators=7)
        assert len(repr(model)) <= 200
        assert repr(model) == str(model)
        assert repr(model).replace("\n", " ").split() == (
            f"GradientBoostingRegressor(n_estimators=7, validation={shown})".split()
        )
        assert model.get_params()["validation"] is valid
        assert clone(model).get_params()["n_estimators"] == 7
