"""Fitting goes on: more nodes for a fitted model.

The stored nodes are opened once more, as they are, on the data that are given: then the weights of
the rows at the open exits are those with which growth would have gone on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pboost._core.voting import VoteRule
from pboost.data.convert import is_frame
from pboost.data.functions import Oracles
from pboost.data.labels import SoftLabels
from pboost.data.node_inputs import Inputs
from pboost.data.projections import Projections, single_columns
from pboost.data.row_source import RowSource
from pboost.data.separators import Separators
from pboost.data.subsets import Subsets
from pboost.data.training import Problem, TrainingData
from pboost.growth.exact_tree import BoostedArrays
from pboost.growth.fit_state import FitState, check_state, fingerprints, keep, take
from pboost.growth.nested import NestedGrowth
from pboost.growth.soft_label_trees import label_trees
from pboost.growth.soft_tree import SoftTree
from pboost.growth.step import GROWTHS, Chain, TreeLimits
from pboost.growth.tree import grow_tree
from pboost.models.graph import DecisionGraph
from pboost.models.new_rows import as_graph, classes_of_labels, columns_to_fit, ordered_sigma
from pboost.models.nodes import CERTAIN, OUT, largest_score
from pboost.models.text import input_names
from pboost.observation.answers import KINDS as OBSERVATIONS
from pboost.observation.answers import Flip, Observation, Observer, Tables, check_pair
from pboost.observation.gaussian_search import Gaussian
from pboost.observation.sampling import Sampled
from pboost.threads import Workers
from pboost.values import (
    INT32_MAX,
    Bar,
    as_generator,
    check_choice,
    check_integer,
    check_made,
    freeze,
    shown,
    vote_rule,
)
from pboost.weak.base import KINDS as LEARNERS
from pboost.weak.base import Weak
from pboost.weak.label_search import LabelSearch, refusal
from pboost.weak.stump_search import ColumnLearner

#: Of twice this the exponential is still a number.
MOST_VOTE = 350.0
#: The growth of more nodes, by the way in which a model is continued.
GROWTHS_OF_WAYS = {"chain": Chain, "tree": SoftTree, "graph": NestedGrowth}
#: Why directions of a model are not found among those of other data.
OTHER_UNITS = (
    "; directions of more than two columns are made in units of the standard deviations of the "
    "data, and other data have others"
)


@dataclass(frozen=True, slots=True)
class GoesOn:
    """How a graph goes on: the options of `continue_fit`, checked, and those of the model.

    Attributes
    ----------
    joins : bool
        Whether the open exits join.
    size : int
        How many nodes to add.
    learner, observation : ColumnLearner, Observation
        Of the new nodes.
    searched : Weak
        The weak learner as it is trained with these answers.
    rule : VoteRule
        How masses become votes.
    way : {"chain", "tree", "graph"}
        As what the model goes on.
    limits : TreeLimits
        Those of all nodes.
    settings : mapping
        The record of the whole.
    """

    joins: bool
    size: int
    learner: ColumnLearner
    observation: Observation
    searched: Weak
    rule: VoteRule
    way: str
    limits: TreeLimits
    settings: Mapping[str, Any]

    @classmethod
    def checked(
        cls,
        model: DecisionGraph,
        X: Any,
        *,
        rounds: Any,
        nodes: Any,
        weak: Any,
        observation: Any,
        growth: Any,
        smoothing: Any,
        learning_rate: Any,
    ) -> GoesOn:
        """Return how a graph goes on; see `continue_fit`."""
        joins, size = _check_size(rounds, nodes)
        stored = _check_model(model).settings
        if weak is None:
            weak = _stored(stored, "weak", "a weak learner", LEARNERS)
        observation = _observation(model, X, observation)
        searched = check_pair(weak, observation)
        learner = _check_kinds(model, weak, observation)
        rule = vote_rule(
            stored.get("votes", "domain"),
            stored.get("smoothing", 1e-4) if smoothing is None else smoothing,
            stored.get("learning_rate", 1.0) if learning_rate is None else learning_rate,
        )
        way = _way(model, joins, rule)
        _check_votes(model, way)
        growth = _check_growth(growth, way, stored)
        own = {
            "rounds" if joins else "nodes": size,
            "growth": growth,
            "observation": observation.settings(),
            "smoothing": rule.smoothing,
            "learning_rate": rule.learning_rate,
            "weak": learner.settings(),
        }
        settings = {**stored, "continued": [*stored.get("continued", ()), own]}
        depth = stored.get("max_depth") or INT32_MAX
        limits = TreeLimits(model.n_nodes + size, depth, growth, -1.0)
        if observation.is_exact and model.answer is not None:
            observation = Flip(0.0)  # the same answers, kept as tables, since the model has tables
        return cls(joins, size, learner, observation, searched, rule, way, limits, settings)


def continue_graph(
    model: DecisionGraph,
    X: Any,
    y: Any,
    *,
    rounds: Any,
    nodes: Any,
    weak: Any,
    observation: Any,
    growth: Any,
    smoothing: Any,
    learning_rate: Any,
    sample_weight: Any,
    state: Any,
    rng: Any,
    n_threads: int | None,
    bar: Bar,
) -> DecisionGraph:
    """Return the graph with more nodes; see `continue_fit`."""
    more = GoesOn.checked(
        model,
        X,
        rounds=rounds,
        nodes=nodes,
        weak=weak,
        observation=observation,
        growth=growth,
        smoothing=smoothing,
        learning_rate=learning_rate,
    )
    if isinstance(X, RowSource) and (more.way == "graph" or state is not None):
        raise NotImplementedError(
            "continue_fit needs all rows in one place: pass rows.gather(); on partitions chains "
            "are continued with rounds, and trees with nodes, without a state"
        )
    if state is not None:
        state = check_state(state, rng)
        return _continue_chain(model, X, y, more, sample_weight, state, n_threads, bar)
    observation, learner, rule, way = more.observation, more.learner, more.rule, more.way
    joins, size, limits, settings = more.joins, more.size, more.limits, more.settings
    generator, growth, searched = as_generator(rng), GROWTHS_OF_WAYS[way], more.searched
    is_exact_tree = growth is SoftTree and observation.is_exact and model.answer is None
    if is_exact_tree:
        growth = BoostedArrays
    if isinstance(X, RowSource):
        learner = searched = X.graph(searched, observation, growth)
        growth = X.growth(growth)
    if model.n_votes > 1 and refusal(more.searched, observation):
        raise NotImplementedError(
            "model: graphs whose exits have several votes are continued with stumps and with "
            f"answers of a table, got {learner!r} and {observation!r}"
        )
    data = _prepare(model, X, y, sample_weight, searched, n_threads)
    model = renumbered(model, data)
    told = bar(limits.nodes, "nodes", model.n_nodes)
    if model.n_votes > 1:
        trees = replace(limits, nodes=1 if joins else size)
        with learner.workers(data, n_threads) as workers, told as callback:
            search = LabelSearch(data, learner, workers)
            own = data, search, rule, size if joins else 1, trees, observation
            more_trees = (
                label_trees(*own, X.growth) if isinstance(X, RowSource) else label_trees(*own)
            )
            more_trees.replay(model, joins=joins)
            return more_trees.model(settings, more_trees.grow(callback))
    with learner.workers(data, n_threads) as workers, told as callback:
        if is_exact_tree:
            arrays = growth(data, learner, rule, limits, given=model.n_nodes)
            arrays.replay(model)
            return arrays.model(settings, grow_tree(arrays, workers, callback))
        observer = observation.bind(data, learner, workers, generator)
        grown = _growth(model, growth, joins, data, observer, rule, limits)
        return grown.model(settings, grown.grow(callback))


@dataclass(frozen=True, slots=True)
class KeptChain:
    """The growth of a chain that a `FitState` keeps, and the threads and options of its fit."""

    chain: Chain
    workers: Workers
    options: Mapping[str, Any]

    def goes_on(self, options: Mapping[str, Any], n_threads: int | None) -> bool:
        """Return whether these are its options and threads."""
        # Of errors of each cell the options tell no more than that.
        is_told = options["observation"].get("sigma") != "per cell"
        return is_told and self.options == options and self.workers.is_for(n_threads)


def _continue_chain(
    model: DecisionGraph,
    X: Any,
    y: Any,
    more: GoesOn,
    sample_weight: Any,
    state: FitState,
    n_threads: int | None,
    bar: Bar,
) -> DecisionGraph:
    """Return the chain with more nodes, grown from a state, which is then that of the new chain."""
    if more.way != "chain" or model.n_votes > 1:
        raise NotImplementedError(
            "state: expected a chain of two classes that is continued with rounds, or a stagewise "
            "model; other graphs are continued without a state"
        )
    rows = fingerprints(model, columns_to_fit(model, X), y, sample_weight, None)
    options = {k: v for k, v in more.settings["continued"][-1].items() if k != "rounds"}
    kept = take(state, model, rows)
    if kept is None or not kept.goes_on(options, n_threads):
        data = _prepare(model, X, y, sample_weight, more.searched, n_threads)
        with Workers(n_threads, data.cells) as workers:
            observer = more.observation.bind(data, more.learner, workers, as_generator(None))
            chain = Chain(data, observer, more.rule, 0)
            chain.replay(renumbered(model, data), tables_of(model))
        kept = KeptChain(chain, workers, options)
    kept.chain.rounds = more.limits.nodes
    with kept.workers, bar(more.limits.nodes, "nodes", model.n_nodes) as callback:
        longer = kept.chain.model(more.settings, kept.chain.grow(callback))
    keep(state, longer, rows, kept)
    return longer


def _growth(
    model: DecisionGraph,
    growth: Any,
    joins: bool,
    data: TrainingData,
    observer: Observer,
    rule: VoteRule,
    limits: TreeLimits,
) -> Chain | SoftTree | NestedGrowth:
    """Return the growth of more nodes, with those of the model as they are."""
    own: tuple[Any, ...] = (limits,)
    if growth is Chain:
        own = (limits.nodes,)
    elif growth is NestedGrowth:
        own = "additive", (limits.nodes - model.n_nodes,), "all" if joins else "sign"
    more: Chain | SoftTree | NestedGrowth = growth(data, observer, rule, *own)
    more.replay(model, tables_of(model))
    return more


def tables_of(model: DecisionGraph) -> Tables:
    """Return the tables of answers of the nodes of a model, None where they are gaussian."""
    same = None if model.sigma is not None else CERTAIN
    return [same] * model.n_nodes if model.answer is None else list(model.answer)


def _check_size(rounds: Any, nodes: Any) -> tuple[bool, int]:
    """Return whether the open exits join, and how many nodes to add."""
    if (rounds is None) == (nodes is None):
        raise ValueError(
            "rounds, nodes: expected exactly one of them, got "
            f"rounds={shown(rounds)}, nodes={shown(nodes)}"
        )
    if nodes is None:
        return True, check_integer("rounds", rounds, least=1)
    return False, check_integer("nodes", nodes, least=1)


def _check_model(model: Any) -> DecisionGraph:
    model = as_graph(model, "continue_fit")
    if isinstance(model.inputs, Oracles):
        raise NotImplementedError(
            "model: weak classifiers that are functions cannot be continued: what they answered in "
            "training is not kept"
        )
    learner = model.settings.get("weak")
    is_linear = isinstance(learner, Mapping) and learner.get("kind") == "linear"
    if is_linear or isinstance(model.inputs, Separators):
        raise NotImplementedError(
            "model: separators and linear weak classifiers cannot be continued: they are trained "
            "at the nodes, and data have no columns of them to look them up in"
        )
    if model.is_estimated:
        raise NotImplementedError(
            "model: sampled answers cannot be continued: the draws of training are not kept"
        )
    if model.settings.get("prices") is not None:
        raise NotImplementedError(
            "model: graphs that were fitted with prices are not continued; sums of trees are"
        )
    return model


def _observation(model: DecisionGraph, X: Any, observation: Any) -> Observation:
    """Return the observation model of the new nodes, for the columns in the model's order."""
    if observation is None:
        if model.sigma is None:
            what = "an observation model"
            stored = _stored(model.settings, "observation", what, OBSERVATIONS)
            return check_made("observation", Observation, stored)
        if np.isnan(model.sigma).any():
            raise ValueError(
                "observation: expected gaussian(sigma) with the standard deviations of these "
                "rows: in training each cell had its own, which the model does not keep"
            )
        first = float(model.sigma[0])
        return Gaussian(first if (model.sigma == first).all() else model.sigma)
    if isinstance(observation, Gaussian) and is_frame(X):
        return Gaussian(freeze(ordered_sigma(model, X, observation.sigma)))
    return check_made("observation", Observation, observation)


