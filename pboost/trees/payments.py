"""Which rows have paid for which columns, while the trees of a sum are grown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pboost.data.prices import Prices
from pboost.models.trees import columns_on_way
from pboost.values import IntArray

#: Whether no row, all or some have paid an item.
NO_ROW, ALL_ROWS, SOME_ROWS = 0, 1, 2

#: In place of a tradeoff: gains are divided by prices.
RATIO = -1.0


class Payments:
    """The arrays by which a search knows what rows have still to pay; see ``_boost_prices.pxd``.

    Parameters
    ----------
    prices : Prices
    n_rows, n_threads : int
    """

    def __init__(self, prices: Prices, n_rows: int, n_threads: int) -> None:
        self.prices, self.price, self.item = prices, prices.price, prices.item
        self.comparison, self.tradeoff = prices.comparison, RATIO
        n_items = len(prices.price)
        self.paid = np.zeros((n_items, n_rows), dtype=np.uint8)
        self.payers = np.full(n_items, NO_ROW, dtype=np.uint8)
        self.to_pay = np.empty((n_threads, n_items))

    def count_in(self, unit: float) -> None:
        """Take over the gain that takes 1 from the sum of the losses that models report."""
        if self.prices.tradeoff is not None:
            self.tradeoff = self.prices.tradeoff * unit

    def pay(self, column: IntArray, children: IntArray, leaf: NDArray[np.intp]) -> None:
        """Take what each row pays on its way to its leaf (n,) of a tree, nodes in preorder."""
        on_way = columns_on_way(column, children, len(self.item))
        items = self.prices.items_of(on_way)
        for k in np.flatnonzero(items.any(axis=0)).tolist():
            if self.payers[k] != ALL_ROWS:
                self.paid[k] |= items[leaf, k]
                self.payers[k] = ALL_ROWS if self.paid[k].all() else SOME_ROWS
