"""Growth of boosted trees in which the nodes of a level choose their splits together.

For large tables, ``growth="auto"`` is resolved by a search for pairs of features that are far more
predictive together than alone.
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
from pboost.data.training_data import Problem
from pboost.growth.tree import CartLimits
from pboost.losses import Loss, is_of_package
from pboost.values import FloatArray, IntArray, check_number

GROWTHS = ("auto", "independent", "pooled", "symmetric", "cost_efficient")
#: Default mean comparisons and maximum number of leaves with ``growth="cost_efficient"``.
COMPARISONS, MOST_LEAVES = 4.0, 1024
#: Maximum memory for the histograms and gains of the open nodes of a level.
MOST_BYTES = 1 << 28
#: Maximum number of rows, with copies, for pooled growth. It does not help with more rows.
FEW_ROWS = 5000
#: Options with which the nodes of a level have different candidate splits.
OWN_COLUMNS = ("monotonic_cst", "interaction_cst", "max_features", "feature_costs")


class Share(NamedTuple):
    """Weight of a whole level's gain in the choice of splits; it is used from `depth` on."""

    depth: int
    share: float


#: Pooling can start below the root, because the gain of a node with many rows is reliable.
SHARES = {"pooled": Share(3, 0.8), "symmetric": Share(1, 1.0)}


@dataclass(frozen=True, slots=True, eq=False)
class Pooling:
    """The arrays for trees that grow level by level; see ``pboost/_core/_boost_pooled.pxd``.

    Attributes
    ----------
    depth : int
    share : float
        See `Share`.
    gains : ndarray of float32, shape (n_slots or 0, n_gains)
        Gain of each candidate split in each open node; empty if `share` is 1. Numerical features
        come first (by bin, with missing values above, then below), then the sets of categorical
        features, then bundled features.
    pool : ndarray of float32, shape (n_gains,)
        Sum of the gains over the open nodes.
    set_place : ndarray of int64, shape (d,)
        Position of the first gain of each categorical feature, -1 for other features.
    sets : ndarray of uint8, shape (d or 0, boost.SETS_SIZE)
        Order of the categories of each feature.
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
    """Return `growth` after resolving "auto", and the limits for it.

    "auto" becomes "pooled" for few rows if the other options allow it. For more rows, it stays
    "auto" if the choice of independent or symmetric trees depends on the data, see
    `growth_by_pairs`. ValueError or NotImplementedError is raised if another option does not allow
    the requested growth. `n_copies` returns the number of rows, with copies.
    """
    growth: str = options["growth"]
    if growth == "cost_efficient":
        return growth, _by_comparisons(options, limits, problem)
    if options["tree_comparisons"] is not None:
        raise ValueError(
            f"tree_comparisons: expected None with growth={growth!r}, got "
            f'{options["tree_comparisons"]}; use growth="cost_efficient"'
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
    """Return the stored form of the option `tree_comparisons`: a number or a list."""
    if value is None or isinstance(value, str) or not isinstance(value, Iterable):
        return None if value is None else check_number(name, value, min_value=1.0)
    numbers = [check_number(name, each, min_value=1.0) for each in value]
    if not numbers:
        raise ValueError(
            f"{name}: expected a number, or a sequence of numbers for the first trees and all "
            "others, got an empty sequence"
        )
    return numbers


def _by_comparisons(options: Mapping[str, Any], limits: CartLimits, problem: Problem) -> CartLimits:
    """Return the limits of trees with ``growth="cost_efficient"``."""
    if not isinstance(problem.columns, BinnedColumns):
        raise NotImplementedError(
            'growth: expected "independent" with search="exact", got "cost_efficient"; use '
            'search="binned"'
        )
    value = options["tree_comparisons"]
    bounds = value if isinstance(value, list) else [COMPARISONS if value is None else value]
    leaves = limits.leaves if limits.growth == "best_first" else MOST_LEAVES
    return replace(limits, growth="cost_efficient", leaves=leaves, comparisons=tuple(bounds))


def _is_open(depth: int, loss: Loss, of_labels: bool) -> bool:
    """Return whether the choice of symmetric or independent trees depends on the data."""
    if not is_of_package(loss) or loss.is_multiclass:
        return False
    # Symmetric trees of depth 3 were never better in regression.
    return depth > 3 or (depth == 3 and of_labels)


def _check(
    growth: str, options: Mapping[str, object], limits: CartLimits, problem: Problem
) -> None:
    columns = problem.columns
    if not isinstance(columns, BinnedColumns):
        raise NotImplementedError(
            f'growth: expected "independent" with search="exact", got {growth!r}; use '
            'search="binned"'
        )
    if options["multi_strategy"] != "one_output_per_tree":
        raise NotImplementedError(
            'growth: expected "independent" with '
            f"multi_strategy={options['multi_strategy']!r}, got {growth!r}"
        )
    if limits.growth == "best_first":
        raise ValueError(
            f"max_leaf_nodes: expected None with growth={growth!r}, got {limits.leaves}; use "
            'growth="independent"'
        )
    for name in OWN_COLUMNS:
        if options[name]:
            raise NotImplementedError(
                f"{name}: expected None with growth={growth!r}, since all nodes of a level need "
                'the same candidate splits; use growth="independent"'
            )
    d, n = columns.n_features, problem.n_rows
    # Each bin takes 16 bytes in the histograms and up to 8 for gains.
    size = 24 * int(columns.n_bins.sum() + d) * open_nodes(limits.depth, n)
    if size > MOST_BYTES:
        raise ValueError(
            f"growth: expected at most {MOST_BYTES} bytes for the open nodes of a level, got "
            f"{size} with growth={growth!r} and max_depth={limits.depth}; use "
            'growth="independent"'
        )


def open_nodes(depth: int, n: int) -> int:
    """Return the maximum number of nodes on the last level that is split."""
    return max(min(1 << min(depth - 1, 40), n), 1)


def pooling_of(
    share: Share, columns: BinnedColumns, n_bundled: int, cells: int, n_slots: int
) -> Pooling:
    """Allocate the arrays for `cells` bins and `n_bundled` features in bundles."""
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


#: Limits of the search for pairs: maximum and minimum number of rows, and maximum of the number of
#: rows times the squared number of features.
MOST_ROWS, LEAST_ROWS, MOST_WORK = 20_000, 1000, 1 << 25
#: Minimum ratio of the gain of a pair to the best gain of either feature.
RATIO = 9.0
#: Minimum gain of a feature in the denominator of RATIO, as a multiple of the gain by chance.
CHANCE = 12.0
#: Number of bits of rounded gradients, and of weights that are not copies, for exact sums.
GRADIENT_BITS, WEIGHT_BITS = 20, 12
#: Number of rows that are hashed at a time, so that they stay in the cache.
HASHED_ROWS = 8192
#: Codes, targets and weights of the rows in the search for pairs; None if all weights are 1.
Scanned: TypeAlias = tuple[NDArray[np.uint8], FloatArray, FloatArray | None]


def growth_by_pairs(
    growth: str,
    scan: Callable[[], Scanned],
    loss: Loss,
    are_copies: bool,
    bias: Any,
    limits: CartLimits,
) -> tuple[str, CartLimits]:
    """Replace the growth "auto" by "independent" or "symmetric"; return growth and limits.

    `scan` returns rows for the search for pairs. If `are_copies`, weights are numbers of copies. If
    two features are only predictive together, independent trees find their splits by chance.
    Symmetric trees find them more often, because they add up the gains of a whole level.
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
    """Return the scanned rows of all partitions, or no rows if there are far too many."""
    max_rows = _most(len(codes))
    if len(y) > 2 * max_rows and n_copies > max_rows:  # too many equal rows were selected
        return codes[:, :0], y[:0], weight
    return codes, y, weight


