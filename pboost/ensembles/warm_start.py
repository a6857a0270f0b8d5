"""Continue training: `continue_fit` for all models that support it, and its state between calls.

To continue a graph, its nodes are replayed on the given data. This restores the row weights at the
open exits, and growth continues. To continue a forest or gradient boosting model, a longer fit is
run. It starts from the generator state stored in the settings, so its random draws are the same.
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
from pboost.data.columns.sparse_columns import SparseFeatures
from pboost.data.node_inputs.functions import Oracles
from pboost.data.node_inputs.inputs import Inputs, Subsets
from pboost.data.node_inputs.sums import Projections, Separators, single_columns
from pboost.data.read.check_xy import label_array
from pboost.data.read.codes import RowLabels
from pboost.data.read.convert import Features, is_frame
from pboost.data.row_fingerprint import hashes
from pboost.data.row_source import RowSource, rows_of_fit
from pboost.data.targets import SoftLabels
from pboost.data.training_data import TrainingData
from pboost.growth.graph_growth import GROWTHS, STOPPED, Callback, Chain, GrowthOrder, TreeLimits
from pboost.growth.matryoshki import NestedGrowth
from pboost.growth.multiclass_graph import label_trees
from pboost.growth.soft_tree import SoftTree
from pboost.growth.tree import BoostedArrays, grow_tree
from pboost.models.base import check_model
from pboost.models.evaluate.match_input import (
    as_graph,
    classes_of_labels,
    columns_to_fit,
    ordered_sigma,
)
from pboost.models.gradient_boosting import CUT, GradientBoostingModel
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import CERTAIN, OUT, largest_score
from pboost.models.random_forest import RandomForest
from pboost.models.text import input_names
from pboost.observation.answers import KINDS as OBSERVATIONS
from pboost.observation.answers import Flip, Observation, Tables, check_pair
from pboost.observation.gaussian_search import Gaussian
from pboost.observation.sampling import Sampled
from pboost.threads import Workers
from pboost.trees.cart import FitData
from pboost.trees.early_stopping import HeldOut
from pboost.trees.gradient_boosting import SumOptions, begin_sum, draws, grow_sum
from pboost.trees.random_forest import ForestTreeOptions, grow_forest
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
from pboost.weak.multiclass_search import LabelSearch, refusal
from pboost.weak.stump_search import ColumnLearner

M = TypeVar("M", DecisionGraph, RandomForest, GradientBoostingModel)
#: Options of `continue_fit` that each kind of model accepts; all other options apply to every kind.
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
#: Maximum absolute vote; the exponential of twice this value does not overflow.
MOST_VOTE = 350.0
#: Part of a message: why directions of a model may not exist in other data.
OTHER_UNITS = (
    "; directions on more than two features depend on the standard deviations of the training "
    "data; continue with the training data"
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
    """Continue training: add nodes to a graph, or trees to a forest or gradient boosting model.

    `n_estimators` and `max_nodes` are the numbers to add, not the totals.

    Parameters
    ----------
    model : DecisionGraph, RandomForest or GradientBoostingModel
        A fitted model, which is not changed. All decision graphs are supported.
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        The training features, or other rows with the same features. A forest requires the training
        rows.
    y : array_like of shape (n,), optional
        Class labels, all in ``model.classes``; for regression, finite numbers.
    n_estimators : int, optional
        The number to add, not the total: the number of trees for a forest, and the maximum number
        of trees for gradient boosting. For a graph, the maximum number of weak classifiers of a
        chain that follows all open exits.
    max_nodes : int, optional
        The number to add, not the total: the maximum number of weak classifiers, each at one open
        exit of a graph. Exactly one of `n_estimators` and `max_nodes` is required for a graph.
    weak_learner, observation, smoothing, learning_rate : optional
        Options of the new nodes of a graph, as in the fit functions. By default, the options of the
        model are used.
    growth : {"largest_bound", "largest_error", "look_ahead", "breadth_first"}, optional
        Which open exit is split next, with `max_nodes`. By default, trees use the growth of the
        model and other graphs use "largest_bound", the only growth they support.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        Class probabilities of each row, in place of `y`. Each row counts once per class, with its
        weight times the class probability. A one-dimensional array contains the probability of the
        second of two classes.
    classes : array_like of shape (J,), optional
        The classes of the columns of `y_proba`. By default ``model.classes``.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows. A model does not store its training weights.
    validation : tuple, optional
        Validation set of a gradient boosting model that was fitted with ``validation=(X, y)``. Pass
        the same rows again, because a model does not store them. If the model was fitted with a
        fraction, the rows are held out again automatically.
    state : FitState, optional
        State for a series of calls in which each call continues the model of the previous call on
        the same data. Pass the same `FitState` to all calls. Supported for gradient boosting, and
        for binary chains with `n_estimators`.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for weak learners of a graph that draw random numbers; stumps do not.
        Forests and gradient boosting models store the initial state of their generator. If this
        generator was not NumPy's PCG64, pass it again.
    n_threads : int or None
        Number of threads; -1 uses all cores. By default, the number depends on the amount of work.
        The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each new node or tree, with the total number and
        the same record as in the original fit. If it returns True, fitting stops.
    progress : bool or callable
        If True, show a tqdm progress bar (extra ``progress``) on standard error. A callable is
        called like ``tqdm.tqdm`` to create the bar.

    Returns
    -------
    DecisionGraph, RandomForest or GradientBoostingModel
        A model with the old and the new nodes or trees. The whole training record (certificate,
        cost, losses) is computed on the data of this call.

    Raises
    ------
    ValueError, TypeError
        If the data do not match the model, or an option is invalid or not supported for this kind
        of model; if the nodes use directions that `weak_learner` does not create from X; if
        gaussian observations would be mixed with other observation models, or if the errors
        differed by cell in training and no `observation` is passed; if votes of the model are
        larger than any fit function allows; or if the generator state of a randomized forest or
        gradient boosting model is not known.
    NotImplementedError
        If weak classifiers, old or new, are functions (`pboost.weak.oracle`, `from_estimator`), or
        observations are sampled, since their random draws are not stored; or if they are separators
        or linear classifiers (`pboost.weak.separator`, `linear`), which are trained at the nodes.

    Notes
    -----
    If a model is continued on its training data, the result is bit-identical to a single longer
    fit. This is true for chains with ``n_estimators``, trees with ``max_nodes``, forests and
    gradient boosting models. A depth limit of the original fit still applies, but a target
    certificate is ignored. For other graphs, the row weights at all open exits are stored in
    memory, which takes 16 bytes per row and open exit.

    The out-of-bag record of a forest is computed again from all trees, and therefore requires the
    training rows in the same order. If a gradient boosting model was fitted with a validation set,
    it ends at its best iteration. The trees after this iteration are fitted again. `n_estimators`
    is the number of trees after the last iteration of the previous fit.

    Affine weak classifiers on more than two features are scaled by the standard deviations of the
    data. Models with such nodes can only be continued on data with the same standard deviations (to
    9 digits), such as the training data. With two features, you can use any data, and a multiple of
    the original number of directions. Models of stumps can be continued with affine weak
    classifiers (on two features, with an even number of directions). To continue such a model
    again, pass `weak_learner`.

    Gaussian observations are computed from the values and errors of the rows of this call, also at
    the old nodes. If the errors differ by cell, or if they are not the same as in training, pass
    the errors as ``observation=gaussian(sigma)``. The new model stores these errors.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> y = [0, 1, 1, 0, 1, 0, 0, 1]
    >>> model = pb.fit_adaboost(X, y, n_estimators=5)
    >>> pb.continue_fit(model, X, y, n_estimators=5)
    <fit_adaboost: 10 nodes, 1 features, certificate 0.08788>
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
    """Return the options that apply to the kind of model; raise TypeError for other options."""
    check_model(model)
    kind = type(model)
    if kind not in KINDS:
        error = model.is_no_graph("continue_fit")
        raise TypeError(f"{error}; RandomForest and GradientBoostingModel are supported, too")
    names = KINDS[kind]
    for name, value in offered.items():
        if name not in names and value is not None:
            other = next(other for other, options in KINDS.items() if name in options)
            raise TypeError(
                f"{name}, model: expected a {other.__name__} for continue_fit, got a "
                f"{kind.__name__}, which only takes {', '.join(names)}"
            )
    return {name: offered[name] for name in names}


