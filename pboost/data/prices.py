"""Costs of columns, and of groups that are paid once for all their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.table import column_label, named_columns, positions
from pboost.values import FloatArray, IntArray, check_number, freeze, shown
from pboost.values.options import Option, filled

#: What a comparison costs by default, as a share of the mean cost of a column.
COMPARISON_SHARE = 0.01
#: Costs as builders take them, and as settings hold them, where pairs stand for mappings.
FeatureCostOption: TypeAlias = Mapping[str | int, float] | Sequence[Any] | ArrayLike | None
CostGroupOption: TypeAlias = Mapping[str, Sequence[str | int]] | Sequence[Sequence[Any]] | None


@dataclass(frozen=True, slots=True, eq=False)
class FeatureCosts:
    """What is to be paid for columns: each item once for a row, whatever needs it.

    Attributes
    ----------
    cost : ndarray of float64, shape (n_items,)
        The costs > 0 of items: of columns by themselves, and of groups.
    item : ndarray of int32, shape (d, 2)
        The items that each column needs: its own, and that of its group; -1 for none.
    comparison : float
        What a comparison costs whatever is paid.
    tradeoff : float or None
        What a unit of cost has to take from the loss; None: splits are chosen by what they take
        for what they cost.
    """

    cost: FloatArray
    item: IntArray
    comparison: float
    tradeoff: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", freeze(self.cost, np.float64))
        object.__setattr__(self, "item", freeze(self.item, np.int32))

    def items_of(self, read: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the items (n, n_items) that are paid where columns (n, d) are read."""
        return items_of(self.item, read, len(self.cost))

    def of_columns(self, read: NDArray[np.bool_]) -> FloatArray:
        """Return what it costs to read some columns, (n, d), of each row."""
        total: FloatArray = np.where(self.items_of(read), self.cost, 0.0).sum(axis=1)
        return total


def items_of(item: IntArray, read: NDArray[np.bool_], n_items: int) -> NDArray[np.bool_]:
    """Return the items (n, n_items) that columns (n, d) need that are read, see `FeatureCosts`."""
    paid = np.zeros((len(read), n_items), dtype=np.bool_)
    for j, items in enumerate(item.tolist()):
        for k in items:
            if k >= 0:
                paid[:, k] |= read[:, j]
    return paid


def plain_feature_costs(name: str, feature_costs: object) -> list[Any] | None:
    """Return the option as settings hold it: numbers, pairs of a column and a number, or None."""
    if feature_costs is None:
        return None
    if isinstance(feature_costs, Mapping):
        feature_costs = list(feature_costs.items())
    elif isinstance(feature_costs, str | bytes) or not isinstance(feature_costs, Iterable):
        raise TypeError(
            f"{name}: expected a number for each column, or a mapping of columns to numbers, got "
            f"{shown(feature_costs)}"
        )
    plain: list[object] = []
    for place, entry in enumerate(feature_costs):
        if isinstance(entry, list | tuple) and len(entry) == 2:
            (column,) = named_columns(name, entry[:1])
            plain.append([column, _cost(f"{name}[{column!r}]", entry[1])])
        else:
            plain.append(_cost(f"{name}[{place}]", entry))
    return plain


def plain_cost_groups(name: str, cost_groups: object) -> list[list[Any]] | None:
    """Return the option as settings hold it: pairs of a name or None and columns, or None."""
    if cost_groups is None:
        return None
    if isinstance(cost_groups, Mapping):
        cost_groups = list(cost_groups.items())
    elif isinstance(cost_groups, str | bytes) or not isinstance(cost_groups, Iterable):
        raise TypeError(
            f"{name}: expected a mapping of names to columns, or a sequence of groups of columns, "
            f"got {shown(cost_groups)}"
        )
    plain: list[list[object]] = []
    for group in cost_groups:
        pair = group if isinstance(group, list | tuple) and len(group) == 2 else (None, group)
        if isinstance(pair[1], str | int | np.integer):  # two columns
            pair = None, group
        called = None if pair[0] is None else str(pair[0])
        plain.append([called, list(named_columns(name, pair[1]))])
    return plain


