"""What the C file of a walk computes, in NumPy, with its numbers and in its order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.export.c_code import NO_VALUE
from pboost.export.c_parts import Leaving, Tests, Walk
from pboost.models.exits import sizes
from pboost.models.node_walk import goes_right


class LeftRows(NamedTuple):
    """With which values (n, J) rows leave, at which exit (n,), and by how much that is so.

    Exits are numbered; the number of exits says that a row went to the end. `near` (n,): the size
    of the value, or half the least distance by which a row did not leave, whatever is less.
    """

    value: NDArray[Any]
    exit: NDArray[np.intp]
    near: NDArray[np.float64]


def sums_of(part: Walk | Leaving, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the decision values (n, J) of rows in the numbers of the file."""
    return sums_of_walk(part, rows) if isinstance(part, Walk) else sums_of_leaving(part, rows)


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


# Rows that leave


def sums_of_leaving(part: Leaving, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the decision values (n, J) of rows that may leave."""
    value, place, _ = leave_walk(part, rows)
    if not part.unit:
        return _scaled(part, value, np.append(part.slope, 1.0)[place])
    found, left = value.copy(), np.flatnonzero(place < len(part.at))
    at = place[left]
    product = value[left].astype(np.int64) * part.slope[at, None].astype(np.int64)
    scaled = _quotient(product, part.unit)
    if part.is_share and part.n_scores == 1:
        scaled = scaled.clip(-part.whole, part.whole)
    elif part.even is not None:
        scaled = (scaled + part.even[at, None]).clip(0, part.whole)
        scaled = _quotient(scaled * part.whole, scaled.sum(axis=1, keepdims=True))
    found[left] = scaled
    return found


def _quotient(a: NDArray[np.int64], b: Any) -> NDArray[np.int64]:
    """Return quotients of integers, towards 0; b > 0."""
    found: NDArray[np.int64] = np.sign(a) * (np.abs(a) // b)
    return found


def _scaled(part: Leaving, value: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
    """Return values times slopes, which are double, each product in the numbers of the file."""
    kind, wide = value.dtype, value.astype(np.float64)
    if not part.is_share:
        return (wide * slope[:, None]).astype(kind)
    if part.n_scores == 1:
        return (wide * slope[:, None]).astype(kind).clip(-1, 1)
    equal = 1 / part.n_scores
    found = (equal + slope[:, None] * (wide - equal)).clip(0.0, 1.0).astype(kind)
    total = np.add.accumulate(found.astype(np.float64), axis=1)[:, -1:]
    return (found / total).astype(kind)


def leave_walk(part: Leaving, rows: NDArray[Any]) -> LeftRows:
    """Return how rows leave a walk, in the numbers of the file."""
    walk, n = part.walk, len(rows)
    total, passed = np.repeat(walk.start[None], n, axis=0), np.zeros(n, dtype=np.intp)
    value = np.empty((n, part.n_scores), dtype=walk.start.dtype)
    near = np.full(n, np.inf)

    def go_on(here: NDArray[np.intp], t: int) -> NDArray[np.intp]:
        """Ask rows at their next exit, after t trees, and return those that do not leave."""
        value[here] = _value_after(part, total[here], t)
        size, sure = _size(value[here]), part.sure[passed[here]]
        is_sure = size >= sure
        near[here] = np.minimum(near[here], np.where(is_sure, size, (sure - size) / 2))
        passed[here] += ~is_sure
        return here[~is_sure]

    here = np.arange(n)
    if walk.vote is None:
        width, exits = walk.added.shape[-1], part.at.tolist()
        for t, root in enumerate(walk.root.tolist()):
            if t in exits:
                here = go_on(here, t)
            first = width * t % len(walk.start)
            leaf = -1 - _leaf_of(walk, rows[here], np.full(len(here), root))
            total[here, first : first + width] += walk.added[leaf]
    else:
        at, end = np.zeros(n, dtype=np.intp), [here[:0]]
        exits = np.append(part.at, len(walk.tests))
        while len(here):
            is_asked = exits[passed[here]] == at[here]
            here = np.sort(np.append(here[~is_asked], go_on(here[is_asked], 0)))
            node = at[here]
            exit_ = above(walk.tests, node, rows[here]).astype(np.intp)
            total[here] += walk.vote[node, exit_]
            at[here] = walk.next[node, exit_]
            end.append(here[at[here] < 0])
            here = here[at[here] >= 0]
        here = np.concatenate(end)
    value[here] = _value_after(part, total[here], len(walk.root))
    near[here] = np.minimum(near[here], _size(value[here]))
    return LeftRows(value, passed, near)


def _size(value: NDArray[Any]) -> NDArray[Any]:
    """Return how sure values (n, J) are; differences of int32 have room."""
    return sizes(value[:, 0] if value.shape[1] == 1 else value)


def _value_after(part: Leaving, total: NDArray[Any], t: int) -> NDArray[Any]:
    """Return the values (n, J) of sums after t trees; of graphs, and whole numbers, the sums."""
    walk = part.walk
    if walk.vote is not None or part.unit:
        return total
    if walk.after is not None:
        return walk.after + total
    if t == 0:
        return np.zeros((len(total), part.n_scores), dtype=total.dtype)
    mean = total / total.dtype.type(t // part.each)
    return mean[:, 1:] - mean[:, :1] if walk.lead else mean