class ContinueInputs(NamedTuple):
    """Arguments of `continue_fit` that apply to every kind of model."""

    X: Any
    y: Any
    sample_weight: Any
    rng: Seed
    n_threads: int | None
    bar: Bar

    def fit_data(
        self, model: RandomForest | GradientBoostingModel, rng: np.random.Generator
    ) -> FitData:
        """Return the data for a longer fit of trees."""
        X = columns_to_fit(model, self.X)
        return FitData(X, self.y, self.sample_weight, self.n_threads, rng)


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Checked options for continuing a graph, from `continue_fit` and from the model.

    Attributes
    ----------
    joins : bool
        Whether the open exits are merged.
    size : int
        Number of nodes to add.
    learner, observation : ColumnLearner, Observation
        Weak learner and observation model of the new nodes.
    searched : Weak
        The weak learner, adapted to this observation model.
    rule : VoteRule
        How votes are computed from class weights.
    growth : type
        Class that grows the model: a chain, a tree (with exact or uncertain observations) or a
        graph.
    limits : TreeLimits
        Limits for all nodes, old and new.
    settings : mapping
        Settings of the continued model.
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
        """Check the options of `continue_fit` for a graph."""
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
            observation = Flip(0.0)  # exact observations with stored tables, like the model
        elif observation.is_exact and way == "tree":
            kind = BoostedArrays
        return cls(joins, size, learner, observation, searched, rule, kind, limits, settings)


