"""Conversion of models to tree ensembles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pboost.data.node_inputs.functions import Oracles
from pboost.data.node_inputs.inputs import WORDS, StoredInputs, Subsets, indicators_of
from pboost.data.node_inputs.sums import Projections
from pboost.data.read.check_xy import check_has_rows
from pboost.losses import is_of_package
from pboost.losses.gradient_functions import GradientLoss
from pboost.models.base import Model, check_model, predict
from pboost.models.ensembles import Bagging, Composite, OneVsRest, WeightedVote, is_foreign
from pboost.models.evaluate.graph_walk import reach
from pboost.models.evaluate.match_input import match_columns
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import OUT, Graph, joints_of
from pboost.models.random_forest import RandomForest
from pboost.models.schema import TrainingRecord
from pboost.models.shares import among
from pboost.models.single_tree import Tree, Trees
from pboost.models.tree_ensemble import LEAF, NO_SET, TreeEnsemble
from pboost.values import Array, FloatArray, IntArray, TableLike, check_integer

#: Maximum number of cells (rows times nodes) in memory at a time.
CELLS = 1 << 22
#: Maps the link of two decision values to the link of their difference.
LINK_OF_LEAD = {"shares": "lead", "softmax": "log odds"}
#: End of the error message for a base learner with several trees, by type of prediction.
SAID = {
    "numbers": "{} trees, and their sum is not the prediction",
    "soft": "{} trees, and their sum is not a probability",
    "hard": "{} trees, and their sum is not a vote for a class",
}


class Unrolled(NamedTuple):
    """The trees of a graph, with nodes in preorder.

    `root` and `children` have the same meaning as in `TreeEnsemble`. `node` is the index in
    the graph, OUT for leaves, and `value` (n, J) is the sum of the votes on the path.
    """

    root: IntArray
    node: IntArray
    children: IntArray
    value: FloatArray


def count_unrolled(graph: Graph) -> int:
    """Return the number of nodes, including leaves, of the trees that `unroll` makes."""
    ends, total = ends_of(graph), 0
    for first, stop in pairwise(ends):
        below: dict[int, int] = {}
        for node in range(stop - 1, first - 1, -1):
            below[node] = 1 + sum(below.get(to, 1) for to in graph.next[node].tolist())
        total += below[first]
    return total or 1


def ends_of(graph: Graph) -> list[int]:
    """Return the nodes that lie on every path, followed by the end of the graph."""
    return [0, *joints_of(graph.next).tolist(), graph.n_nodes] if graph.n_nodes else [0]


def unroll(graph: Graph) -> Unrolled:
    """Convert each stage of a graph to a tree; a chain becomes stumps."""
    ends = ends_of(graph)
    vote = graph.vote.reshape(graph.n_nodes, 2, graph.n_votes)
    trees = [_unrolled(graph.next, a, b) for a, b in pairwise(ends)]
    if not trees:
        trees = [(np.array([OUT]), np.array([[OUT, OUT]]))]
    node, children = (np.concatenate(parts).astype(np.int32) for parts in zip(*trees, strict=True))
    root = np.cumsum([0, *(len(tree[0]) for tree in trees)], dtype=np.int32)
    value = np.zeros((len(node), graph.n_votes))
    start = np.repeat(root[:-1], np.diff(root))
    for at in np.flatnonzero(node != OUT).tolist():  # parents first
        value[children[at] + start[at]] = value[at] + vote[node[at]]
    return Unrolled(root, node, children, value)


def _unrolled(next_: IntArray, first: int, stop: int) -> tuple[Array, Array]:
    """Return the tree of all paths from `first` to `stop`, as graph nodes and children."""
    leads = next_[first:stop].tolist()
    node: list[int] = []
    children: list[list[int]] = []
    waiting = [(first, -1, 0)]
    while waiting:
        at, parent, exit_ = waiting.pop()
        place = len(node)
        if parent >= 0:
            children[parent][exit_] = place
        is_out = at == OUT or at >= stop
        node.append(OUT if is_out else at)
        children.append([OUT, OUT])
        if not is_out:
            waiting += [(leads[at - first][exit_], place, exit_) for exit_ in (1, 0)]
    return np.array(node), np.array(children)


def tests_of(graph: Graph, node: IntArray) -> dict[str, Any]:
    """Return the split arrays of a `TreeEnsemble`; `node` contains OUT for leaves."""
    is_leaf = node == OUT

    def at_nodes(values: Array, of_leaf: Any) -> Array:
        result = np.full(len(node), of_leaf, dtype=values.dtype)
        result[~is_leaf] = values[node[~is_leaf]]
        return result

    column: Array = graph.feature
    category_set = np.full(graph.n_nodes, OUT, dtype=np.int32)
    sets = np.empty((0, WORDS), dtype=np.uint64)
    if isinstance(graph.inputs, Subsets):
        is_set = column >= graph.n_features
        category_set[is_set] = column[is_set] - graph.n_features
        column = np.append(np.arange(graph.n_features), graph.inputs.column)[column]
        sets = graph.inputs.member
    return {
        "feature": at_nodes(column, OUT),
        "threshold": at_nodes(np.where(category_set == OUT, graph.threshold, 0.0), 0.0),
        "missing": None if graph.missing is None else at_nodes(graph.missing > 0, False),
        "category_set": at_nodes(category_set, OUT),
        "sets": sets,
    }


def reach_of(graph: DecisionGraph, trees: Unrolled, X: TableLike) -> FloatArray:
    """Return the expected number of rows at each node of the trees made from a graph.

    The expectation uses the observation model. If the model depends on the class of a row, the
    predicted class is used.
    """
    features = match_columns(graph, X)
    check_has_rows(len(features.values))
    if not graph.n_nodes:
        return np.full(len(trees.node), float(len(features.values)))
    paths = _as_graph(graph, trees)
    total = np.zeros(len(trees.node))
    at_once = max(1, CELLS // len(trees.node))
    for first in range(0, len(features.values), at_once):
        rows = features.take(slice(first, first + at_once))
        label = predict(graph, rows) if graph.needs_class else None
        total += reach(paths, rows, label).sum(axis=0)
    return total


def _as_graph(graph: DecisionGraph, trees: Unrolled) -> DecisionGraph:
    """Combine the trees into a graph, in which each leaf leads to the root of the next tree."""
    is_leaf, n = trees.node == OUT, len(trees.node)
    start, end = (
        np.repeat(ends, np.diff(trees.root)) for ends in (trees.root[:-1], trees.root[1:])
    )
    after = np.where(end == n, OUT, end)
    # Both exits of a leaf lead to the same node, so the split does not matter.
    node = np.where(is_leaf, 0, trees.node)
    answer = None if graph.answer is None else graph.answer[node]
    return replace(
        graph,
        feature=graph.feature[node],
        threshold=graph.threshold[node],
        next=np.where(is_leaf[:, None], after[:, None], trees.children + start[:, None]),
        vote=np.zeros((n, *graph.vote.shape[1:])),
        answer=answer,
        missing=None if graph.missing is None else graph.missing[node],
        record=TrainingRecord(np.zeros(n + 1), np.zeros(n + 1), "unrolled"),
    )


class NoTreesError(TypeError):
    """A model cannot be converted to a sum of trees."""


class MemberParts(NamedTuple):
    """The parts of a `TreeEnsemble` that base learners contribute.

    `value` has one array (nodes, K) per base learner; `bias`, `aggregation`, `link` and `target`
    are attributes of the ensemble.
    """

    value: list[FloatArray]
    bias: FloatArray
    aggregation: str
    link: str
    target: IntArray | None = None


def no_trees(model: Model, why: str) -> NoTreesError:
    """Return the error for a model that is not a sum of trees."""
    return NoTreesError(f"model: expected a sum of trees, got a {type(model).__name__}, {why}")


def parts_of_rest(model: OneVsRest, members: Sequence[TreeEnsemble]) -> MemberParts:
    """Return the parts of a one-versus-rest model, in which each member scores one class."""
    value, bias, links = [], [], set()
    for trees in members:
        leaf_values, start, link = trees.value, trees.bias, trees.link
        if trees.n_values == 2:
            leaf_values, start = _lead(trees, leaf_values), start[1:] - start[:1]
            link = LINK_OF_LEAD.get(link, "none")
        value.append(_of_sum(trees, leaf_values))
        bias.append(start)
        links.add(link)
    link = links.pop() if len(links) == 1 else "none"
    turn = np.arange(len(members), dtype=np.int32)
    target = np.repeat(turn, [trees.n_trees for trees in members])
    return MemberParts(value, np.concatenate(bias), "sum", link, target)


def _lead(trees: TreeEnsemble, value: FloatArray) -> FloatArray:
    """Return the second decision value minus the first decision value, (nodes, 1)."""
    if trees.target is None:
        return value[:, 1:] - value[:, :1]
    of = trees.by_node(trees.target)[:, None]
    return np.where(of == 1, value, -value)


def _of_sum(trees: TreeEnsemble, value: FloatArray) -> FloatArray:
    """Return node values whose sum over the trees is the sum or mean of the ensemble."""
    return value / trees.n_trees if trees.aggregation == "mean" else value


def parts_of_votes(model: WeightedVote, members: Sequence[TreeEnsemble]) -> MemberParts:
    """Return the parts of a weighted vote, in which each member is a single tree."""
    value = []
    for k, (member, trees) in enumerate(zip(model.models, members, strict=True)):
        _check_one(model, k, trees, "{} trees, and their sum is not a vote for a class")
        answer = _at_leaves(trees, _answers(member, trees, model.classes))
        value.append(float(model.alpha[k]) * answer)
    return MemberParts(value, model.bias, "sum", "softmax")


def parts_of_bags(model: Bagging, members: Sequence[TreeEnsemble]) -> MemberParts:
    """Return the parts of a bagging model; raise NoTreesError if it is not a sum of trees."""
    classes, n = model.classes, len(members)
    value, bias = [], np.zeros(1 if classes is None else len(classes))
    for k, (member, trees) in enumerate(zip(model.models, members, strict=True)):
        if classes is None and trees.classes is None and trees.link == "identity":
            value.append(trees.value)
            bias = bias + trees.bias / n
        elif classes is not None and model.voting == "soft" and trees.link == "shares":
            value.append(among(trees.value, classes, member.classes))
        else:
            answer = "numbers" if classes is None else model.voting
            _check_one(model, k, trees, SAID[answer])
            value.append(_at_leaves(trees, _said(member, trees, classes, model.voting)))
    link = "identity" if classes is None else "shares"
    # If all trees have equal weight, dividing once at the end is exact.
    sizes = {trees.n_trees for trees in members}
    if len(sizes) == 1 and all(t.n_trees == 1 or t.aggregation == "mean" for t in members):
        return MemberParts(value, bias, "mean", link)
    pairs = zip(members, value, strict=True)
    return MemberParts(
        [_of_sum(trees, leaf_values) / n for trees, leaf_values in pairs], bias, "sum", link
    )


#: For each class of ensemble, the function that returns its `MemberParts`.
PARTS: dict[type, Callable[..., MemberParts]] = {
    OneVsRest: parts_of_rest,
    WeightedVote: parts_of_votes,
    Bagging: parts_of_bags,
}


def _check_one(model: Model, k: int, trees: TreeEnsemble, message: str) -> None:
    """Raise NoTreesError if a member has more than one tree."""
    if trees.n_trees > 1:
        raise no_trees(
            model,
            f"whose base learners must be single trees; models[{k}] has "
            f"{message.format(trees.n_trees)}. Use to_c, or convert the base learners model[i] "
            "that are sums of trees",
        )


def _said(member: Any, trees: TreeEnsemble, classes: Array | None, voting: str) -> FloatArray:
    """Return the votes or predictions of a single tree by node; see `ensembles.said_by`."""
    if classes is None:
        return np.asarray(_predicted(member, trees), dtype=np.float64)[:, None]
    if voting == "soft":
        try:
            share = member.probabilities(_values(trees))
        except NotImplementedError:  # a loss without probabilities
            pass
        else:
            return among(share, classes, member.classes)
    return _answers(member, trees, classes)


def _answers(member: Any, trees: TreeEnsemble, classes: Array) -> FloatArray:
    """Return the class that a member predicts at each node, one-hot encoded (nodes, J)."""
    place = np.searchsorted(classes, _predicted(member, trees))
    return (place[:, None] == np.arange(len(classes))).astype(np.float64)


def _predicted(member: Any, trees: TreeEnsemble) -> Array:
    """Return the prediction of a single tree at each node."""
    values = _values(trees)
    if trees.link == "shares" and trees.classes is not None:
        return trees.classes[np.argmax(values, axis=1)]
    return member.labels_of(values)


def _values(trees: TreeEnsemble) -> FloatArray:
    """Return the decision values of a single tree by node, (nodes,) or (nodes, J)."""
    value = trees.value + trees.bias
    return value[:, 0] if trees.n_values == 1 else value


def _at_leaves(trees: TreeEnsemble, values: FloatArray) -> FloatArray:
    """Return the values of leaves, and 0 for inner nodes."""
    return np.where(trees.feature[:, None] == LEAF, values, 0.0)


def joined(
    model: Model, members: Sequence[TreeEnsemble], parts: MemberParts, extra: dict[str, Any]
) -> TreeEnsemble:
    """Combine the trees of all members; `extra` has further attributes of the ensemble."""
    table = members[0].table
    if any(trees.table != table for trees in members):
        raise no_trees(
            model, "whose base learners have different category codes; convert them one by one"
        )
    missing, weight = ([getattr(t, name) for t in members] for name in ("missing", "weight"))
    refuses = [part is None for part in missing]
    if any(refuses) and any(trees.n_sets for trees in members):
        raise no_trees(
            model,
            "some of whose base learners reject missing values while others use categories; "
            "use to_c instead",
        )
    sets = np.cumsum([0, *(trees.n_sets for trees in members)])
    category_set = [
        np.where(trees.category_set == NO_SET, NO_SET, trees.category_set + first)
        for trees, first in zip(members, sets.tolist(), strict=False)
    ]
    sizes = np.concatenate([np.diff(trees.root) for trees in members])
    together: dict[str, Any] = {
        name: np.concatenate([getattr(trees, name) for trees in members])
        for name in ("feature", "threshold", "children", "sets")
    }
    return TreeEnsemble(
        root=np.cumsum([0, *sizes], dtype=np.int32),
        **together,
        category_set=np.concatenate(category_set),
        value=np.concatenate(parts.value),
        bias=parts.bias,
        missing=None if any(refuses) else np.concatenate(missing),
        weight=None if any(part is None for part in weight) else np.concatenate(weight),
        aggregation=parts.aggregation,
        link=parts.link,
        temperature=model.temperature if isinstance(model, WeightedVote) else 1.0,
        target=parts.target,
        **{**extra, "table": table},
    )


def as_tree_ensemble(
    model: Model, X: TableLike | None = None, *, max_nodes: int = 100_000
) -> TreeEnsemble:
    """Convert a model that is a sum or mean of trees to a `TreeEnsemble`.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest, GradientBoostingModel or an ensemble of them
        A fitted model whose nodes compare features. A chain becomes one stump per node. In other
        graphs, the part between two nodes that all paths pass becomes one tree. Conversion
        assumes ``route="hard"``. For `OneVsRest`, `WeightedVote` and `Bagging` see Notes.
    X : array_like of shape (n, d), or data frame, optional
        Rows that are counted at each node to obtain its weight; see `decision_function`. In a
        graph with an observation model, the weight is the expected number of rows, see `reach`.
        By default, the nodes have their training weights. Graphs do not store training weights.
    max_nodes : int
        Maximum number of nodes of the trees of all graphs in the model. Conversion copies nodes
        that several paths share.

    Returns
    -------
    TreeEnsemble
        The nodes of all trees as arrays.

    Raises
    ------
    TypeError
        If the model is not a sum of trees; the message suggests an alternative.
    ValueError
        If the trees have more than `max_nodes` nodes (the message contains the number), or if X
        does not have the features of training.

    Notes
    -----
    In a one-versus-rest model, each tree adds to the decision value of one class. The ensemble
    predicts the class with the largest decision value, while `predict` compares probabilities.
    The predicted classes can differ if half log odds exceed 18, because the probabilities are
    then rounded to 1.

    In a `WeightedVote` or `Bagging`, each base learner must be a single tree. Base learners of a
    `Bagging` may have several trees if class frequencies or regression values are averaged.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_adaboost(X, [0, 1, 0, 1], n_estimators=2)
    >>> trees = pb.models.as_tree_ensemble(model, X)
    >>> trees
    <trees of fit_adaboost: 2 trees, 6 nodes>
    >>> trees.feature[:3].tolist(), trees.threshold[:3].tolist(), trees.weight[:3].tolist()
    ([0, -1, -1], [0.5, 0.0, 0.0], [4.0, 1.0, 3.0])
    """
    check_model(model)
    max_nodes = check_integer("max_nodes", max_nodes, min_value=1)
    try:
        return _as_tree_ensemble(model, X, max_nodes)
    except NoTreesError as error:
        raise TypeError(*error.args) from None


def as_trees(model: Model | TreeEnsemble, X: TableLike | None, max_nodes: int) -> TreeEnsemble:
    """Convert a model to a `TreeEnsemble`; return a `TreeEnsemble` unchanged."""
    if not isinstance(model, TreeEnsemble):
        return as_tree_ensemble(model, X, max_nodes=max_nodes)
    if X is not None:
        raise ValueError(
            "X: expected None with a TreeEnsemble; pass X to as_tree_ensemble(model, X) instead"
        )
    check_integer("max_nodes", max_nodes, min_value=1)
    return model


def projections_of(model: Model | TreeEnsemble) -> Projections | None:
    """Return the sums of numeric features that nodes compare; None if nodes compare no sums."""
    if not isinstance(model, DecisionGraph) or not isinstance(model.inputs, Projections):
        return None
    return model.inputs if indicators_of(model.table) is None else None


def trees_of_sums(model: Model | TreeEnsemble, max_nodes: int) -> TreeEnsemble:
    """Return the trees of a graph whose nodes compare sums; each sum becomes a feature."""
    assert isinstance(model, DecisionGraph)
    _check_size(model, check_integer("max_nodes", max_nodes, min_value=1))
    extra = {**_said_of(model), "n_features": model.n_inputs, "feature_names": None}
    return _of_graph(model, None, {**extra, "table": None})


@singledispatch
def _as_tree_ensemble(model: Model, X: TableLike | None, max_nodes: int) -> TreeEnsemble:
    """Return the trees of a model; see `as_tree_ensemble`."""
    raise no_trees(model, model.no_trees)


@_as_tree_ensemble.register
def _(model: DecisionGraph, X: TableLike | None, max_nodes: int) -> TreeEnsemble:
    if isinstance(model.inputs, StoredInputs):
        raise no_trees(
            model,
            "whose nodes compare sums of features or of stumps; use to_c, or to_onnx if "
            "all features are numeric, or fit with weak_learner=stump()",
        )
    if isinstance(model.inputs, Oracles):
        raise no_trees(
            model,
            "whose nodes are functions that no file format can store; pickle the model and its "
            "functions",
        )
    _check_size(model, max_nodes)
    return _of_graph(model, X, _said_of(model))


def _check_size(model: DecisionGraph, max_nodes: int) -> None:
    """Raise ValueError if the trees of a graph have more than `max_nodes` nodes."""
    n_nodes = count_unrolled(model)
    if n_nodes > max_nodes:
        raise ValueError(
            f"max_nodes: expected at least {n_nodes}, the number of nodes in the trees of the "
            f"graph, got {max_nodes}; increase max_nodes, or use to_c"
        )


def _of_graph(model: DecisionGraph, X: TableLike | None, extra: dict[str, Any]) -> TreeEnsemble:
    """Return the trees of a graph; `extra` has further attributes of the ensemble."""
    trees = unroll(model)
    # In a multiclass graph without nodes, decision values are half log odds.
    is_many = model.n_votes > 1 and model.n_nodes > 0
    return TreeEnsemble(
        root=trees.root,
        children=trees.children,
        **tests_of(model, trees.node),
        value=trees.value,
        bias=np.atleast_1d(np.asarray(model.bias, np.float64)),
        weight=None if X is None else reach_of(model, trees, X),
        aggregation="sum",
        link="softmax" if is_many else "half log odds",
        temperature=model.temperature,
        **extra,
    )


@_as_tree_ensemble.register(Tree)
@_as_tree_ensemble.register(RandomForest)
def _(model: Tree | RandomForest, X: TableLike | None, max_nodes: int) -> TreeEnsemble:
    bias = np.zeros(model.value.reshape(model.n_nodes, -1).shape[1])
    aggregation = "mean" if isinstance(model, RandomForest) else "sum"
    link = "identity" if model.classes is None else "shares"
    return _of_trees(model, model, X, bias, aggregation, link)


@_as_tree_ensemble.register
def _(model: GradientBoostingModel, X: TableLike | None, max_nodes: int) -> TreeEnsemble:
    bias = np.atleast_1d(np.asarray(model.bias, dtype=np.float64))
    target = None
    if model.n_trees > 1:
        target = np.arange(len(model.trees), dtype=np.int32) % model.n_trees
    return _of_trees(model, model.trees, X, bias, "sum", link_of(model), target)


def link_of(model: GradientBoostingModel) -> str:
    """Return the link of a gradient boosting model, see `TreeEnsemble`."""
    if not (is_of_package(model.loss) or isinstance(model.loss, GradientLoss)):
        return "none"
    is_plain = model.classes is None and model.loss.predicts_scores
    return "identity" if is_plain else model.loss.link


@_as_tree_ensemble.register(OneVsRest)
@_as_tree_ensemble.register(WeightedVote)
@_as_tree_ensemble.register(Bagging)
def _(model: Composite, X: TableLike | None, max_nodes: int) -> TreeEnsemble:
    members = _of_members(model, X, max_nodes)
    return joined(model, members, PARTS[type(model)](model, members), _said_of(model))


def _of_members(model: Composite, X: TableLike | None, max_nodes: int) -> list[TreeEnsemble]:
    """Return the trees of each base learner."""
    if not model.models:
        raise no_trees(model, "which has no base learners")
    graphs = [m for m in model.models if isinstance(m, DecisionGraph)]
    n_nodes = sum(count_unrolled(graph) for graph in graphs)
    if n_nodes > max_nodes:
        raise ValueError(
            f"max_nodes: expected at least {n_nodes}, the number of nodes in the trees of "
            f"{len(graphs)} graphs, got {max_nodes}; increase max_nodes, or use to_c"
        )
    result = []
    for k, member in enumerate(model.models):
        if is_foreign(member):
            raise no_trees(
                model,
                f"whose models[{k}] is a {type(member).__name__} of another package, which can "
                "only be pickled",
            )
        try:
            result.append(_as_tree_ensemble(member, X, max_nodes))
        except NoTreesError as error:
            reason = str(error).partition("got ")[2]
            raise no_trees(model, f"whose models[{k}] is not a sum of trees: {reason}") from None
    return result


def _of_trees(
    model: Model,
    trees: Trees,
    X: TableLike | None,
    bias: FloatArray,
    aggregation: str,
    link: str,
    target: IntArray | None = None,
) -> TreeEnsemble:
    """Convert `Trees` to a `TreeEnsemble`."""
    is_leaf, is_set = trees.feature == LEAF, trees.feature >= trees.n_features
    category_set = np.where(is_set, trees.feature - trees.n_features, NO_SET)
    sets = np.empty((0, WORDS), np.uint64) if trees.subset is None else trees.subset
    return TreeEnsemble(
        root=trees.root,
        feature=trees.column,
        children=trees.children,
        missing=trees.missing,
        threshold=np.where(is_leaf | is_set, 0.0, trees.threshold),
        category_set=category_set,
        sets=sets,
        value=trees.value.reshape(trees.n_nodes, -1),
        bias=bias,
        aggregation=aggregation,
        weight=trees.weight if X is None else rows_at_nodes(trees, X),
        link=link,
        target=target,
        **_said_of(model),
    )


def rows_at_nodes(trees: Trees, X: TableLike) -> FloatArray:
    """Return the number of rows of X at each node."""
    places = trees.places(X) + trees.root[:-1]
    count = np.bincount(places.ravel(), minlength=trees.n_nodes).astype(np.float64)
    inner, children = trees.inner()
    for node, below in zip(inner[::-1].tolist(), children[::-1], strict=True):  # children first
        count[node] = count[below].sum()
    return count


def _said_of(model: Any) -> dict[str, Any]:
    """Return the attributes that describe the features and classes of a model."""
    return {
        "classes": model.classes,
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "table": model.table,
        "builder": str(model.settings.get("builder", type(model).__name__)),
    }
