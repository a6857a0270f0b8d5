"""Conversion of models to float32 and int16, and a simulation of the C code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.export.c_intermediate import JointExits, Maps, Part, Tests, Walk, on_walks
from pboost.export.c_print import NO_VALUE
from pboost.models.base import Model
from pboost.models.calibrated import CalibratedModel
from pboost.models.evaluate.exits import sizes
from pboost.models.evaluate.graph_walk import goes_right
from pboost.values import Array, FloatArray, IntArray, as_array, shown

#: Range of grid numbers; the smallest int16 stands for a missing value.
LEAST, MOST = NO_VALUE + 1, 2**15 - 1
#: Largest sum of votes.
MOST_SUM = 2**31 - 1
#: Maximum number of fractional bits of factors, and the largest factor. Products are int64.
MOST_PLACES, MOST_FACTOR = 30, 2.0**29
#: Largest slope of early exits. If slopes are larger than 1, sums get fewer fractional bits.
MOST_SLOPE = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Grid of feature values in int16: the number q stands for offset[j] + step[j] * q.

    Attributes
    ----------
    offset : ndarray of float64, shape (d,)
        Value of q = 0, in the units of the feature.
    step : ndarray of float64, shape (d,)
        Distance between grid points.
    """

    offset: FloatArray
    step: FloatArray

    def values(self, q: Array) -> FloatArray:
        """Return the values of grid numbers (n, d); missing values are NaN."""
        values: FloatArray = self.offset + self.step * q
        return np.where(q == NO_VALUE, np.nan, values)

    def numbers(self, values: FloatArray) -> NDArray[np.int16]:
        """Return the numbers (n, d) of the nearest grid points, clipped to the grid."""
        with np.errstate(over="ignore"):
            q = np.rint((values - self.offset) / self.step)
        return np.where(np.isnan(q), NO_VALUE, np.clip(q, LEAST, MOST)).astype(np.int16)

    def below(self, column: int | IntArray, value: FloatArray) -> NDArray[np.int16]:
        """Return the largest grid number whose value is at most `value`, elementwise.

        Below the grid, the result is the first grid number minus 1.
        """
        offset, step = self.offset[column], self.step[column]
        with np.errstate(over="ignore", invalid="ignore"):
            q = np.clip(np.floor((value - offset) / step), LEAST - 1, MOST)
        # Correct rounding errors of the division by comparing the grid values.
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
    """Return a grid for the features that a model uses, based on rows X or on ranges.

    By default, steps are 1 for category codes and for integer features in X if their range fits.
    Otherwise, a step is the smallest power of two for which the range fits.
    """
    offset, step = np.zeros(d), np.ones(d)
    fixed_steps = None if grid_steps is None else _check_steps(grid_steps, d)
    ends = _ends(d, X, ranges)
    for j in columns[~is_level[columns]].tolist():
        lowest, highest = ends[:, j].tolist()
        if lowest > highest:
            raise ValueError(
                f"X: expected a non-missing value in column {j}, which the model uses, got none; "
                "pass ranges="
            )
        if fixed_steps is not None:
            step[j] = fixed_steps[j]
        elif X is None or not _is_whole(X[:, j], lowest, highest):
            step[j] = _least_step(lowest, highest)
        offset[j] = _offset(lowest, highest, step[j])
        top = np.rint((np.array([lowest, highest]) - offset[j]) / step[j])
        if not (top[0] >= LEAST and top[1] <= MOST):
            raise ValueError(
                f"grid_steps: expected a step for which column {j}, from {lowest:g} to "
                f"{highest:g}, has at most {MOST - LEAST + 1} points, got {step[j]:g}"
            )
    return Grid(offset, step)


def _check_steps(grid_steps: ArrayLike, d: int) -> FloatArray:
    array = as_array("grid_steps", grid_steps)
    if array.dtype.kind not in "iuf" or array.shape not in ((), (d,)):
        raise ValueError(
            f"grid_steps: expected one number, or an array of shape ({d},), got dtype "
            f"{array.dtype} and shape {array.shape}"
        )
    step_per_column: FloatArray = np.broadcast_to(array.astype(np.float64), (d,))
    if not (np.isfinite(step_per_column) & (step_per_column > 0)).all():
        raise ValueError("grid_steps: expected finite numbers > 0")
    return step_per_column


