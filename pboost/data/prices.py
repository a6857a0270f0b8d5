"""Prices of columns, and of groups that are paid once for all their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.table import column_label, named_columns, positions
from pboost.values import FloatArray, IntArray, check_number, freeze, shown
from pboost.values.options import Option, filled

#: What a comparison costs by default, as a share of the mean price of a column.
COMPARISON_SHARE = 0.01
#: Prices as builders take them, and as settings hold them, where pairs stand for mappings.
PriceOption: TypeAlias = Mapping[str | int, float] | Sequence[Any] | ArrayLike | None
GroupOption: TypeAlias = Mapping[str, Sequence[str | int]] | Sequence[Sequence[Any]] | None


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """What is to be paid for columns: each item once for a row, whatever needs it.

    Attributes
    ----------
    price : ndarray of float64, shape (n_items,)
        The prices > 0 of items: of columns by themselves, and of groups.
    item : ndarray of int32, shape (d, 2)
        The items that each column needs: its own, and that of its group; -1 for none.
    comparison : float
        What a comparison costs whatever is paid.
    tradeoff : float or None
        What a unit of price has to take from the loss; None: splits are chosen by what they take
        for what they cost.
    """

    price: FloatArray
    item: IntArray
    comparison: float
    tradeoff: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "price", freeze(self.price, np.float64))
        object.__setattr__(self, "item", freeze(self.item, np.int32))

    def items_of(self, read: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the items (n, n_items) that are paid where columns (n, d) are read."""
        return items_of(self.item, read, len(self.price))

    def of_columns(self, read: NDArray[np.bool_]) -> FloatArray:
        """Return what it costs to read some columns, (n, d), of each row."""
        total: FloatArray = np.where(self.items_of(read), self.price, 0.0).sum(axis=1)
        return total


def items_of(item: IntArray, read: NDArray[np.bool_], n_items: int) -> NDArray[np.bool_]:
    """Return the items (n, n_items) that columns (n, d) need that are read, see `Prices`."""
    paid = np.zeros((len(read), n_items), dtype=np.bool_)
    for j, items in enumerate(item.tolist()):
        for k in items:
            if k >= 0:
                paid[:, k] |= read[:, j]
    return paid


def plain_prices(name: str, prices: object) -> list[Any] | None:
    """Return the option as settings hold it: numbers, pairs of a column and a number, or None."""
    if prices is None:
        return None
    if isinstance(prices, Mapping):
        prices = list(prices.items())
    elif isinstance(prices, str | bytes) or not isinstance(prices, Iterable):
        raise TypeError(
            f"{name}: expected a number for each column, or a mapping of columns to numbers, got "
            f"{shown(prices)}"
        )
    plain: list[object] = []
    for place, entry in enumerate(prices):
        if isinstance(entry, list | tuple) and len(entry) == 2:
            (column,) = named_columns(name, entry[:1])
            plain.append([column, _price(f"{name}[{column!r}]", entry[1])])
        else:
            plain.append(_price(f"{name}[{place}]", entry))
    return plain


def plain_groups(name: str, groups: object) -> list[list[Any]] | None:
    """Return the option as settings hold it: pairs of a name or None and columns, or None."""
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        groups = list(groups.items())
    elif isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise TypeError(
            f"{name}: expected a mapping of names to columns, or a sequence of groups of columns, "
            f"got {shown(groups)}"
        )
    plain: list[list[object]] = []
    for group in groups:
        pair = group if isinstance(group, list | tuple) and len(group) == 2 else (None, group)
        if isinstance(pair[1], str | int | np.integer):  # two columns
            pair = None, group
        called = None if pair[0] is None else str(pair[0])
        plain.append([called, list(named_columns(name, pair[1]))])
    return plain


