"""What holds trees of sums back, seen on models."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from shallow import fit_shallow

import pboost as pb
from pboost.trees import gradient_boosting as stagewise
from pboost.trees.regularization import l2_of


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


def test_exact_trees_have_a_number_of_leaves_too():
    X, y = data()
    model = pb.fit_gradient_boosting(
        X, y, n_estimators=3, max_leaf_nodes=5, max_depth=None, search="exact"
    )
    assert [(tree.n_nodes + 1) // 2 for tree in model.trees] == [5, 5, 5]


def test_branches_have_columns_of_one_group():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 70))
    y = 3 * (X[:, 0] + X[:, 1]) + 2 * (X[:, 2] + X[:, 69]) + X[:, 3] + X[:, 5]
    groups = [[0, 1], *([j] for j in range(4, 69))]  # more than 64, and the rest: 2, 3, 69
    model = pb.fit_gradient_boosting(X, y, interaction_cst=groups, n_estimators=20, max_depth=5)
    actual = set()
    for tree in model.trees:
        used = {0: frozenset()}
        for e in range(tree.n_nodes):
            if tree.feature[e] < 0:
                actual.add(used[e])
            for child in tree.children[e]:
                used[int(child)] = used[e] | {int(tree.feature[e])}
    assert all(any(some <= set(group) for group in [*groups, [2, 3, 69]]) for some in actual)
    assert frozenset([0, 1]) in actual
    assert any(some >= {2, 69} for some in actual)


def test_columns_go_on_being_drawn():
    X, y = data(300)
    options = {"max_features_per_tree": 2, "max_features": 1, "rng": 3}
    full_model = pb.fit_gradient_boosting(X, y, n_estimators=9, **options)
    more = pb.continue_fit(
        pb.fit_gradient_boosting(X, y, n_estimators=4, **options), X, y, n_estimators=5
    )
    assert np.array_equal(more.trees.feature, full_model.trees.feature)
    assert np.array_equal(more.trees.value, full_model.trees.value)
    other = pb.fit_gradient_boosting(X, y, n_estimators=9, **{**options, "rng": 4})
    assert not np.array_equal(other.trees.feature, full_model.trees.feature)
    for tree in pb.fit_gradient_boosting(
        X, y, n_estimators=9, max_features_per_tree=1, max_depth=5, rng=1
    ).trees:
        assert len(set(tree.feature[tree.feature >= 0].tolist())) == 1


def test_least_weight_and_gain_are_those_of_the_derivatives():
    X, y = data(400)
    for model in fit_shallow(X, y, n_estimators=1, max_depth=None, min_child_weight=20.0).trees:
        assert np.bincount(pb.inspection.apply(model, X)).min() == 20  # 1 for each row
    # One split of two halves of residuals -1 and +1 brings 400 at once, by Newton's model.
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
    options = {"task": "regression", "n_estimators": 1, "l2_regularization": 0.0}
    actual = [
        fit_shallow(X, y, min_split_gain=gain, **options).trees.n_nodes for gain in (399.9, 400.1)
    ]
    assert actual == [3, 1]


def held(y, **options):
    """Return what holds the trees of a fit back, of 60 rows."""
    X, actual = np.random.default_rng(3).normal(size=(len(y), 3)), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stagewise, "l2_of", lambda *of: actual.append(l2_of(*of)) or actual[0])
        settings = pb.fit_gradient_boosting(X, y, n_estimators=1, **options).settings
    assert settings["min_child_weight"] == 0.0
    assert settings["l2_regularization"] == "auto"
    return actual[0]


@pytest.mark.parametrize(("first", "second"), [(1000.0, None), (None, 1e-3), (3.0, 5e5)])
@pytest.mark.parametrize("loss", ["log_loss", "softmax"])
def test_a_longer_fit_is_held_back_by_rows_of_its_own_weights(first, second, loss):
    """What `l2_regularization="auto"` was at the weights of the first fit was kept as a number."""
    X, y = data(200)
    y = y > 0
    fit = partial(pb.fit_gradient_boosting, X, y, loss=loss, max_depth=4, learning_rate=1.0)
    single, other = (None if of is None else np.full(200, of) for of in (first, second))
    longer = pb.continue_fit(
        fit(n_estimators=3, sample_weight=single), X, y, n_estimators=3, sample_weight=other
    )
    at_once = fit(n_estimators=6)
    assert longer.settings["l2_regularization"] == "auto"
    assert np.array_equal(longer.trees.value, at_once.trees.value)


def test_trees_of_two_labels_are_held_back_by_two_rows():
    X, y = data(60)
    for name in ("log_loss", "exponential", "probit", "squared_error"):
        expected = (
            1.0 if name == "squared_error" else 2.0
        )  # its curvature is 1, theirs 1/4 and more
        assert held(y > 0, loss=name, task="classification") == expected
    others = [{"loss": "hinge"}, {"loss": Own()}, {"search": "exact"}]
    assert [held(y > 0, **options) for options in others] == [0.0] * 3
    assert held(y) == 1.0
    assert held(np.abs(y), loss="poisson") == held(y, loss="absolute_error") == 0.0
    assert held(np.arange(60) % 3, loss="softmax") == 1.0
    free = {"loss": "log_loss", "n_estimators": 20, "max_depth": 6}
    models = [
        fit_shallow(X, y > 0, **free, **some)
        for some in (
            {"l2_regularization": 0.0},
            {"l2_regularization": 1.0},
            {"l2_regularization": 2.0},
        )
    ]
    assert len({model.training_loss[-1] for model in models}) == 3
    same = fit_shallow(X, y > 0, **free)
    assert np.array_equal(same.trees.value, models[-1].trees.value)


class Own(pb.losses.Logistic):
    """A loss of a user."""


@pytest.mark.parametrize("unit", [1.0, 2.0**-700, 1e-290, 3.7, 1e290])
def test_the_weight_of_a_row_is_that_of_a_copy(unit):
    y = np.arange(60) % 2
    rng = np.random.default_rng(1)
    for weight, expected in (
        (np.ones(60), 1.0),
        (rng.integers(0, 5, 60), 1.0),
        (np.where(y, 6.0, 4.0), 2.0),  # in no unit are these copies of fewer rows
        (np.where(y, 1.0, 3.0), 1.0),
        (np.where(y, 1.0, 2**0.5), (1 + 2**0.5) / 2),
        (np.where(np.arange(60) == 3, 1e-9, 1.0), 59 / 60),  # no unit of the others
    ):
        assert held(y, sample_weight=weight * unit) == pytest.approx(2 * expected * unit, rel=1e-6)