class CostOptions(TypedDict, total=False):
    """What columns cost.

    Parameters
    ----------
    feature_costs : sequence of float or mapping, optional
        What columns cost, numbers >= 0: one for each, or a mapping of names or positions, where
        others cost nothing. A row pays for a column once. A split is then chosen by how much it
        lowers the criterion, by `comparison_cost` plus what a row at the node has still to pay:
        what is on the way there is paid.
    cost_groups : mapping or sequence of sequences of str or int, optional
        Groups of columns that are had together, by names or without: a row pays for a group
        once. A name in `feature_costs` is that of the group's cost, beside which columns cost what
        they cost by themselves; else a group costs as much as the dearest of its columns, and these
        cost nothing more.
    comparison_cost : float, optional
        What a comparison costs beside, > 0: the larger it is the less costs matter. Default: 1
        percent of the mean cost of a column.
    """

    feature_costs: Annotated[FeatureCostOption, Option(None, plain_feature_costs)]
    cost_groups: Annotated[CostGroupOption, Option(None, plain_cost_groups)]
    comparison_cost: Annotated[float | None, Option(None)]


#: The options that say what columns cost, and what they are where nothing has a cost.
COST_OPTIONS: dict[str, Any] = filled(CostOptions, {})


def read_feature_costs(
    options: Mapping[str, object], names: tuple[str, ...] | None, d: int
) -> FeatureCosts | None:
    """Return what `COST_OPTIONS` say of d columns; None where nothing has a cost."""
    feature_costs = plain_feature_costs("feature_costs", options["feature_costs"])
    cost_groups = plain_cost_groups("cost_groups", options["cost_groups"])
    comparison = options.get("comparison_cost")
    if comparison is not None:
        comparison = check_number("comparison_cost", comparison, min_value=0.0, open_min=True)
    tradeoff = options.get("cost_tradeoff")
    if tradeoff is not None:
        tradeoff = check_number("cost_tradeoff", tradeoff, min_value=0.0)
    if feature_costs is None:
        for name in ("cost_groups", "comparison_cost", "cost_tradeoff"):
            if options.get(name) is not None:
                raise ValueError(
                    f"{name}: expected None without feature_costs, of which it says more"
                )
        return None
    group = _group_of_columns(cost_groups, names, d)
    column_cost, fee = _amounts(feature_costs, cost_groups or [], group, names, d)
    item = np.full((d, 2), -1, dtype=np.int32)
    item[column_cost > 0, 0] = np.arange(np.count_nonzero(column_cost > 0))
    charged = np.flatnonzero(fee > 0)
    for k, g in enumerate(charged.tolist(), start=int(np.count_nonzero(column_cost > 0))):
        item[group == g, 1] = k
    if comparison is None:
        alone = column_cost + np.append(fee, 0.0)[group]  # the last is that of columns in no group
        comparison = COMPARISON_SHARE * float(alone.mean()) or 1.0
    return FeatureCosts(
        np.concatenate([column_cost[column_cost > 0], fee[charged]]), item, comparison, tradeoff
    )


def _cost(name: str, value: object) -> float:
    return check_number(name, value, min_value=0.0)


def _group_of_columns(
    cost_groups: list[list[Any]] | None, names: tuple[str, ...] | None, d: int
) -> IntArray:
    """Return the number of the group of each column, -1 where it is in none."""
    group = np.full(d, -1, dtype=np.int32)
    for number, (_, columns) in enumerate(cost_groups or []):
        for j in positions("cost_groups", columns, names, d):
            if group[j] >= 0:
                raise ValueError(
                    f"cost_groups: expected each column in one group, got {column_label(names, j)} in "
                    "two"
                )
            group[j] = number
    return group


def _amounts(
    feature_costs: list[Any],
    cost_groups: list[list[Any]],
    group: IntArray,
    names: tuple[str, ...] | None,
    d: int,
) -> tuple[FloatArray, FloatArray]:
    """Return what columns cost by themselves, (d,), and what groups cost.

    A group without a cost of its own costs as much as the dearest of its columns, which then cost
    nothing more.
    """
    column_cost, fee = np.zeros(d), np.full(len(cost_groups), np.nan)
    called = {name: number for number, (name, _) in enumerate(cost_groups) if name is not None}
    if feature_costs and not isinstance(feature_costs[0], list):
        if len(feature_costs) != d:
            raise ValueError(
                f"feature_costs: expected {d} numbers, one for each column, got {len(feature_costs)}"
            )
        column_cost[:] = feature_costs
    else:
        for column, cost in feature_costs:
            if column in called:
                if names is not None and column in names:
                    raise ValueError(
                        f"cost_groups: expected other names than columns have, got {column!r}"
                    )
                fee[called[column]] = cost
            else:
                column_cost[positions("feature_costs", [column], names, d)] = cost
    for number in np.flatnonzero(np.isnan(fee)).tolist():
        fee[number] = column_cost[group == number].max(initial=0.0)
        column_cost[group == number] = 0.0
    return column_cost, fee
