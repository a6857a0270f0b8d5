"""On which sides rows lie at the nodes of trees where a value is missing or a level is in a set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk
from pboost.data.columns.prebuilt import is_heavier
from pboost.data.node_inputs.inputs import HALF as HALF
from pboost.data.node_inputs.inputs import LEVELS as LEVELS
from pboost.data.node_inputs.inputs import WORDS as WORDS
from pboost.values import FloatArray, IntArray, freeze

#: What kernels read of a node of a tree, see `pboost._core.tree_walk`; and where some test sets.
STEP = np.dtype([("threshold", np.float64), ("column", np.int32), ("beyond", np.int32)])
SET_STEP = np.dtype([*STEP.descr, ("first", np.int64)])

#: Columns of a tile that kernels can tell apart.
MOST_COLUMNS = int(np.iinfo(np.int32).max) // tree_walk.TILE_ROWS
#: The bit of the last word that no level has.
MISSING = np.uint64(1 << 63)


def heavier_child(weight: FloatArray, children: IntArray, root: IntArray) -> NDArray[np.uint8]:
    """Return which child of each node of trees has the larger weight, 0 in leaves.

    Where training rows had all values, rows that have none go to the exit of larger reach. Weights
    whose difference is that of rounding are equal.
    """
    is_inner = children[:, 0] >= 0
    start = np.asarray(root[:-1]).repeat(np.diff(root))[is_inner]
    first, second = (children[is_inner] + start[:, None]).T
    found = np.zeros(len(weight), dtype=np.uint8)
    found[is_inner] = is_heavier(weight[second], weight[first])
    return found


def own_sets(
    feature: IntArray, n_features: int, column: IntArray, member: NDArray[np.uint64]
) -> dict[str, Any]:
    """Return `feature` of nodes, and the sets that they test, each once and in order.

    In `feature` n_features + k stands for set k, whose levels `member` (k, 4) are of `column` (k,).
    """
    is_set = feature >= n_features
    if not is_set.any():
        return {"feature": feature, "subset_column": None, "subset": None}
    number = feature[is_set] - n_features
    every = np.column_stack([column.astype(np.uint64), member])
    found, place = np.unique(every[number], axis=0, return_inverse=True)
    feature = feature.copy()
    feature[is_set] = n_features + place.ravel()
    return {"feature": feature, "subset_column": found[:, 0], "subset": found[:, 1:]}


def in_sets(member: NDArray[np.uint64], level: FloatArray) -> tuple[Any, Any]:
    """Return whether levels are in sets (n, 4), one each, and whether they are levels at all."""
    is_level = (level >= 0) & (level < LEVELS) & (level == np.floor(level))
    code = np.where(is_level, level, 0.0).astype(np.uint64)
    word = np.take_along_axis(member, (code // np.uint64(64)).astype(np.intp)[:, None], axis=1)
    bit = word[:, 0] >> (code % np.uint64(64)) & np.uint64(1)
    return is_level & (bit == 1), is_level


def steps_of(trees: Any, column: IntArray) -> NDArray[np.uint8]:
    """Return the nodes of `Trees` as the kernel reads them, where they read these columns."""
    is_leaf, is_set = trees.feature < 0, trees.feature >= trees.n_features
    steps = np.zeros(trees.n_nodes, dtype=STEP if trees.subset is None else SET_STEP)
    steps["threshold"] = np.where(is_leaf, -np.inf, trees.threshold)
    steps["column"] = np.where(is_leaf, 0, column * tree_walk.TILE_ROWS)
    steps["beyond"] = np.where(is_leaf, -1, trees.children[:, 1] - trees.children[:, 0])
    if trees.subset is not None:
        steps["threshold"][is_set] = np.inf
        number = 2 * (trees.feature[is_set] - trees.n_features) + trees.missing[is_set]
        steps["first"][is_set] = WORDS * (1 + number)
    return steps.view(np.uint8)


def words_of(trees: Any) -> tuple[NDArray[np.uint64], IntArray] | None:
    """Return the sets of `Trees` as the kernel reads them, and their columns; None without sets.

    First the empty set, then each set twice: missing values are in the second.
    """
    if trees.subset is None:
        return None
    words = np.zeros((1 + 2 * trees.n_sets, WORDS), dtype=np.uint64)
    words[1::2] = words[2::2] = trees.subset
    words[2::2, -1] |= MISSING
    return freeze(words), freeze(np.unique(trees.subset_column).astype(np.int32))


def columns_with_holes(trees: Any) -> tuple[IntArray, IntArray]:
    """Return what the nodes of `Trees` read of rows with missing values, and columns there twice.

    The second copy of a column, in which missing values are infinite, is that of the nodes that
    send them to the second child; it stands behind the columns.
    """
    column, d = trees.column.copy(), trees.n_features
    is_second = (trees.missing == 1) & (trees.feature < d)
    twice, place = np.unique(column[is_second], return_inverse=True)
    if d + len(twice) > MOST_COLUMNS:
        raise NotImplementedError(
            f"X: values are missing, and a model of {d} columns, in {len(twice)} of which it sends "
            f"them to the second child, is not evaluated; together {MOST_COLUMNS} are"
        )
    column[is_second] = d + place
    return column, twice
