"""Options whose refusal did not say which of them was meant, or was a KeyError or OverflowError."""

from dataclasses import replace

import numpy as np
import pytest

import pboost as pb


@pytest.mark.parametrize("wrong", [np.array([1, 2]), 1, None, "yes"])
def test_stratify_is_named(wrong):
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8) % 2
    with pytest.raises(TypeError, match=r"^stratify: expected True or False"):
        pb.fit_sbpmt(X, y, members=1, min_leaf=1, stratify=wrong)


@pytest.mark.parametrize("settings", [{}, {"criterion": "x"}, {"criterion": 1}])
def test_a_tree_of_unknown_criterion(settings):
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8) % 2
    tree = replace(pb.fit_cart(X, y), settings=settings)
    with pytest.raises(ValueError, match=r"^tree\.settings\['criterion'\]: expected one of"):
        pb.prune_path(tree, X, y)
    assert pb.prune_path(tree, X, y, criterion="gini").n_leaves[-1] == 1


@pytest.mark.parametrize("wrong", [np.array("x"), np.array(3)])
def test_a_shape_without_length(wrong):
    with pytest.raises(ValueError, match=r"^shape: expected the sizes of at least one level"):
        pb.fit_matryoshka([[0.0], [1.0]], [0, 1], shape=wrong)


@pytest.mark.parametrize("wrong", [10**400, -(10**400)])
def test_an_integer_beyond_all_floats(wrong):
    with pytest.raises(ValueError, match=r"^smoothing: expected a number in \[0"):
        pb.fit_adaboost([[0.0], [1.0]], [0, 1], rounds=1, smoothing=wrong)


@pytest.mark.parametrize("fit", [pb.fit_adaboost, pb.fit_probitboost])
def test_weights_that_are_no_array(fit):
    more = {"rounds": 1} if fit is pb.fit_adaboost else {}
    with pytest.raises(ValueError, match=r"^sample_weight: expected an array of numbers"):
        fit([[0.0], [1.0]], [0, 1], sample_weight=[[1.0], 2.0], **more)
