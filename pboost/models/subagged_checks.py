"""Checks of the model of subagged boosted probit trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.data.array_checks import (
    check_dimensions,
    check_labels,
    check_not_negative,
    check_offsets,
    check_settings,
    check_shape,
    check_sum,
)
from pboost.models.committee import REST_OR_CLASS
from pboost.models.out_of_bag import check_out_of_bag
from pboost.models.probit_trees import check_equations
from pboost.models.tree_nodes import LEAF

VOTES = ("majority", "average")


def check_subagged(model: Any) -> None:
    """Check shapes and ranges of a `SubaggedProbitTrees`, whose trees have checked themselves."""
    trees, j = model.trees, len(model.labels)
    if trees.labels is None:
        raise ValueError("labels: expected those of classes")
    check_labels(model.labels)
    check_dimensions(model, {"coefficient": 3, "start": 1, "error": 2})
    expected = REST_OR_CLASS if model.is_tree_per_class else model.labels
    if not np.array_equal(trees.labels, expected):
        raise ValueError(f"labels: expected those of the trees, got {model.labels.tolist()}")
    n_members, n_rounds = len(model.start) - 1, len(trees) // model.trees_per_round
    if len(trees) != n_rounds * model.trees_per_round:
        raise ValueError(f"root: expected a tree for each of {j} classes in every round")
    k = 1 if j == 2 or model.is_tree_per_class else j
    check_equations(model, int(np.count_nonzero(trees.feature == LEAF)), k)
    check_shape(model, {"alpha": (n_rounds,), "class_rows": (n_members, j)})
    check_offsets("start", model.start, n_rounds)
    if not (np.isfinite(model.alpha).all() and (model.alpha > 0).all()):
        raise ValueError("alpha: expected finite numbers > 0")
    check_sum("alpha", model.alpha)
    check_not_negative(model, "class_rows")
    if not (trees.weight[trees.root[:-1]] > 0).all():
        raise ValueError("weight: expected those of the roots to be above 0")
    rounds = np.isfinite(model.error).sum(axis=1)
    if model.error.shape[:1] != (n_members,) or (rounds < np.diff(model.start)).any():
        raise ValueError("error: expected one for each round")
    if (model.error < 0).any() or np.isinf(model.error).any():
        raise ValueError("error: expected numbers >= 0, or NaN")
    check_settings(model.settings)
    if model.oob is not None:
        check_out_of_bag(model.oob, model.labels)
    if model.vote not in VOTES:
        raise ValueError(f"vote: expected one of {VOTES}, got {model.vote!r}")
