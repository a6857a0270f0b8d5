"""Models in the numbers of small devices: float32, and int16 for values with int32 for votes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.export.c_code import NO_VALUE
from pboost.export.c_parts import (
    Leaving,
    Line,
    Linear,
    LinearLeaves,
    Maps,
    Members,
    Part,
    Tests,
    Walk,
)
from pboost.values import FloatArray, as_array

#: The numbers of a grid: the least of int16 says that a value is missing.
LEAST, MOST = NO_VALUE + 1, 2**15 - 1
#: The largest sum of votes.
MOST_SUM = 2**31 - 1
#: The most binary places of factors, and the largest factor: their products are int64.
MOST_PLACES, MOST_FACTOR = 30, 2.0**29
#: The largest slope of sums that rows leave early: by so much they have fewer places.
MOST_SLOPE = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The values that columns can have in int16: number q of column j is offset[j] + step[j] * q.

    Attributes
    ----------
    offset : ndarray of float64, shape (d,)
        In the units of the columns.
    step : ndarray of float64, shape (d,)
        Distance of neighbours.
    """

    offset: FloatArray
    step: FloatArray

    def values(self, q: NDArray[Any]) -> FloatArray:
        """Return the values of numbers (n, d), NaN of those that stand for a missing one."""
        found: FloatArray = self.offset + self.step * q
        return np.where(q == NO_VALUE, np.nan, found)

    def numbers(self, values: FloatArray) -> NDArray[np.int16]:
        """Return the numbers (n, d) of the nearest points; beyond the grid those of its ends."""
        with np.errstate(over="ignore"):
            q = np.rint((values - self.offset) / self.step)
        return np.where(np.isnan(q), NO_VALUE, np.clip(q, LEAST, MOST)).astype(np.int16)

    def below(self, column: Any, value: FloatArray) -> NDArray[np.int16]:
        """Return the last number of columns, elementwise, whose value is not above a value.

        One less than the first number where all are above.
        """
        offset, step = self.offset[column], self.step[column]
        with np.errstate(over="ignore", invalid="ignore"):
            q = np.clip(np.floor((value - offset) / step), LEAST - 1, MOST)
        # Division rounds: the values themselves decide.
        q = np.where((q < MOST) & (offset + step * (q + 1) <= value), q + 1, q)
        q = np.where((q >= LEAST) & (offset + step * q > value), q - 1, q)
        return q.astype(np.int16)


def grid_of(
    d: int, columns: NDArray[Any], is_level: NDArray[np.bool_], X: Any, ranges: Any, steps: Any
) -> Grid:
    """Return a grid for the columns that a model reads, of rows X or of ranges.

    Steps are powers of two. They are 1 for columns of whole numbers in X, if these fit, as levels
    of categories do; else the smallest with which the range has room.
    """
    offset, step = np.zeros(d), np.ones(d)
    given = None if steps is None else _check_steps(steps, d)
    ends = _ends(d, X, ranges)
    for j in columns[~is_level[columns]].tolist():
        least, most = ends[:, j].tolist()
        if least > most:
            raise ValueError(
                f"X: expected a known value in column {j}, which the model reads, got none; "
                "ranges= says how far its values reach"
            )
        if given is not None:
            step[j] = given[j]
        elif X is None or not _is_whole(X[:, j], least, most):
            step[j] = _least_step(least, most)
        offset[j] = _offset(least, most, step[j])
        top = np.rint((np.array([least, most]) - offset[j]) / step[j])
        if not (top[0] >= LEAST and top[1] <= MOST):
            raise ValueError(
                f"steps: expected one with which column {j}, from {least:g} to {most:g}, has at "
                f"most {MOST - LEAST + 1} points, got {step[j]:g}"
            )
    return Grid(offset, step)


def _check_steps(steps: ArrayLike, d: int) -> FloatArray:
    given = as_array("steps", steps)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (d,)):
        raise ValueError(f"steps: expected a number, or one for each of {d} columns")
    found: FloatArray = np.broadcast_to(given.astype(np.float64), (d,))
    if not (np.isfinite(found) & (found > 0)).all():
        raise ValueError("steps: expected finite numbers above 0")
    return found


