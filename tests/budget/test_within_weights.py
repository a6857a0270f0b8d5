"""Weights and soft labels of `fit_within_budget`: what is promised of them, to the last bit."""

import numpy as np
import pytest

import pboost as pb
from pboost.budget.candidates import FAMILIES, Fits
from pboost.budget.model_choice import by_weight, read_data
from pboost.data.feature_costs import CostOptions, read_feature_costs
from pboost.data.read.check_xy import as_features
from pboost.models.early_exit_model import EarlyExitModel
from pboost.values.options import checked

RNG = np.random.default_rng(2)
N = 90
X = RNG.normal(size=(N, 3))
SCORE = X[:, 0] + X[:, 1] + 0.6 * RNG.normal(size=N)
Y = {"two": SCORE > 0, "many": np.digitize(SCORE, [-0.7, 0.7]), "regression": SCORE}
TIMES = RNG.integers(0, 4, size=N)


def fit(task, X=X, y=None, **options):
    arguments = {} if "y_proba" in options else {"y": Y[task] if y is None else y}
    return pb.fit_within_budget(
        X, **arguments, mean_comparisons=4, cv=2, rng=0, n_threads=1, **options
    )


def assert_same(one, other):
    """Agree in every array, and in what was tried."""
    assert one.settings["tried"] == other.settings["tried"]
    assert type(one) is type(other)
    if isinstance(one, EarlyExitModel):
        for name in ("threshold", "slope", "curve", "leaving"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
        one, other = one.model, other.model
    (_, arrays), (_, others) = one.parts(), other.parts()
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], name)


@pytest.mark.parametrize("task", ["two", "regression"])
def test_equal_weights_are_none_and_zero_is_no_row(task):
    assert_same(fit(task), fit(task, sample_weight=np.full(N, 0.3)))
    kept = TIMES > 0
    assert_same(fit(task, sample_weight=kept * 2.0), fit(task, X[kept], Y[task][kept]))


@pytest.mark.full
@pytest.mark.parametrize("task", ["many"])
def test_the_unit_of_weights_does_not_count(task):
    model = fit(task, sample_weight=TIMES)
    assert_same(model, fit(task, sample_weight=TIMES / 1024))
    again = [fit(task), model]
    assert not np.array_equal(*(pb.decision_function(item, X) for item in again))


@pytest.mark.full
@pytest.mark.parametrize("task", ["two", "many"])
def test_sure_probabilities_are_labels(task):
    known = np.unique(Y[task])
    hard = (Y[task][:, None] == known).astype(float)
    assert_same(fit(task), fit(task, y_proba=hard, classes=known))
    weighed = fit(task, sample_weight=TIMES)
    assert_same(weighed, fit(task, y_proba=hard, classes=known, sample_weight=TIMES))
    soft = fit(task, y_proba=0.4 * hard + 0.6 / len(known), classes=known)
    assert soft.classes.tolist() == known.tolist()
    minimum = 0.6 * (1 - 1 / len(known))  # that of who knows the likeliest
    assert abs(min(soft.settings["tried"].values()) - minimum) < 0.25


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - {"distilled mixture"}))
def test_every_family_knows_weights(name):
    family = FAMILIES[name]
    task = family.tasks[0]
    y = Y[task] if task == "regression" else Y[task].astype(int)
    features = as_features(X)
    priced = {"feature_costs": [1.0, 2.0, 3.0]} if family.unit == "mean_feature_cost" else {}
    feature_costs = read_feature_costs(checked(CostOptions, priced), None, 3)
    weight = np.where(TIMES > 0, TIMES, 0.5)

    def score(weight):
        fits = Fits(
            features,
            y,
            task,
            2.0,
            9000,
            np.random.default_rng,
            1,
            feature_costs,
            priced,
            weight=weight,
        )
        return pb.decision_function(fits.of(name), X)

    assert not np.array_equal(score(None), score(weight))
    if name in ("chain", "tree", "distilled sum of trees"):
        np.testing.assert_array_equal(score(weight), score(4 * weight))


def test_heavy_rows_are_those_that_count():
    """Labels are opposite in one half of the rows, which weighs a hundredth."""
    y = np.where(np.arange(N) < N // 2, X[:, 0] > 0, X[:, 0] <= 0)
    weight = np.where(np.arange(N) < N // 2, 1.0, 0.01)
    for w, expected in ((weight, X[:, 0] > 0), (weight[::-1], X[:, 0] <= 0)):
        model = fit("two", y=y, sample_weight=w)
        assert np.mean(pb.predict(model, X) == expected) > 0.9
        assert min(model.settings["tried"].values()) < 0.1
    plain = fit("two", y=y)
    assert min(plain.settings["tried"].values()) > 0.3


def test_rows_are_taken_as_often_as_they_weigh():
    """Integer weights whose mean is one are copies; others are nearly so often."""
    assert by_weight(None, 4).tolist() == [0, 1, 2, 3]
    assert by_weight(np.array([2.0, 0.0, 1.0, 0.0, 2.0, 1.0, 1.0]), 7).tolist() == (
        [0, 0, 2, 4, 4, 5, 6]
    )
    weight = RNG.exponential(size=20_000)
    share = 20_000 * weight / weight.sum()
    rows = by_weight(weight, 20_000)
    times = np.bincount(rows, minlength=20_000)
    assert (np.abs(times - share) < 2).all()
    assert (np.diff(rows) >= 0).all()
    heavy = weight > 2
    assert times[heavy].mean() == pytest.approx(share[heavy].mean(), rel=0.01)
    assert by_weight(np.full(50_000, 0.1), 50_000).tolist() == list(range(50_000))


def test_labels_are_true_as_often_as_is_probable():
    share = np.tile([0.25, 0.75], (80, 1))
    data, kept = read_data(None, share, None, np.repeat([1.0, 3.0], 40), 80, None)
    assert kept is None
    rows, label = data.compared(np.arange(80))
    assert abs(np.bincount(label) - [20, 60]).max() <= 2
    assert np.bincount(rows // 40).tolist() == [20, 60]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sample_weight": np.ones(3)}, "sample_weight: expected shape"),
        ({"sample_weight": np.zeros(N)}, "at least one weight > 0"),
        ({"sample_weight": -np.ones(N)}, "finite numbers >= 0"),
        (
            {"y_proba": np.full((N, 2), 0.5), "y": Y["two"]},
            "expected only one of these arguments, got both",
        ),
        ({"y_proba": np.full((N, 2), 0.4)}, "y_proba"),
        ({"y_proba": np.full((3, 2), 0.5)}, "y_proba: expected 90 rows"),
        ({"y_proba": np.full((N, 2), 0.5), "task": "regression"}, "expected None for regression"),
        ({"y_proba": np.eye(2)[np.zeros(N, int)]}, "y_proba: expected"),
        ({"y": Y["two"], "classes": [0, 1]}, "classes: expected None without y_proba"),
    ],
)
def test_bad_weights_and_probabilities(options, said):
    with pytest.raises(ValueError, match=said):
        pb.fit_within_budget(
            X, mean_comparisons=5, **({} if "y_proba" in options else {"y": Y["two"]}) | options
        )