def _ends(d: int, X: FloatArray | None, ranges: ArrayLike | None) -> FloatArray:
    """Return the minimum and maximum of each feature, shape (2, d)."""
    if ranges is not None:
        array = as_array("ranges", ranges)
        if array.dtype.kind not in "iuf" or array.shape != (d, 2):
            raise ValueError(
                f"ranges: expected an array of shape ({d}, 2), got shape {array.shape} and dtype "
                f"{array.dtype}"
            )
        ends = array.astype(np.float64).T
        if not (np.isfinite(ends).all() and (ends[0] <= ends[1]).all()):
            raise ValueError("ranges: expected finite numbers with minimum <= maximum in each row")
        return ends
    assert X is not None
    with np.errstate(invalid="ignore"):
        known = np.isnan(X)
        lowest = np.where(known, np.inf, X).min(axis=0, initial=np.inf)
        highest = np.where(known, -np.inf, X).max(axis=0, initial=-np.inf)
    return np.array([lowest, highest])


def _is_whole(values: FloatArray, lowest: float, highest: float) -> bool:
    """Return whether all values are integers whose range fits with a step of 1."""
    known = values[~np.isnan(values)]
    return highest - lowest <= MOST - LEAST and bool((known == np.floor(known)).all())


def _least_step(lowest: float, highest: float) -> float:
    """Return the smallest power of two for which a range fits, with one point to spare."""
    span = (highest / 2 - lowest / 2) * 2.0 ** -(int(MOST).bit_length())
    if span == 0:
        span = max(abs(highest), 1.0) * 2.0 ** -int(MOST).bit_length()
    fraction, exponent = np.frexp(span)
    step = float(np.ldexp(1.0, int(exponent) - (fraction == 0.5)))
    # The ends of the range must also fit after rounding.
    return step if (highest - lowest) / step < MOST - LEAST - 1 else 2 * step


def _offset(lowest: float, highest: float, step: float) -> float:
    """Return the offset: 0 if the range fits, otherwise a multiple of the step near its center."""
    if np.rint(lowest / step) >= LEAST and np.rint(highest / step) <= MOST:
        return 0.0
    return float(np.rint((lowest / 2 + highest / 2) / step) * step)


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A `Walk` in fixed point.

    Attributes
    ----------
    part : Walk
        The walk, with int16 thresholds and int32 votes.
    shift : int
        Number of fractional bits of the votes.
    terms : int
        Maximum number of votes that are added for a row.
    scale : float
        Factor that converts sums to decision values.
    """

    part: Walk
    shift: int
    terms: int
    scale: float

    @property
    def bound(self) -> float:
        """Bound above which a decision value or lead gives the same class as in float64."""
        of_leads = 1 if self.part.n_scores == 1 else 2
        return of_leads * self.terms * self.scale / 2


def compared(part: Part) -> Walk:
    """Return the `Walk` of a model, or raise a NotImplementedError if int16 does not support it."""
    if not isinstance(part, Walk):
        raise NotImplementedError(
            'dtype: "int16" supports only graphs, trees and sums of trees, but this model '
            'is a sum of features or combines other models; use "float64" or "float32"'
        )
    if part.tests.inputs is not None:
        raise NotImplementedError(
            'dtype: "int16" supports only nodes that compare features, but the nodes of this model '
            'compare sums; use "float64" or "float32"'
        )
    if len(part.tests.sets) > MOST:
        raise NotImplementedError(
            f'dtype: "int16" supports only models with at most {MOST} category sets, got '
            f'{len(part.tests.sets)}; use "float64" or "float32"'
        )
    return part


def fixed_part(part: Part, grid: Grid) -> Fixed:
    """Return a `Walk` with thresholds on a grid and integer votes.

    The rounded sum differs from the exact sum by at most ``terms / 2 * 2**-shift``. If both
    branches of each node lead to the next node, the votes of exit 0 are added to the start, and
    exit 1 adds the difference of the two votes.
    """
    walk = compared(part)
    return _fixed_walk(walk, grid) if walk.exits is None else _fixed_exits(walk, walk.exits, grid)


def _fixed_walk(part: Walk, grid: Grid, factor: float = 1.0) -> Fixed:
    """Return a `Walk` in fixed point whose sums do not overflow when multiplied by `factor`.

    With early exits, this also holds for the sums at each exit.
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
    """Return a `Walk` with early exits in fixed point.

    A row stops if its integer sum reaches a threshold. Thresholds are lowered by the largest
    rounding error of the sums. For class shares, the factor of an exit also divides the sum by the
    number of trees before the exit. Sums and factors have 31 bits.
    """
    is_mean, slope = part.is_share, part.slope.astype(np.float64)
    room = room_of_leads = 1.0 if walk.n_scores == 1 else 2.0  # leads are differences
    if not is_mean and slope.max(initial=1.0) > MOST_SLOPE:
        raise NotImplementedError(
            f'dtype: "int16" supports only early exits with slopes up to {MOST_SLOPE}, got '
            f'{slope.max():g}; use "float64" or "float32"'
        )
    if not is_mean:
        room *= max(1.0, float(slope.max(initial=1.0)))
    fixed = _fixed_walk(walk, grid, room)
    if (
        is_mean and np.ldexp(walk.divisor, fixed.shift) > MOST_SUM
    ):  # a share of 1 must fit into int32
        room *= float(np.ldexp(walk.divisor, fixed.shift)) / 2**30
        fixed = _fixed_walk(walk, grid, room)
    trees = part.at / part.each if is_mean else np.ones(len(slope))
    # Lower thresholds, because rows at a threshold must stop in spite of rounding errors.
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
    """Return the values. If the walk only needs the lead, subtract the first from the second."""
    return of[..., 1:] - of[..., :1] if part.lead else of


