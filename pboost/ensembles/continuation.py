"""Fitting goes on: `continue_fit`, for all models that can, and what it keeps between calls.

The nodes of a graph are opened once more, as they are, on the data that are given: then the weights
of the rows at the open exits are those with which growth would have gone on. Trees of a forest or
of a sum take their places in one longer fit, which draws once more what was drawn, from the state
of the generator that the settings keep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.node_inputs.functions import Oracles
from pboost.data.node_inputs.inputs import Inputs, Subsets
from pboost.data.node_inputs.sums import Projections, Separators, single_columns
from pboost.data.read.check_xy import label_array
from pboost.data.read.codes import RowLabels
from pboost.data.read.convert import Features, is_frame
from pboost.data.row_digest import hashes
from pboost.data.row_source import RowSource, rows_of_fit
from pboost.data.targets import SoftLabels
from pboost.data.training import TrainingData
from pboost.growth.label_trees import label_trees
from pboost.growth.matryoshki import NestedGrowth
from pboost.growth.soft_tree import SoftTree
from pboost.growth.step import GROWTHS, STOPPED, Callback, Chain, GrowthOrder, TreeLimits
from pboost.growth.tree import BoostedArrays, grow_tree
from pboost.growth.validation import GIVEN
from pboost.models.base import check_model
from pboost.models.evaluate.new_rows import (
    as_graph,
    classes_of_labels,
    columns_to_fit,
    ordered_sigma,
)
from pboost.models.forest import RandomForest
from pboost.models.graph import DecisionGraph
from pboost.models.nodes import CERTAIN, OUT, largest_score
from pboost.models.text import input_names
from pboost.models.tree_sum import CUT, GradientBoostingModel
from pboost.observation.answers import KINDS as OBSERVATIONS
from pboost.observation.answers import Flip, Observation, Tables, check_pair
from pboost.observation.gaussian_search import Gaussian
from pboost.observation.sampling import Sampled
from pboost.threads import Workers
from pboost.trees.cart import FitData
from pboost.trees.forest import ForestTreeOptions, grow_forest
from pboost.trees.stagewise import SumOptions, begin_sum, draws, grow_sum
from pboost.values import (
    INT32_MAX,
    Bar,
    Progress,
    Seed,
    VoteRule,
    as_generator,
    check_callback,
    check_choice,
    check_instance,
    check_integer,
    check_progress,
    freeze,
    generator_in_state,
    shown,
    vote_rule,
    with_bar,
)
from pboost.values.options import builder, checked
from pboost.weak.base import KINDS as LEARNERS
from pboost.weak.base import Weak
from pboost.weak.label_search import LabelSearch, refusal
from pboost.weak.stump_search import ColumnLearner

M = TypeVar("M", DecisionGraph, RandomForest, GradientBoostingModel)
#: With which options each kind of model goes on; others are for all.
KINDS: Mapping[type, tuple[str, ...]] = {
    DecisionGraph: (
        "n_estimators",
        "max_nodes",
        "weak_learner",
        "observation",
        "growth",
        "smoothing",
        "learning_rate",
        "state",
    ),
    RandomForest: ("n_estimators",),
    GradientBoostingModel: ("n_estimators", "validation", "state"),
}
#: Of twice this the exponential is still a number.
MOST_VOTE = 350.0
#: Why directions of a model are not found among those of other data.
OTHER_UNITS = (
    "; directions of more than two columns are made in units of the standard deviations of the "
    "data, and other data have others"
)


@builder
def continue_fit(
    model: M,
    X: Any,
    y: ArrayLike | None = None,
    *,
    n_estimators: int | None = None,
    max_nodes: int | None = None,
    weak_learner: Weak | None = None,
    observation: Observation | None = None,
    growth: GrowthOrder | None = None,
    smoothing: float | None = None,
    learning_rate: float | None = None,
    y_proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    validation: tuple[Any, ...] | None = None,
    state: FitState | None = None,
    rng: Seed = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> M:
    """Add nodes to a fitted graph, or trees to a fitted forest or stagewise model.

    `n_estimators` and `max_nodes` are the numbers to add, not those of the whole.

    Parameters
    ----------
    model : DecisionGraph, RandomForest or GradientBoostingModel
        A fitted model; it is not changed. Any graph will do.
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features: those of the fit, or other rows with the same columns; of a forest those of the
        fit.
    y : array_like of shape (n,), optional
        Labels, all values of ``model.classes``; of a regression, numbers.
    n_estimators : int, optional
        The number to add, not that of the whole: so many trees to a forest; at most so many trees
        to a stagewise model, or weak classifiers to a graph, as a chain to which all of its open
        exits lead.
    max_nodes : int, optional
        The number to add, not that of the whole: at most so many weak classifiers, each at one open
        exit of a graph. Of a graph exactly one of `n_estimators` and `max_nodes` must be given.
    weak_learner, observation, smoothing, learning_rate : optional
        Of a graph: as the builders take them, for the new nodes; None: those of the model.
    growth : {"largest_bound", "largest_error", "look_ahead", "breadth_first"}, optional
        With `max_nodes`: which open exit is split next. None: that of the model, if it is a tree,
        else the one of largest bound; where exits join there is no other.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        In place of `y`: the probability of each label in each row, which then stands for each of
        them with its weight times its probability; one dimension: that of the second of two labels.
    classes : array_like of shape (J,), optional
        With `y_proba`: the labels of its columns; default ``model.classes``.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; a model does not keep those of its fit.
    validation : tuple, optional
        Of a stagewise model that was fitted with ``validation=(X, y)``: the same once more, since a
        model does not keep it. A share of the rows is held out again without being given.
    state : FitState, optional
        For a series of calls with the same data, each with the model of the call before: pass the
        same `FitState` to all of them, and each call starts where the call before ended. For
        stagewise models, and for chains of two classes with `n_estimators`.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Of a graph: source of randomness for weak learners that draw; stumps draw nothing. Forests
        and stagewise models keep the state of the generator with which their fit began; if `rng`
        was a generator other than NumPy's PCG64, pass it again.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth. The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each new node or tree with the number of all and
        what the builder of the model tells; returning True stops.
    progress : bool or callable
        True shows a bar of tqdm (extra ``progress``) on standard error; or what makes a bar, as
        ``tqdm.tqdm`` does.

    Returns
    -------
    DecisionGraph, RandomForest or GradientBoostingModel
        What was there as it was, and what is new. The record is that of the whole on the data given
        here: on other data than those of the fit, certificate, cost and losses are those of the
        other data throughout.

    Raises
    ------
    ValueError, TypeError
        If the data are not such as the model was fitted to, or an option is not as described, or
        belongs to another kind of model; if the nodes compare directions that `weak_learner` does
        not make of X; if gaussian answers are to be mixed with others, or each cell had its own
        error in training and no `observation` is given; if votes of the model are larger than those
        of any builder; if a forest or stagewise model was fitted to rows or columns that were
        drawn, and it is not known from what state.
    NotImplementedError
        If weak classifiers of the model, or the new ones, are functions (`pboost.weak.oracle`,
        `from_estimator`), or their answers are sampled: what was drawn in training is not kept; if
        they are separators or linear (`pboost.weak.separator`, `linear`), trained at the nodes.

    Notes
    -----
    On the data of the fit, ``n_estimators`` more for a chain, ``max_nodes`` more for a tree, with
    any of the growths, and ``n_estimators`` more for a forest or a stagewise model give the model
    that one fit with the sum of both would have given, bit for bit. A limit on the depth is kept; a
    target certificate is not. Of graphs where neither is the case, the weights and reach masses of
    all rows are kept for each open exit: 16 bytes times rows times open exits.

    A forest takes its out-of-bag record from all trees anew, and so the rows of its fit, in their
    order. With validation rows a stagewise model has the trees up to the best; those after it are
    fitted again, and `n_estimators` counts from the last that was tried.

    Affine weak classifiers of more than two columns are made in units of the standard deviations of
    the data, so that models of them can only be continued on data of the same standard deviations
    (to 9 digits): those of the fit. On two columns any data will do, and any multiple of the
    model's number of directions. Models of stumps can be continued with affine weak classifiers
    (on two columns, of an even number of directions); from then on `weak_learner` must be given.

    Gaussian answers follow from the values and errors of the rows given here, also at the nodes of
    `model`. Where each cell had its own error, or these rows have other errors than those of the
    fit, pass them as ``observation=gaussian(sigma)``; the new model then keeps these.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> y = [0, 1, 1, 0, 1, 0, 0, 1]
    >>> model = pb.fit_adaboost(X, y, n_estimators=5)
    >>> longer = pb.continue_fit(model, X, y, n_estimators=5)
    >>> at_once = pb.fit_adaboost(X, y, n_estimators=10)
    >>> bool((longer.vote == at_once.vote).all())
    True
    >>> forest = pb.fit_random_forest(X, y, n_estimators=20, rng=0)
    >>> len(pb.continue_fit(forest, X, y, n_estimators=30))
    50
    """
    check_callback("callback", callback)
    check_progress("progress", progress)
    continue_options = options_of(
        model,
        {
            "n_estimators": n_estimators,
            "max_nodes": max_nodes,
            "weak_learner": weak_learner,
            "observation": observation,
            "growth": growth,
            "smoothing": smoothing,
            "learning_rate": learning_rate,
            "validation": validation,
            "state": state,
        },
    )
    if y_proba is not None and classes is None:
        classes = model.classes
    of_rows = {"y_proba": y_proba, "classes": classes, "sample_weight": sample_weight}
    rows = rows_of_fit(X, y, of_rows)
    inputs = ContinueInputs(*rows, rng, n_threads, partial(with_bar, callback, progress))
    if isinstance(model, DecisionGraph):
        return _continue_graph(model, inputs, continue_options)
    if isinstance(model, RandomForest):
        return _continue_forest(model, inputs, continue_options)
    return _continue_sum(model, inputs, continue_options)


def options_of(model: Any, offered: Mapping[str, object]) -> dict[str, Any]:
    """Return those of the options given that a kind of model goes on with."""
    check_model(model)
    kind = type(model)
    if kind not in KINDS:
        error = model.is_no_graph("continue_fit")
        raise TypeError(f"{error}; a RandomForest and a GradientBoostingModel go on, too")
    names = KINDS[kind]
    for name, value in offered.items():
        if name not in names and value is not None:
            other = next(other for other, options in KINDS.items() if name in options)
            raise TypeError(
                f"{name}, model: expected a {other.__name__} for continue_fit, got a "
                f"{kind.__name__}, which goes on with {', '.join(names)} and not with {name}"
            )
    return {name: offered[name] for name in names}


class ContinueInputs(NamedTuple):
    """What `continue_fit` is given for a model of any kind."""

    X: Any
    y: Any
    sample_weight: Any
    rng: Seed
    n_threads: int | None
    bar: Bar

    def fit_data(
        self, model: RandomForest | GradientBoostingModel, rng: np.random.Generator
    ) -> FitData:
        """Return the data of a longer fit of trees."""
        X = columns_to_fit(model, self.X)
        return FitData(X, self.y, self.sample_weight, self.n_threads, rng)


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
    growth : type
        As what the model goes on: a chain, a tree, whose answers may be exact, or any other graph.
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
    growth: type[Chain | SoftTree | NestedGrowth | BoostedArrays]
    limits: TreeLimits
    settings: Mapping[str, Any]

    @classmethod
    def checked(cls, model: DecisionGraph, X: Any, continue_options: Mapping[str, Any]) -> GoesOn:
        """Return how a graph goes on with the options of `continue_fit`."""
        joins, size = _check_size(continue_options["n_estimators"], continue_options["max_nodes"])
        stored = _check_graph(model).settings
        weak = continue_options["weak_learner"]
        if weak is None:
            weak = _stored(stored, "weak_learner", "a weak learner", LEARNERS)
        observation = _observation(model, X, continue_options["observation"])
        searched = check_pair(weak, observation)
        learner = _check_kinds(model, weak, observation)
        smoothing, rate = continue_options["smoothing"], continue_options["learning_rate"]
        rule = vote_rule(
            stored.get("votes", "domain"),
            stored.get("smoothing", 1e-4) if smoothing is None else smoothing,
            stored.get("learning_rate", 1.0) if rate is None else rate,
        )
        way = _way(model, joins, rule)
        _check_votes(model, way)
        growth = _check_growth(continue_options["growth"], way, stored)
        added = {
            "n_estimators" if joins else "max_nodes": size,
            "growth": growth,
            "observation": observation.settings(),
            "smoothing": rule.smoothing,
            "learning_rate": rule.learning_rate,
            "weak_learner": learner.settings(),
        }
        settings = {**stored, "continued": [*stored.get("continued", ()), added]}
        depth = stored.get("max_depth") or INT32_MAX
        limits = TreeLimits(model.n_nodes + size, depth, growth, -1.0)
        kind: Any = {"chain": Chain, "tree": SoftTree, "graph": NestedGrowth}[way]
        if observation.is_exact and model.answer is not None:
            observation = Flip(0.0)  # the same answers, kept as tables, since the model has tables
        elif observation.is_exact and way == "tree":
            kind = BoostedArrays
        return cls(joins, size, learner, observation, searched, rule, kind, limits, settings)


class GraphContinuation(NamedTuple):
    """The growth of a graph that goes on, its threads, and the options of the new nodes."""

    growth: Any
    workers: Workers
    options: Mapping[str, Any]

    def goes_on(self, options: Mapping[str, Any], n_threads: int | None) -> bool:
        """Return whether these are its options and threads."""
        # Of errors of each cell the options tell no more than that.
        is_told = options["observation"].get("sigma") != "per cell"
        return is_told and self.options == options and self.workers.is_for(n_threads)


def _continue_graph(
    model: DecisionGraph, inputs: ContinueInputs, continue_options: Mapping[str, object]
) -> DecisionGraph:
    """Return the graph with more nodes."""
    more, state = GoesOn.checked(model, inputs.X, continue_options), continue_options["state"]
    if isinstance(inputs.X, RowSource):
        _check_source(more, state)
    options = {k: v for k, v in more.settings["continued"][-1].items() if k != "n_estimators"}
    rows, fit = {}, None
    if state is not None:
        state = check_state(state, inputs.rng)
        if more.growth is not Chain or model.n_votes > 1:
            raise NotImplementedError(
                "state: expected a chain of two classes that is continued with n_estimators, or a "
                "stagewise model; other graphs are continued without a state"
            )
        X = columns_to_fit(model, inputs.X)
        rows = fingerprints(model, X, inputs.y, inputs.sample_weight, None)
        fit = take(state, model, rows)
    with ExitStack() as ends:
        if fit is None or not fit.goes_on(options, inputs.n_threads):
            fit = GraphContinuation(*_opened_again(model, inputs, more, ends), options)
        growth, workers = fit.growth, ends.enter_context(fit.workers)
        if state is not None:
            growth.rounds = more.limits.nodes
        callback = ends.enter_context(inputs.bar(more.limits.nodes, "nodes", model.n_nodes))
        if isinstance(growth, BoostedArrays):
            reason = grow_tree(growth, workers, callback)
        else:
            reason = growth.grow(callback)
        longer: DecisionGraph = growth.model(more.settings, reason)
    if state is not None:
        keep(state, longer, rows, fit)
    return longer


def _opened_again(
    model: DecisionGraph, inputs: ContinueInputs, more: GoesOn, ends: ExitStack
) -> tuple[Any, Workers]:
    """Return the growth of more nodes, with those of the model as they are, and its threads."""
    learner: Any = more.learner
    observation: Any = more.observation
    growth: Any = more.growth
    kind, searched, rule, limits = more.growth, more.searched, more.rule, more.limits
    generator = as_generator(inputs.rng)
    if isinstance(inputs.X, RowSource):
        learner = searched = inputs.X.graph(searched, observation, kind)
        growth = inputs.X.growth(kind)
    if model.n_votes > 1 and refusal(more.searched, observation):
        raise NotImplementedError(
            "model: graphs whose exits have several votes are continued with stumps and with "
            f"answers of a table, got {learner!r} and {observation!r}"
        )
    data = _prepare(model, inputs, searched)
    model = renumbered(model, data)
    workers = ends.enter_context(learner.workers(data, inputs.n_threads))
    arguments: tuple[Any, ...]
    if model.n_votes > 1:
        arguments = (1, replace(limits, nodes=more.size))
        if more.joins:
            arguments = more.size, replace(limits, nodes=1)
        as_tree_ensemble = data, LabelSearch(data, learner, workers), rule, *arguments, observation
        is_here = not isinstance(inputs.X, RowSource)
        trees = (
            label_trees(*as_tree_ensemble)
            if is_here
            else label_trees(*as_tree_ensemble, inputs.X.growth)
        )
        trees.replay(model, joins=more.joins)
        return trees, workers
    if kind is BoostedArrays:
        arrays = growth(data, learner, rule, limits, n_replayed=model.n_nodes)
        arrays.replay(model)
        return arrays, workers
    arguments = (limits,)
    if kind is Chain:
        arguments = (limits.nodes,)
    elif kind is NestedGrowth:
        arguments = "additive", (more.size,), "all" if more.joins else "sign"
    grower = growth(data, observation.bind(data, learner, workers, generator), rule, *arguments)
    grower.replay(model, tables_of(model))
    return grower, workers


def _check_source(more: GoesOn, state: object) -> None:
    """Raise NotImplementedError for graphs that are not continued on partitions."""
    if more.growth is NestedGrowth or state is not None:
        raise NotImplementedError(
            "continue_fit needs all rows in one place: pass rows.gather(); on partitions chains "
            "are continued with n_estimators, and trees with max_nodes, without a state"
        )


def tables_of(model: DecisionGraph) -> Tables:
    """Return the tables of answers of the nodes of a model, None where they are gaussian."""
    same = None if model.sigma is not None else CERTAIN
    return [same] * model.n_nodes if model.answer is None else list(model.answer)


def _check_size(n_estimators: object, max_nodes: object) -> tuple[bool, int]:
    """Return whether the open exits join, and how many nodes to add."""
    if (n_estimators is None) == (max_nodes is None):
        raise ValueError(
            "n_estimators, max_nodes: expected exactly one of them, got "
            f"n_estimators={shown(n_estimators)}, max_nodes={shown(max_nodes)}"
        )
    if max_nodes is None:
        return True, check_integer("n_estimators", n_estimators, min_value=1)
    return False, check_integer("max_nodes", max_nodes, min_value=1)


def _check_graph(model: Any) -> DecisionGraph:
    model = as_graph(model, "continue_fit")
    if isinstance(model.inputs, Oracles):
        raise NotImplementedError(
            "model: weak classifiers that are functions cannot be continued: what they answered in "
            "training is not kept"
        )
    learner = model.settings.get("weak_learner")
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
    if model.settings.get("feature_costs") is not None:
        raise NotImplementedError(
            "model: graphs that were fitted with feature costs are not continued; sums of trees are"
        )
    return model


def _observation(model: DecisionGraph, X: object, observation: object) -> Observation:
    """Return the observation model of the new nodes, for the columns in the model's order."""
    if observation is None:
        if model.sigma is None:
            what = "an observation model"
            stored = _stored(model.settings, "observation", what, OBSERVATIONS)
            return check_instance("observation", Observation, stored)
        if np.isnan(model.sigma).any():
            raise ValueError(
                "observation: expected gaussian(sigma) with the standard deviations of these "
                "rows: in training each cell had its own, which the model does not keep"
            )
        first = float(model.sigma[0])
        return Gaussian(first if (model.sigma == first).all() else model.sigma)
    if isinstance(observation, Gaussian) and is_frame(X):
        return Gaussian(freeze(ordered_sigma(model, X, observation.sigma)))
    return check_instance("observation", Observation, observation)


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
            "weak_learner: models can only be continued with weak classifiers that compare a number with a "
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
    stored_sums, data_sums = (_projections(inputs, model) for inputs in (model.inputs, data.inputs))
    place = {terms: number for number, terms in enumerate(data_sums.terms())}
    number = np.array([place.get(terms, -1) for terms in stored_sums.terms()], dtype=np.int32)
    feature = number[model.feature]
    if (feature < 0).any():
        node = int(np.argmin(feature))
        direction = input_names(model)[model.feature[node]]
        raise ValueError(
            f"model: expected nodes that compare what `weak_learner` makes of X, got {direction} at node "
            f"{node}" + (OTHER_UNITS if model.n_features > 2 else "")
        )
    before, now = stored_sums.fill, data_sums.fill
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
    largest_vote = float(max(np.abs(model.vote).max(initial=0.0), np.abs(model.bias).max()))
    if largest_vote > MOST_VOTE or (way == "tree" and largest_score(model) > 2 * MOST_VOTE):
        raise ValueError(
            f"model: expected votes of at most {MOST_VOTE:g}, in a tree {2 * MOST_VOTE:g} along a "
            "path: weights of rows are multiplied by their exponentials"
        )


