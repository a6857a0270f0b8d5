"""Which trees a model is the sum of."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from pboost.data.node_inputs.functions import Oracles
from pboost.data.node_inputs.inputs import WORDS, StoredInputs, indicators_of
from pboost.data.node_inputs.sums import Projections
from pboost.losses import is_of_package
from pboost.models.base import Model, check_model
from pboost.models.calibrated import CalibratedModel
from pboost.models.early_exit import EarlyExitModel
from pboost.models.ensembles import Bagging, Composite, OneVsRest, WeightedVote
from pboost.models.forest import Forest
from pboost.models.graph import DecisionGraph
from pboost.models.linear import HypothesisSum, LinearModel, ProbitModel
from pboost.models.member_trees import (
    NoTreesError,
    joined,
    no_trees,
    parts_of_bags,
    parts_of_rest,
    parts_of_votes,
)
from pboost.models.members import is_foreign
from pboost.models.probit_trees import ProbitTree
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_record import LEAF, NO_SET, TreeSum
from pboost.models.tree_sum import StagewiseModel
from pboost.models.trees import Tree, Trees
from pboost.models.unroll import count_unrolled, reach_of, tests_of, unroll
from pboost.values import FloatArray, check_integer

#: Why models of other kinds are no sums of trees, and what can be used instead.
REFUSED: dict[type[Model], str] = {
    LinearModel: "which is one linear function: see coefficients and export_c",
    ProbitModel: "which is one linear function: see coefficients and export_c",
    ProbitTree: "whose leaves are linear functions: see coefficients and export_c",
    SubaggedProbitTrees: "whose leaves are linear functions: see coefficients and export_c",
    HypothesisSum: "which is made of functions of a row, that no format holds; pickle it",
    EarlyExitModel: "whose rows leave early: model.model is the whole model, which may be one",
    CalibratedModel: "whose values are calibrated: model.model, the model itself, may be one",
}
UNKNOWN = "which does not say what trees it is made of"


def trees_of(model: Model, X: Any = None, *, max_nodes: int = 100_000) -> TreeSum:
    """Return the trees whose sum, or mean, a model is.

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, StagewiseModel, OneVsRest, WeightedVote or Bagging
        A fitted model whose decision value is a sum over trees that compare columns. A chain has a
        tree of one comparison for each node; of a graph whose exits join, each path from one joint
        to the next, a node that all paths meet, is one of a tree. Its hard route is that of the
        trees, also where answers were uncertain in training. Models of models are sums of trees
        where their members are, and add up as such; see Notes.
    X : array_like of shape (n, d), or data frame, optional
        Rows by which nodes are weighted; see `decision_function`. The weight of a node of a graph
        is then the expected number of rows that come there under the answers assumed in training,
        see `reach`; where these depend on the class, it is taken for the label predicted. Default:
        the weights in training, which trees, forests and stagewise models know, and graphs do not;
        models of models where all members know them.
    max_nodes : int
        The most nodes that the trees of a graph may have, or of all graphs that are members: exits
        that join multiply.

    Returns
    -------
    TreeSum
        Arrays of the nodes, and what is made of the values of the leaves.

    Raises
    ------
    TypeError
        If the model is no sum of trees; the message says what can be used instead.
    ValueError
        If the trees would have more than `max_nodes` nodes, with the number; or X has other columns
        than the training data.

    Notes
    -----
    Of one versus the rest each tree adds to the value of a label. Where members vote, or what they
    predict is averaged, each member has to be one tree, whose leaves then hold the answer,
    the probabilities or the number; shares of trees and forests that are averaged, and numbers of
    regressions, may be those of several trees. The label of one versus the rest is that of the
    largest value, `predict` takes the first where probabilities are equal: 1, of half log odds
    above 18.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_adaboost(X, [0, 1, 0, 1], rounds=2)
    >>> trees = pb.trees_of(model, X)
    >>> trees
    <trees of fit_adaboost: 2 trees, 6 nodes>
    >>> trees.feature[:3].tolist(), trees.threshold[:3].tolist(), trees.weight[:3].tolist()
    ([0, -1, -1], [0.5, 0.0, 0.0], [4.0, 1.0, 3.0])
    """
    check_model(model)
    max_nodes = check_integer("max_nodes", max_nodes, least=1)
    try:
        return _trees_of(model, X, max_nodes)
    except NoTreesError as error:
        raise TypeError(*error.args) from None


def as_trees(model: Model | TreeSum, X: Any, max_nodes: int) -> TreeSum:
    """Return the trees of a model, or those that are given in its place."""
    if not isinstance(model, TreeSum):
        return trees_of(model, X, max_nodes=max_nodes)
    if X is not None:
        raise ValueError("X: expected None with trees, which have weights: see trees_of(model, X)")
    check_integer("max_nodes", max_nodes, least=1)
    return model


def projections_of(model: Any) -> Projections | None:
    """Return the sums of columns of numbers that the nodes of a graph compare, if that they do."""
    if not isinstance(model, DecisionGraph) or not isinstance(model.inputs, Projections):
        return None
    return model.inputs if indicators_of(model.table) is None else None


def trees_of_sums(model: Any, max_nodes: int) -> TreeSum:
    """Return the trees of a graph whose nodes compare sums of columns, which are their columns."""
    _check_size(model, check_integer("max_nodes", max_nodes, least=1))
    said = {**_said_of(model), "n_features": model.inputs.n_inputs, "feature_names": None}
    return _of_graph(model, None, {**said, "table": None})


@singledispatch
def _trees_of(model: Any, X: Any, max_nodes: int) -> TreeSum:
    """Return the trees of a model, see `trees_of`."""
    why = next((why for kind, why in REFUSED.items() if isinstance(model, kind)), UNKNOWN)
    raise no_trees(model, why)


@_trees_of.register
def _(model: DecisionGraph, X: Any, max_nodes: int) -> TreeSum:
    if isinstance(model.inputs, StoredInputs):
        raise no_trees(
            model,
            "whose nodes compare sums of columns or of stumps; export_c writes such models, "
            "to_onnx those of columns of numbers, and weak=stump() fits nodes that compare columns",
        )
    if isinstance(model.inputs, Oracles):
        raise no_trees(
            model,
            "whose nodes are functions of a row, which no format holds; pickle the model "
            "with its functions",
        )
    _check_size(model, max_nodes)
    return _of_graph(model, X, _said_of(model))


def _check_size(model: DecisionGraph, max_nodes: int) -> None:
    """Raise ValueError if the trees of a graph have more nodes than are allowed."""
    n_nodes = count_unrolled(model)
    if n_nodes > max_nodes:
        raise ValueError(
            f"max_nodes: expected at least {n_nodes}, the nodes of the trees that the paths of "
            f"this graph of {model.n_nodes} nodes make, got {max_nodes}; export_c writes it as the "
            "graph it is"
        )


def _of_graph(model: DecisionGraph, X: Any, said: dict[str, Any]) -> TreeSum:
    """Return the trees of a graph, of which this is said."""
    trees = unroll(model)
    # Without nodes several values are half log odds of shares; else they go together.
    is_many = model.n_votes > 1 and model.n_nodes > 0
    return TreeSum(
        root=trees.root,
        children=trees.children,
        **tests_of(model, trees.node),
        value=trees.value,
        bias=np.atleast_1d(np.asarray(model.bias, np.float64)),
        weight=None if X is None else reach_of(model, trees, X),
        aggregation="sum",
        link="softmax" if is_many else "half log odds",
        **said,
    )


@_trees_of.register
def _(model: Tree, X: Any, max_nodes: int) -> TreeSum:
    return _of_trees(
        model,
        model,
        X,
        np.zeros(model.value.reshape(model.n_nodes, -1).shape[1]),
        "sum",
        "identity" if model.labels is None else "shares",
    )


@_trees_of.register
def _(model: Forest, X: Any, max_nodes: int) -> TreeSum:
    return _of_trees(
        model,
        model,
        X,
        np.zeros(model.value.reshape(model.n_nodes, -1).shape[1]),
        "mean",
        "identity" if model.labels is None else "shares",
    )


@_trees_of.register
def _(model: StagewiseModel, X: Any, max_nodes: int) -> TreeSum:
    bias = np.atleast_1d(np.asarray(model.bias, dtype=np.float64))
    target = None
    if model.n_trees > 1:
        target = np.arange(len(model.trees), dtype=np.int32) % model.n_trees
    return _of_trees(model, model.trees, X, bias, "sum", link_of(model), target)


def link_of(model: StagewiseModel) -> str:
    """Return the link of a sum, see `TreeSum`."""
    if not is_of_package(model.loss):
        return "none"
    is_plain = model.labels is None and model.loss.predicts_scores
    return "identity" if is_plain else model.loss.link


@_trees_of.register
def _(model: OneVsRest, X: Any, max_nodes: int) -> TreeSum:
    members = _of_members(model, X, max_nodes)
    return joined(model, members, parts_of_rest(model, members), _said_of(model))


@_trees_of.register
def _(model: WeightedVote, X: Any, max_nodes: int) -> TreeSum:
    members = _of_members(model, X, max_nodes)
    return joined(model, members, parts_of_votes(model, members), _said_of(model))


@_trees_of.register
def _(model: Bagging, X: Any, max_nodes: int) -> TreeSum:
    members = _of_members(model, X, max_nodes)
    return joined(model, members, parts_of_bags(model, members), _said_of(model))


def _of_members(model: Composite, X: Any, max_nodes: int) -> list[TreeSum]:
    """Return the trees of each member."""
    if not model.models:
        raise no_trees(model, "which has no members, and does not know its columns")
    graphs = [m for m in model.models if isinstance(m, DecisionGraph)]
    n_nodes = sum(count_unrolled(graph) for graph in graphs)
    if n_nodes > max_nodes:
        raise ValueError(
            f"max_nodes: expected at least {n_nodes}, the nodes of the trees that the paths of "
            f"{len(graphs)} graphs make, got {max_nodes}; export_c writes them as the graphs they "
            "are"
        )
    found = []
    for k, member in enumerate(model.models):
        if is_foreign(member):
            raise no_trees(
                model,
                f"whose models[{k}] is a {type(member).__name__} of another package, which "
                "no format but a pickle has",
            )
        try:
            found.append(_trees_of(member, X, max_nodes))
        except NoTreesError as error:
            said = str(error).partition("got ")[2]
            raise no_trees(model, f"whose models[{k}] is none: {said}") from None
    return found


def _of_trees(
    model: Model,
    trees: Trees,
    X: Any,
    bias: FloatArray,
    aggregation: str,
    link: str,
    target: Any = None,
) -> TreeSum:
    """Return the record of trees that stand in arrays."""
    is_leaf, is_set = trees.feature == LEAF, trees.feature >= trees.n_features
    level_set = np.where(is_set, trees.feature - trees.n_features, NO_SET)
    sets = np.empty((0, WORDS), np.uint64) if trees.subset is None else trees.subset
    return TreeSum(
        root=trees.root,
        feature=trees.column,
        children=trees.children,
        missing=trees.missing,
        threshold=np.where(is_leaf | is_set, 0.0, trees.threshold),
        level_set=level_set,
        sets=sets,
        value=trees.value.reshape(trees.n_nodes, -1),
        bias=bias,
        aggregation=aggregation,
        weight=trees.weight if X is None else rows_at_nodes(trees, X),
        link=link,
        target=target,
        **_said_of(model),
    )


def rows_at_nodes(trees: Trees, X: Any) -> FloatArray:
    """Return the numbers of rows that come to the nodes of trees."""
    places = trees.places(X) + trees.root[:-1]
    count = np.bincount(places.ravel(), minlength=trees.n_nodes).astype(np.float64)
    start = np.repeat(trees.root[:-1], np.diff(trees.root))
    for node in np.flatnonzero(trees.feature != LEAF)[::-1].tolist():  # children first
        count[node] = count[trees.children[node] + start[node]].sum()
    return count


def _said_of(model: Any) -> dict[str, Any]:
    """Return what a record says of the columns and the labels of a model."""
    return {
        "labels": model.labels,
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "table": model.table,
        "builder": str(model.settings.get("builder", type(model).__name__)),
    }
