"""Growth of trees of sums whose nodes on a level are cut by what all of them together gain.

Whether large tables are grown so follows from pairs of columns that tell much together and little
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import boost
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.prebuilt import HOLES, LEVELS
from pboost.data.training import Problem
from pboost.growth.tree import CartLimits
from pboost.losses import Loss, is_of_package
from pboost.values import FloatArray, IntArray, check_number

GROWTHS = ("auto", "independent", "pooled", "symmetric", "cost_efficient")
#: Mean comparisons of a tree that is grown by gain per comparison, and its leaves, if not said.
COMPARISONS, MOST_LEAVES = 4.0, 1024
#: Memory for the masses and the gains of the open nodes of a level.
MOST_BYTES = 1 << 28
#: With more rows, or copies of rows as weights are, nodes of real tables know better themselves.
FEW_ROWS = 5000
#: Options that a node's search in columns of its own depends on.
OWN_COLUMNS = ("monotonic_cst", "interaction_cst", "max_features", "feature_costs")


class Share(NamedTuple):
    """From which depth on what share of the gain in all nodes of a level counts."""

    depth: int
    share: float


#: Of nodes near the root each has many rows, and its own gain says enough.
SHARES = {"pooled": Share(3, 0.8), "symmetric": Share(1, 1.0)}


@dataclass(frozen=True, slots=True, eq=False)
class Pooling:
    """The arrays of trees that grow level by level; see ``pboost/_core/_boost_pooled.pxd``.

    Attributes
    ----------
    depth : int
    share : float
        See `Share`.
    gains : ndarray of float32, shape (n_slots or 0, n_gains)
        What cuts gain in each open node, unless nothing but what they gain in all counts: of
        numbers by bin, with missing rows above, then below; of the sets of columns of levels; of
        columns of bundles.
    pool : ndarray of float32, shape (n_gains,)
        What they gain in all of them.
    set_place : ndarray of int64, shape (d,)
        Where the gains of columns of levels begin, -1 of others.
    sets : ndarray of uint8, shape (d or 0, boost.SETS_SIZE)
        The order of the levels of columns.
    """

    depth: int
    share: float
    gains: NDArray[np.float32]
    pool: NDArray[np.float32]
    set_place: IntArray
    sets: NDArray[np.uint8]


def limits_of_growth(
    options: Mapping[str, Any],
    limits: CartLimits,
    problem: Problem,
    n_copies: Callable[[], float],
    loss: Loss,
) -> tuple[str, CartLimits]:
    """Return `growth` as it is meant, and limits that say so; `n_copies` counts rows by weights.

    "auto" is the pooled one of few rows, where nothing speaks against it; of more it stays "auto"
    where the data tell independent from symmetric trees, see `growth_by_pairs`. ValueError
    or NotImplementedError where something speaks against a growth that is asked for.
    """
    growth: str = options["growth"]
    if growth == "cost_efficient":
        return growth, _by_comparisons(options, limits, problem)
    if options["tree_comparisons"] is not None:
        raise ValueError(
            f'tree_comparisons: expected None with growth={growth!r}; growth="cost_efficient" '
            "grows trees by what splits gain per comparison, up to so many"
        )
    is_given, is_open = growth != "auto", False
    if not is_given:
        n = n_copies()
        is_open = n > FEW_ROWS and _is_open(limits.depth, loss, problem.classes is not None)
        growth = "symmetric" if is_open else "pooled" if n <= FEW_ROWS else "independent"
    if growth != "independent":
        try:
            _check(growth, options, limits, problem)
        except (ValueError, NotImplementedError):
            if is_given:
                raise
            return "independent", limits
    if is_open:
        return "auto", limits
    return growth, limits if growth == "independent" else replace(limits, growth=growth)


def plain_comparisons(name: str, value: object) -> float | list[float] | None:
    """Return the option `tree_comparisons` as settings hold it: one number, or those of trees."""
    if value is None or isinstance(value, str) or not isinstance(value, Iterable):
        return None if value is None else check_number(name, value, min_value=1.0)
    numbers = [check_number(name, each, min_value=1.0) for each in value]
    if not numbers:
        raise ValueError(
            f"{name}: expected a number, or those of the first trees and of all that follow, got "
            "none"
        )
    return numbers


def _by_comparisons(options: Mapping[str, Any], limits: CartLimits, problem: Problem) -> CartLimits:
    """Return the limits of trees that grow by gain per comparison."""
    if not isinstance(problem.columns, BinnedColumns):
        raise NotImplementedError(
            'growth: expected "independent" with search="exact", got "cost_efficient"; a binned search '
            "grows trees by gain per comparison"
        )
    value = options["tree_comparisons"]
    bounds = value if isinstance(value, list) else [COMPARISONS if value is None else value]
    leaves = limits.leaves if limits.growth == "best_first" else MOST_LEAVES
    return replace(limits, growth="cost_efficient", leaves=leaves, comparisons=tuple(bounds))


def _is_open(depth: int, loss: Loss, of_labels: bool) -> bool:
    """Return whether symmetric trees may be better than independent ones."""
    if not is_of_package(loss) or loss.is_multiclass:
        return False
    # Of three levels only those of labels are ever better.
    return depth > 3 or (depth == 3 and of_labels)


def _check(
    growth: str, options: Mapping[str, object], limits: CartLimits, problem: Problem
) -> None:
    columns = problem.columns
    if not isinstance(columns, BinnedColumns):
        raise NotImplementedError(
            f'growth: expected "independent" with search="exact", got {growth!r}, for which cuts of '
            "different nodes have to be the same"
        )
    if options["multi_strategy"] != "one_output_per_tree":
        raise NotImplementedError(
            f'growth: expected "independent" with multi_strategy={options["multi_strategy"]!r}, got {growth!r}'
        )
    if limits.growth == "best_first":
        raise ValueError(
            f"max_leaf_nodes: expected None with growth={growth!r}, which goes level by level"
        )
    for name in OWN_COLUMNS:
        if options[name]:
            raise NotImplementedError(
                f"{name}: expected None with growth={growth!r}: nodes of a level are then not "
                'searched for the same cuts; growth="independent" takes it'
            )
    d, n = columns.n_features, problem.n_rows
    # 16 bytes of masses and up to 8 of gains of each bin.
    size = 24 * int(columns.n_bins.sum() + d) * open_nodes(limits.depth, n)
    if size > MOST_BYTES:
        raise ValueError(
            f"growth: the open nodes of a level take {size} bytes with growth={growth!r} and "
            f'max_depth={limits.depth}, of which there are {MOST_BYTES}; growth="independent" takes less'
        )


def open_nodes(depth: int, n: int) -> int:
    """Return how many nodes of a level can be open, and their children counted, at most."""
    return max(min(1 << min(depth - 1, 40), n), 1)


def pooling_of(
    share: Share, columns: BinnedColumns, n_bundled: int, cells: int, n_slots: int
) -> Pooling:
    """Return the arrays; `cells` are the bins of all lanes, `n_bundled` columns share one."""
    d, special = len(columns.codes), columns.special
    special = np.zeros(d, dtype=np.uint8) if special is None else special
    has_holes = bool((special == HOLES).any())
    of_levels = (special & LEVELS) > 0
    sizes = np.where(of_levels, 4 * columns.n_bins.astype(np.int64), 0)
    ends = (1 + has_holes) * cells + np.cumsum(sizes)
    n_gains = int(ends[-1]) + n_bundled
    return Pooling(
        share.depth,
        share.share,
        np.empty((n_slots if share.share < 1 else 0, n_gains), dtype=np.float32),
        np.empty(n_gains, dtype=np.float32),
        np.where(of_levels, ends - sizes, -1),
        np.empty((d if of_levels.any() else 0, boost.SETS_SIZE), dtype=np.uint8),
    )


#: Rows that are looked at, copies counted; of many columns fewer, down to `LEAST_ROWS`.
MOST_ROWS, LEAST_ROWS, MOST_WORK = 20_000, 1000, 1 << 25
#: A pair has to gain so many times what the best cut of either column gains, ...
RATIO = 9.0
#: ... or what a cut gains by chance.
CHANCE = 12.0
#: Gradients, and weights that are no copies, are rounded to so many bits: sums are then exact.
GRADIENT_BITS, WEIGHT_BITS = 20, 12
#: Rows that are hashed at a time: they stay in the cache.
HASHED_ROWS = 8192
#: The codes, targets and weights of the rows that are looked at; None: all have the weight 1.
Scanned: TypeAlias = tuple[NDArray[np.uint8], FloatArray, FloatArray | None]


def growth_by_pairs(
    growth: str,
    scan: Callable[[], Scanned],
    loss: Loss,
    are_copies: bool,
    bias: Any,
    limits: CartLimits,
) -> tuple[str, CartLimits]:
    """Return a growth, independent or symmetric in place of "auto", and the limits with it.

    `scan` returns the rows that are looked at, whose weights may be numbers of copies. Greedy free
    trees cut columns that tell nothing alone by chance only; of symmetric ones the chances of a
    level are taken together.
    """
    if growth != "auto":
        return growth, limits
    codes, y, weight = scan()
    if len(y):
        gradient = loss.gradient(y, np.full(len(y), float(bias)))
        if has_pure_interaction(codes, *rounded(gradient, weight, are_copies)):
            return "symmetric", replace(limits, growth="symmetric")
    return "independent", limits


def few_rows(
    codes: NDArray[np.uint8], y: FloatArray, weight: FloatArray | None, n_copies: int
) -> Scanned:
    """Return the rows of all partitions that are looked at, none if there are far too many."""
    max_rows = _most(len(codes))
    if len(y) > 2 * max_rows and n_copies > max_rows:  # of a table with few different rows
        return codes[:, :0], y[:0], weight
    return codes, y, weight


def _most(d: int) -> int:
    """Return how many rows of so many columns of numbers are looked at."""
    max_rows = min(MOST_ROWS, MOST_WORK // max(d * d, 1))
    return 0 if d < 2 or max_rows < LEAST_ROWS else max_rows


def scanned_part(
    columns: BinnedColumns, used: NDArray[np.bool_] | None, n_copies: int
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Return the rows of a part that are looked at, equal ones together, and their codes.

    There are none where it is not worth it; `n_copies` are those of all rows, wherever they are.
    """
    numbers = _numbers(columns)
    max_rows = _most(int(np.count_nonzero(numbers)))
    rows = np.empty(0, dtype=np.intp)
    if max_rows:
        taken = np.ones(columns.n_rows, dtype=bool)
        if n_copies > max_rows:
            taken = hashes(columns.codes) < np.uint64(max_rows / n_copies * 2.0**64)
        rows = np.flatnonzero(taken if used is None else taken & used)
    return rows, columns.codes[numbers][:, rows]