def _check_growth(growth: object, way: str, stored: Mapping[str, object]) -> str:
    if growth is not None:
        check_choice("growth", growth, GROWTHS if way == "tree" else GROWTHS[:1])
        return str(growth)
    before = stored.get("growth")
    return str(before) if way == "tree" and before in GROWTHS else GROWTHS[0]


def _prepare(model: DecisionGraph, inputs: ContinueInputs, weak: Weak) -> TrainingData:
    """Return data with the columns and labels of a model."""
    X, y, label = columns_to_fit(model, inputs.X), inputs.y, None
    if isinstance(y, SoftLabels):
        y.check_labels(model.classes)
    elif not isinstance(X, RowSource):
        label = classes_of_labels(model, y, X.n_rows)
    problem = weak.read(X, y, inputs.sample_weight, "" if model.n_votes == 1 else None)
    data_labels, table = problem.classes, problem.table
    if (
        data_labels is not None
        and isinstance(X, RowSource)
        and not np.array_equal(data_labels, model.classes)
    ):
        raise ValueError(
            f"y: expected the labels of the model, {shown(model.classes.tolist())}, got "
            f"{shown(data_labels.tolist())}"
        )
    if model.n_votes > 1 and label is not None:
        problem = replace(problem, label=label.astype(np.int32))
    if model.table is not None:
        holes = model.table.has_missing
        table = model.table.with_holes(holes if table is None else holes | table.has_missing)
    problem = replace(problem, classes=model.classes, names=model.feature_names, table=table)
    return weak.arrange(problem, inputs.n_threads)


