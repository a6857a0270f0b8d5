"""Feature costs, and costs of groups of features that are acquired together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.table import column_label, named_columns, positions
from pboost.values import FloatArray, IntArray, check_number, freeze, shown
from pboost.values.options import Option, filled

#: Default cost of a comparison, as a fraction of the mean feature cost.
COMPARISON_SHARE = 0.01
#: Types of the options. Model settings store mappings as pairs.
FeatureCostOption: TypeAlias = Mapping[str | int, float] | Sequence[Any] | ArrayLike | None
CostGroupOption: TypeAlias = Mapping[str, Sequence[str | int]] | Sequence[Sequence[Any]] | None


@dataclass(frozen=True, slots=True, eq=False)
class FeatureCosts:
    """Costs of items. Each item is charged once per row, even if its features are used repeatedly.

    Attributes
    ----------
    cost : ndarray of float64, shape (n_items,)
        Positive costs of the items, which are single features or groups.
    item : ndarray of int32, shape (d, 2)
        Two items per feature: the feature itself and its group. -1 means none.
    comparison : float
        Cost of a comparison, in addition to its features.
    tradeoff : float or None
        Decrease of the loss required per unit of cost. None selects splits by the ratio of decrease
        and cost.
    """

    cost: FloatArray
    item: IntArray
    comparison: float
    tradeoff: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", freeze(self.cost, np.float64))
        object.__setattr__(self, "item", freeze(self.item, np.int32))

    def items_of(self, read: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the items (n, n_items) that are charged for the used features (n, d)."""
        return items_of(self.item, read, len(self.cost))

    def of_columns(self, read: NDArray[np.bool_]) -> FloatArray:
        """Return the cost of each row for the used features (n, d)."""
        total: FloatArray = np.where(self.items_of(read), self.cost, 0.0).sum(axis=1)
        return total


def items_of(item: IntArray, read: NDArray[np.bool_], n_items: int) -> NDArray[np.bool_]:
    """Return the items (n, n_items) of the used features (n, d); see `FeatureCosts`."""
    paid = np.zeros((len(read), n_items), dtype=np.bool_)
    for j, items in enumerate(item.tolist()):
        for k in items:
            if k >= 0:
                paid[:, k] |= read[:, j]
    return paid


def plain_feature_costs(name: str, feature_costs: object) -> list[Any] | None:
    """Convert `feature_costs` to numbers, to pairs of feature and number, or to None."""
    if feature_costs is None:
        return None
    if isinstance(feature_costs, Mapping):
        feature_costs = list(feature_costs.items())
    elif isinstance(feature_costs, str | bytes) or not isinstance(feature_costs, Iterable):
        raise TypeError(
            f"{name}: expected one number per feature, or a mapping of features to numbers, got "
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
    """Convert `cost_groups` to pairs of group name (or None) and features, or to None."""
    if cost_groups is None:
        return None
    if isinstance(cost_groups, Mapping):
        cost_groups = list(cost_groups.items())
    elif isinstance(cost_groups, str | bytes) or not isinstance(cost_groups, Iterable):
        raise TypeError(
            f"{name}: expected a mapping of names to features, or a sequence of groups, "
            f"got {shown(cost_groups)}"
        )
    plain: list[list[object]] = []
    for group in cost_groups:
        pair = group if isinstance(group, list | tuple) and len(group) == 2 else (None, group)
        if isinstance(pair[1], str | int | np.integer):  # two features, not a name and a group
            pair = None, group
        called = None if pair[0] is None else str(pair[0])
        plain.append([called, list(named_columns(name, pair[1]))])
    return plain


class CostOptions(TypedDict, total=False):
    """Options for feature costs.

    Parameters
    ----------
    feature_costs : sequence of float or mapping, optional
        Nonnegative costs: one per feature, or a mapping of names or positions, in which missing
        features cost 0. Each feature is charged once per row. Splits are selected by the decrease
        of the criterion divided by their cost: `comparison_cost`, plus the feature cost if no
        ancestor uses the feature.
    cost_groups : mapping or sequence of sequences of str or int, optional
        Groups of features that are acquired together, with or without names, and charged
        once per row. If `feature_costs` contains the name of a group, its cost is added to
        the costs of its features. Otherwise the group costs as much as its most expensive
        feature, and its features are free.
    comparison_cost : float, optional
        Positive cost of a comparison, in addition to its feature. Default: 1 percent of the mean
        feature cost.
    """

    feature_costs: Annotated[FeatureCostOption, Option(None, plain_feature_costs)]
    cost_groups: Annotated[CostGroupOption, Option(None, plain_cost_groups)]
    comparison_cost: Annotated[float | None, Option(None)]


#: Feature cost options with their defaults.
COST_OPTIONS: dict[str, Any] = filled(CostOptions, {})


def read_feature_costs(
    options: Mapping[str, object], names: tuple[str, ...] | None, d: int
) -> FeatureCosts | None:
    """Return the feature costs set by `COST_OPTIONS`, or None if there are none."""
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
                    f"{name}: expected None without feature_costs; pass feature_costs too"
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
        alone = column_cost + np.append(fee, 0.0)[group]  # the last: no group
        comparison = COMPARISON_SHARE * float(alone.mean()) or 1.0
    return FeatureCosts(
        np.concatenate([column_cost[column_cost > 0], fee[charged]]), item, comparison, tradeoff
    )


def _cost(name: str, value: object) -> float:
    return check_number(name, value, min_value=0.0)


def _group_of_columns(
    cost_groups: list[list[Any]] | None, names: tuple[str, ...] | None, d: int
) -> IntArray:
    """Return the group number of each feature, or -1."""
    group = np.full(d, -1, dtype=np.int32)
    for number, (_, columns) in enumerate(cost_groups or []):
        for j in positions("cost_groups", columns, names, d):
            if group[j] >= 0:
                raise ValueError(
                    f"cost_groups: expected each feature in at most one group, got "
                    f"{column_label(names, j)} in two"
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
    """Return the costs of single features (d,) and of groups.

    A group without a cost takes the maximum cost of its features; they then cost 0.
    """
    column_cost, fee = np.zeros(d), np.full(len(cost_groups), np.nan)
    called = {name: number for number, (name, _) in enumerate(cost_groups) if name is not None}
    if feature_costs and not isinstance(feature_costs[0], list):
        if len(feature_costs) != d:
            raise ValueError(
                f"feature_costs: expected {d} numbers, one per feature, got {len(feature_costs)}"
            )
        column_cost[:] = feature_costs
    else:
        for column, cost in feature_costs:
            if column in called:
                if names is not None and column in names:
                    raise ValueError(
                        f"cost_groups: expected names other than feature names, got {column!r}"
                    )
                fee[called[column]] = cost
            else:
                column_cost[positions("feature_costs", [column], names, d)] = cost
    for number in np.flatnonzero(np.isnan(fee)).tolist():
        fee[number] = column_cost[group == number].max(initial=0.0)
        column_cost[group == number] = 0.0
    return column_cost, fee