class GraphContinuation(NamedTuple):
    """The object that grows a graph, its threads, and the options of new nodes."""

    growth: Any
    workers: Workers
    options: Mapping[str, Any]

    def goes_on(self, options: Mapping[str, Any], n_threads: int | None) -> bool:
        """Return whether growth can continue with these options and threads."""
        # The errors of single cells are not among the options and cannot be compared.
        is_told = options["observation"].get("sigma") != "per cell"
        return is_told and self.options == options and self.workers.is_for(n_threads)


def _continue_graph(
    model: DecisionGraph, inputs: ContinueInputs, continue_options: Mapping[str, object]
) -> DecisionGraph:
    """Return a graph with more nodes."""
    more, state = GoesOn.checked(model, inputs.X, continue_options), continue_options["state"]
    if isinstance(inputs.X, RowSource):
        _check_source(more, state)
    options = {k: v for k, v in more.settings["continued"][-1].items() if k != "n_estimators"}
    rows, fit = {}, None
    if state is not None:
        state = check_state(state, inputs.rng)
        if more.growth is not Chain or model.n_votes > 1:
            raise NotImplementedError(
                "state: expected a binary chain that is continued with n_estimators, or a gradient "
                "boosting model; continue other graphs without a state"
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
    """Return an object that grows the graph of the model, and the threads of this object."""
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
            "model: expected stumps and tabulated observations to continue a graph with several "
            f"votes per exit, got {learner!r} and {observation!r}"
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
    """Raise NotImplementedError for graphs that cannot be continued on partitions."""
    if more.growth is NestedGrowth or state is not None:
        raise NotImplementedError(
            "continue_fit: expected all rows in one table, got partitions; pass rows.gather(). On "
            "partitions, continue chains with n_estimators and trees with max_nodes, without a "
            "state"
        )


def tables_of(model: DecisionGraph) -> Tables:
    """Return the outcome probabilities of each node; None for gaussian observations."""
    same = None if model.sigma is not None else CERTAIN
    return [same] * model.n_nodes if model.answer is None else list(model.answer)


def _check_size(n_estimators: object, max_nodes: object) -> tuple[bool, int]:
    """Return whether the open exits are merged, and the number of nodes to add."""
    if (n_estimators is None) == (max_nodes is None):
        received = "none" if max_nodes is None else f"{shown(n_estimators)}, {shown(max_nodes)}"
        raise ValueError(
            f"n_estimators, max_nodes: expected exactly one of them, got {received}; pass the "
            "number of rounds to add to a chain, or the number of nodes to add to a tree"
        )
    if max_nodes is None:
        return True, check_integer("n_estimators", n_estimators, min_value=1)
    return False, check_integer("max_nodes", max_nodes, min_value=1)


def _check_graph(model: Any) -> DecisionGraph:
    model = as_graph(model, "continue_fit")
    if isinstance(model.inputs, Oracles):
        raise NotImplementedError(
            "model: expected weak classifiers that use features, got functions, whose training "
            "values are not stored"
        )
    learner = model.settings.get("weak_learner")
    is_linear = isinstance(learner, Mapping) and learner.get("kind") == "linear"
    if is_linear or isinstance(model.inputs, Separators):
        raise NotImplementedError(
            "model: graphs of separators or linear weak classifiers cannot be continued, because "
            "these are trained at the nodes"
        )
    if model.is_estimated:
        raise NotImplementedError(
            "model: graphs with sampled observations cannot be continued; the draws of training "
            "are not stored"
        )
    if model.settings.get("feature_costs") is not None:
        raise NotImplementedError(
            "model: graphs fitted with feature costs cannot be continued; gradient boosting models "
            "can"
        )
    return model


def _observation(model: DecisionGraph, X: object, observation: object) -> Observation:
    """Return the observation model of the new nodes, with columns in the order of the model."""
    if observation is None:
        if model.sigma is None:
            what = "an observation model"
            stored = _stored(model.settings, "observation", what, OBSERVATIONS)
            return check_instance("observation", Observation, stored)
        if np.isnan(model.sigma).any():
            raise ValueError(
                "observation: expected gaussian(sigma) with one error per cell of these rows; the "
                "model does not store the errors of its training rows"
            )
        first = float(model.sigma[0])
        return Gaussian(first if (model.sigma == first).all() else model.sigma)
    if isinstance(observation, Gaussian) and is_frame(X):
        return Gaussian(freeze(ordered_sigma(model, X, observation.sigma)))
    return check_instance("observation", Observation, observation)


def _stored(
    settings: Mapping[str, Any], name: str, what: str, kinds: Mapping[str, Callable[..., Any]]
) -> Any:
    """Create the weak learner or the observation model from the settings of a model."""
    try:
        options = dict(settings[name])
        return kinds[options.pop("kind")](**options)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: expected {what}; the settings of the model contain none: {error}"
        ) from None