def _continue_forest(
    model: RandomForest, inputs: ContinueInputs, continue_options: Mapping[str, object]
) -> RandomForest:
    """Return the forest with more trees."""
    more = check_integer("n_estimators", continue_options["n_estimators"], min_value=1)
    options = _stored_options(model, "fit_random_forest", ForestTreeOptions)
    if model.oob is None:
        raise ValueError(
            "model: expected a whole forest, got trees of one, as forest[:k] has; it is not known "
            "which they are"
        )
    generator = _generator(model, inputs.rng, is_needed=True)
    data = inputs.fit_data(model, generator)
    return grow_forest(data, len(model) + more, options, inputs.bar, tuple(model))


def _continue_sum(
    model: GradientBoostingModel, inputs: ContinueInputs, continue_options: Mapping[str, object]
) -> GradientBoostingModel:
    """Return the sum with more trees."""
    more, settings = (
        check_integer("n_estimators", continue_options["n_estimators"], min_value=1),
        model.settings,
    )
    options = _stored_options(model, "fit_gradient_boosting", SumOptions)
    held_out = _held_out(settings, continue_options["validation"])
    generator = _generator(model, inputs.rng, is_needed=draws({**settings, **options}))
    tried = len(model if model.validation_loss is None else model.validation_loss[1:])
    # A fit that ended by itself would have ended there with more steps, too.
    was_cut = model.stop_reason == STOPPED or model.stop_reason.startswith(CUT)
    meant = check_integer("model.settings['n_estimators']", options["n_estimators"], min_value=1)
    options["n_estimators"] = more + (tried if was_cut else meant)
    data, state = inputs.fit_data(model, generator), continue_options["state"]
    if state is None:
        return grow_sum(data, model.loss, options, held_out, inputs.bar, model, tried)
    if isinstance(inputs.X, RowSource):
        raise NotImplementedError(
            "state: expected None of rows in partitions; a kept state needs all rows in one place: "
            "pass rows.gather()"
        )
    state = check_state(state, inputs.rng)
    rows = fingerprints(
        model, data.X, inputs.y, inputs.sample_weight, continue_options["validation"]
    )
    fit = take(state, model, rows)
    if fit is not None and fit.workers.is_for(inputs.n_threads):
        longer = fit.go_on(options["n_estimators"], inputs.bar)
    else:
        fit = begin_sum(data, model.loss, options, held_out, model)
        longer = fit.grow(inputs.bar, tried)
    keep(state, longer, rows, fit)
    return longer


