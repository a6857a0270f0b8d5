"""Bad input to the builders of trees, ensembles and sums: each says what is wrong, and where."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import pboost as pb

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0], [-0.5, 0.5])]
TWO = Y == "oak"
TREE = partial(pb.fit_cart, max_depth=2)
#: Builders of any number of classes, as functions of X and y.
SEVERAL = {
    "cart": pb.fit_cart,
    "best first": partial(pb.fit_cart, max_leaf_nodes=4),
    "binned": partial(pb.fit_cart, search="binned"),
    "pruned": partial(pb.fit_pruned_cart, cv=3, rng=0),
    "forest": partial(pb.fit_random_forest, n_estimators=3, rng=0),
    "bagging": partial(pb.fit_bagging, TREE, n_estimators=3, rng=0),
    "samme": partial(pb.fit_samme, base_learner=TREE, n_estimators=3),
    "rest": partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3),
}
#: Those of two.
TWO_CLASS = {
    "stagewise": partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=3),
    "real": partial(pb.fit_real_adaboost, n_estimators=3),
    "matryoshka": partial(pb.fit_matryoshka, shape=(2, 2)),
}
#: Those of numbers.
NUMBERS = {
    "cart": partial(pb.fit_cart, task="regression"),
    "binned": partial(pb.fit_cart, task="regression", search="binned"),
    "pruned": partial(pb.fit_pruned_cart, task="regression", cv=3, rng=0),
    "forest": partial(pb.fit_random_forest, task="regression", n_estimators=3, rng=0),
    "bagging": partial(pb.fit_bagging, TREE, task="regression", n_estimators=3, rng=0),
    "stagewise": partial(pb.fit_gradient_boosting, loss="squared_error", n_estimators=3),
}
#: Those that draw columns at each split.
DRAWING = {
    "cart": pb.fit_cart,
    "pruned": partial(pb.fit_pruned_cart, cv=3, rng=0),
    "forest": partial(pb.fit_random_forest, n_estimators=3, rng=0),
    "bagging": partial(pb.fit_bagging, pb.fit_cart, n_estimators=3, rng=0),
}


@pytest.mark.parametrize(
    "fit", [*SEVERAL.values(), *TWO_CLASS.values()], ids=[*SEVERAL, *TWO_CLASS]
)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(TWO, np.nan, 1.0), "y: missing label in row"),
        (np.full(60, np.nan), "y: missing label in row"),
        (np.full(60, "ash"), "y: expected .*two classes, got only"),
        (TWO[:59], "y: expected 60 labels"),
        (np.column_stack([TWO, TWO]), "y: "),
    ],
    ids=["some NaN", "all NaN", "one class", "too few", "two columns"],
)
def test_bad_labels(fit, y, message):
    before = y.copy()
    with pytest.raises(ValueError, match=f"^{message}"):
        fit(X, y)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize("kind", TWO_CLASS)
def test_three_classes_for_a_builder_of_two(kind):
    with pytest.raises(ValueError, match=r"^y: expected two classes( with .*)?, got 3"):
        TWO_CLASS[kind](X, Y)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.where(TWO, np.nan, 1.0), ValueError, "y: expected finite"),
        (np.where(TWO, np.inf, 1.0), ValueError, "y: expected finite"),
        (X[:59, 0], ValueError, "y: expected 60"),
        (Y, TypeError, "y: expected numbers"),
    ],
    ids=["NaN", "infinite", "too few", "words"],
)
def test_bad_numbers(kind, y, error, message):
    with pytest.raises(error, match=f"^{message}"):
        NUMBERS[kind](X, y)


@pytest.mark.parametrize("kind", DRAWING)
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    "wrong", [0, 5, -1, 0.0, 1.5, np.nan, "half"], ids=["0", "d+1", "-1", "0.0", "1.5", "NaN", "?"]
)
def test_columns_per_split_out_of_range(kind, task, wrong):
    y = Y if task == "classification" else X[:, 0]
    with pytest.raises(ValueError, match=r"^max_features: expected"):
        DRAWING[kind](X, y, task=task, max_features=wrong)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    ("ccp_alpha", "error"),
    [
        (-1e-300, ValueError),
        (-np.inf, ValueError),
        (np.nan, ValueError),
        ("0", TypeError),
        (None, TypeError),
    ],
    ids=str,
)
def test_price_of_a_leaf_out_of_range(task, ccp_alpha, error):
    tree = pb.fit_cart(X, Y if task == "classification" else X[:, 0], task=task)
    with pytest.raises(error, match=r"^ccp_alpha: expected"):
        pb.prune(tree, ccp_alpha)
    assert pb.prune(tree, 0.0).n_leaves <= tree.n_leaves


# Classes without rows in a bag

RARE = np.where(np.arange(60) == 7, "yew", np.where(TWO, "oak", "elm"))


@pytest.mark.parametrize("replace", [True, False])
def test_forest_of_bags_without_a_class(replace):
    """A tree knows all classes, also those that are not in its bag."""
    bag = 60 if replace else 30
    forest = pb.fit_random_forest(
        X, RARE, n_estimators=20, rng=0, bootstrap=replace, max_samples=bag
    )
    without = [tree for tree in forest if tree.value[0, 2] == 0.0]
    assert 0 < len(without) < 20
    share = pb.predict_proba(forest, X)
    assert share.shape == (60, 3)
    np.testing.assert_allclose(share.sum(axis=1), 1)
    assert 0 < share[7, 2] < 1
    assert forest.oob.prediction.shape == (60, 3)


@pytest.mark.parametrize(
    "fit", [TREE, partial(pb.fit_random_forest, n_estimators=2)], ids=["cart", "forest"]
)
def test_bagging_of_trees_and_bags_without_a_class(fit):
    bagging = pb.fit_bagging(fit, X, RARE, n_estimators=30, rng=0)
    assert bagging.oob.n_estimators[7] > 0
    assert bagging.classes.tolist() == ["elm", "oak", "yew"]
    assert pb.predict_proba(bagging, X).shape == (60, 3)


def test_bagging_of_weighted_votes():
    fit = partial(pb.fit_samme, base_learner=TREE, n_estimators=2)
    bagging = pb.fit_bagging(fit, X, RARE, n_estimators=30, rng=0)
    assert {len(member.classes) for member in bagging.models} == {2, 3}
    assert bagging.classes.tolist() == ["elm", "oak", "yew"]


def test_bag_of_one_class():
    rare = np.arange(60) == 7
    bagging = pb.fit_bagging(
        partial(pb.fit_adaboost, n_estimators=2), X, rare, n_estimators=20, rng=0
    )
    assert {member.n_nodes > 0 for member in bagging.models} == {False, True}


def test_a_bagged_builder_that_fails_names_the_member():
    with pytest.raises(ValueError, match="n_estimators") as caught:
        pb.fit_bagging(
            partial(pb.fit_adaboost, n_estimators=0), X, np.arange(60) < 30, n_estimators=3, rng=0
        )
    assert "fit_bagging: raised while fitting base learner" in caught.value.__notes__[0]
