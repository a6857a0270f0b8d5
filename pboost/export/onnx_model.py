"""Trees as a model of ONNX: the operator TreeEnsemble of ai.onnx.ml, version 5, in float64."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from pboost.data.projections import Projections
from pboost.export.packages import needed
from pboost.models.base import Model
from pboost.models.tree_record import LEAF, NO_SET, TreeSum
from pboost.models.trees_of import as_trees, projections_of, trees_of_sums

#: Modes of nodes: x <= threshold, and x in a set; aggregation by a sum; no function of the sum.
LEQ, MEMBER, SUM, NONE = 0, 6, 1, 0
#: Versions of the operators' sets, and of the format.
OPSET, OPSET_ML, FORMAT = 21, 5, 10
#: ONNX's number of the type int64.
INT64 = 7
#: Attributes that are tensors.
TENSORS = ("nodes_modes", "nodes_splits", "membership_values", "leaf_weights")
#: An operator, its inputs, its output, and its attributes.
Step: TypeAlias = tuple[str, list[str], str, dict[str, Any]]
#: What is added to chances of labels, all of which may be 0, before they are divided by their sum.
LEAST = 1e-300
#: Factors of the sigmoids that are probabilities.
SIGMOID = {"half log odds": 2.0, "log odds": 1.0}


def to_onnx(
    model: Model | TreeSum, *, max_nodes: int = 100_000, max_members: int | None = None
) -> Any:
    """Return a model as an ``onnx.ModelProto``, all numbers float64.

    Its input is ``X`` (n, d), rows as the trees read them, ``trees_of(model).rows(X)``; NaN is
    missing. Its outputs are ``values`` (n, J), those of a `TreeSum`; of classifiers ``label`` (n,);
    and ``probabilities`` (n, n_labels) unless the link is "probit" or "none".

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, StagewiseModel, a model of models, or TreeSum
        A fitted model, see `trees_of`, or its trees; also a graph whose nodes compare sums of
        columns of numbers, see Notes.
    max_nodes : int
        The most nodes that the trees of a graph may have.
    max_members : int, optional
        The most levels that all sets of the nodes may have together; default: any number. Versions
        of onnxruntime before 1.23 did not get ready with 13,000 in a minute.

    Returns
    -------
    onnx.ModelProto
        ``found.SerializeToString()`` is what runtimes read. A tree whose leaves hold J values is
        there J times.

    Raises
    ------
    ImportError
        If onnx is not installed: the extra ``onnx``.
    TypeError, ValueError
        As in `trees_of`; and if there are more than `max_members`, with the number.

    Notes
    -----
    Of ``weak=affine()`` and ``weak=linear()`` a product with a matrix makes the sums that nodes
    compare; missing values are filled before. ``X`` is then the rows as numbers. Runtimes add up in
    an order of their own: a row whose sum is a threshold but for rounding may go another way.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> found = pb.to_onnx(pb.fit_adaboost(X, y, rounds=5))  # doctest: +SKIP
    >>> [output.name for output in found.graph.output]  # doctest: +SKIP
    ['values', 'label', 'probabilities']
    """
    sums = projections_of(model)
    trees = as_trees(model, None, max_nodes) if sums is None else trees_of_sums(model, max_nodes)
    size = [len(trees.levels(number)) for number in range(trees.n_sets)]
    members = trees.n_added * sum(size[k] for k in trees.level_set.tolist() if k != NO_SET)
    if max_members is not None and members > max_members:
        raise ValueError(
            f"max_members: expected at least {members}, the levels in the sets of all nodes, got "
            f"{max_members}; to_treelite, to_json and to_sql hold sets"
        )
    onnx = needed("onnx", "to_onnx", "onnx")
    columns = _columns(trees)
    arrays = {name: onnx.numpy_helper.from_array(columns.pop(name), name) for name in TENSORS}
    if not members:
        del arrays["membership_values"]
    constants: dict[str, Any] = {"bias": trees.bias}
    steps, read = ([], "X") if sums is None else _projected(model.n_features, sums, constants)
    steps.append(("TreeEnsemble", [read], "sum", {"domain": "ai.onnx.ml", **columns, **arrays}))
    steps.append(("Add", ["sum", "bias"], "values", {}))
    kinds: dict[str, Any] = {"values": (onnx.TensorProto.DOUBLE, trees.n_values)}
    if trees.labels is not None:
        steps += _label(trees, constants)
        text = trees.labels.dtype.kind == "U"
        kinds["label"] = (onnx.TensorProto.STRING if text else _type(onnx, constants), None)
        found = _probabilities(trees, constants)
        steps += found
        if found:
            kinds["probabilities"] = (onnx.TensorProto.DOUBLE, len(trees.labels))
    info, make = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    graph = onnx.helper.make_graph(
        [make(kind, inputs, [output], **more) for kind, inputs, output, more in steps],
        trees.builder,
        [info("X", onnx.TensorProto.DOUBLE, ["n", model.n_features])],
        [info(name, of, ["n"] if j is None else ["n", j]) for name, (of, j) in kinds.items()],
        [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()],
    )
    sets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
    found = onnx.helper.make_model(graph, opset_imports=sets, ir_version=FORMAT)
    onnx.checker.check_model(found)
    return found


def _type(onnx: Any, constants: dict[str, Any]) -> Any:
    """Return the type of labels that are numbers, or true and false."""
    return onnx.helper.np_dtype_to_tensor_dtype(np.asarray(constants["labels"]).dtype)


def _projected(d: int, sums: Projections, constants: dict[str, Any]) -> tuple[list[Step], str]:
    """Return the steps from rows to sums of their d columns, and what these are called."""
    factor = np.zeros((d, sums.n_inputs))
    of = np.repeat(np.arange(sums.n_inputs), np.diff(sums.start))
    np.add.at(factor, (sums.index, of), sums.coefficient)
    constants["factors of columns"] = factor
    steps: list[Step] = []
    if sums.fill is not None:
        constants["fill"] = sums.fill[None]
        steps = [("IsNaN", ["X"], "is missing", {})]
        steps.append(("Where", ["is missing", "fill", "X"], "filled", {}))
    read = "filled" if steps else "X"
    return [*steps, ("MatMul", [read, "factors of columns"], "sums", {})], "sums"


def _columns(trees: TreeSum) -> dict[str, Any]:
    """Return the attributes of the operator, by their names."""
    value = trees.value / trees.n_trees if trees.aggregation == "mean" else trees.value
    nodes = _Nodes()
    for tree in range(trees.n_trees):
        for column in range(trees.n_added):
            target = column if trees.target is None else int(trees.target[tree])
            nodes.add(trees, int(trees.root[tree]), value[:, column], target)
    return {
        "nodes_modes": np.array(nodes.mode, np.uint8),
        "nodes_featureids": nodes.feature,
        "nodes_splits": np.array(nodes.split),
        "tree_roots": nodes.root,
        "nodes_truenodeids": nodes.child[1],
        "nodes_trueleafs": nodes.is_leaf[1],
        "nodes_falsenodeids": nodes.child[0],
        "nodes_falseleafs": nodes.is_leaf[0],
        "nodes_missing_value_tracks_true": nodes.missing,
        "membership_values": np.array(nodes.members),
        "leaf_targetids": nodes.target,
        "leaf_weights": np.array(nodes.leaf),
        "n_targets": trees.n_values,
        "aggregate_function": SUM,
        "post_transform": NONE,
    }


class _Nodes:
    """Nodes and leaves one after the other: as sets are in the order of nodes, "true" first."""

    def __init__(self) -> None:
        self.root: list[int] = []
        self.mode: list[int] = []
        self.feature: list[int] = []
        self.split: list[float] = []
        self.missing: list[int] = []
        #: By the answer, 0 or 1: the node or leaf that follows, and which of the two it is.
        self.child: tuple[list[int], list[int]] = ([], [])
        self.is_leaf: tuple[list[int], list[int]] = ([], [])
        self.members: list[float] = []
        self.leaf: list[float] = []
        self.target: list[int] = []

    def add(self, trees: TreeSum, root: int, value: Any, target: int) -> None:
        """Add a tree, whose leaves add these values to one of the targets."""
        self.root.append(len(self.mode))
        if trees.feature[root] == LEAF:  # a node both of whose branches are one leaf
            self._test(0, LEQ, 0.0, 0)
            for answer in (0, 1):
                self._lead(len(self.mode) - 1, answer, len(self.leaf), 1)
            self._leaf(float(value[root]), target)
            return
        waiting = [(root, -1, 0)]
        while waiting:
            node, parent, answer = waiting.pop()
            if trees.feature[node] == LEAF:
                self._lead(parent, answer, len(self.leaf), 1)
                self._leaf(float(value[node]), target)
                continue
            here, number = len(self.mode), int(trees.level_set[node])
            if parent >= 0:
                self._lead(parent, answer, here, 0)
            # True leads to the first child where a threshold is compared, else to the second.
            true = int(number != NO_SET)
            side = 0 if trees.missing is None else int(trees.missing[node])
            mode = MEMBER if true else LEQ
            self._test(int(trees.feature[node]), mode, float(trees.threshold[node]), side == true)
            if true:
                self.members += [*trees.levels(number).astype(np.float64).tolist(), np.nan]
            first, second = (root + trees.children[node]).tolist()
            of_true, of_false = (second, first) if true else (first, second)
            waiting += [(of_false, here, 0), (of_true, here, 1)]

    def _test(self, feature: int, mode: int, split: float, missing: int) -> None:
        self.feature.append(feature)
        self.mode.append(mode)
        self.split.append(split)
        self.missing.append(int(missing))
        for lists in (self.child, self.is_leaf):
            for one in lists:
                one.append(0)

    def _lead(self, node: int, answer: int, to: int, is_leaf: int) -> None:
        self.child[answer][node], self.is_leaf[answer][node] = to, is_leaf

    def _leaf(self, value: float, target: int) -> None:
        self.leaf.append(value)
        self.target.append(target)


def _label(trees: TreeSum, constants: dict[str, Any]) -> list[Step]:
    """Return the steps from values to labels."""
    assert trees.labels is not None
    labels = trees.labels
    constants["labels"] = labels.astype(object) if labels.dtype.kind == "U" else labels
    if trees.n_values > 1:
        largest = ("ArgMax", ["values"], "place", {"axis": 1, "keepdims": 0})
        return [largest, ("Gather", ["labels", "place"], "label", {})]
    constants |= {"zero": np.float64(0.0), "minus one": np.array([-1])}
    return [
        ("Reshape", ["values", "minus one"], "value", {}),
        ("Greater", ["value", "zero"], "is second", {}),
        ("Cast", ["is second"], "place", {"to": INT64}),
        ("Gather", ["labels", "place"], "label", {}),
    ]


def _probabilities(trees: TreeSum, constants: dict[str, Any]) -> list[Step]:
    """Return the steps from values to probabilities, none where there is no operator for them."""
    if trees.link == "shares":
        return [("Identity", ["values"], "probabilities", {})]
    if trees.link == "softmax":
        return [("Softmax", ["values"], "probabilities", {"axis": 1})]
    steps: list[Step] = []
    if trees.link == "lead":
        constants |= {"half": np.float64(0.5), "zero": np.float64(0.0), "one": np.float64(1.0)}
        steps.append(("Add", ["scaled", "half"], "line", {}))
        kind, of, factor = "Clip", ["line", "zero", "one"], 0.5
    elif trees.link in SIGMOID:
        kind, of, factor = "Sigmoid", ["scaled"], SIGMOID[trees.link]
    else:
        return []
    constants["factors"] = np.array([[factor] if trees.n_values > 1 else [-factor, factor]])
    steps = [("Mul", ["values", "factors"], "scaled", {}), *steps]
    if trees.n_values == 1:
        return [*steps, (kind, of, "probabilities", {})]
    constants |= {"least": np.float64(LEAST), "columns": np.array([1])}
    return [
        *steps,
        (kind, of, "chances", {}),
        ("Add", ["chances", "least"], "positive", {}),
        ("ReduceSum", ["positive", "columns"], "total", {}),
        ("Div", ["positive", "total"], "probabilities", {}),
    ]