def _stored_options(model: Any, builder: str, group: type) -> dict[str, Any]:
    """Return the options of the fit of a model, checked."""
    settings = model.settings
    if settings.get("builder") != builder or not settings.keys() >= group.__annotations__.keys():
        raise ValueError(
            f"model: expected settings of {builder}, by which further trees are fitted, got those "
            f"of {settings.get('builder')}: {sorted(settings)}"
        )
    options: dict[str, Any] = checked(group, settings)
    return options


def _held_out(settings: Any, validation: Any) -> tuple[Any, Any]:
    """Return the options `validation` and `n_iter_no_change` of the fit that goes on."""
    known = settings.get("validation")
    if (known == GIVEN) != (validation is not None):
        raise ValueError(
            "validation: expected the rows that were given to the fit, which a model does not keep"
            if known == GIVEN
            else "validation: expected None for a model whose fit was given no such rows"
        )
    return (validation if known == GIVEN else known), settings.get("n_iter_no_change")


def _generator(model: Any, rng: Any, is_needed: bool) -> np.random.Generator:
    """Return a generator in the state in which the fit began to draw."""
    state = model.settings.get("rng")
    if state is None:
        if rng is None and is_needed:
            raise ValueError(
                "rng: expected that of the fit, which drew rows or columns; the model only keeps "
                "generators that are PCG64"
            )
        return as_generator(rng)
    if rng is not None:
        raise ValueError("rng: expected None, since the model keeps that of its fit")
    try:
        return generator_in_state(state)
    except ValueError as error:
        raise ValueError(f"model.settings['rng']: {error}") from None


