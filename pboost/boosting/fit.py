"""What builders of graphs share: their common options and data, and early stopping.

Rows that growth does not see say which of the models on its way is the best, see
`pboost.boosting.watch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any, NamedTuple, Protocol

from pboost.boosting.watch import EarlyStopping
from pboost.data.columns.columns import lacks_values
from pboost.data.prices import COST_OPTIONS, CostOptions
from pboost.data.row_source import RowOptions, RowSource, rows_of_fit
from pboost.growth.label_trees import LabelTrees, label_trees
from pboost.growth.step import Callback, Chain, TreeLimits
from pboost.growth.validation import ValidationOptions, held_share, validation_rows, watched_rows
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Observation, Observer, check_pair
from pboost.threads import Workers
from pboost.values import VoteRule, as_generator, with_bar
from pboost.values.options import RunOptions, SeedOption
from pboost.weak.base import Weak
from pboost.weak.label_search import LabelSearch, refusal
from pboost.weak.stump_search import CostSearch, with_feature_costs


class Grows(Protocol):
    """What adds nodes until there are enough, says why it stopped, and makes a model of them."""

    def grow(self, callback: Callback | None) -> str: ...  # noqa: D102
    def model(self, settings: Mapping[str, object], stop_reason: str) -> DecisionGraph: ...  # noqa: D102


class GrowthOptions(RowOptions, SeedOption, ValidationOptions, RunOptions, total=False):
    """The options that all builders of graphs have.

    Parameters
    ----------
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the model of k copies of the row.
    callback : callable, optional
        Called as ``callback(step, record)`` after each node; returning True stops.
    """


class GraphOptions(CostOptions, GrowthOptions, total=False):
    """The options of builders of graphs whose nodes compare columns that may have costs.

    Parameters
    ----------
    feature_costs, cost_groups, comparison_cost : optional
        What columns cost, each paid once by a row, see `fit_gradient_boosting`: a stump is then
        chosen by how much it lowers the criterion, by `comparison_cost` plus what the rows that
        arrive have still to pay. Of two labels, with `weak.stump`.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the model of k copies of the row.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for rows held out, and for weak learners and answers that are drawn.
    callback : callable, optional
        Called as ``callback(step, record)`` after each node with the number of nodes so far and
        a `pboost.growth.step.StepRecord`; returning True stops.
    """


class Learning(NamedTuple):
    """What nodes are.

    Attributes
    ----------
    weak : Weak
        The weak learner.
    observation : Observation
        How sure its answers are.
    rule : VoteRule
        How masses become votes.
    """

    weak: Weak
    observation: Observation
    rule: VoteRule


class GraphFit:
    """One fit of a graph: the options that its builders share, and the data they mean.

    Parameters
    ----------
    X, y :
        As passed to a builder.
    options : mapping
        Its `GraphOptions`, checked.
    learning : Learning
        What nodes are.
    growth : type
        Growth of one table; of a `Chain` there is one next classifier at any time.
    votes_stay : bool
        Whether votes stay what they were when a node was opened. If not, stages are judged when
        growth has ended, see `best`.
    two : str
        Because of which options there can be two labels only; empty where there can be more.

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
        X: object,
        y: object,
        options: GraphOptions,
        learning: Learning,
        *,
        growth: type = Chain,
        votes_stay: bool = True,
        two: str = "",
    ) -> None:
        X, y, sample_weight = rows_of_fit(X, y, options)
        weak, observation, _ = learning
        self.weak, self.rule = learning.weak, learning.rule
        self.observation: Any = observation
        self.learner = check_pair(weak, observation, is_chain=growth is Chain)
        self.growth, self._source = growth, X if isinstance(X, RowSource) else None
        feature_costs = {name: value for name, value in options.items() if name in COST_OPTIONS}
        if isinstance(X, RowSource):
            if feature_costs["feature_costs"] is not None:
                raise NotImplementedError(
                    "feature_costs: expected None of rows in partitions; fits with costs need all rows "
                    "in one place: pass rows.gather()"
                )
            self.learner = X.graph(self.learner, observation, growth)
            self.growth = X.growth(growth)
        self._callback, self._progress = options["callback"], options["progress"]
        rng, validation, n_iter_no_change = (
            options["rng"],
            options["validation"],
            options["n_iter_no_change"],
        )
        # Entropy of the system is drawn only for those that draw, too.
        self._rng = None if rng is None else as_generator(rng)
        two = two or refusal(weak, observation)
        hold = held_share(validation, self._rng)
        problem = self.learner.read(X, y, sample_weight, two or None, hold)
        self.feature_costs, self.learner = (
            feature_costs,
            with_feature_costs(self.learner, feature_costs, problem),
        )
        if hold is not None and lacks_values(problem.columns):
            raise TypeError(
                "validation: BinnedColumns hold no values to predict from; "
                "pass X, SortedColumns, keep_values=True to what bins X, or validation data"
            )
        self._rows = rows = None
        if validation is not None or n_iter_no_change is not None:
            self._rows = rows = validation_rows(
                validation, n_iter_no_change, problem, self._rng, holes=weak.takes.holes
            )
        self.data = self.learner.arrange(
            problem if rows is None else rows.problem, options["n_threads"]
        )
        self._n_threads = options["n_threads"]
        if rows is not None:
            remote_rows = rows.elsewhere
            self._watched = (
                watched_rows(self.data, rows)
                if remote_rows is None
                else remote_rows.watched(options["n_threads"])
            )
            self._watch = EarlyStopping(self._watched, rows.n_iter_no_change, self._callback)
            self._votes_stay = votes_stay
            if votes_stay:
                self._callback = self._watch

    def label_trees(self, workers: Workers, rounds: int, limits: TreeLimits) -> LabelTrees | None:
        """Return the growth of trees of more than two labels, None of two."""
        if not self.data.problem.is_multiclass:
            return None
        search = LabelSearch(self.data, self.learner, workers)  # type: ignore[arg-type]
        inputs = self.data, search, self.rule, rounds, limits, self.observation
        return (
            label_trees(*inputs)
            if self._source is None
            else label_trees(*inputs, self._source.growth)
        )

    def settings(self, builder: str, **builder_options: object) -> dict[str, Any]:
        """Return the model's record of how it was made; a builder's own options come first."""
        return {
            **graph_settings(builder, builder_options, self.weak, self.observation, self.rule),
            **({} if self.feature_costs["feature_costs"] is None else self.feature_costs),
            **({} if self._rows is None else self._rows.settings),
        }

    def progress_callback(
        self, total: int | None, unit: str
    ) -> AbstractContextManager[Callable[..., Any] | None]:
        """Return the callback to grow with, once it is entered; see `with_bar`."""
        return with_bar(self._callback, self._progress, total, unit)

    @contextmanager
    def workers(self) -> Iterator[Workers]:
        """Return as many threads as the data are worth; with them what answers for rows ends."""
        held = nullcontext() if self._rows is None else closing(self._watched)
        with held, self.learner.workers(self.data, self._n_threads) as workers:
            yield workers

    def observer(self, workers: Workers) -> Observer:
        """Return what asks weak classifiers."""
        observer = self.observation.bind(self.data, self.learner, workers, as_generator(self._rng))
        if self.feature_costs["feature_costs"] is not None and not isinstance(
            observer.search, CostSearch
        ):
            raise NotImplementedError(
                "feature_costs: expected None but with answers that are exact or have a table, such as "
                f"observation.adatree2(), got {self.observation!r}"
            )
        return observer

    def grown(
        self, growth: Grows, settings: Mapping[str, object], on_step: Callback | None
    ) -> DecisionGraph:
        """Return the model that grows, see `best`."""
        return self.best(growth.model(settings, growth.grow(on_step)))

    def best(self, model: DecisionGraph) -> DecisionGraph:
        """Return the first of the models of least validation error that growth went through."""
        if self._rows is None:
            return model
        return self._watch.best_of(model, self._votes_stay)


def graph_settings(
    builder: str,
    builder_options: Mapping[str, object],
    weak: Weak,
    observation: Observation,
    rule: VoteRule,
) -> dict[str, Any]:
    """Return the record of the options that all builders of graphs have, its own first."""
    return {
        "builder": builder,
        **builder_options,
        "observation": observation.settings(),
        "smoothing": rule.smoothing,
        "learning_rate": rule.learning_rate,
        "weak_learner": weak.settings(),
    }
