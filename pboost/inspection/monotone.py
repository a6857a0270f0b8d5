"""Proof that the predictions of trees are monotone in a feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.table import column_label, positions
from pboost.models.base import Model, check_model
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.random_forest import RandomForest
from pboost.models.single_tree import Tree
from pboost.models.tree_ensemble import LEAF
from pboost.values import FloatArray, shown

#: The largest value that a feature can have.
MOST = float(np.finfo(np.float64).max)


def is_monotone(model: Model, feature: str | int, direction: int | None = None) -> bool:
    """Return whether every tree of a model is monotone in a feature.

    Parameters
    ----------
    model : GradientBoostingModel, or Tree or RandomForest for regression
        A fitted model.
    feature : str or int
        Name or index of a numerical feature.
    direction : {None, 1, -1}
        1 checks for nondecreasing values, -1 for nonincreasing values, None for either.

    Returns
    -------
    bool
        True proves that the model is monotone: for any two rows with values that differ only in
        this feature, decision values (or regression predictions) are in order, including rounding
        errors. False means that a tree is not monotone; the sum of the trees may still be monotone.

    Raises
    ------
    ValueError, TypeError, NotImplementedError
        If the feature does not exist or is categorical, or the model is of another kind.

    Notes
    -----
    Two rows that differ in a single feature can only be separated by a split on this feature. A
    tree is therefore monotone if and only if, at each such split, no leaf of the lower branch has a
    larger value than a leaf of the upper branch, for all leaves that two such rows can reach.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = X[:, 0] + np.sin(3 * X[:, 1])
    >>> model = pb.fit_gradient_boosting(X, y, monotonic_cst={0: 1})
    >>> pb.inspection.is_monotone(model, 0, 1), pb.inspection.is_monotone(model, 1)
    (True, False)
    """
    check_model(model)
    trees = model.trees if isinstance(model, GradientBoostingModel) else model
    if (
        not isinstance(trees, Tree | RandomForest)
        or trees.classes is not None
        or trees.value.ndim > 1
    ):
        raise NotImplementedError(
            "model: expected a gradient boosting model with one output per tree, or a Tree or "
            f"RandomForest for regression, got {shown(model)}"
        )
    (j,) = positions("feature", [feature], trees.feature_names, trees.n_features)
    if trees.table is not None and trees.table.values_of(j) is not None:
        raise ValueError(
            "feature: expected a numerical feature, got "
            f"{column_label(trees.feature_names, j)}, which is categorical"
        )
    if direction not in (None, 1, -1):
        raise ValueError(f"direction: expected None, 1 or -1, got {shown(direction)}")
    ways = (1, -1) if direction is None else (direction,)
    every = [trees] if isinstance(trees, Tree) else list(trees)
    parts = [_Leaves(tree, j) for tree in every if (tree.column == j).any()]
    return any(all(leaves.are_ordered(way) for leaves in parts) for way in ways)


class _Leaves:
    """The leaves of a tree and the ranges of feature values of the rows that reach each leaf."""

    def __init__(self, tree: Tree, j: int) -> None:
        self.tree, self.j = tree, j
        column = tree.column
        self.columns = np.unique(column[column != LEAF])
        n, k = tree.n_nodes, len(self.columns)
        self.low, self.high = np.full((n, k), -np.inf), np.full((n, k), MOST)
        self.levels = np.full((n, k, 4), ~np.uint64(0))
        self.holes = np.full((n, k), tree.missing is not None)
        self.size = np.ones(n, dtype=int)
        inner = np.flatnonzero(tree.feature != LEAF)
        for e in inner:
            self._part(int(e), int(np.searchsorted(self.columns, column[e])))
        for e in inner[::-1]:
            self.size[e] += self.size[tree.children[e]].sum()
        at = np.searchsorted(self.columns, j)
        has_value = self.low[:, at] < self.high[:, at]
        self.reached = (tree.feature == LEAF) & has_value
        self.others = np.arange(k) != at
        # A split on missingness does not separate values.
        self.cuts = [e for e in inner if column[e] == j and not tree.asks_whether_missing(int(e))]

    def _part(self, e: int, k: int) -> None:
        """Restrict the values of rows that reach the children of a split on feature number k."""
        tree, feature = self.tree, int(self.tree.feature[e])
        for side, child in enumerate(tree.children[e]):
            for part in (self.low, self.high, self.levels, self.holes):
                part[child] = part[e]
            if feature >= tree.n_features and tree.subset is not None:
                members = tree.subset[feature - tree.n_features]
                self.levels[child, k] &= members if side else ~members
            elif side:
                self.low[child, k] = max(self.low[child, k], tree.threshold[e])
            else:
                self.high[child, k] = min(self.high[child, k], tree.threshold[e])
            if tree.missing is not None:
                self.holes[child, k] &= tree.missing[e] == side

    def are_ordered(self, way: int) -> bool:
        """Return whether leaf values increase (1) or decrease (-1) with the feature."""
        value: FloatArray = way * self.tree.value
        for e in self.cuts:
            first, second = self.tree.children[e]
            below = first + np.flatnonzero(self.reached[first:second])
            above = second + np.flatnonzero(self.reached[second : e + self.size[e]])
            if not len(below) or not len(above) or value[below].max() <= value[above].min():
                continue
            for a in below:
                larger = above[value[above] < value[a]]
                if len(larger) and self._meet(a, larger).any():
                    return False
        return True

    def _meet(self, a: int, many: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which leaves in `many` overlap the range of leaf a in all features except j."""
        known = np.maximum(self.low[a], self.low[many]) < np.minimum(self.high[a], self.high[many])
        known &= (self.levels[a] & self.levels[many]).any(axis=-1)
        return (known | (self.holes[a] & self.holes[many]))[:, self.others].all(axis=1)