def _stored(
    settings: Mapping[str, Any], name: str, what: str, kinds: Mapping[str, Callable[..., Any]]
) -> Any:
    """Return the weak learner or the observation model that the settings of a model describe."""
    try:
        options = dict(settings[name])
        return kinds[options.pop("kind")](**options)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: expected {what}, the model names none that is known: {error}"
        ) from None


def _check_kinds(model: DecisionGraph, weak: Weak, observation: Observation) -> ColumnLearner:
    """Return the weak learner if new nodes can stand together with those of the model."""
    if not isinstance(weak, ColumnLearner):
        raise NotImplementedError(
            "weak: models can only be continued with weak classifiers that compare a number with a "
            f"threshold, got {weak!r}"
        )
    if isinstance(observation, Sampled):
        raise NotImplementedError("observation: models cannot be continued with sampled answers")
    is_gaussian = model.sigma is not None
    if model.n_nodes and is_gaussian != isinstance(observation, Gaussian):
        expected = "gaussian answers" if is_gaussian else "answers that are not gaussian"
        raise ValueError(
            f"observation: expected {expected}, as those of the model are, got {observation!r}"
        )
    return weak


def renumbered(model: DecisionGraph, data: TrainingData) -> DecisionGraph:
    """Return the model with `feature` counting what the columns of the data hold."""
    if data.inputs is None and (model.inputs is None or isinstance(model.inputs, Subsets)):
        return model
    found, there = (_projections(inputs, model) for inputs in (model.inputs, data.inputs))
    place = {terms: number for number, terms in enumerate(there.terms())}
    number = np.array([place.get(terms, -1) for terms in found.terms()], dtype=np.int32)
    feature = number[model.feature]
    if (feature < 0).any():
        node = int(np.argmin(feature))
        direction = input_names(model)[model.feature[node]]
        raise ValueError(
            f"model: expected nodes that compare what `weak` makes of X, got {direction} at node "
            f"{node}" + (OTHER_UNITS if model.n_features > 2 else "")
        )
    before, now = found.fill, there.fill
    is_other = before is not now and (before is None or now is None or (before != now).any())
    if is_other and np.isnan(data.source[data.source_rows]).any():
        raise ValueError(
            "X: expected missing values that count as in training, where weak classifiers that are "
            "affine have the means of the columns for them: these are others here"
        )
    return replace(model, feature=feature, inputs=data.inputs)


