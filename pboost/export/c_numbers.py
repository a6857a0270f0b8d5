"""Forms in the numbers of small devices, float32 and int16, and what C computes in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.export.c_form import JointExits, Maps, Part, Tests, Walk, on_walks
from pboost.export.c_print import NO_VALUE
from pboost.models.base import Model
from pboost.models.calibrated import CalibratedModel
from pboost.models.evaluate.exits import sizes
from pboost.models.evaluate.graph_walk import goes_right
from pboost.values import Array, FloatArray, IntArray, as_array, shown

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

    def values(self, q: Array) -> FloatArray:
        """Return the values of numbers (n, d), NaN of those that stand for a missing one."""
        values: FloatArray = self.offset + self.step * q
        return np.where(q == NO_VALUE, np.nan, values)

    def numbers(self, values: FloatArray) -> NDArray[np.int16]:
        """Return the numbers (n, d) of the nearest points; beyond the grid those of its ends."""
        with np.errstate(over="ignore"):
            q = np.rint((values - self.offset) / self.step)
        return np.where(np.isnan(q), NO_VALUE, np.clip(q, LEAST, MOST)).astype(np.int16)

    def below(self, column: int | IntArray, value: FloatArray) -> NDArray[np.int16]:
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
    d: int,
    columns: Array,
    is_level: NDArray[np.bool_],
    X: FloatArray | None,
    ranges: ArrayLike | None,
    grid_steps: ArrayLike | None,
) -> Grid:
    """Return a grid for the columns that a model reads, of rows X or of ranges.

    Steps are powers of two. They are 1 for columns of whole numbers in X, if these fit, as levels
    of categories do; else the smallest with which the range has room.
    """
    offset, step = np.zeros(d), np.ones(d)
    fixed_steps = None if grid_steps is None else _check_steps(grid_steps, d)
    ends = _ends(d, X, ranges)
    for j in columns[~is_level[columns]].tolist():
        lowest, highest = ends[:, j].tolist()
        if lowest > highest:
            raise ValueError(
                f"X: expected a known value in column {j}, which the model reads, got none; "
                "ranges= says how far its values reach"
            )
        if fixed_steps is not None:
            step[j] = fixed_steps[j]
        elif X is None or not _is_whole(X[:, j], lowest, highest):
            step[j] = _least_step(lowest, highest)
        offset[j] = _offset(lowest, highest, step[j])
        top = np.rint((np.array([lowest, highest]) - offset[j]) / step[j])
        if not (top[0] >= LEAST and top[1] <= MOST):
            raise ValueError(
                f"grid_steps: expected one with which column {j}, from {lowest:g} to {highest:g}, has at "
                f"most {MOST - LEAST + 1} points, got {step[j]:g}"
            )
    return Grid(offset, step)


def _check_steps(grid_steps: ArrayLike, d: int) -> FloatArray:
    array = as_array("grid_steps", grid_steps)
    if array.dtype.kind not in "iuf" or array.shape not in ((), (d,)):
        raise ValueError(f"grid_steps: expected a number, or one for each of {d} columns")
    step_per_column: FloatArray = np.broadcast_to(array.astype(np.float64), (d,))
    if not (np.isfinite(step_per_column) & (step_per_column > 0)).all():
        raise ValueError("grid_steps: expected finite numbers above 0")
    return step_per_column


def _ends(d: int, X: FloatArray | None, ranges: ArrayLike | None) -> FloatArray:
    """Return the least and the largest value of each column, (2, d)."""
    if ranges is not None:
        array = as_array("ranges", ranges)
        if array.dtype.kind not in "iuf" or array.shape != (d, 2):
            raise ValueError(
                f"ranges: expected two numbers for each of {d} columns, shape ({d}, 2)"
            )
        ends = array.astype(np.float64).T
        if not (np.isfinite(ends).all() and (ends[0] <= ends[1]).all()):
            raise ValueError("ranges: expected finite numbers, the lesser of two first")
        return ends
    assert X is not None
    with np.errstate(invalid="ignore"):
        known = np.isnan(X)
        lowest = np.where(known, np.inf, X).min(axis=0, initial=np.inf)
        highest = np.where(known, -np.inf, X).max(axis=0, initial=-np.inf)
    return np.array([lowest, highest])


def _is_whole(values: FloatArray, lowest: float, highest: float) -> bool:
    """Return whether known values are whole numbers that have room with steps of 1."""
    known = values[~np.isnan(values)]
    return highest - lowest <= MOST - LEAST and bool((known == np.floor(known)).all())


def _least_step(lowest: float, highest: float) -> float:
    """Return the least power of two with which a range has room, with a point to spare."""
    span = (highest / 2 - lowest / 2) * 2.0 ** -(int(MOST).bit_length())
    if span == 0:
        span = max(abs(highest), 1.0) * 2.0 ** -int(MOST).bit_length()
    fraction, exponent = np.frexp(span)
    step = float(np.ldexp(1.0, int(exponent) - (fraction == 0.5)))
    # Ends that are rounded to points must have room, too.
    return step if (highest - lowest) / step < MOST - LEAST - 1 else 2 * step


def _offset(lowest: float, highest: float, step: float) -> float:
    """Return 0 if the range has room around it, else the multiple of the step in the middle."""
    if np.rint(lowest / step) >= LEAST and np.rint(highest / step) <= MOST:
        return 0.0
    return float(np.rint((lowest / 2 + highest / 2) / step) * step)


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A walk in fixed point.

    Attributes
    ----------
    part : Walk
        Thresholds in int16, votes in int32.
    shift : int
        Votes are counted in 2**-shift.
    terms : int
        The most votes that are added up for a row.
    scale : float
        A decision value is the sum times this.
    """

    part: Walk
    shift: int
    terms: int
    scale: float

    @property
    def bound(self) -> float:
        """The size of a decision value, or a lead, beyond which the label is that of float64."""
        of_leads = 1 if self.part.n_scores == 1 else 2
        return of_leads * self.terms * self.scale / 2


