"""Growth of trees of sums whose nodes on a level are cut by what all of them together gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import boost
from pboost.data.columns import BinnedColumns
from pboost.data.special_columns import HOLES, LEVELS
from pboost.data.training import Problem
from pboost.growth.tree import CartLimits
from pboost.losses import Loss, is_of_package
from pboost.trees.lanes import Lanes
from pboost.values import IntArray, check_number

GROWTHS = ("auto", "free", "pooled", "symmetric", "per-comparison")
#: Mean comparisons of a tree that is grown by gain per comparison, and its leaves, if not said.
COMPARISONS, MOST_LEAVES = 4.0, 1024
#: Memory for the masses and the gains of the open nodes of a level.
MOST_BYTES = 1 << 28
#: With more rows, or copies of rows as weights are, nodes of real tables know better themselves.
FEW_ROWS = 5000
#: Options that a node's search in columns of its own depends on.
OWN_COLUMNS = ("monotone", "interactions", "features_per_split", "prices")


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
    where the data tell free from symmetric trees, see ``pboost/trees/pairs.py``. ValueError
    or NotImplementedError where something speaks against a growth that is asked for.
    """
    growth: str = options["growth"]
    if growth == "per-comparison":
        return growth, _by_comparisons(options, limits, problem)
    if options["tree_comparisons"] is not None:
        raise ValueError(
            f'tree_comparisons: expected None with growth={growth!r}; growth="per-comparison" '
            "grows trees by what splits gain per comparison, up to so many"
        )
    is_given, is_open = growth != "auto", False
    if not is_given:
        n = n_copies()
        is_open = n > FEW_ROWS and _is_open(limits.depth, loss, problem.labels is not None)
        growth = "symmetric" if is_open else "pooled" if n <= FEW_ROWS else "free"
    if growth != "free":
        try:
            _check(growth, options, limits, problem)
        except (ValueError, NotImplementedError):
            if is_given:
                raise
            return "free", limits
    if is_open:
        return "auto", limits
    return growth, limits if growth == "free" else replace(limits, growth=growth)


def plain_comparisons(name: str, given: Any) -> float | list[float] | None:
    """Return the option `tree_comparisons` as settings hold it: one number, or those of trees."""
    if given is None or isinstance(given, str) or not isinstance(given, Iterable):
        return None if given is None else check_number(name, given, least=1.0)
    found = [check_number(name, each, least=1.0) for each in given]
    if not found:
        raise ValueError(
            f"{name}: expected a number, or those of the first trees and of all that follow, got "
            "none"
        )
    return found


def _by_comparisons(options: Mapping[str, Any], limits: CartLimits, problem: Problem) -> CartLimits:
    """Return the limits of trees that grow by gain per comparison."""
    if not isinstance(problem.columns, BinnedColumns):
        raise NotImplementedError(
            'growth: expected "free" with search="exact", got "per-comparison"; a binned search '
            "grows trees by gain per comparison"
        )
    given = options["tree_comparisons"]
    bounds = given if isinstance(given, list) else [COMPARISONS if given is None else given]
    leaves = limits.leaves if limits.growth == "best-first" else MOST_LEAVES
    return replace(limits, growth="per-comparison", leaves=leaves, comparisons=tuple(bounds))


def _is_open(depth: int, loss: Loss, of_labels: bool) -> bool:
    """Return whether symmetric trees may be better than free ones."""
    if not is_of_package(loss) or loss.is_multiclass:
        return False
    # Of three levels only those of labels are ever better.
    return depth > 3 or (depth == 3 and of_labels)


def _check(growth: str, options: Mapping[str, Any], limits: CartLimits, problem: Problem) -> None:
    columns = problem.columns
    if not isinstance(columns, BinnedColumns):
        raise NotImplementedError(
            f'growth: expected "free" with search="exact", got {growth!r}, for which cuts of '
            "different nodes have to be the same"
        )
    if options["trees"] != "per-class":
        raise NotImplementedError(
            f'growth: expected "free" with trees={options["trees"]!r}, got {growth!r}'
        )
    if limits.growth == "best-first":
        raise ValueError(
            f"max_leaves: expected None with growth={growth!r}, which goes level by level"
        )
    for name in OWN_COLUMNS:
        if options[name]:
            raise NotImplementedError(
                f"{name}: expected None with growth={growth!r}: nodes of a level are then not "
                'searched for the same cuts; growth="free" takes it'
            )
    d, n = columns.n_features, problem.n_rows
    # 16 bytes of masses and up to 8 of gains of each bin.
    size = 24 * int(columns.n_bins.sum() + d) * open_nodes(limits.depth, n)
    if size > MOST_BYTES:
        raise ValueError(
            f"growth: the open nodes of a level take {size} bytes with growth={growth!r} and "
            f'max_depth={limits.depth}, of which there are {MOST_BYTES}; growth="free" takes less'
        )


def open_nodes(depth: int, n: int) -> int:
    """Return how many nodes of a level can be open, and their children counted, at most."""
    return max(min(1 << min(depth - 1, 40), n), 1)


def pooling_of(
    share: Share, columns: BinnedColumns, lanes: Lanes, cells: int, n_slots: int
) -> Pooling:
    """Return the arrays; `cells` are the bins of all lanes."""
    d, special = len(columns.codes), columns.special
    special = np.zeros(d, dtype=np.uint8) if special is None else special
    has_holes = bool((special == HOLES).any())
    of_levels = (special & LEVELS) > 0
    sizes = np.where(of_levels, 4 * columns.n_bins.astype(np.int64), 0)
    ends = (1 + has_holes) * cells + np.cumsum(sizes)
    n_gains = int(ends[-1]) + len(lanes.bundled)
    return Pooling(
        share.depth,
        share.share,
        np.empty((n_slots if share.share < 1 else 0, n_gains), dtype=np.float32),
        np.empty(n_gains, dtype=np.float32),
        np.where(of_levels, ends - sizes, -1),
        np.empty((d if of_levels.any() else 0, boost.SETS_SIZE), dtype=np.uint8),
    )
