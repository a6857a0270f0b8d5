"""Boosted trees of exact answers on columns with holes and categories."""

from dataclasses import replace

import numpy as np
import pytest
from special_problems import asked_of, draw, problem

import pboost as pb
from pboost._core.voting import VoteRule
from pboost.data.node_inputs.inputs import Subsets
from pboost.growth.graph_growth import TreeLimits
from pboost.growth.impurity_search import ImpurityTree, by_impurity
from pboost.growth.tree import BoostedArrays, CartLimits, grow_tree
from pboost.threads import Workers
from pboost.trees.cart import fit_tree

CRITERIA = ("kearns_mansour", "gini", "entropy", "error")
RULE = VoteRule("domain", 0.001, 1.0)


def drawn(seed, search, **options):
    rng = np.random.default_rng(seed)
    X, y, weight, levels = draw(rng, 2, **options)
    if not X.shape[1]:
        X, levels = np.zeros((len(y), 1)), {}
    max_bins = None if search == "exact" else 256
    if weight is not None and len(np.unique(y[weight > 0])) < 2:
        weight = None
    return problem(X, y, weight, levels, 2, max_bins)


def grow(of, learner, depth, nodes=10**6, given=None, growth="breadth_first"):
    data = learner.arrange(replace(of, label=of.label.astype(np.uint8)), 1)
    limits = TreeLimits(nodes, depth, growth, -1.0)
    with Workers(1) as workers:
        if isinstance(getattr(learner, "impurity", None), type(None)):
            arrays = BoostedArrays(
                data, learner, RULE, limits, 0 if given is None else given.n_nodes
            )
            if given is not None:
                arrays.replay(given)
            reason = grow_tree(arrays, workers, None)
            return arrays.model({}, reason)
        own = ImpurityTree(data, learner, RULE, limits)
        return own.model({}, own.grow(None))


def asked(graph, node=0):
    """Return what a node asks, and its children: nested tuples."""
    if node < 0:
        return None
    column, members = int(graph.feature[node]), None
    if isinstance(graph.inputs, Subsets) and column >= graph.n_features:
        members = frozenset(np.flatnonzero(graph.inputs.bits()[column - graph.n_features]).tolist())
        column = int(graph.inputs.column[column - graph.n_features])
    below = tuple(asked(graph, int(next_)) for next_ in graph.next[node])
    return column, float(graph.threshold[node]), int(graph.missing[node]), members, below


def asked_in_tree(tree, node=0):
    column, threshold, missing, members, _ = asked_of(tree)[node]
    if column < 0:
        return None
    below = tuple(asked_in_tree(tree, int(child)) for child in tree.children[node])
    return column, threshold, missing, members, below


def cart(of, criterion, depth, smoothing=0.0, min_samples_leaf=1):
    limits = CartLimits(
        criterion,
        depth,
        2**20,
        min_samples_leaf,
        2,
        of.n_features,
        "depth_first",
        categorical_smoothing=smoothing,
    )
    return fit_tree(of, of.weights, limits, {}, 0, 1)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_nodes_are_those_of_a_classification_tree(criterion, search, smoothing):
    for case in range(25):
        of = drawn([93, case], search)
        min_samples_leaf = case % 3 + 1
        learner = pb.weak.stump(
            criterion, search, min_samples_leaf=min_samples_leaf, categorical_smoothing=smoothing
        )
        graph = grow(of, learner, depth=3)
        tree = cart(of, criterion, 3, smoothing, min_samples_leaf)
        expected = asked_in_tree(tree)
        assert (asked(graph) if graph.n_nodes else None) == expected, case


@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_impurities_of_the_user(search, smoothing):
    for case in range(40):
        of = drawn([94, case], search)
        learner = pb.weak.stump(
            "gini", search, min_samples_leaf=case % 3 + 1, categorical_smoothing=smoothing
        )
        graph = grow(of, learner, 3)
        own = grow(of, by_impurity(learner, lambda z: 4 * z * (1 - z)), 3)
        assert (own.n_nodes, graph.n_nodes) == (0, 0) or asked(own) == asked(graph), case
        np.testing.assert_allclose(own.record.certificate, graph.record.certificate, rtol=1e-9)


@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize(
    "growth", ["largest_bound", "look_ahead", "largest_error", "breadth_first"]
)
def test_growth_goes_on(search, growth):
    """A tree that was cut and goes on is the tree that was not."""
    for case in range(25):
        of = drawn([95, case], search)
        learner = pb.weak.stump("gini", search)
        full = grow(of, learner, 8, nodes=12, growth=growth)
        if full.n_nodes < 4:
            continue
        again = grow(of, learner, 8, nodes=12, given=pb.models.truncate(full, 3), growth=growth)
        for name in ("threshold", "next", "vote", "missing"):
            assert getattr(again, name).tobytes() == getattr(full, name).tobytes(), (case, name)
        assert asked(again) == asked(full)
        np.testing.assert_allclose(again.record.certificate, full.record.certificate, rtol=1e-12)