def compared(part: Part) -> Walk:
    """Return a walk whose nodes int16 can hold; NotImplementedError of other models."""
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
    if len(part.tests.sets) > MOST:
        raise NotImplementedError(
            f'dtype: "int16" is for models with at most {MOST} sets of levels, got '
            f'{len(part.tests.sets)}; "float64" and "float32" can hold them'
        )
    return part


def fixed_part(part: Part, grid: Grid) -> Fixed:
    """Return a walk whose thresholds are points of a grid, and whose votes are whole numbers.

    The sum of the rounded votes is within `terms` / 2 of the votes counted in 2**-shift. A chain
    adds all the votes of exit 0 at the start, and at each node what exit 1 has more.
    """
    walk = compared(part)
    return _fixed_walk(walk, grid) if walk.exits is None else _fixed_exits(walk, walk.exits, grid)


def _fixed_walk(part: Walk, grid: Grid, factor: float = 1.0) -> Fixed:
    """Return a walk in fixed point, with room for sums times a factor.

    With exits sums are those of the votes at any node.
    """
    start, added = _lead(part, part.start), _lead(part, part.added)
    largest_size, terms = _most(part, added)
    start = start + (0.0 if part.after is None else _lead(part, part.after))
    has_start = bool(start.any())
    largest = factor * np.abs(start).max(), factor * largest_size
    is_moved = part.is_chain and added.shape[-1] == 1 and part.exits is None
    shift = _shift(added if is_moved else None, *largest, factor * (terms + has_start))
    integers, zero = (np.rint(np.ldexp(of, shift)).astype(np.int64) for of in (added, start))
    if is_moved:
        zero = zero + integers[:, 0].sum(axis=0)
        integers = np.stack(
            [np.zeros_like(integers[:, 0]), integers[:, 1] - integers[:, 0]], axis=1
        )
    walk = replace(
        part,
        tests=_on_grid(part.tests, grid),
        added=integers.astype(np.int32),
        start=zero.astype(np.int32),
        after=None,
        divisor=1,
        lead=False,
    )
    return Fixed(walk, shift, terms + has_start, 2.0**-shift / part.divisor)