def _most(d: int) -> int:
    """Return the number of rows to scan, given the number of numerical features."""
    max_rows = min(MOST_ROWS, MOST_WORK // max(d * d, 1))
    return 0 if d < 2 or max_rows < LEAST_ROWS else max_rows


def scanned_part(
    columns: BinnedColumns, used: NDArray[np.bool_] | None, n_copies: int
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Return the rows of a partition for the search, and their codes.

    `n_copies` is the number of rows in all partitions, with copies. Equal rows are either all
    returned or all left out.
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
    """Return a mask of the numerical features."""
    if columns.special is None:
        return np.ones(len(columns.codes), dtype=bool)
    return columns.special & LEVELS == 0


def hashes(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return a uniform hash of the codes of each row, shape (n,)."""
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
    """Return weighted gradients and weights as integers, and the gain expected by chance."""
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
    """Return values times a power of two, rounded to integers of `bits` bits."""
    exponent = math.frexp(float(np.abs(values).max()))[1]
    # Two steps are needed, because the power of two alone may overflow.
    return np.rint(np.ldexp(np.ldexp(values, -exponent), bits))


def has_pure_interaction(
    codes: NDArray[np.uint8], sums: FloatArray, mass: FloatArray, chance: float
) -> bool:
    """Return whether some pair of features gains far more than each of them alone.

    The gain of a pair is the gain of four cells, made by a split of each feature near its median.
    All inputs are integers, so the sums are exact.
    """
    alone, above = cut_alone(codes, sums, mass)
    both = pair_gains(above, sums, mass)
    either = np.maximum(np.maximum(alone[:, None], alone), CHANCE * chance)
    return bool((both > RATIO * either).any())


def cut_alone(
    codes: NDArray[np.uint8], sums: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the best gain of each feature, and whether rows are above its median (1.0 or 0.0)."""
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
    """Return the gain of the four cells of each pair of features, shape (d, d)."""
    gains = np.zeros((len(above), len(above)))
    upper = [(above * of) @ above.T for of in (sums, mass)]  # sums of integers are exact
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
    """Return squared sums divided by weights, 0 if the weight is 0."""
    return np.divide(sums * sums, mass, out=np.zeros_like(mass), where=mass > 0)