class FitState:
    """The state of a fit, which makes many short calls of `continue_fit` nearly as fast as one.

    Pass a new one to the first call of a series of `continue_fit`, and the same object to each call
    after it, with the model that the call before returned and the same data. A call then starts
    where the call before ended: it neither prepares the data nor evaluates the model again. The
    models are the same as without a state, bit for bit.

    A state holds the bins or the sorted columns, the decision values or the weights of the training
    rows, and the arrays that training works in. It belongs to the caller: models never refer to it.

    It is for one model and one set of data. If `model`, `X`, `y`, `sample_weight` or `validation`
    is another than in the call before, `continue_fit` raises ValueError; values of X are compared
    by a hash of each row. If training is interrupted by an exception, the state is empty, like a
    new one. It cannot be copied or pickled.

    Attributes
    ----------
    model : DecisionGraph, GradientBoostingModel or None
        The model that it continues; None if it is empty.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = pb.fit_gradient_boosting(X, y, n_estimators=1)
    >>> state = pb.models.FitState()
    >>> for _ in range(99):
    ...     model = pb.continue_fit(model, X, y, n_estimators=1, state=state)
    >>> model
    <fit_gradient_boosting: 100 trees, 4 features, loss squared_error>
    """

    __slots__ = ("_fit", "_model", "_rows")

    def __init__(self) -> None:
        self._model: Any = None
        self._rows: Mapping[str, Any] = {}
        self._fit: Any = None

    @property
    def model(self) -> Any:
        """The model that it continues; None if it is empty."""
        return self._model

    def __repr__(self) -> str:
        return "<FitState: empty>" if self._fit is None else f"<FitState: {self._model!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a FitState cannot be copied or pickled; pass a new one to continue_fit")