def _fixed_exits(walk: Walk, part: JointExits, grid: Grid) -> Fixed:
    """Return a walk with its exits in fixed point.

    A row leaves where the sum of its whole numbers is at least so large; of means it is that of the
    trees so far, which the factor makes one of all. Sums and factors have 31 binary places each.
    What is asked for is less by what sums are wrong by at most.
    """
    is_mean, slope = part.is_share, part.slope.astype(np.float64)
    room = room_of_leads = 1.0 if walk.n_scores == 1 else 2.0  # leads are differences
    if not is_mean and slope.max(initial=1.0) > MOST_SLOPE:
        raise NotImplementedError(
            f'dtype: "int16" is for early exits of slopes up to {MOST_SLOPE}, got '
            f'{slope.max():g}; "float64" and "float32" can hold them'
        )
    if not is_mean:
        room *= max(1.0, float(slope.max(initial=1.0)))
    fixed = _fixed_walk(walk, grid, room)
    if is_mean and np.ldexp(walk.divisor, fixed.shift) > MOST_SUM:  # a share of 1 has room, too
        room *= float(np.ldexp(walk.divisor, fixed.shift)) / 2**30
        fixed = _fixed_walk(walk, grid, room)
    trees = part.at / part.each if is_mean else np.ones(len(slope))
    # Rows whose values are the thresholds, as those of calibration rows are, leave all the same.
    wrong = room_of_leads * (trees if is_mean else float(fixed.terms)) / 2
    with np.errstate(over="ignore"):
        sure = np.ceil(np.ldexp(part.sure * trees, fixed.shift) - wrong).clip(0, MOST_SUM)
    turns = np.divide(walk.divisor, trees, out=np.zeros(len(slope)), where=trees > 0)
    slope = np.minimum(slope, MOST_FACTOR / max(1.0, turns.max(initial=1.0)))
    places = MOST_PLACES - max(0, int(np.frexp((slope * turns).max(initial=1.0))[1]))
    unit = int(np.ldexp(float(walk.divisor), fixed.shift)) if is_mean else 0
    even = None
    if is_mean and walk.n_scores > 1:
        even = np.rint((1 - slope) * unit / walk.n_scores).astype(np.int64)
    exits = part._replace(
        sure=sure.astype(np.int32),
        unit=2**places,
        full_share=unit,
        even=even,
        slope=np.rint(np.ldexp(slope * turns, places)).astype(np.int32),
    )
    return replace(fixed, part=replace(fixed.part, exits=exits))


def _lead(part: Walk, of: FloatArray) -> FloatArray:
    """Return sums as they are, or by how much the second of two leads."""
    return of[..., 1:] - of[..., :1] if part.lead else of


def _most(part: Walk, added: FloatArray) -> tuple[float, int]:
    """Return the largest sum of sizes that is added on the way of a row, and of how many."""
    size = np.abs(added).max(axis=-1, initial=0.0)
    n = len(part.tests)
    if not part.is_graph:
        turns = len(part.start) // part.added.shape[-1]
        largest = _largest_leaves(part, size).reshape(-1, turns).sum(axis=0)
        return float(largest.max()), len(part.root) // turns
    largest_sum, steps = (
        np.zeros(n + 1),
        np.zeros(n + 1, dtype=np.int64),
    )  # the last is that of the end
    for node in range(n - 1, -1, -1):
        largest_sum[node] = max(size[node] + largest_sum[part.next[node]])
        steps[node] = 1 + steps[part.next[node]].max()
    return float(largest_sum[0]), int(steps[0])


def _largest_leaves(part: Walk, size: FloatArray) -> FloatArray:
    """Return the largest size of a leaf in each tree; leaves stand tree after tree."""
    n_leaves = len(size)
    # The leaves of a tree follow those of the tree before: one more than inner nodes.
    inner = np.append(part.root[part.root >= 0], len(part.tests))
    sizes = np.ones(len(part.root), dtype=np.int64)
    sizes[part.root >= 0] = np.diff(inner) + 1
    assert sizes.sum() == n_leaves
    return np.asarray(np.maximum.reduceat(size, np.cumsum(sizes) - sizes))


def _shift(moved: FloatArray | None, start: float, largest_added: float, terms: float) -> int:
    """Return the largest number of binary places with which no sum overflows int32.

    `moved`: the votes (n, 2, 1) of a chain, of which the difference is a number of its own.
    """
    largest = largest_added + start
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
    threshold = grid.below(tests.feature, tests.threshold)
    return replace(
        tests, threshold=np.where(tests.category_set >= 0, 0, threshold).astype(np.int16)
    )


def single_part(part: Part, vote_dtype: str) -> Part:
    """Return a part for rows of float32: thresholds of columns are rounded down, without a loss.

    A float32 is above a number where it is above the largest float32 that is not above the number.
    """

    def single(walk: Walk) -> Walk:
        single_walk = replace(walk, tests=_single_tests(walk.tests))
        return single_walk if vote_dtype == "float64" else _votes_as(single_walk, _rounded)

    return on_walks(part, single)


def _votes_as(walk: Walk, change: Callable[[Array], Array]) -> Walk:
    """Return a walk with its votes, and what they are added to, changed."""
    after = None if walk.after is None else change(walk.after)
    return replace(walk, added=change(walk.added), start=change(walk.start), after=after)