def _most(part: Walk, added: FloatArray) -> tuple[float, int]:
    """Return the largest sum of absolute values on a path, and its number of terms."""
    size = np.abs(added).max(axis=-1, initial=0.0)
    n = len(part.tests)
    if not part.is_graph:
        turns = len(part.start) // part.added.shape[-1]
        largest = _largest_leaves(part, size).reshape(-1, turns).sum(axis=0)
        return float(largest.max()), len(part.root) // turns
    largest_sum, steps = (
        np.zeros(n + 1),
        np.zeros(n + 1, dtype=np.int64),
    )  # the last entry is 0, for the end of the path
    for node in range(n - 1, -1, -1):
        largest_sum[node] = max(size[node] + largest_sum[part.next[node]])
        steps[node] = 1 + steps[part.next[node]].max()
    return float(largest_sum[0]), int(steps[0])


def _largest_leaves(part: Walk, size: FloatArray) -> FloatArray:
    """Return the largest absolute leaf value of each tree. Leaves are ordered by tree."""
    n_leaves = len(size)
    # The number of leaves of a tree is the number of its inner nodes plus 1.
    inner = np.append(part.root[part.root >= 0], len(part.tests))
    sizes = np.ones(len(part.root), dtype=np.int64)
    sizes[part.root >= 0] = np.diff(inner) + 1
    assert sizes.sum() == n_leaves
    return np.asarray(np.maximum.reduceat(size, np.cumsum(sizes) - sizes))


def _shift(votes: FloatArray | None, start: float, largest_added: float, terms: float) -> int:
    """Return the largest number of fractional bits for which no sum overflows int32.

    If `votes` (n, 2, 1) is passed, the difference of the two votes of each node must not
    overflow either, because the C file stores only the difference.
    """
    largest = largest_added + start
    if votes is not None:
        largest = max(largest, float(np.abs(votes[:, 1] - votes[:, 0]).max(initial=0.0)))
    if not largest:
        return 0
    shift = 31 - int(np.frexp(largest)[1]) + 1
    while np.ldexp(largest, shift) + terms > MOST_SUM:
        shift -= 1
    return shift


def _on_grid(tests: Tests, grid: Grid) -> Tests:
    """Return the splits with thresholds on the grid."""
    threshold = grid.below(tests.feature, tests.threshold)
    return replace(
        tests, threshold=np.where(tests.category_set >= 0, 0, threshold).astype(np.int16)
    )


def single_part(part: Part, vote_dtype: str) -> Part:
    """Return a representation for float32 rows, with thresholds rounded down to float32.

    This changes no split, because no float32 lies between a threshold and its rounded value.
    """

    def single(walk: Walk) -> Walk:
        single_walk = replace(walk, tests=_single_tests(walk.tests))
        return single_walk if vote_dtype == "float64" else _votes_as(single_walk, _rounded)

    return on_walks(part, single)


def _votes_as(walk: Walk, change: Callable[[Array], Array]) -> Walk:
    """Return a `Walk` with `change` applied to its votes and initial values."""
    after = None if walk.after is None else change(walk.after)
    return replace(walk, added=change(walk.added), start=change(walk.start), after=after)


def _rounded(values: Array) -> Array:
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise ValueError(
            'vote_dtype: expected "float64", because some votes are too large for float32'
        )
    return rounded


def _single_tests(tests: Tests) -> Tests:
    if tests.inputs is not None:  # sums of features are float64
        return tests
    with np.errstate(over="ignore"):
        threshold = tests.threshold.astype(np.float32)
    down = np.nextafter(threshold, np.float32(-np.inf))
    threshold = np.where(threshold > tests.threshold, down, threshold)
    return replace(tests, threshold=threshold)


