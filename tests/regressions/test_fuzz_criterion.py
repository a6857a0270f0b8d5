"""`prune_path` of a tree whose settings name no criterion, as in a file, was a KeyError."""

from dataclasses import replace

import numpy as np
import pytest

import pboost as pb


@pytest.mark.parametrize("settings", [{}, {"criterion": "x"}, {"criterion": 1}])
def test_a_tree_of_unknown_criterion(settings):
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8) % 2
    tree = replace(pb.fit_cart(X, y), settings=settings)
    with pytest.raises(ValueError, match=r"^tree\.settings\['criterion'\]: expected one of"):
        pb.prune_path(tree, X, y)
    assert pb.prune_path(tree, X, y, criterion="gini").n_leaves[-1] == 1
