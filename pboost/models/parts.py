"""Some of the trees of a forest, or of the members of an ensemble of trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.models.trees import TREE_COLUMNS


def some_trees(forest: Any, trees: NDArray[np.intp]) -> dict[str, Any]:
    """Return what of a forest is another where it has only these trees."""
    if not len(trees):
        raise ValueError(f"tree: expected one or more of {len(forest)} trees, got none")
    first, last = forest.root[trees], forest.root[trees + 1]
    nodes = _ranges(first, last)
    columns = {name: getattr(forest, name)[nodes] for name in TREE_COLUMNS}
    return {"root": np.cumsum([0, *(last - first)]), "oob": None, **columns}


def some_members(model: Any, members: NDArray[np.intp]) -> dict[str, Any]:
    """Return what of `SubaggedProbitTrees` is another where they have only these members."""
    if not len(members):
        raise ValueError(f"member: expected one or more of {len(model)} members, got none")
    first, last, each = model.start[members], model.start[members + 1], model.trees_per_round
    rounds, trees = _ranges(first, last), _ranges(first * each, last * each)
    before = np.append(0, model.leaf + 1)[model.trees.root]  # leaves before each tree
    leaves = _ranges(before[trees], before[trees + 1])
    return {
        "trees": replace(model.trees, **some_trees(model.trees, trees)),
        **{name: getattr(model, name)[leaves] for name in ("coefficient", "taken", "risk")},
        "alpha": model.alpha[rounds],
        "start": np.cumsum([0, *(last - first)]),
        **{name: getattr(model, name)[members] for name in ("error", "class_rows")},
        "oob": None,
    }


def _ranges(first: NDArray[Any], last: NDArray[Any]) -> NDArray[np.intp]:
    """Return the numbers of several ranges, one after the other."""
    return np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