def _check_kinds(model: DecisionGraph, weak: Weak, observation: Observation) -> ColumnLearner:
    """Check that nodes of the weak learner can be added to the model; return the weak learner."""
    if not isinstance(weak, ColumnLearner):
        raise NotImplementedError(
            "weak_learner: expected classifiers that compare a number with a threshold, got "
            f"{weak!r}, which cannot be continued"
        )
    if isinstance(observation, Sampled):
        raise NotImplementedError("observation: sampled observations cannot be continued")
    is_gaussian = model.sigma is not None
    if model.n_nodes and is_gaussian != isinstance(observation, Gaussian):
        expected = "gaussian observations" if is_gaussian else "observations that are not gaussian"
        raise ValueError(f"observation: expected {expected}, as in the model, got {observation!r}")
    return weak


def renumbered(model: DecisionGraph, data: TrainingData) -> DecisionGraph:
    """Return the model with `feature` renumbered to the columns of the data."""
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
            f"model: expected nodes with directions that `weak_learner` creates from X, got "
            f"{direction} at node {node}" + (OTHER_UNITS if model.n_features > 2 else "")
        )
    before, now = stored_sums.fill, data_sums.fill
    is_other = before is not now and (before is None or now is None or (before != now).any())
    if is_other and np.isnan(data.source[data.source_rows]).any():
        raise ValueError(
            "X: expected the same feature means as in training, which affine weak classifiers use "
            "for missing values; got different means"
        )
    return replace(model, feature=feature, inputs=data.inputs)


def _projections(inputs: Inputs | None, model: DecisionGraph) -> Projections:
    """Return the inputs of nodes as projections, also if the nodes compare single features."""
    if inputs is None:
        return single_columns(model.n_features)
    assert isinstance(inputs, Projections)
    return inputs