def _ends(d: int, X: Any, ranges: Any) -> FloatArray:
    """Return the least and the largest value of each column, (2, d)."""
    if ranges is not None:
        given = as_array("ranges", ranges)
        if given.dtype.kind not in "iuf" or given.shape != (d, 2):
            raise ValueError(
                f"ranges: expected two numbers for each of {d} columns, shape ({d}, 2)"
            )
        ends = given.astype(np.float64).T
        if not (np.isfinite(ends).all() and (ends[0] <= ends[1]).all()):
            raise ValueError("ranges: expected finite numbers, the lesser of two first")
        return ends
    with np.errstate(invalid="ignore"):
        known = np.isnan(X)
        least = np.where(known, np.inf, X).min(axis=0, initial=np.inf)
        most = np.where(known, -np.inf, X).max(axis=0, initial=-np.inf)
    return np.array([least, most])


def _is_whole(values: FloatArray, least: float, most: float) -> bool:
    """Return whether known values are whole numbers that have room with steps of 1."""
    known = values[~np.isnan(values)]
    return most - least <= MOST - LEAST and bool((known == np.floor(known)).all())


def _least_step(least: float, most: float) -> float:
    """Return the least power of two with which a range has room, with a point to spare."""
    span = (most / 2 - least / 2) * 2.0 ** -(int(MOST).bit_length())
    if span == 0:
        span = max(abs(most), 1.0) * 2.0 ** -int(MOST).bit_length()
    fraction, exponent = np.frexp(span)
    found = float(np.ldexp(1.0, int(exponent) - (fraction == 0.5)))
    # Ends that are rounded to points must have room, too.
    return found if (most - least) / found < MOST - LEAST - 1 else 2 * found