def _rounded(values: Array) -> Array:
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise ValueError(
            'vote_dtype: expected "float64", as there are votes beyond the numbers of float32'
        )
    return rounded


def _single_tests(tests: Tests) -> Tests:
    if tests.inputs is not None:  # sums of columns, which are float64
        return tests
    with np.errstate(over="ignore"):
        threshold = tests.threshold.astype(np.float32)
    # Of infinity this is the largest number, and below the least number is minus infinity.
    down = np.nextafter(threshold, np.float32(-np.inf))
    threshold = np.where(threshold > tests.threshold, down, threshold)
    return replace(tests, threshold=threshold)


def folded(model: Model, part: Part) -> Part:
    """Return what whole numbers can hold of a calibration, a walk; other parts as they are.

    Of a line it is the walk whose votes are multiplied by the slope: its sums are the decision
    values. Of an isotonic map it is the walk less the value at which the probability crosses 1/2:
    the label is the same.
    """
    if not isinstance(model, CalibratedModel):
        return part
    assert isinstance(part, Maps)
    if len(model.classes) > 2:
        raise NotImplementedError(
            'dtype: "int16" is for calibrations of two labels, where the label is a question of '
            f'one sum; this is one of {len(model.classes)}, which "float64" and "float32" can hold'
        )
    walk = part.part
    if not isinstance(walk, Walk) or walk.exits is not None:
        raise NotImplementedError(
            'dtype: "int16" is for calibrations of graphs, trees and sums of trees that all rows '
            'go through to the end; "float64" and "float32" can hold this one'
        )
    if part.is_line:
        slope, intercept = float(model.slope[0]), float(model.intercept[0])
        return _times(walk, slope / 2, intercept / 2)
    return _times(walk, 1.0, -_crossing(model))


def _times(walk: Walk, slope: float, intercept: float) -> Walk:
    """Return the walk whose one sum is a line of that of a walk, of two of the second's lead."""
    scaled = _votes_as(walk, lambda of: slope * of.astype(np.float64))
    scaled.start[-1] += walk.divisor * intercept
    return replace(scaled, lead=len(scaled.start) > 1)


def _crossing(model: CalibratedModel) -> float:
    """Return the largest value whose probability is not above 1/2."""
    knot, share = model.knot, model.share
    above = int(np.searchsorted(share, 0.5, side="right"))
    if above in (0, len(share)):
        label = shown(model.classes[int(above == 0)].item())
        raise NotImplementedError(
            'dtype: "int16" is for calibrations whose probabilities cross 1/2; those of this one '
            f'do not, and all rows are {label}; "float64" and "float32" can hold it'
        )
    low, high = float(knot[above - 1]), float(knot[above])
    while (middle := low / 2 + high / 2) not in (low, high):
        if float(np.interp(middle, knot, share)) > 0.5:
            high = middle
        else:
            low = middle
    return low


# What C computes


class LeftRows(NamedTuple):
    """With which values (n, J) rows leave, at which exit (n,), and by how much that is so.

    Exits are numbered; the number of exits says that a row went to the end. `near` (n,): the size
    of the value, or half the least distance by which a row did not leave, whatever is less.
    """

    value: Array
    exit: NDArray[np.intp]
    near: NDArray[np.float64]


def sums_of(walk: Walk, rows: Array) -> Array:
    """Return the decision values (n, J) of rows in the numbers of the file."""
    value, place, _ = leave_walk(walk, rows)
    part = walk.exits
    if part is None:
        return value
    if not part.unit:
        return _scaled(part, value, np.append(part.slope, 1.0)[place])
    scores, left = value.copy(), np.flatnonzero(place < len(part.at))
    at = place[left]
    product = value[left].astype(np.int64) * part.slope[at, None].astype(np.int64)
    scaled: Array = _quotient(product, part.unit)
    if part.is_share and walk.n_scores == 1:
        scaled = scaled.clip(-part.full_share, part.full_share)
    elif part.even is not None:
        scaled = (scaled + part.even[at, None]).clip(0, part.full_share)
        scaled = _quotient(scaled * part.full_share, scaled.sum(axis=1, keepdims=True))
    scores[left] = scaled
    return scores