def _numbers(columns: BinnedColumns) -> NDArray[np.bool_]:
    """Return which columns hold numbers."""
    if columns.special is None:
        return np.ones(len(columns.codes), dtype=bool)
    return columns.special & LEVELS == 0


def hashes(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return numbers that depend on what is in each row only, and are spread evenly, (n,)."""
    d, n = codes.shape
    key = _mixed(np.arange(1, d + 1, dtype=np.uint64)) | np.uint64(1)
    hashed = np.zeros(n, dtype=np.uint64)
    for start in range(0, n, HASHED_ROWS):
        block = hashed[start : start + HASHED_ROWS]
        for times, column in zip(key, codes[:, start : start + HASHED_ROWS], strict=True):
            block += times * column
        block[:] = _mixed(block)
    return hashed


def _mixed(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the last step of splitmix64."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


def rounded(
    gradient: FloatArray, weight: FloatArray | None, are_copies: bool
) -> tuple[FloatArray, FloatArray, float]:
    """Return weighted gradients and weights, whole numbers, and what a cut gains by chance."""
    weight = np.ones(len(gradient)) if weight is None else weight
    if are_copies or (weight == 1).all():
        each = _whole(gradient, GRADIENT_BITS)
        sums, mass, square = weight * each, weight, weight * each * each
    else:
        sums, mass = _whole(weight * gradient, GRADIENT_BITS), _whole(weight, WEIGHT_BITS)
        square = sums * sums
    total = float(mass.sum())
    return sums, mass, boost.exact_sum(square) / total if total else 0.0


def _whole(values: FloatArray, bits: int) -> FloatArray:
    """Return whole numbers of so many bits, as many times the values as a power of two."""
    exponent = math.frexp(float(np.abs(values).max()))[1]
    # In two steps: the power alone may be beyond the numbers there are.
    return np.rint(np.ldexp(np.ldexp(values, -exponent), bits))


def has_pure_interaction(
    codes: NDArray[np.uint8], sums: FloatArray, mass: FloatArray, chance: float
) -> bool:
    """Return whether a pair gains far more than its columns, all of them whole numbers by row.

    A pair gains what a value for each quarter of the rows does that two cuts near the middle make.
    """
    alone, above = cut_alone(codes, sums, mass)
    both = pair_gains(above, sums, mass)
    either = np.maximum(np.maximum(alone[:, None], alone), CHANCE * chance)
    return bool((both > RATIO * either).any())


def cut_alone(
    codes: NDArray[np.uint8], sums: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the gain of the best cut of each column, and 1 for rows above its middle, else 0."""
    gains, above = np.empty(len(codes)), np.empty(codes.shape)
    for j, code in enumerate(codes):
        below, heavy = (np.bincount(code, weights=of).cumsum() for of in (sums, mass))
        total, total_weight = below[-1], heavy[-1]
        gains[j] = max(
            0.0, (_squares(below, heavy) + _squares(total - below, total_weight - heavy)).max()
        )
        gains[j] -= total * total / total_weight
        above[j] = code > np.abs(2 * heavy[:-1] - total_weight).argmin() if len(heavy) > 1 else 0.0
    return gains, above


def pair_gains(above: FloatArray, sums: FloatArray, mass: FloatArray) -> FloatArray:
    """Return what a value for each of the four parts that two cuts make gains, (d, d)."""
    gains = np.zeros((len(above), len(above)))
    upper = [(above * of) @ above.T for of in (sums, mass)]  # whole numbers: exact in any order
    totals = [float(of.sum()) for of in (sums, mass)]
    of_first = [of.diagonal()[:, None] for of in upper]
    of_second = [of.diagonal()[None, :] for of in upper]
    for part in (
        upper,
        [first - both for first, both in zip(of_first, upper, strict=True)],
        [first - both for first, both in zip(of_second, upper, strict=True)],
        [
            total - first - other + both
            for total, first, other, both in zip(totals, of_first, of_second, upper, strict=True)
        ],
    ):
        gains += _squares(*part)
    return gains - totals[0] * totals[0] / totals[1]


def _squares(sums: FloatArray, mass: FloatArray) -> FloatArray:
    """Return squares of sums by their masses, 0 where there is none."""
    return np.divide(sums * sums, mass, out=np.zeros_like(mass), where=mass > 0)
