"""One rule says whether targets are classes or a regression, wherever both can be fitted."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from partitioned import bin_parts, fit_parted
from target_cases import ASKS, CLASSES, REGRESSION, TARGETS, N, X, task_of

import pboost as pb
from pboost.data.targets import CLASSIFICATION, joined, targets_of, task_of_options
from pboost.losses import LOSSES, Squared

#: Whatever fits both, and a builder of it for which options decide.
BUILDERS = {
    "cart": partial(pb.fit_cart, max_depth=2),
    "pruned": partial(pb.fit_pruned_cart, max_depth=2, cv=2, rng=0),
    "forest": partial(pb.fit_random_forest, n_estimators=2, max_depth=2, rng=0),
    "stagewise": partial(pb.fit_gradient_boosting, n_estimators=1, max_depth=1),
    "bagging": partial(pb.fit_bagging, partial(pb.fit_cart, max_depth=2), n_estimators=2, rng=0),
    "cross_validate": partial(pb.cross_validate, partial(pb.fit_cart, max_depth=2), cv=2, rng=0),
}
#: Builders that have no regression.
CLASSIFIERS = {
    "adaboost": partial(pb.fit_adaboost, n_estimators=1),
    "adaboost_real": partial(pb.fit_real_adaboost, n_estimators=1),
    "boosted_tree": partial(pb.fit_boosted_tree, max_nodes=1),
    "topdown": partial(pb.fit_topdown_tree, max_nodes=1),
    "oblique": partial(pb.fit_oblique_tree, max_nodes=1),
    "matryoshka": partial(pb.fit_matryoshka, shape=(1, 2)),
    "matryoshka of many": partial(pb.fit_matryoshka, shape=(1, 2), join="all"),
    "one_vs_rest": partial(pb.fit_one_vs_rest, pb.fit_cart),
    "samme": partial(pb.fit_samme, n_estimators=1),
    "probitboost": partial(pb.fit_probitboost, max_iter=1),
    "probit_tree": partial(pb.fit_probit_tree, max_depth=1),
    "sbpmt": partial(pb.fit_sbpmt, n_estimators=1, rng=0),
}


def parts(y):
    """Return partitions: the first has whole numbers only, of few values, the second is empty."""
    cuts = [0, 10, 10, 40, N]
    return [y[start:stop] for start, stop in pairwise(cuts)]


@pytest.mark.parametrize("name", TARGETS)
def test_the_rule(name):
    y, expected = TARGETS[name]
    for item in (targets_of(y), joined(map(targets_of, parts(y))), targets_of(y.tolist())):
        assert (item.task or ASKS) == expected


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("builder", BUILDERS)
def test_builders_follow_it(builder, name):
    y, expected = TARGETS[name]
    fit = BUILDERS[builder]
    if expected == ASKS:
        with pytest.raises(ValueError, match=r'^y: got .* pass task="classification" or task="re'):
            fit(X, y)
        for task in (CLASSES, REGRESSION):
            assert task_of(fit(X, y, task=task)) == task
    else:
        assert task_of(fit(X, y)) == expected


@pytest.mark.parametrize("name", ["text", "20 integers", "21 integers", "two fractions"])
def test_a_budget_follows_it(name):
    y, expected = TARGETS[name]
    fit = partial(pb.fit_within_budget, X[:, :1], y, mean_comparisons=1, cv=2, rng=0)
    if expected == ASKS:
        with pytest.raises(ValueError, match="pass task="):
            fit()
    else:
        assert task_of(fit()) == expected


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("builder", ["cart", "forest", "stagewise"])
def test_partitions_follow_it(builder, name):
    y, expected = TARGETS[name]
    fit = {
        "cart": partial(fit_parted, "fit_cart", max_depth=2),
        "forest": partial(fit_parted, "fit_random_forest", n_estimators=2, max_depth=2, rng=0),
        "stagewise": partial(fit_parted, "fit_gradient_boosting", n_estimators=1, max_depth=1),
    }[builder]
    columns = bin_parts(parts(X))
    if expected == ASKS:
        with pytest.raises(ValueError, match="pass task="):
            fit(columns, parts(y))
        assert task_of(fit(columns, parts(y), task=REGRESSION)) == REGRESSION
    else:
        assert task_of(fit(columns, parts(y))) == expected


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_builders_without_a_regression_refuse_one(name):
    for y in (TARGETS["floats"][0], TARGETS["one fraction"][0]):
        with pytest.raises(
            ValueError, match=r"y: .* non-integer numbers; for regression, use .*task="
        ):
            CLASSIFIERS[name](X, y)
    many = TARGETS["21 integers"][0]
    if name in ("samme", "one_vs_rest", "probit_tree", "topdown"):  # whole numbers are classes
        assert len(CLASSIFIERS[name](X, many).classes) == 21


def test_a_loss_or_a_criterion_decides_first():
    few, many, floats = (TARGETS[name][0] for name in ("20 integers", "21 integers", "floats"))
    forest = partial(pb.fit_random_forest, n_estimators=2, max_depth=2, rng=0)
    trees = partial(pb.fit_gradient_boosting, n_estimators=1, max_depth=1)
    for y in (few, many):
        for fit in (partial(pb.fit_cart, max_depth=2), forest):
            assert task_of(fit(X, y, criterion="squared_error")) == REGRESSION
            assert task_of(fit(X, y, criterion="gini")) == CLASSES
        assert task_of(trees(X, y, loss="softmax")) == CLASSES
        for loss in ("squared_error", "absolute_error", "poisson", Squared()):
            assert task_of(trees(X, y, loss=loss)) == REGRESSION
            own = partial(trees, loss=loss)
            assert task_of(pb.fit_bagging(own, X, y, n_estimators=2, rng=0)) == REGRESSION
            assert task_of(pb.fit_bagging(trees, X, y, n_estimators=2, loss=loss)) == REGRESSION
            assert pb.cross_validate(own, X, y, cv=2, rng=0).task == REGRESSION
    assert pb.cross_validate(partial(forest, task=REGRESSION), X, many, cv=2).task == REGRESSION
    with pytest.raises(
        ValueError, match="y: expected class labels, got 66 distinct non-integer numbers"
    ):
        pb.fit_cart(X, floats, criterion="gini")
    with pytest.raises(ValueError, match="criterion: expected one of 'squared_error'"):
        pb.fit_cart(X, few, task=REGRESSION, criterion="gini")


def test_losses_decide_the_task_by_their_names():
    for name, loss in LOSSES.items():
        task = REGRESSION if loss.is_regression else CLASSIFICATION
        assert task_of_options({"loss": name}) == task_of_options({"loss": loss}) == task


def test_a_builder_without_a_regression_decides_first():
    many = TARGETS["21 integers"][0]
    samme = partial(pb.fit_samme, n_estimators=1)
    with pytest.warns(UserWarning, match="fewer than the 4 folds"):
        assert pb.cross_validate(samme, X, many, cv=4, rng=0).task == CLASSES
    assert len(pb.fit_bagging(samme, X, many, n_estimators=1, rng=0).classes) == 21
    rest = partial(pb.fit_one_vs_rest, partial(pb.fit_cart, max_depth=1))
    assert len(pb.fit_bagging(rest, X, many, n_estimators=1, rng=0).classes) == 21
    assert len(pb.fit_samme(X, many, base_learner=pb.fit_cart, n_estimators=1).classes) == 21
    forest = partial(pb.fit_random_forest, n_estimators=2, max_depth=2, rng=0)
    assert len(pb.calibrate(forest, X, many, cv=2, rng=0).classes) == 21


def test_probabilities_of_classes_are_a_classification():
    share = np.linspace(0, 1, N)
    for name in ("cart", "forest", "stagewise", "bagging"):
        assert task_of(BUILDERS[name](X, y_proba=share)) == CLASSES
    own = partial(pb.fit_gradient_boosting, n_estimators=1, loss="squared_error")
    assert task_of(own(X, y_proba=share)) == CLASSES


def test_missing_and_infinite_targets_are_refused_as_what_they_are():
    for value in (np.nan, np.inf):
        y = TARGETS["floats"][0].copy()
        y[3] = value
        with pytest.raises(ValueError, match=f"y: expected finite numbers .* got {value} in row 3"):
            pb.fit_cart(X, y)
        y = TARGETS["two floats"][0].copy()
        y[3] = value
        with pytest.raises(
            ValueError, match=r"y: (missing label|expected class labels, .*) in row 3"
        ):
            pb.fit_cart(X, y)
