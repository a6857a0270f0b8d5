"""What builders of graphs share: their common options and data, and early stopping.

Rows that growth does not see say which of the models on its way is the best, see
`pboost.boosting.watch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pboost._core.voting import VoteRule
from pboost.boosting.watch import Watch, values_read
from pboost.data.columns.columns import lacks_values
from pboost.data.prices import PRICE_OPTIONS
from pboost.data.row_source import RowSource
from pboost.growth.label_trees import LabelTrees
from pboost.growth.soft_label_trees import label_trees
from pboost.growth.step import Callback, Chain, TreeLimits
from pboost.growth.validation import held_share, validation_rows
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Observation, Observer, check_pair
from pboost.threads import Workers
from pboost.values import Progress, as_generator, check_callback, with_bar
from pboost.weak.base import Weak
from pboost.weak.label_search import LabelSearch, refusal
from pboost.weak.priced_search import PricedSearch, with_prices


class Grows(Protocol):
    """What adds nodes until there are enough, says why it stopped, and makes a model of them."""

    def grow(self, callback: Callback | None) -> str: ...  # noqa: D102
    def model(self, settings: Mapping[str, Any], stop_reason: str) -> DecisionGraph: ...  # noqa: D102


class GraphFit:
    """One fit of a graph: the options that its builders share, checked, and the data they mean.

    Parameters
    ----------
    X, y, sample_weight, weak, observation, rng, validation, patience, n_threads :
        As passed to a builder.
    callback, progress :
        Likewise.
    rule : VoteRule
        How masses become votes.
    growth : type
        Growth of one table; of a `Chain` there is one next classifier at any time.
    two : str
        Because of which options there can be two labels only; empty where there can be more.
    prices : mapping
        What columns cost, the options of `PRICE_OPTIONS`.
    votes_stay : bool
        Whether votes stay what they were when a node was opened. If not, stages are judged when
        growth has ended, see `best`.

    Attributes
    ----------
    data : TrainingData
        What to train with: the rows that are held out have weight 0.
    learner : Weak
        The weak learner as it is trained with these answers, on these rows.
    growth : type
        The growth of these rows.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        weak: Any,
        observation: Any,
        rule: VoteRule,
        rng: Any,
        validation: Any,
        patience: Any,
        n_threads: int | None,
        callback: Any,
        progress: Progress,
        *,
        growth: type = Chain,
        votes_stay: bool = True,
        two: str = "",
        prices: Mapping[str, Any] = PRICE_OPTIONS,
    ) -> None:
        self.weak, self.observation, self.rule = weak, observation, rule
        self.learner = check_pair(weak, observation, is_chain=growth is Chain)
        self.growth, self._source = growth, X if isinstance(X, RowSource) else None
        if isinstance(X, RowSource):
            if prices["prices"] is not None:
                raise NotImplementedError(
                    "prices: expected None of rows in partitions; fits with prices need all rows "
                    "in one place: pass rows.gather()"
                )
            self.learner = X.graph(self.learner, observation, growth)
            self.growth = X.growth(growth)
        self._callback, self._progress = check_callback(callback, progress), progress
        # Entropy of the system is drawn only for those that draw, too.
        self._rng = None if rng is None else as_generator(rng)
        two = two or refusal(weak, observation)
        hold = held_share(validation, self._rng)
        problem = self.learner.read(X, y, sample_weight, two or None, hold)
        self.prices, self.learner = prices, with_prices(self.learner, prices, problem)
        if hold is not None and lacks_values(problem.columns):
            raise TypeError(
                "validation: BinnedColumns hold no values to predict from; "
                "pass X, SortedColumns, values=True to what bins X, or validation data"
            )
        self._rows = rows = None
        if validation is not None or patience is not None:
            self._rows = rows = validation_rows(
                validation, patience, problem, self._rng, holes=weak.takes.holes
            )
        self.data = self.learner.arrange(problem if rows is None else rows.problem, n_threads)
        self._n_threads = n_threads
        if rows is not None:
            self._X = rows.problem.values(rows.drawn) if rows.X is None else rows.X
            value, inputs = values_read(self.data, self._X), self.data.inputs
            self._watch = Watch(value, rows, self._callback, has_sides=inputs is None)
            self._votes_stay = votes_stay
            if votes_stay:
                self._callback = self._watch

    def label_trees(self, workers: Workers, rounds: int, limits: TreeLimits) -> LabelTrees | None:
        """Return the growth of trees of more than two labels, None of two."""
        if not self.data.problem.of_many:
            return None
        search = LabelSearch(self.data, self.learner, workers)  # type: ignore[arg-type]
        own = self.data, search, self.rule, rounds, limits
        if self._source is not None:
            return self._source.growth(LabelTrees)(*own)
        return label_trees(*own, self.observation)

    def settings(self, builder: str, **own: Any) -> dict[str, Any]:
        """Return the model's record of how it was made; a builder's own options come first."""
        return {
            **graph_settings(builder, own, self.weak, self.observation, self.rule),
            **({} if self.prices["prices"] is None else self.prices),
            **({} if self._rows is None else self._rows.settings),
        }

    def told(
        self, total: int | None, unit: str
    ) -> AbstractContextManager[Callable[..., Any] | None]:
        """Return the callback to grow with, once it is entered; see `with_bar`."""
        return with_bar(self._callback, self._progress, total, unit)

    def workers(self) -> AbstractContextManager[Workers]:
        """Return as many threads as the data are worth; with them what answers for rows ends."""
        return self.learner.workers(self.data, self._n_threads)

    def observer(self, workers: Workers) -> Observer:
        """Return what asks weak classifiers."""
        found = self.observation.bind(self.data, self.learner, workers, as_generator(self._rng))
        if self.prices["prices"] is not None and not isinstance(found.search, PricedSearch):
            raise NotImplementedError(
                "prices: expected None but with answers that are exact or have a table, such as "
                f"observation.adatree2(), got {self.observation!r}"
            )
        return found

    def grown(
        self, growth: Grows, settings: Mapping[str, Any], told: Callback | None
    ) -> DecisionGraph:
        """Return the model that grows, see `best`."""
        return self.best(growth.model(settings, growth.grow(told)))

    def best(self, model: DecisionGraph) -> DecisionGraph:
        """Return the first of the models of least validation error that growth went through."""
        if self._rows is None:
            return model
        return self._watch.best_of(model, self._X, self._votes_stay)


def graph_settings(
    builder: str, own: Mapping[str, Any], weak: Weak, observation: Observation, rule: VoteRule
) -> dict[str, Any]:
    """Return the record of the options that all builders of graphs have, its own first."""
    return {
        "builder": builder,
        **own,
        "observation": observation.settings(),
        "smoothing": rule.smoothing,
        "learning_rate": rule.learning_rate,
        "weak": weak.settings(),
    }