def _projections(inputs: Inputs | None, model: DecisionGraph) -> Projections:
    """Return what is compared as projections, also where it is the columns of X."""
    if inputs is None:
        return single_columns(model.n_features)
    assert isinstance(inputs, Projections)
    return inputs


def _way(model: DecisionGraph, joins: bool, rule: VoteRule) -> str:
    """Return what a model is continued as: a chain, a tree or any other graph."""
    if joins:
        return "chain" if model.is_chain else "graph"
    inner = model.next[model.next != OUT]
    # Trees vote with the masses of either exit.
    return "tree" if len(inner) == len(np.unique(inner)) and rule.kind == "domain" else "graph"


def _check_votes(model: DecisionGraph, way: str) -> None:
    """Refuse votes, larger than any builder's, by which weights would be multiplied."""
    most = float(max(np.abs(model.vote).max(initial=0.0), np.abs(model.bias).max()))
    if most > MOST_VOTE or (way == "tree" and largest_score(model) > 2 * MOST_VOTE):
        raise ValueError(
            f"model: expected votes of at most {MOST_VOTE:g}, in a tree {2 * MOST_VOTE:g} along a "
            "path: weights of rows are multiplied by their exponentials"
        )


def _check_growth(growth: Any, way: str, stored: Mapping[str, Any]) -> str:
    if growth is not None:
        check_choice("growth", growth, GROWTHS if way == "tree" else GROWTHS[:1])
        return str(growth)
    before = stored.get("growth")
    return str(before) if way == "tree" and before in GROWTHS else GROWTHS[0]