def folded(model: Model, part: Part) -> Part:
    """Return a calibrated model as a `Walk` for fixed point. Return other models unchanged.

    With Platt scaling, the votes are multiplied by the slope, so that sums are decision values.
    With isotonic calibration, the value at which the probability crosses 1/2 is subtracted, which
    keeps the predicted class.
    """
    if not isinstance(model, CalibratedModel):
        return part
    assert isinstance(part, Maps)
    if len(model.classes) > 2:
        raise NotImplementedError(
            'dtype: "int16" supports only calibrated models with two classes, got '
            f'{len(model.classes)} classes; use "float64" or "float32"'
        )
    walk = part.part
    if not isinstance(walk, Walk) or walk.exits is not None:
        raise NotImplementedError(
            'dtype: "int16" supports only calibrated graphs, trees and sums of trees without early '
            'exits; use "float64" or "float32"'
        )
    if part.is_line:
        slope, intercept = float(model.slope[0]), float(model.intercept[0])
        return _times(walk, slope / 2, intercept / 2)
    return _times(walk, 1.0, -_crossing(model))


def _times(walk: Walk, slope: float, intercept: float) -> Walk:
    """Return a `Walk` whose decision value is a linear function of the original value."""
    scaled = _votes_as(walk, lambda of: slope * of.astype(np.float64))
    scaled.start[-1] += walk.divisor * intercept
    return replace(scaled, lead=len(scaled.start) > 1)


def _crossing(model: CalibratedModel) -> float:
    """Return the largest decision value whose calibrated probability is at most 1/2."""
    knot, share = model.knot, model.share
    above = int(np.searchsorted(share, 0.5, side="right"))
    if above in (0, len(share)):
        label = shown(model.classes[int(above == 0)].item())
        raise NotImplementedError(
            'dtype: "int16" supports only calibrated probabilities that cross 1/2, but this model '
            f'predicts {label} for all rows; use "float64" or "float32"'
        )
    low, high = float(knot[above - 1]), float(knot[above])
    while (middle := low / 2 + high / 2) not in (low, high):
        if float(np.interp(middle, knot, share)) > 0.5:
            high = middle
        else:
            low = middle
    return low


# Simulation of the C code


class LeftRows(NamedTuple):
    """The exit (n,) of each row, and its values (n, J) at this exit.

    If a row takes no exit, `exit` is the number of exits. `near` (n,) is the absolute value or, if
    smaller, half the smallest distance to the threshold of an earlier exit.
    """

    value: Array
    exit: NDArray[np.intp]
    near: NDArray[np.float64]


def sums_of(walk: Walk, rows: Array) -> Array:
    """Return the decision values (n, J) of rows in the number types of the file."""
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
    """Return integer quotients, rounded towards 0 as in C. Divisors are positive."""
    quotient: Array = np.sign(a) * (np.abs(a) // b)
    return quotient


def _scaled(part: JointExits, value: Array, slope: Array) -> Array:
    """Return the products of values and slopes, in the number type of the file."""
    kind, wide, n = value.dtype, value.astype(np.float64), value.shape[1]
    if not part.is_share or n == 1:
        product: Array = (wide * slope[:, None]).astype(kind)
        return product.clip(-1, 1) if part.is_share else product
    product = (1 / n + slope[:, None] * (wide - 1 / n)).clip(0.0, 1.0).astype(kind)
    total = np.add.accumulate(product.astype(np.float64), axis=1)[:, -1:]
    return (product / total).astype(kind)


def leave_walk(walk: Walk, rows: Array) -> LeftRows:
    """Return the exits of rows and their values, computed in the number types of the file."""
    n, part, width = len(rows), walk.exits, walk.added.shape[-1]
    joints, sure_sizes = ([], np.zeros(0)) if part is None else (part.at.tolist(), part.sure)
    asked = np.append(joints, len(walk.tests))
    total, passed = np.repeat(walk.start[None], n, axis=0), np.zeros(n, dtype=np.intp)
    value = np.empty((n, walk.n_scores), dtype=walk.start.dtype)
    near = np.full(n, np.inf)

    def stays(active: NDArray[np.intp], t: int) -> NDArray[np.bool_]:
        """Return whether each row continues after its next exit, which follows t trees."""
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
            active = active[at[active] < 0]  # remove rows that have stopped
        else:
            first = width * t % len(walk.start)
            total[active, first : first + width] += walk.added[-1 - at[active]]
    value[active] = _value_after(walk, total[active], len(walk.root))
    near[active] = np.minimum(near[active], sizes(_plain(value[active])))
    return LeftRows(value, passed, near)


def above(tests: Tests, node: Array, rows: Array) -> NDArray[np.bool_]:
    """Return whether each row goes to branch 1 at its node."""
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
    """Return the values (n, J) after t trees. For integers and graphs, return the sums."""
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
