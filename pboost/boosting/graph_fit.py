"""Options, data and early stopping shared by the functions that fit decision graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any, NamedTuple, Protocol

from pboost.boosting.early_stopping import EarlyStopping
from pboost.data.columns.columns import lacks_values
from pboost.data.feature_costs import COST_OPTIONS, CostOptions
from pboost.data.row_source import RowOptions, RowSource, rows_of_fit
from pboost.growth.graph_growth import Callback, Chain, TreeLimits
from pboost.growth.multiclass_graph import LabelTrees, label_trees
from pboost.growth.validation import ValidationOptions, held_share, validation_rows, watched_rows
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Observation, Observer, check_pair
from pboost.threads import Workers
from pboost.values import VoteRule, as_generator, with_bar
from pboost.values.options import RunOptions, SeedOption
from pboost.weak.base import Weak
from pboost.weak.multiclass_search import LabelSearch, refusal
from pboost.weak.stump_search import CostSearch, with_feature_costs


class Grows(Protocol):
    """An object that adds nodes to a graph and returns the graph as a model."""

    def grow(self, callback: Callback | None) -> str: ...  # noqa: D102
    def model(self, settings: Mapping[str, object], stop_reason: str) -> DecisionGraph: ...  # noqa: D102


class GrowthOptions(RowOptions, SeedOption, ValidationOptions, RunOptions, total=False):
    """The options of all functions that fit decision graphs.

    Parameters
    ----------
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows. A row with weight k counts like k copies of the row.
    callback : callable, optional
        Called as ``callback(step, record)`` after each node. Return True to stop.
    """


class GraphOptions(CostOptions, GrowthOptions, total=False):
    """The options of functions that fit decision graphs with feature costs.

    Parameters
    ----------
    feature_costs, cost_groups, comparison_cost : optional
        Costs of features, each paid once per row, see `fit_gradient_boosting`. A stump is chosen by
        the reduction of the criterion divided by `comparison_cost` plus the mean cost still to pay.
        Only two classes and `weak.stump` are supported.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows. A row with weight k counts like k copies of the row.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed for the validation set, random weak learners and sampled observations.
    callback : callable, optional
        Called as ``callback(step, record)`` after each node with the number of nodes so far and a
        `pboost.growth.graph_growth.StepRecord`. Return True to stop.
    """


class Learning(NamedTuple):
    """How nodes are trained.

    Attributes
    ----------
    weak : Weak
        Weak learner.
    observation : Observation
        Observation model.
    rule : VoteRule
        Computes votes from class weights.
    """

    weak: Weak
    observation: Observation
    rule: VoteRule


class GraphFit:
    """The data and shared options of one fit of a decision graph.

    Parameters
    ----------
    X, y :
        Arguments of the public function.
    options : mapping
        Checked `GraphOptions`.
    learning : Learning
        How nodes are trained.
    growth : type
        Class that grows the graph on one table. A `Chain` has a single open exit at any time.
    votes_stay : bool
        Whether the votes of a node are final when it is added. If not, the stages are evaluated on
        the validation set at the end, see `best`.
    two : str
        Text that names the options that support only two classes; empty if there are none.

    Attributes
    ----------
    data : TrainingData
        Training data; validation rows have weight 0.
    learner : Weak
        Weak learner, bound to the observation model and the rows.
    growth : type
        Class that grows the graph on these rows.
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
                    "feature_costs: expected None with rows in partitions, got costs; pass "
                    "rows.gather() to collect all rows in one table"
                )
            self.learner = X.graph(self.learner, observation, growth)
            self.growth = X.growth(growth)
        self._callback, self._progress = options["callback"], options["progress"]
        rng, validation, n_iter_no_change = (
            options["rng"],
            options["validation"],
            options["n_iter_no_change"],
        )
        # Without a seed, system entropy is drawn only if something needs random numbers.
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
                "validation: expected rows with values, got BinnedColumns; pass X, SortedColumns "
                "or a validation set, or bin X with keep_values=True"
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
        """Return the object that grows trees for more than two classes; None for two."""
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
        """Return the settings of the model, starting with the options of the public function."""
        return {
            **graph_settings(builder, builder_options, self.weak, self.observation, self.rule),
            **({} if self.feature_costs["feature_costs"] is None else self.feature_costs),
            **({} if self._rows is None else self._rows.settings),
        }

    def progress_callback(
        self, total: int | None, unit: str
    ) -> AbstractContextManager[Callable[..., Any] | None]:
        """Return a context manager for the callback, with a progress bar; see `with_bar`."""
        return with_bar(self._callback, self._progress, total, unit)

    @contextmanager
    def workers(self) -> Iterator[Workers]:
        """Yield the worker threads; close the validation rows at the end."""
        held = nullcontext() if self._rows is None else closing(self._watched)
        with held, self.learner.workers(self.data, self._n_threads) as workers:
            yield workers

    def observer(self, workers: Workers) -> Observer:
        """Return the observer that evaluates weak classifiers."""
        observer = self.observation.bind(self.data, self.learner, workers, as_generator(self._rng))
        if self.feature_costs["feature_costs"] is not None and not isinstance(
            observer.search, CostSearch
        ):
            raise NotImplementedError(
                "feature_costs: expected None unless the observation model is exact or has a "
                f"table, such as observation.adatree2(), got {self.observation!r}"
            )
        return observer

    def grown(
        self, growth: Grows, settings: Mapping[str, object], on_step: Callback | None
    ) -> DecisionGraph:
        """Grow a model; return its best stage on the validation set."""
        return self.best(growth.model(settings, growth.grow(on_step)))

    def best(self, model: DecisionGraph) -> DecisionGraph:
        """Return the first stage of the model with the lowest validation error."""
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
    """Return the settings of a graph; `builder_options` contains the options of its builder."""
    return {
        "builder": builder,
        **builder_options,
        "observation": observation.settings(),
        "smoothing": rule.smoothing,
        "learning_rate": rule.learning_rate,
        "weak_learner": weak.settings(),
    }