def _prepare(
    model: DecisionGraph, X: Any, y: Any, sample_weight: Any, weak: Weak, n_threads: Any
) -> TrainingData:
    """Return data with the columns and labels of a model."""
    X, label = columns_to_fit(model, X), None
    if isinstance(y, SoftLabels):
        y.check_labels(model.labels)
    elif not isinstance(X, RowSource):
        label = classes_of_labels(model, y, X.n_rows)
    problem = weak.read(X, y, sample_weight, "" if model.n_votes == 1 else None)
    found = problem.labels
    if found is not None and isinstance(X, RowSource) and not np.array_equal(found, model.labels):
        raise ValueError(
            f"y: expected the labels of the model, {shown(model.labels.tolist())}, got "
            f"{shown(found.tolist())}"
        )
    if model.n_votes > 1 and label is not None:
        problem = replace(problem, label=label.astype(np.int32))
    return weak.arrange(as_of_model(problem, model), n_threads)


def as_of_model(problem: Problem, model: DecisionGraph) -> Problem:
    """Return the problem of a model that goes on, with its labels, names and levels."""
    table = problem.table
    if model.table is not None:
        holes = model.table.has_missing
        table = model.table.with_holes(holes if table is None else holes | table.has_missing)
    return replace(problem, labels=model.labels, names=model.feature_names, table=table)
