"""Rows are counted by int32 in the kernels: more than it holds are refused wherever rows enter.

Sorted and binned columns of 2**31 rows were taken, and arrays of their nodes reached beyond their
ends. Matrices of that size are given without the memory: all their rows are one.
"""

from functools import partial

import numpy as np
import pytest

import pboost as pb
from pboost.data.read import convert as features
from pboost.values import INT32_MAX, MOST_NODES

TOO_MANY = INT32_MAX + 1
LIMIT = 60

#: Builders that take columns in place of X, and those that do not.
OF_COLUMNS = [
    partial(pb.fit_adaboost, n_estimators=2),
    partial(pb.fit_boosted_tree, max_nodes=2),
    partial(pb.fit_matryoshka, shape=(2, 2)),
    pb.fit_cart,
    partial(pb.fit_random_forest, n_estimators=2),
]
OF_SORTED = [
    partial(pb.fit_real_adaboost, n_estimators=2),
    partial(pb.fit_topdown_tree, max_nodes=2),
    pb.fit_pruned_cart,
    pb.fit_probit_tree,
]
OTHERS = [
    pb.fit_oblique_tree,
    pb.fit_probitboost,
    pb.fit_sbpmt,
    partial(pb.fit_bagging, pb.fit_cart),
    partial(pb.fit_gradient_boosting, loss="probit"),
]


@pytest.fixture
def few_rows(monkeypatch):
    monkeypatch.setattr(features, "INT32_MAX", LIMIT)


def rows(n, d=2):
    return np.broadcast_to(np.zeros((1, d)), (n, d))


def problem(n):
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 2)), np.arange(n) % 2


@pytest.mark.parametrize("fit", OF_COLUMNS + OF_SORTED + OTHERS)
def test_matrices_of_too_many_rows(fit):
    with pytest.raises(ValueError, match=f"X: expected at most {INT32_MAX} rows"):
        fit(rows(TOO_MANY), np.zeros(2))


@pytest.mark.parametrize("make", [pb.data.sort_columns, pb.data.bin_columns])
def test_columns_of_too_many_rows_are_not_made(make):
    with pytest.raises(ValueError, match=f"X: expected at most {INT32_MAX} rows"):
        make(rows(TOO_MANY))


@pytest.mark.parametrize(
    ("make", "fit"),
    [
        *((pb.data.sort_columns, fit) for fit in OF_COLUMNS + OF_SORTED),
        *((pb.data.bin_columns, fit) for fit in OF_COLUMNS),
    ],
)
def test_builders_refuse_columns_of_too_many_rows(make, fit, few_rows, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(features, "INT32_MAX", INT32_MAX)
        X, y = problem(LIMIT + 1)
        columns = make(X)
    with pytest.raises(ValueError, match=f"X: expected at most {LIMIT} rows and columns"):
        fit(columns, y)


def test_as_many_rows_as_are_counted(few_rows):
    X, y = problem(LIMIT)
    for make in (pb.data.sort_columns, pb.data.bin_columns):
        assert pb.fit_boosted_tree(make(X), y, max_nodes=3).n_nodes == 3
        assert pb.fit_cart(make(X), y).n_leaves > 1


def test_predictions_refuse_too_many_rows():
    X, y = problem(LIMIT)
    for model in (
        pb.fit_adaboost(X, y, n_estimators=2),
        pb.fit_cart(X, y),
        pb.fit_probitboost(X, y),
    ):
        with pytest.raises(ValueError, match=f"at most {INT32_MAX} rows"):
            pb.predict(model, rows(TOO_MANY))


def test_leaves_of_a_tree_are_numbered_with_their_parents():
    X, y = problem(LIMIT)
    assert 2 * MOST_NODES + 1 == INT32_MAX
    pb.fit_cart(X, y, max_leaf_nodes=MOST_NODES)
    with pytest.raises(
        ValueError, match=f"max_leaf_nodes: expected an integer from 1 to {MOST_NODES}"
    ):
        pb.fit_cart(X, y, max_leaf_nodes=MOST_NODES + 1)
