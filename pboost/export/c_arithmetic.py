"""What the C file of a walk computes, in NumPy, with its numbers and in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.export.c_code import NO_VALUE
from pboost.export.c_parts import Tests, Walk
from pboost.models.node_walk import goes_right


def sums_of_walk(walk: Walk, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the decision values (n, J) of rows in the numbers of the file."""
    n = len(rows)
    total = np.repeat(walk.start[None], n, axis=0)
    every, width = np.arange(n), walk.added.shape[-1]
    for t, root in enumerate(walk.root.tolist()):
        at, first = np.full(n, root), width * t % len(walk.start)
        if walk.vote is None:
            at = _leaf_of(walk, rows, at)
            total[:, first : first + width] += walk.added[-1 - at]
            continue
        here = every[at >= 0]
        while len(here):
            node = at[here]
            exit_ = above(walk.tests, node, rows[here]).astype(np.intp)
            total[here] += walk.vote[node, exit_]
            at[here] = walk.next[node, exit_]
            here = here[at[here] >= 0]
    if walk.after is not None:
        total = walk.after + total
    if walk.divisor > 1:
        total /= total.dtype.type(walk.divisor)
    return total[:, 1:] - total[:, :1] if walk.lead else total


def _leaf_of(walk: Walk, rows: NDArray[Any], at: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the leaves that rows reach in a tree, as ``-1 - leaf``."""
    here = np.flatnonzero(at >= 0)
    while len(here):
        node = at[here]
        exit_ = above(walk.tests, node, rows[here]).astype(np.intp)
        at[here] = walk.next[node, exit_]
        here = here[at[here] >= 0]
    return at


def above(tests: Tests, node: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether rows take exit 1, each at a node of its own; nodes compare columns."""
    value = rows[np.arange(len(rows)), tests.column[node]]
    is_missing = value == NO_VALUE if rows.dtype == np.int16 else np.isnan(value)
    found = np.asarray(goes_right(value, tests.threshold[node]))
    number = tests.set_number[node]
    is_set = number >= 0
    if is_set.any():
        level = np.where(is_missing, -1, value)
        is_level = (level >= 0) & (level < 255) & (level == np.floor(level))
        code = np.where(is_level, level, 0).astype(np.intp)
        inside = code < 8 * tests.member.shape[1]
        byte = tests.member[np.where(is_set, number, 0), np.where(inside, code // 8, 0)]
        found = np.where(is_set, inside & (byte >> (code % 8) & 1 == 1), found)
        is_missing |= is_set & ~is_level
    return np.where(is_missing, tests.above[node], found)