def take(state: FitState, model: object, rows: Mapping[str, object]) -> Any:
    """Return the fit that was kept for this model and these rows, None if there is none.

    The state is then empty. `rows` has the fingerprints of the data, by argument.
    """
    fit = state._fit
    if fit is None:
        return None
    if model is not state._model:
        raise ValueError(
            "model: expected the model that continue_fit returned with this state, "
            f"{state._model!r}, got another, {model!r}; pass a new FitState() for it"
        )
    for name, value in rows.items():
        kept = state._rows[name]
        if not (kept is value or (type(kept) is bytes and kept == value)):
            raise ValueError(
                f"{name}: expected the values that the state was made with, got others; pass "
                "them, or a new FitState()"
            )
    keep(state, None, {}, None)
    return fit


def keep(state: FitState, model: object, rows: Mapping[str, object], fit: object) -> None:
    """Keep a fit for the next call, which is to be with this model and these rows."""
    state._model, state._rows, state._fit = model, rows, fit


def check_state(state: object, rng: object) -> FitState:
    """Return the option `state` if it is one; with it `rng` must be None."""
    if not isinstance(state, FitState):
        raise TypeError(f"state: expected a FitState or None, got {shown(state)}")
    if rng is not None:
        raise ValueError(
            "rng: expected None with state=, which keeps what has been drawn; without a state rng "
            "is taken"
        )
    return state


