"""A sum of trees and a forest in one sum of trees: first the one, then the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pboost.models.forest import Forest, join_trees
from pboost.models.tree_record import LEAF
from pboost.models.tree_sum import StagewiseModel
from pboost.values import FloatArray

#: Log odds by which a forest counts that is certain; those of its shares are cut off there.
CERTAIN = 4.0


def with_forest(chain: StagewiseModel, forest: Forest, share: float) -> StagewiseModel:
    """Return ``1 - share`` times a sum of trees plus `share` times a forest, tree by tree.

    Of labels a forest adds in proportion to the shares of its leaves. Losses in training are not
    known after the trees of the forest: they are given as infinite.
    """
    first = _scaled(chain.trees, (1 - share) * chain.trees.value)
    last = _scaled(forest, share / len(forest) * _scores(forest, chain))
    trees = join_trees([*first, *last], chain.trees.settings, None)
    rounds = len(trees) // chain.n_trees
    loss = np.full(rounds + 1, np.inf)
    bias = (1 - share) * np.asarray(chain.bias)
    return replace(
        chain,
        trees=trees,
        bias=bias if bias.ndim else float(bias),
        training_loss=loss,
        settings={**chain.settings, "forest": len(forest), "share": share},
        validation_loss=None,
        stop_reason="all trees are there",
    )


def _scores(forest: Forest, chain: StagewiseModel) -> FloatArray:
    """Return what the leaves of a forest say in units of the decision values of a sum."""
    value = forest.value
    if chain.labels is not None:
        scale = CERTAIN if value.shape[1] == 2 else 2 * CERTAIN
        value = scale * (value - value.mean(axis=1, keepdims=True))
        if chain.n_votes == 1:
            value = 2 * value[:, 1]
    is_leaf = forest.feature == LEAF
    return np.where(is_leaf if value.ndim == 1 else is_leaf[:, None], value, 0.0)


def _scaled(trees: Forest, value: Any) -> Forest:
    """Return trees as regression trees with these values."""
    return replace(trees, value=value, labels=None, oob=None)
