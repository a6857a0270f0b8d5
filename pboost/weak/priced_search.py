"""Stumps on columns that have prices: by how much a cut lowers the criterion, for what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from pboost._core import split
from pboost.data.columns.columns import GROUP
from pboost.data.prices import Prices, read_prices
from pboost.data.targets import IMPURITIES
from pboost.data.training import Problem, TrainingData
from pboost.threads import Workers
from pboost.values import FloatArray
from pboost.weak.base import Weak, Weights
from pboost.weak.stump_search import Stump, StumpCut, StumpSearch

#: What scores of the kernel stand for, in the units of `IMPURITIES` times the mass.
VALUES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "kearns-mansour": lambda score: 2.0 * np.sqrt(score),
    "gini": lambda score: 0.5 * score,
    "entropy": lambda score: score,
    "error": lambda score: 0.5 * score,
}


class PricedSearch(StumpSearch):
    """A search in columns that have prices.

    Attributes
    ----------
    prices : Prices
    unpaid : ndarray of float64, shape (n_items,)
        Share of what arrives, by starting weight, that has still to pay each item; growth sets it
        before it searches.
    """

    def __init__(
        self, data: TrainingData, weak: Any, workers: Workers, generator: object = None
    ) -> None:
        super().__init__(data, weak, workers, generator)
        self.prices: Prices = weak.prices
        self._name = weak.criterion
        self.unpaid = np.ones(len(self.prices.price))

    def items(self, feature: int) -> list[int]:
        """Return the items that are paid for a column."""
        return [item for item in self.prices.item[feature].tolist() if item >= 0]

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the stump that lowers the criterion most for what it costs."""
        limits, d = self._limits(*weights.masses), len(self._edge)
        columns = self._order, self._bin_start, self._columns.n_bins
        special = self._special, self._smoothing
        work = self._edge, self._bound, self._best
        self._best.fill(np.inf)

        def search(first: int, last: int) -> None:
            for j in range(first, last):  # each by itself: none is left out for another's sake
                least = np.full(1, np.inf)
                split.search(
                    self._columns.codes,
                    *columns,
                    weights.fixed,
                    limits,
                    *work,
                    least,
                    j,
                    j + 1,
                    0,
                    *special,
                )

        self.workers.run(search, d, GROUP, self._n_rows)
        least = self._best.reshape(-1, d).min(axis=0)
        able = np.flatnonzero(least < np.inf)
        if not len(able):
            return None
        mass = np.array(weights.masses, dtype=np.float64)
        whole = float(mass.sum() * IMPURITIES[self._name](mass[None] / mass.sum())[0])
        to_pay = np.append(self.prices.price * self.unpaid, 0.0)  # the last of no item
        cost = self.prices.comparison + to_pay[self.prices.item[able]].sum(axis=1)
        chosen = able[np.argmax((whole - VALUES[self._name](least[able])) / cost)]
        others = np.arange(len(self._best)) % d != chosen
        self._best[others] = np.inf
        return self.found(split.locate(*columns, weights.fixed, limits, *work, *special), weights)


@dataclass(frozen=True, slots=True)
class PricedStump(Stump):
    """A stump of columns that have prices."""

    searches: ClassVar = PricedSearch

    prices: Prices | None = None


def with_prices(weak: Weak, options: Any, problem: Problem) -> Weak:
    """Return the weak learner that knows prices; itself where nothing has one.

    NotImplementedError for those that cannot know them.
    """
    found = read_prices(options, problem.names, problem.n_features)
    if found is None:
        return weak
    if type(weak) is not Stump:
        raise NotImplementedError(
            "prices: expected None but with weak.stump(), which compares one column that is paid "
            f"for, got {weak!r}"
        )
    if problem.of_many:
        raise NotImplementedError(
            "prices: expected None with more than two labels; fit_stagewise takes them with "
            "prices, fit_one_vs_rest has one model for each"
        )
    return PricedStump(**{f.name: getattr(weak, f.name) for f in fields(weak)}, prices=found)
