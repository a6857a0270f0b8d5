"""`cost_complexity_pruning_path` where there is no price.

Of a tree whose settings name no criterion, as in a file, it was a KeyError; where weights times
impurities are no numbers a warning and infinite prices.
"""

from dataclasses import replace

import numpy as np
import pytest

import pboost as pb


@pytest.mark.parametrize("settings", [{}, {"criterion": "x"}])
def test_a_tree_of_unknown_criterion(settings):
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8) % 2
    tree = replace(pb.fit_cart(X, y), settings=settings)
    with pytest.raises(ValueError, match=r"criterion.*: expected"):
        pb.models.cost_complexity_pruning_path(tree, X, y)
    assert pb.models.cost_complexity_pruning_path(tree, X, y, criterion="gini").n_leaves[-1] == 1


@pytest.mark.parametrize("weight", [1e61, 1e100])
def test_risks_beyond_the_largest_number(weight):
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8) * 1e140
    weights = np.full(8, weight)
    tree = pb.fit_cart(X, y, task="regression", sample_weight=weights)
    with pytest.raises(ValueError, match=r"^tree: expected finite products of weight and impurity"):
        pb.models.cost_complexity_pruning_path(tree)
    with pytest.raises(ValueError, match=r"^tree: expected finite products of weight and impurity"):
        pb.models.cost_complexity_pruning_path(tree, X, y, sample_weight=weights)
