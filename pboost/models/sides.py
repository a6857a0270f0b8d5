"""On which sides rows lie at the nodes of trees where a value is missing or a level is in a set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray, IntArray

#: Words of 64 bits in a set of levels.
WORDS = 4
#: What `threshold` is of a test whether a level is in a set.
HALF = 0.5


def heavier_child(weight: FloatArray, children: IntArray, root: IntArray) -> NDArray[np.uint8]:
    """Return which child of each node of trees has the larger weight, 0 in leaves.

    That is 1 only where the second is strictly heavier: where training rows had all values, rows
    that have none go to the exit of larger reach.
    """
    is_inner = children[:, 0] >= 0
    start = np.asarray(root[:-1]).repeat(np.diff(root))[is_inner]
    first, second = (children[is_inner] + start[:, None]).T
    found = np.zeros(len(weight), dtype=np.uint8)
    found[is_inner] = weight[second] > weight[first]
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
    is_level = (level >= 0) & (level < 64 * WORDS) & (level == np.floor(level))
    code = np.where(is_level, level, 0.0).astype(np.uint64)
    word = np.take_along_axis(member, (code // np.uint64(64)).astype(np.intp)[:, None], axis=1)
    bit = word[:, 0] >> (code % np.uint64(64)) & np.uint64(1)
    return is_level & (bit == 1), is_level