def fingerprints(model: Any, X: Any, y: Any, sample_weight: Any, validation: Any) -> dict[str, Any]:
    """Return what tells the data of a call from others, by argument: a digest of arrays.

    X is as `columns_to_fit` returns it; prepared columns cannot change and stand for themselves.
    """
    arguments = {"X": X, "y": y, "sample_weight": sample_weight}
    if isinstance(validation, tuple | list) and 2 <= len(validation) <= 3:
        more = "validation X", "validation y", "validation sample_weight"
        values = columns_to_fit(model, validation[0]), *(*validation[1:], None)[:2]
        arguments |= dict(zip(more, values, strict=True))
    return {name: _fingerprint(values) for name, values in arguments.items()}


def _fingerprint(values: object) -> Any:
    if values is None or isinstance(values, SortedColumns | BinnedColumns):
        return values
    if isinstance(values, SoftLabels):
        return _digest(values.classes, values.share)
    if isinstance(values, RowLabels):
        return _digest(values.classes, values.codes)
    if isinstance(values, Features):
        return _digest(np.array(values.values.shape), hashes(values.values))
    return _digest(label_array(values))


def _digest(*arrays: Any) -> bytes:
    hasher = hashlib.blake2b(digest_size=16)
    for array in arrays:
        hasher.update(f"{array.dtype.str}{array.shape}".encode())
        hasher.update(np.ascontiguousarray(array).data)
    return hasher.digest()
