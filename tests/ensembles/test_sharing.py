"""What builders declare of how they read X: those that call them share sorted or binned columns."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pboost as pb
from pboost.data.training_data import column_search, reads_columns

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X[:, 0] + X[:, 1] > 0


def seen_by(fit, call):
    """Return the types of X that a builder is given, by a stand-in that declares what it does."""
    types = []

    def spy(X, y, *, sample_weight=None, **options):
        types.append(type(X))
        return fit(X, y, sample_weight=sample_weight, **options)

    call(reads_columns(lambda options: column_search(fit, options))(spy))
    return set(types)


COLUMNS = pb.data.SortedColumns
SHARING = [
    (pb.fit_adaboost, {"learning_rate": 0.5}),
    (pb.fit_boosted_tree, {"max_nodes": 2}),
    (pb.fit_matryoshka, {"shape": (2, 2)}),
    (pb.fit_cart, {"max_depth": 2}),
    (pb.fit_pruned_cart, {"cv": 2}),
]


@pytest.mark.parametrize(
    ("fit", "options"), SHARING, ids=lambda case: getattr(case, "__name__", "")
)
def test_columns_are_shared_by_bags_and_by_classes(fit, options):
    bagged = seen_by(fit, lambda spy: pb.fit_bagging(spy, X, Y, n_estimators=3, rng=0, **options))
    assert bagged == {COLUMNS}
    classes = seen_by(fit, lambda spy: pb.fit_one_vs_rest(spy, X, np.arange(40) % 3, **options))
    assert classes == {COLUMNS}


def test_options_that_a_partial_holds_change_nothing():
    def bag(spy):
        few = functools.partial(spy, n_estimators=2)
        assert pb.fit_bagging(few, X, Y, n_estimators=3, rng=0).settings["n_estimators"] == 3

    assert seen_by(pb.fit_adaboost, bag) == {COLUMNS}


def test_learners_that_make_columns_of_their_own_share_none():
    for weak in (pb.weak.affine(), pb.weak.separator(2), pb.weak.linear()):
        assert column_search(pb.fit_adaboost, {"weak_learner": weak}) is None
    assert column_search(pb.fit_probitboost, {}) is None
    assert column_search(len, {}) is None


def test_binned_columns_are_for_those_that_take_them():
    def bag(spy):
        pb.fit_bagging(spy, X, Y, n_estimators=2, rng=0, search="binned")

    assert seen_by(pb.fit_cart, bag) == {pb.data.BinnedColumns}
    assert seen_by(pb.fit_pruned_cart, bag) == {np.ndarray}


def test_wrappers_declare_nothing_by_what_they_wrap():
    """They may look at X themselves, and functools.wraps copies attributes."""

    @functools.wraps(pb.fit_cart)
    def wrapper(X, y, **options):
        return pb.fit_cart(np.round(X, 1), y, **options)

    assert column_search(wrapper, {}) is None
    assert len(pb.fit_bagging(wrapper, X, Y, n_estimators=2, rng=0)) == 2


def test_pruned_trees_of_shared_columns_are_those_of_the_matrix():
    shared = pb.fit_bagging(pb.fit_pruned_cart, X, Y, n_estimators=4, cv=3, rng=1)
    alone = pb.fit_bagging(functools.partial(pb.fit_pruned_cart), X, Y, n_estimators=4, cv=3, rng=1)
    for item, other in zip(shared.models, alone.models, strict=True):
        np.testing.assert_array_equal(item.threshold, other.threshold)
        np.testing.assert_array_equal(item.value, other.value)


BINNED = {"max_depth": 3, "search": "binned", "max_bins": 8}
CLASSES = np.digitize(X[:, 0], [-0.4, 0.4])


@pytest.mark.parametrize("weight", [None, np.linspace(1, 3, 40)])
@pytest.mark.parametrize(
    ("fit", "options"),
    [
        (pb.fit_cart, BINNED),
        (
            pb.fit_boosted_tree,
            {"max_nodes": 4, "weak_learner": pb.weak.stump(search="binned", max_bins=8)},
        ),
        (
            pb.fit_adaboost,
            {"n_estimators": 4, "weak_learner": pb.weak.stump(search="binned", max_bins=8)},
        ),
    ],
    ids=["cart", "tree", "adaboost"],
)
def test_classes_share_bins_and_get_their_models(fit, options, weight):
    arguments = {**options, "sample_weight": weight}
    assert seen_by(fit, lambda spy: pb.fit_one_vs_rest(spy, X, CLASSES, **arguments)) == {
        pb.data.BinnedColumns
    }
    model = pb.fit_one_vs_rest(fit, X, CLASSES, **arguments)
    for k, member in enumerate(model.models):
        alone = fit(X, k == CLASSES, **arguments).without_temperature()
        actual, expected = (pb.predict_proba(m, X) for m in (member, alone))
        assert actual.tobytes() == expected.tobytes()


def test_rounds_of_samme_have_bins_of_their_weights():
    def fit(spy):
        pb.fit_samme(X, CLASSES, base_learner=functools.partial(spy, **BINNED), n_estimators=3)

    assert seen_by(pb.fit_cart, fit) == {np.ndarray}


@pytest.mark.parametrize(
    "options",
    [{"sample_weight": np.arange(40) % 3 > 0}, {"validation": 0.3}],
    ids=["rows left out", "rows held out"],
)
def test_where_rows_are_left_out_each_class_has_its_own_bins(options):
    arguments = {"n_estimators": 3, "weak_learner": pb.weak.stump(search="binned"), **options}
    seen = seen_by(pb.fit_adaboost, lambda s: pb.fit_one_vs_rest(s, X, CLASSES, **arguments))
    assert seen == {np.ndarray}
