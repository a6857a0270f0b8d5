"""Smoothed votes of a single tree, so that small leaves are not overconfident."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pboost.data.read.convert import Features
from pboost.models.evaluate.graph_walk import hard_exits, passages
from pboost.models.graph import DecisionGraph
from pboost.values import Array, FloatArray

#: Each leaf has this many additional rows, with the mean weight and the class shares of all rows.
PRIOR_ROWS = 4.0


def smoothed(tree: DecisionGraph, X: Features, mass: FloatArray) -> DecisionGraph:
    """Return a tree with an m-estimate of the class shares in each leaf, and in inner nodes.

    `mass` (n, J) contains the weight of each training row in its class.
    """
    if not tree.n_nodes:
        return tree
    at_exit = _masses(tree, X, mass)
    total = mass.sum(axis=0)
    share = at_exit + PRIOR_ROWS * total / len(mass)
    score = np.log(share / share.sum(axis=2, keepdims=True))
    score -= score.mean(axis=2, keepdims=True)  # softmax of the scores, as in a graph
    parent, side = _edges_to_nodes(tree)
    vote = score.copy()
    vote[1:] -= score[parent, side][:, None]
    certificate = _certificates(at_exit, score, (parent, side)) / (total.sum() * len(total))
    return replace(
        tree,
        vote=vote[..., 1] if tree.n_votes == 1 else vote,
        record=replace(tree.record, certificate=certificate),
        settings={**tree.settings, "prior_rows": PRIOR_ROWS},
    )


def _masses(tree: DecisionGraph, X: Features, mass: FloatArray) -> FloatArray:
    """Return the sums of the class masses at the exits of each node, (n_nodes, 2, J)."""
    n, take = hard_exits(tree, X)
    sums = [
        [mass[arrived][above == side].sum(axis=0) for side in (False, True)]
        for arrived, above in passages(tree, n, take)
    ]
    return np.array(sums)


def _edges_to_nodes(tree: DecisionGraph) -> tuple[Array, Array]:
    """Return the node and the exit that lead to nodes 1, 2, ..."""
    parent, side = np.nonzero(tree.next > 0)
    order = np.argsort(tree.next[parent, side])
    return parent[order], side[order]


def _certificates(mass: FloatArray, score: FloatArray, edges: tuple[Array, Array]) -> FloatArray:
    """Return the certificate before the first node and after each node, times all masses."""
    other = mass.sum(axis=2, keepdims=True) - mass
    bound = (mass * np.exp(-score) + other * np.exp(score)).sum(axis=2)
    before = np.concatenate([[mass[0].sum() * mass.shape[2]], bound[edges]])
    certificates: FloatArray = np.cumsum([before[0], *(bound.sum(axis=1) - before)])
    return certificates
