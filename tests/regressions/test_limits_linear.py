"""Linear weak classifiers of very many columns are refused with a sentence.

They asked for matrices of columns by columns: 75 GB each at 100,000 columns.
"""

import numpy as np
import pytest

import pboost as pb
from pboost.weak import directions


def problem(d, varying):
    X = np.zeros((8, d), dtype=np.float32)
    X[:, :varying] = np.random.default_rng(0).normal(size=(8, varying))
    return X, np.arange(8) % 2


def test_directions_of_too_many_columns():
    X, y = problem(20_000, 20_000)
    with pytest.raises(
        ValueError,
        match=(
            r"weak_learner: expected at most 8192 columns that vary, got 20000: .* would take "
            r"26 GB; use weak.linear\(dense_gain=None\)"
        ),
    ):
        pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=pb.weak.linear())


def test_what_to_use_instead():
    X, y = problem(9000, 9000)
    assert (
        pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=pb.weak.linear(dense_gain=None)).n_nodes
        == 1
    )


def test_columns_that_do_not_vary_cost_nothing():
    X, y = problem(20_000, 5)
    assert pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=pb.weak.linear()).n_nodes == 1


def test_the_largest_number_of_columns_is_taken(monkeypatch):
    X, y = problem(9, 9)
    monkeypatch.setattr(directions, "MOST_COLUMNS", 9)
    assert pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=pb.weak.linear()).n_nodes == 1
    monkeypatch.setattr(directions, "MOST_COLUMNS", 8)
    with pytest.raises(ValueError, match="at most 8 columns"):
        pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=pb.weak.linear())