class PriceOptions(TypedDict, total=False):
    """What columns cost.

    Parameters
    ----------
    prices : sequence of float or mapping, optional
        What columns cost, numbers >= 0: one for each, or a mapping of names or positions, where
        others cost nothing. A row pays for a column once. A split is then chosen by how much it
        lowers the criterion, by `comparison_price` plus what a row at the node has still to pay:
        what is on the way there is paid.
    groups : mapping or sequence of sequences of str or int, optional
        Groups of columns that are had together, by names or without: a row pays for a group
        once. A name in `prices` is that of the group's price, beside which columns cost what they
        cost by themselves; else a group costs as much as the dearest of its columns, and these
        cost nothing more.
    comparison_price : float, optional
        What a comparison costs beside, > 0: the larger it is the less prices matter. Default: 1
        percent of the mean price of a column.
    """

    prices: Annotated[PriceOption, Option(None, plain_prices)]
    groups: Annotated[GroupOption, Option(None, plain_groups)]
    comparison_price: Annotated[float | None, Option(None)]


#: The options that say what columns cost, and what they are where nothing has a price.
PRICE_OPTIONS: dict[str, Any] = filled(PriceOptions, {})


def read_prices(
    options: Mapping[str, object], names: tuple[str, ...] | None, d: int
) -> Prices | None:
    """Return what `PRICE_OPTIONS` say of d columns; None where nothing has a price."""
    prices = plain_prices("prices", options["prices"])
    groups = plain_groups("groups", options["groups"])
    comparison = options.get("comparison_price")
    if comparison is not None:
        comparison = check_number("comparison_price", comparison, min_value=0.0, open_min=True)
    tradeoff = options.get("price_tradeoff")
    if tradeoff is not None:
        tradeoff = check_number("price_tradeoff", tradeoff, min_value=0.0)
    if prices is None:
        for name in ("groups", "comparison_price", "price_tradeoff"):
            if options.get(name) is not None:
                raise ValueError(f"{name}: expected None without prices, of which it says more")
        return None
    group = _group_of_columns(groups, names, d)
    column_cost, fee = _amounts(prices, groups or [], group, names, d)
    item = np.full((d, 2), -1, dtype=np.int32)
    item[column_cost > 0, 0] = np.arange(np.count_nonzero(column_cost > 0))
    priced = np.flatnonzero(fee > 0)
    for k, g in enumerate(priced.tolist(), start=int(np.count_nonzero(column_cost > 0))):
        item[group == g, 1] = k
    if comparison is None:
        alone = column_cost + np.append(fee, 0.0)[group]  # the last is that of columns in no group
        comparison = COMPARISON_SHARE * float(alone.mean()) or 1.0
    return Prices(np.concatenate([column_cost[column_cost > 0], fee[priced]]), item, comparison, tradeoff)


def _price(name: str, value: object) -> float:
    return check_number(name, value, min_value=0.0)


def _group_of_columns(
    groups: list[list[Any]] | None, names: tuple[str, ...] | None, d: int
) -> IntArray:
    """Return the number of the group of each column, -1 where it is in none."""
    group = np.full(d, -1, dtype=np.int32)
    for number, (_, columns) in enumerate(groups or []):
        for j in positions("groups", columns, names, d):
            if group[j] >= 0:
                raise ValueError(
                    f"groups: expected each column in one group, got {column_label(names, j)} in "
                    "two"
                )
            group[j] = number
    return group


def _amounts(
    prices: list[Any],
    groups: list[list[Any]],
    group: IntArray,
    names: tuple[str, ...] | None,
    d: int,
) -> tuple[FloatArray, FloatArray]:
    """Return what columns cost by themselves, (d,), and what groups cost.

    A group without a price of its own costs as much as the dearest of its columns, which then cost
    nothing more.
    """
    column_cost, fee = np.zeros(d), np.full(len(groups), np.nan)
    called = {name: number for number, (name, _) in enumerate(groups) if name is not None}
    if prices and not isinstance(prices[0], list):
        if len(prices) != d:
            raise ValueError(
                f"prices: expected {d} numbers, one for each column, got {len(prices)}"
            )
        column_cost[:] = prices
    else:
        for column, price in prices:
            if column in called:
                if names is not None and column in names:
                    raise ValueError(
                        f"groups: expected other names than columns have, got {column!r}"
                    )
                fee[called[column]] = price
            else:
                column_cost[positions("prices", [column], names, d)] = price
    for number in np.flatnonzero(np.isnan(fee)).tolist():
        fee[number] = column_cost[group == number].max(initial=0.0)
        column_cost[group == number] = 0.0
    return column_cost, fee