def _quotient(a: Array, b: int | Array) -> Array:
    """Return quotients of integers, towards 0; b > 0."""
    quotient: Array = np.sign(a) * (np.abs(a) // b)
    return quotient


def _scaled(part: JointExits, value: Array, slope: Array) -> Array:
    """Return values times slopes, which are double, each product in the numbers of the file."""
    kind, wide, n = value.dtype, value.astype(np.float64), value.shape[1]
    if not part.is_share or n == 1:
        product: Array = (wide * slope[:, None]).astype(kind)
        return product.clip(-1, 1) if part.is_share else product
    product = (1 / n + slope[:, None] * (wide - 1 / n)).clip(0.0, 1.0).astype(kind)
    total = np.add.accumulate(product.astype(np.float64), axis=1)[:, -1:]
    return (product / total).astype(kind)


def leave_walk(walk: Walk, rows: Array) -> LeftRows:
    """Return how rows leave a walk, in the numbers of the file."""
    n, part, width = len(rows), walk.exits, walk.added.shape[-1]
    joints, sure_sizes = ([], np.zeros(0)) if part is None else (part.at.tolist(), part.sure)
    asked = np.append(joints, len(walk.tests))
    total, passed = np.repeat(walk.start[None], n, axis=0), np.zeros(n, dtype=np.intp)
    value = np.empty((n, walk.n_scores), dtype=walk.start.dtype)
    near = np.full(n, np.inf)

    def stays(active: NDArray[np.intp], t: int) -> NDArray[np.bool_]:
        """Ask rows at their next exit, after t trees, and return which of them do not leave."""
        value[active] = _value_after(walk, total[active], t)
        size, sure = sizes(_plain(value[active])), sure_sizes[passed[active]]
        is_sure = size >= sure
        near[active] = np.minimum(near[active], np.where(is_sure, size, (sure - size) / 2))
        passed[active] += ~is_sure
        return ~is_sure

    active = np.arange(n)
    for t, root in enumerate(walk.root.tolist()):
        if not walk.is_graph and t in joints:
            active = active[stays(active, t)]
        at, going = np.full(n, root), active
        while len(going := going[at[going] >= 0]):
            if walk.is_graph:
                is_asked = asked[passed[going]] == at[going]
                stay = ~is_asked
                stay[is_asked] = stays(going[is_asked], 0)
                going = going[stay]
            node = at[going]
            exit_ = above(walk.tests, node, rows[going]).astype(np.intp)
            at[going] = walk.next[node, exit_]
            if walk.is_graph:
                total[going] += walk.added[node, exit_]
        if walk.is_graph:
            active = active[at[active] < 0]  # others have left
        else:
            first = width * t % len(walk.start)
            total[active, first : first + width] += walk.added[-1 - at[active]]
    value[active] = _value_after(walk, total[active], len(walk.root))
    near[active] = np.minimum(near[active], sizes(_plain(value[active])))
    return LeftRows(value, passed, near)


def above(tests: Tests, node: Array, rows: Array) -> NDArray[np.bool_]:
    """Return whether rows take exit 1, each at a node of its own; nodes compare columns."""
    value = rows[np.arange(len(rows)), tests.feature[node]]
    is_missing = value == NO_VALUE if rows.dtype == np.int16 else np.isnan(value)
    is_above = np.asarray(goes_right(value, tests.threshold[node]))
    number = tests.category_set[node]
    is_set = number >= 0
    if is_set.any():
        level = np.where(is_missing, -1, value)
        is_level = (level >= 0) & (level < 255) & (level == np.floor(level))
        code = np.where(is_level, level, 0).astype(np.intp)
        inside = code < 8 * tests.sets.shape[1]
        byte = tests.sets[np.where(is_set, number, 0), np.where(inside, code // 8, 0)]
        is_above = np.where(is_set, inside & (byte >> (code % 8) & 1 == 1), is_above)
        is_missing |= is_set & ~is_level
    return np.where(is_missing, tests.missing[node], is_above)


def _plain(value: Array) -> Array:
    return value[:, 0] if value.shape[1] == 1 else value


def _value_after(walk: Walk, total: Array, t: int) -> Array:
    """Return the values (n, J) of sums after t trees; of whole numbers and of graphs, the sums."""
    part = walk.exits
    if part is not None and (walk.is_graph or part.unit):
        return total
    if walk.after is not None:
        total = walk.after + total
    divisor = walk.divisor if part is None or not part.is_share else t // part.each
    if divisor == 0:
        return np.zeros((len(total), walk.n_scores), dtype=total.dtype)
    if divisor > 1:
        total = total / total.dtype.type(divisor)
    return total[:, 1:] - total[:, :1] if walk.lead else total