def _way(model: DecisionGraph, joins: bool, rule: VoteRule) -> str:
    """Return the type of growth of a model: chain, tree or general graph."""
    if joins:
        return "chain" if model.is_chain else "graph"
    inner = model.next[model.next != OUT]
    # The votes of a tree are computed from the class weights of each exit ("domain").
    return "tree" if len(inner) == len(np.unique(inner)) and rule.kind == "domain" else "graph"


def _check_votes(model: DecisionGraph, way: str) -> None:
    """Raise ValueError for votes so large that row weights would overflow."""
    largest_vote = float(max(np.abs(model.vote).max(initial=0.0), np.abs(model.bias).max()))
    if largest_vote > MOST_VOTE or (way == "tree" and largest_score(model) > 2 * MOST_VOTE):
        raise ValueError(
            f"model: expected votes of at most {MOST_VOTE:g} (in a tree {2 * MOST_VOTE:g} along a "
            "path); larger votes make row weights overflow"
        )


def _check_growth(growth: object, way: str, stored: Mapping[str, object]) -> str:
    if growth is not None:
        check_choice("growth", growth, GROWTHS if way == "tree" else GROWTHS[:1])
        return str(growth)
    before = stored.get("growth")
    return str(before) if way == "tree" and before in GROWTHS else GROWTHS[0]


def _prepare(model: DecisionGraph, inputs: ContinueInputs, weak: Weak) -> TrainingData:
    """Return training data with the columns and classes of a model."""
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
            f"y: expected the classes of the model, {shown(model.classes.tolist())}, got "
            f"{shown(data_labels.tolist())}"
        )
    if model.n_votes > 1 and label is not None:
        problem = replace(problem, label=label.astype(np.int32))
    if model.table is not None:
        holes = model.table.has_missing
        table = model.table.with_holes(holes if table is None else holes | table.has_missing)
    problem = replace(problem, classes=model.classes, names=model.feature_names, table=table)
    return weak.arrange(problem, inputs.n_threads)


def _added(n: object, unit: str) -> int:
    """Return the checked number of trees or rounds to add."""
    if n is None:
        expected = f"expected the number of {unit} to add, got None"
        raise TypeError(f"n_estimators: {expected}; pass for example n_estimators=100")
    return check_integer("n_estimators", n, min_value=1)


def _continue_forest(
    model: RandomForest, inputs: ContinueInputs, continue_options: Mapping[str, object]
) -> RandomForest:
    """Return the forest with more trees."""
    more = _added(continue_options["n_estimators"], "trees")
    options = _stored_options(model, "fit_random_forest", ForestTreeOptions)
    if model.oob is None:
        raise ValueError(
            "model: expected a whole forest, got some of its trees (forest[:k]); the model does "
            "not store which trees"
        )
    generator = _generator(model, inputs.rng, is_needed=True)
    data = inputs.fit_data(model, generator)
    return grow_forest(data, len(model) + more, options, inputs.bar, tuple(model))


def _continue_sum(
    model: GradientBoostingModel, inputs: ContinueInputs, continue_options: Mapping[str, object]
) -> GradientBoostingModel:
    """Return the gradient boosting model with more trees."""
    unit = "rounds" if model.loss.is_multiclass else "trees"
    more, settings = _added(continue_options["n_estimators"], unit), model.settings
    options = _stored_options(model, "fit_gradient_boosting", SumOptions)
    held_out = HeldOut.continued(continue_options["validation"], settings)
    generator = _generator(model, inputs.rng, is_needed=draws({**settings, **options}))
    tried = len(model if model.validation_loss is None else model.validation_loss[1:])
    # A fit that ended early would end at the same iteration with a larger limit.
    was_cut = model.stop_reason == STOPPED or model.stop_reason.startswith(CUT)
    meant = check_integer("model.settings['n_estimators']", options["n_estimators"], min_value=1)
    options["n_estimators"] = more + (tried if was_cut else meant)
    data, state = inputs.fit_data(model, generator), continue_options["state"]
    if state is None:
        return grow_sum(data, model.loss, options, held_out, inputs.bar, model, tried)
    if isinstance(inputs.X, RowSource):
        raise NotImplementedError(
            "state: expected None for rows in partitions; a state requires all rows in one table: "
            "pass rows.gather()"
        )
    if isinstance(data.X, SparseFeatures):
        raise NotImplementedError("state: expected None with a sparse matrix; pass X.toarray()")
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
    """Check and return the options with which a model was fitted."""
    settings = model.settings
    if settings.get("builder") != builder or not settings.keys() >= group.__annotations__.keys():
        raise ValueError(
            f"model: expected the settings of {builder}, which are needed to add trees, got "
            f"settings of {settings.get('builder')}: {sorted(settings)}"
        )
    options: dict[str, Any] = checked(group, settings)
    return options