def _offset(least: float, most: float, step: float) -> float:
    """Return 0 if the range has room around it, else the multiple of the step in the middle."""
    if np.rint(least / step) >= LEAST and np.rint(most / step) <= MOST:
        return 0.0
    return float(np.rint((least / 2 + most / 2) / step) * step)


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A walk in fixed point.

    Attributes
    ----------
    part : Walk or Leaving
        Thresholds in int16, votes in int32.
    shift : int
        Votes are counted in 2**-shift.
    terms : int
        The most votes that are added up for a row.
    scale : float
        A decision value is the sum times this.
    """

    part: Walk | Leaving
    shift: int
    terms: int
    scale: float

    @property
    def bound(self) -> float:
        """The size of a decision value, or a lead, beyond which the label is that of float64."""
        of_leads = 1 if self.part.n_scores == 1 else 2
        return of_leads * self.terms * self.scale / 2


def compared(part: Part) -> Tests:
    """Return the questions of nodes that int16 can hold; NotImplementedError of other models."""
    if isinstance(part, Leaving):
        return compared(part.walk)
    if not isinstance(part, Walk):
        raise NotImplementedError(
            'dtype: "int16" is for graphs, trees and sums of trees; this model adds up columns or '
            'consists of other models, which "float64" and "float32" can hold'
        )
    if part.tests.inputs is not None:
        raise NotImplementedError(
            'dtype: "int16" is for nodes that compare columns; those of this model compare sums, '
            'which "float64" and "float32" can hold'
        )
    if len(part.tests.member) > MOST:
        raise NotImplementedError(
            f'dtype: "int16" is for models with at most {MOST} sets of levels, got '
            f'{len(part.tests.member)}; "float64" and "float32" can hold them'
        )
    return part.tests


def fixed_part(part: Part, grid: Grid) -> Fixed:
    """Return a walk whose thresholds are points of a grid, and whose votes are whole numbers.

    The sum of the rounded votes is within `terms` / 2 of the votes counted in 2**-shift. A chain
    adds all the votes of exit 0 at the start, and at each node what exit 1 has more.
    """
    compared(part)
    if isinstance(part, Leaving):
        return _fixed_leaving(part, grid)
    assert isinstance(part, Walk)
    return _fixed_walk(part, grid)


def _fixed_walk(part: Walk, grid: Grid, factor: float = 1.0, is_asked: bool = False) -> Fixed:
    """Return a walk in fixed point, with room for sums times a factor.

    `is_asked`: sums are asked for on the way, so that they are those of the votes at any node.
    """
    start, added = _lead(part, part.start), _lead(part, part.added)
    most, terms = _most(part, added)
    start = start + (0.0 if part.after is None else _lead(part, part.after))
    has_start = bool(start.any())
    largest = factor * np.abs(start).max(), factor * most
    is_moved = part.is_chain and added.shape[-1] == 1 and not is_asked
    shift = _shift(added if is_moved else None, *largest, factor * (terms + has_start))
    whole, zero = (np.rint(np.ldexp(of, shift)).astype(np.int64) for of in (added, start))
    if is_moved:
        zero = zero + whole[:, 0].sum(axis=0)
        whole = np.stack([np.zeros_like(whole[:, 0]), whole[:, 1] - whole[:, 0]], axis=1)
    votes = whole.astype(np.int32)
    walk = replace(
        part,
        tests=_on_grid(part.tests, grid),
        vote=None if part.vote is None else votes,
        leaf=None if part.leaf is None else votes,
        start=zero.astype(np.int32),
        after=None,
        divisor=1,
        lead=False,
    )
    return Fixed(walk, shift, terms + has_start, 2.0**-shift / part.divisor)


def _fixed_leaving(part: Leaving, grid: Grid) -> Fixed:
    """Return a walk with its exits in fixed point.

    A row leaves where the sum of its whole numbers is at least so large; of means it is that of the
    trees so far, which the factor makes one of all. Sums and factors have 31 binary places each.
    What is asked for is less by what sums are wrong by at most.
    """
    walk, is_mean = part.walk, part.is_share
    slope = part.slope.astype(np.float64)
    room = room_of_leads = 1.0 if walk.n_scores == 1 else 2.0  # leads are differences
    if not is_mean and slope.max(initial=1.0) > MOST_SLOPE:
        raise NotImplementedError(
            f'dtype: "int16" is for early exits of slopes up to {MOST_SLOPE}, got '
            f'{slope.max():g}; "float64" and "float32" can hold them'
        )
    if not is_mean:
        room *= max(1.0, float(slope.max(initial=1.0)))
    fixed = _fixed_walk(walk, grid, room, is_asked=True)
    if is_mean and np.ldexp(walk.divisor, fixed.shift) > MOST_SUM:  # a share of 1 has room, too
        room *= float(np.ldexp(walk.divisor, fixed.shift)) / 2**30
        fixed = _fixed_walk(walk, grid, room, is_asked=True)
    trees = part.at / part.each if is_mean else np.ones(len(slope))
    # Rows whose values are the thresholds, as those of calibration rows are, leave all the same.
    wrong = room_of_leads * (trees if is_mean else float(fixed.terms)) / 2
    with np.errstate(over="ignore"):
        sure = np.ceil(np.ldexp(part.sure * trees, fixed.shift) - wrong).clip(0, MOST_SUM)
    turns = np.divide(walk.divisor, trees, out=np.zeros(len(slope)), where=trees > 0)
    slope = np.minimum(slope, MOST_FACTOR / max(1.0, turns.max(initial=1.0)))
    places = MOST_PLACES - max(0, int(np.frexp((slope * turns).max(initial=1.0))[1]))
    whole = int(np.ldexp(float(walk.divisor), fixed.shift)) if is_mean else 0
    even = None
    if is_mean and walk.n_scores > 1:
        even = np.rint((1 - slope) * whole / walk.n_scores).astype(np.int64)
    assert isinstance(fixed.part, Walk)
    leaving = replace(
        part,
        walk=fixed.part,
        sure=sure.astype(np.int32),
        unit=2**places,
        whole=whole,
        even=even,
        slope=np.rint(np.ldexp(slope * turns, places)).astype(np.int32),
    )
    return replace(fixed, part=leaving)


def _lead(part: Walk, of: FloatArray) -> FloatArray:
    """Return sums as they are, or by how much the second of two leads."""
    return of[..., 1:] - of[..., :1] if part.lead else of


def _most(part: Walk, added: FloatArray) -> tuple[float, int]:
    """Return the largest sum of sizes that is added on the way of a row, and of how many."""
    size = np.abs(added).max(axis=-1, initial=0.0)
    n = len(part.tests)
    if part.vote is None:
        turns = len(part.start) // part.added.shape[-1]
        largest = _largest_leaves(part, size).reshape(-1, turns).sum(axis=0)
        return float(largest.max()), len(part.root) // turns
    most, steps = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)  # the last is that of the end
    for node in range(n - 1, -1, -1):
        most[node] = max(size[node] + most[part.next[node]])
        steps[node] = 1 + steps[part.next[node]].max()
    return float(most[0]), int(steps[0])


def _largest_leaves(part: Walk, size: FloatArray) -> FloatArray:
    """Return the largest size of a leaf in each tree; leaves stand tree after tree."""
    n_leaves = len(size)
    # The leaves of a tree follow those of the tree before: one more than inner nodes.
    inner = np.append(part.root[part.root >= 0], len(part.tests))
    sizes = np.ones(len(part.root), dtype=np.int64)
    sizes[part.root >= 0] = np.diff(inner) + 1
    assert sizes.sum() == n_leaves
    return np.asarray(np.maximum.reduceat(size, np.cumsum(sizes) - sizes))


def _shift(moved: FloatArray | None, start: float, most: float, terms: float) -> int:
    """Return the largest number of binary places with which no sum overflows int32.

    `moved`: the votes (n, 2, 1) of a chain, of which the difference is a number of its own.
    """
    largest = most + start
    if moved is not None:
        largest = max(largest, float(np.abs(moved[:, 1] - moved[:, 0]).max(initial=0.0)))
    if not largest:
        return 0
    shift = 31 - int(np.frexp(largest)[1]) + 1
    while np.ldexp(largest, shift) + terms > MOST_SUM:
        shift -= 1
    return shift


def _on_grid(tests: Tests, grid: Grid) -> Tests:
    """Return the questions with points of the grid as thresholds."""
    threshold = grid.below(tests.column, tests.threshold)
    return replace(tests, threshold=np.where(tests.set_number >= 0, 0, threshold).astype(np.int16))


def single_part(part: Part, votes: str) -> Part:
    """Return a part for rows of float32: thresholds of columns are rounded down, without a loss.

    A float32 is above a number where it is above the largest float32 that is not above the number.
    """
    if isinstance(part, Members):
        members = tuple(single_part(member, votes) for member in part.members)
        return replace(part, members=members)
    if isinstance(part, LinearLeaves):
        return replace(part, walk=replace(part.walk, tests=_single_tests(part.walk.tests)))
    if isinstance(part, Leaving):
        return replace(part, walk=_single_walk(part.walk, votes))
    if isinstance(part, Line | Maps):
        return replace(part, part=single_part(part.part, votes))
    if isinstance(part, Linear):
        return part
    return _single_walk(part, votes)


def _single_walk(part: Walk, votes: str) -> Walk:
    found = replace(part, tests=_single_tests(part.tests))
    return found if votes == "float64" else _single_votes(found)


def _single_votes(walk: Walk) -> Walk:
    def rounded(values: Any) -> Any:
        with np.errstate(over="ignore"):
            found = None if values is None else values.astype(np.float32)
        if found is not None and not np.isfinite(found).all():
            raise ValueError(
                'votes: expected "float64", as there are votes beyond the numbers of float32'
            )
        return found

    return replace(
        walk,
        vote=rounded(walk.vote),
        leaf=rounded(walk.leaf),
        start=rounded(walk.start),
        after=rounded(walk.after),
    )


def _single_tests(tests: Tests) -> Tests:
    if tests.inputs is not None:  # sums of columns, which are float64
        return tests
    with np.errstate(over="ignore"):
        threshold = tests.threshold.astype(np.float32)
    # Of infinity this is the largest number, and below the least number is minus infinity.
    down = np.nextafter(threshold, np.float32(-np.inf))
    threshold = np.where(threshold > tests.threshold, down, threshold)
    return replace(tests, threshold=threshold)