def _generator(model: Any, rng: Any, is_needed: bool) -> np.random.Generator:
    """Return a generator in the state at the start of the original fit."""
    state = model.settings.get("rng")
    if state is None:
        if rng is None and is_needed:
            raise ValueError(
                "rng: expected the generator of the fit, which drew rows or features; models "
                "store only PCG64 generators"
            )
        return as_generator(rng)
    if rng is not None:
        raise ValueError("rng: expected None, since the model stores the generator of its fit")
    try:
        return generator_in_state(state)
    except ValueError as error:
        raise ValueError(f"model.settings['rng']: {error}") from None


class FitState:
    """State that makes many short calls of `continue_fit` nearly as fast as one long call.

    Pass a new state to the first call of `continue_fit` in a series. Pass the same state to every
    later call, with the model that the previous call returned and the same data. Each call then
    starts where the previous one ended, and does not need to prepare the data and evaluate the
    model again. The models are bit-identical to models that are continued without a state.

    A state contains the binned or sorted columns, the decision values or weights of the training
    rows, and working arrays. Models do not contain a reference to the state.

    A state belongs to one model and one data set. If `model`, `X`, `y`, `sample_weight` or
    `validation` changes between calls, `continue_fit` raises ValueError. Values of X are compared
    by a hash of each row. After an exception, the state is empty. A state cannot be copied or
    pickled.

    Attributes
    ----------
    model : DecisionGraph, GradientBoostingModel or None
        The model that can be continued; None if the state is empty.

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
        """Return the model that can be continued; None if the state is empty."""
        return self._model

    def __repr__(self) -> str:
        return "<FitState: empty>" if self._fit is None else f"<FitState: {self._model!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a FitState cannot be copied or pickled; pass a new one to continue_fit")


def take(state: FitState, model: object, rows: Mapping[str, object]) -> Any:
    """Remove the stored fit from the state and return it; None if the state is empty.

    `rows` maps argument names to fingerprints of the data.
    """
    fit = state._fit
    if fit is None:
        return None
    if model is not state._model:
        raise ValueError(
            "model: expected the model that continue_fit returned with this state, "
            f"{state._model!r}, got a different model, {model!r}; use a new FitState() for it"
        )
    for name, value in rows.items():
        kept = state._rows[name]
        if not (kept is value or (type(kept) is bytes and kept == value)):
            raise ValueError(
                f"{name}: expected the same values as in the previous call with this state; pass "
                "the same values or a new FitState()"
            )
    keep(state, None, {}, None)
    return fit


def keep(state: FitState, model: object, rows: Mapping[str, object], fit: object) -> None:
    """Store a fit for the next call, which must use the same model and data."""
    state._model, state._rows, state._fit = model, rows, fit


def check_state(state: object, rng: object) -> FitState:
    """Check the type of `state`; with a state, `rng` must be None."""
    if not isinstance(state, FitState):
        raise TypeError(f"state: expected a FitState or None, got {shown(state)}")
    if rng is not None:
        raise ValueError(
            "rng: expected None with state=, which keeps the random draws; pass rng without a state"
        )
    return state


def fingerprints(model: Any, X: Any, y: Any, sample_weight: Any, validation: Any) -> dict[str, Any]:
    """Return fingerprints that identify the data of a call, by argument name.

    X is the result of `columns_to_fit`. Prepared columns are immutable, so they are compared by
    identity.
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
