"""Export of tree models to ONNX and treelite."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.sums import Projections
from pboost.export.c_intermediate import walks_of
from pboost.models.as_trees import as_trees, projections_of, trees_of_sums
from pboost.models.base import Model
from pboost.models.tree_ensemble import LEAF, NO_SET, TreeEnsemble
from pboost.values import Array, IntArray, install_hint
from pboost.values.options import builder


def needed(package: str, function: str, extra: str) -> Any:
    """Import a module, or raise an ImportError that names the extra to install."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        hint = install_hint(extra, name)
        raise ImportError(f"{function} needs {name}: {hint}") from error


# Export to ONNX, which uses the operator TreeEnsemble of ai.onnx.ml, version 5, in float64

#: Codes for x <= threshold, x in a set, sum as aggregation, and no transformation of the sum.
LEQ, MEMBER, SUM, NONE = 0, 6, 1, 0
#: Versions of the two operator sets and of the ONNX format.
OPSET, OPSET_ML, FORMAT = 21, 5, 10
#: Code of the type int64 in ONNX.
INT64 = 7
#: Attributes that are stored as tensors.
TENSORS = {"nodes_modes", "nodes_splits", "membership_values", "leaf_weights"}
#: An operator, its inputs, its output, and its attributes.
Step: TypeAlias = tuple[str, list[str], str, dict[str, Any]]
#: Constant added to class probabilities before normalization, because all may be 0.
LEAST = 1e-300
#: Factor of the decision values in the sigmoid function, for each link.
SIGMOID = {"half log odds": 2.0, "log odds": 1.0}


@builder
def to_onnx(
    model: Model | TreeEnsemble, *, max_nodes: int = 100_000, max_categories: int | None = None
) -> Any:
    """Return a model as an ``onnx.ModelProto`` with float64 numbers.

    The input ``X`` (n, d) contains rows as returned by ``as_tree_ensemble(model).rows(X)``. NaN is
    a missing value. The output ``values`` (n, J) contains the decision values, or the predictions
    of a regression. Classifiers also have the output ``label`` (n,) and, unless the link is
    "probit" or "none", the output ``probabilities`` (n, n_classes).

    Parameters
    ----------
    model : fitted model of pboost, or TreeEnsemble
        A model that is a sum of trees, or the result of `as_tree_ensemble`. Decision graphs with
        splits on sums of numeric features are also supported, see Notes.
    max_nodes : int
        Maximum number of nodes of the trees that a decision graph is converted to.
    max_categories : int, optional
        Maximum number of categories in the sets of all nodes. By default, there is no limit.
        Versions of onnxruntime before 1.23 take more than a minute to load a model with 13,000
        categories.

    Returns
    -------
    onnx.ModelProto
        The model. To save it, write ``onnx_model.SerializeToString()`` to a file. A tree with J
        values per leaf is stored as J trees.

    Raises
    ------
    ImportError
        If onnx is not installed: ``pip install "pboosting[onnx]"``.
    TypeError, ValueError
        If the sets contain more than `max_categories` categories. See also `as_tree_ensemble`.

    Notes
    -----
    Models with ``weak_learner=affine()`` or ``weak_learner=linear()`` compare sums of features. The
    ONNX model replaces missing values and computes the sums by a matrix product. Its input is the
    original numeric rows. A runtime may add the terms in another order, so a row whose sum is very
    close to a threshold may take the other branch.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> onnx_model = pb.export.to_onnx(pb.fit_adaboost(X, y, n_estimators=5))  # doctest: +SKIP
    >>> [output.name for output in onnx_model.graph.output]  # doctest: +SKIP
    ['values', 'label', 'probabilities']
    """
    sums = projections_of(model)
    trees = as_trees(model, None, max_nodes) if sums is None else trees_of_sums(model, max_nodes)
    size = [len(trees.categories(number)) for number in range(trees.n_sets)]
    members = trees.n_added * sum(size[k] for k in trees.category_set.tolist() if k != NO_SET)
    if max_categories is not None and members > max_categories:
        raise ValueError(
            f"max_categories: expected at least {members}, the number of categories in the sets of "
            f"all nodes, got {max_categories}; to_treelite, to_json and to_sql have no limit"
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
    if trees.classes is not None:
        steps += _label(trees, constants)
        kind = onnx.TensorProto.STRING
        if trees.classes.dtype.kind != "U":  # numbers or booleans
            kind = onnx.helper.np_dtype_to_tensor_dtype(trees.classes.dtype)
        kinds["label"] = (kind, None)
        probability_steps = _probabilities(trees, constants)
        steps += probability_steps
        if probability_steps:
            kinds["probabilities"] = (onnx.TensorProto.DOUBLE, len(trees.classes))
    info, make = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    graph = onnx.helper.make_graph(
        [make(kind, inputs, [output], **more) for kind, inputs, output, more in steps],
        trees.builder,
        [info("X", onnx.TensorProto.DOUBLE, ["n", model.n_features])],
        [info(name, of, ["n"] if j is None else ["n", j]) for name, (of, j) in kinds.items()],
        [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()],
    )
    sets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
    model_proto = onnx.helper.make_model(graph, opset_imports=sets, ir_version=FORMAT)
    onnx.checker.check_model(model_proto)
    return model_proto


def _projected(d: int, sums: Projections, constants: dict[str, Any]) -> tuple[list[Step], str]:
    """Return the operators that compute sums of the d features and the name of their output."""
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


def _columns(trees: TreeEnsemble) -> dict[str, Any]:
    """Return the operator attributes. A tree with K values per leaf is stored K times."""
    walk, K = walks_of(trees), trees.n_added
    tests, n_nodes, n_leaves = walk.tests, len(walk.tests), len(walk.added)
    # A tree with a single leaf is stored as a node whose branches both lead to it.
    alone = np.flatnonzero(walk.root < 0)
    ends = np.append(walk.next, np.repeat(walk.root[alone, None], 2, axis=1), axis=0)
    size, root = len(ends), walk.root.copy()
    root[alone] = n_nodes + np.arange(len(alone))
    root = np.add.outer(size * np.arange(K), root).ravel()

    def tiled(of_nodes: Array) -> Array:
        return np.tile(np.append(of_nodes, np.zeros(len(alone), of_nodes.dtype)), K)

    # In ONNX, "true" is the first child for a threshold and the second child for a set.
    is_set = tiled(tests.category_set >= 0)
    attributes: dict[str, Any] = {
        "nodes_modes": np.where(is_set, MEMBER, LEQ).astype(np.uint8),
        "nodes_featureids": tiled(tests.feature),
        "nodes_splits": tiled(tests.threshold),
        "nodes_missing_value_tracks_true": tiled(tests.missing) == is_set,
        "tree_roots": root,
    }
    copy, ends = np.repeat(np.arange(K), size)[:, None], np.tile(ends, (K, 1))
    is_end = ends < 0
    child = np.where(is_end, n_leaves * copy - 1 - ends, size * copy + ends)
    unused = _unused_leaves(child[root], is_end[root])
    child += unused * is_end
    for called, side in (("true", is_set.astype(int)), ("false", 1 - is_set)):
        attributes[f"nodes_{called}nodeids"] = child[np.arange(len(child)), side]
        attributes[f"nodes_{called}leafs"] = is_end[np.arange(len(child)), side]
    value = walk.added / trees.n_trees if trees.aggregation == "mean" else walk.added
    is_leaf, target = trees.feature == LEAF, np.repeat(np.arange(K), n_leaves)
    if trees.target is not None:
        target = np.repeat(trees.target, np.diff(trees.root))[is_leaf]
    sets = [trees.categories(k).tolist() for k in tests.category_set.tolist() if k != NO_SET]
    attributes |= {
        "leaf_weights": np.append(np.zeros(unused), value.T.ravel()),
        "leaf_targetids": np.append(np.zeros(unused, dtype=np.int32), target),
        "membership_values": np.array([v for levels in sets * K for v in (*levels, np.nan)]),
    }
    more = {"n_targets": trees.n_values, "aggregate_function": SUM, "post_transform": NONE}
    for name in attributes.keys() - TENSORS:
        attributes[name] = attributes[name].ravel().astype(int).tolist()
    return {**attributes, **more}


def _unused_leaves(child: IntArray, is_leaf: NDArray[np.bool_]) -> int:
    """Return the number of unused leaves to insert before the leaves of the model.

    Nodes and leaves are numbered separately. onnxruntime 1.23 mistakes a root for a leaf if its two
    children have the same number. `child` contains the numbers of the children of each root.
    """
    one_leaf = is_leaf[:, 0] != is_leaf[:, 1]
    more = child[one_leaf, 1] - child[one_leaf, 0]
    same = set(np.where(is_leaf[one_leaf, 0], more, -more).tolist())
    return next(unused for unused in range(len(same) + 1) if unused not in same)


def _label(trees: TreeEnsemble, constants: dict[str, Any]) -> list[Step]:
    """Return the operators that compute class labels from decision values."""
    assert trees.classes is not None
    classes = trees.classes
    constants["classes"] = classes.astype(object) if classes.dtype.kind == "U" else classes
    if trees.n_values > 1:
        largest = ("ArgMax", ["values"], "place", {"axis": 1, "keepdims": 0})
        return [largest, ("Gather", ["classes", "place"], "label", {})]
    constants |= {"zero": np.float64(0.0), "minus one": np.array([-1])}
    return [
        ("Reshape", ["values", "minus one"], "value", {}),
        ("Greater", ["value", "zero"], "is second", {}),
        ("Cast", ["is second"], "place", {"to": INT64}),
        ("Gather", ["classes", "place"], "label", {}),
    ]


def _probabilities(trees: TreeEnsemble, constants: dict[str, Any]) -> list[Step]:
    """Return the operators that compute probabilities, or [] if the link is unsupported."""
    if trees.link == "shares":
        return [("Identity", ["values"], "probabilities", {})]
    if trees.link == "softmax":
        softmax = ("Softmax", ["tempered"], "probabilities", {"axis": 1})
        constants["temperature"] = np.float64(trees.temperature)
        return [("Div", ["values", "temperature"], "tempered", {}), softmax]
    steps: list[Step] = []
    if trees.link == "lead":
        constants |= {"half": np.float64(0.5), "zero": np.float64(0.0), "one": np.float64(1.0)}
        steps.append(("Add", ["scaled", "half"], "line", {}))
        kind, of, factor = "Clip", ["line", "zero", "one"], 0.5
    elif trees.link in SIGMOID:
        kind, of, factor = "Sigmoid", ["scaled"], SIGMOID[trees.link] / trees.temperature
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


# Export to treelite. Its models can be compiled (TL2cgen) or run on a GPU (FIL).

#: Treelite postprocessor and its factor for each link of models with one value.
OF_ONE = {
    "half log odds": ("sigmoid", 2.0),
    "log odds": ("sigmoid", 1.0),
    "exp": ("exponential", 1.0),
}


def to_treelite(model: Model | TreeEnsemble, *, max_nodes: int = 100_000) -> Any:
    """Return a model as a ``treelite.Model`` with float64 numbers.

    ``treelite.gtil.predict(treelite_model, rows, pred_margin=True)`` returns the decision values,
    or class shares. Without `pred_margin`, it returns probabilities if the link is half log odds,
    log odds, or softmax without a temperature. treelite computes softmax in float32.

    Parameters
    ----------
    model : fitted model of pboost, or TreeEnsemble
        A model that is a sum of trees, or the result of `as_tree_ensemble`.
    max_nodes : int
        Maximum number of nodes of the trees that a decision graph is converted to.

    Returns
    -------
    treelite.Model
        The model. Its inputs are rows as returned by ``as_tree_ensemble(model).rows(X)``.

    Raises
    ------
    ImportError
        If treelite 4 is not installed: ``pip install "pboosting[treelite]"``.
    TypeError, ValueError
        See `as_tree_ensemble`.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> model = pb.fit_adaboost(X, y, n_estimators=5)
    >>> treelite_model = pb.export.to_treelite(model)  # doctest: +SKIP
    >>> treelite_model.num_tree  # doctest: +SKIP
    5
    """
    trees = as_trees(model, None, max_nodes)
    builder = _builder(trees, needed("treelite.model_builder", "to_treelite", "treelite"))
    children, feature = trees.children.tolist(), trees.feature.tolist()
    value = trees.value if trees.n_added > 1 else trees.value[:, 0]
    leaf = value.tolist()
    for tree in range(trees.n_trees):
        first, stop = trees.root[tree : tree + 2].tolist()
        builder.start_tree()
        for node in range(first, stop):
            builder.start_node(node - first)
            if feature[node] == LEAF:
                builder.leaf(leaf[node])
            else:
                _test(builder, trees, node, children[node])
            builder.end_node()
        builder.end_tree()
    return builder.commit()


def _builder(trees: TreeEnsemble, module: Any) -> Any:
    """Return a treelite model builder with the postprocessor of the link."""
    j, n = trees.n_values, trees.n_trees
    of_one, factor = OF_ONE.get(trees.link, ("identity", 1.0))
    is_softmax = trees.link == "softmax" and trees.temperature == 1
    name = of_one if j == 1 else "softmax" if is_softmax else "identity_multiclass"
    task = "kMultiClf" if j > 1 else "kRegressor" if trees.classes is None else "kBinaryClf"
    of_all = trees.n_added > 1
    target = [0] * n if trees.target is None else trees.target.tolist()
    return module.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=module.Metadata(
            num_feature=trees.n_features,
            task_type=task,
            num_target=1,
            num_class=[j],
            average_tree_output=trees.aggregation == "mean",
            leaf_vector_shape=(1, trees.n_added),
        ),
        tree_annotation=module.TreeAnnotation(
            num_tree=n, target_id=[0] * n, class_id=[-1] * n if of_all else target
        ),
        postprocessor=module.PostProcessorFunc(name=name, sigmoid_alpha=factor / trees.temperature),
        base_scores=trees.bias.tolist(),
    )


def _test(builder: Any, trees: TreeEnsemble, node: int, children: list[int]) -> None:
    """Add the split of a node to the treelite model."""
    number = int(trees.category_set[node])
    common = {
        "feature_id": int(trees.feature[node]),
        "left_child_key": children[0],
        "right_child_key": children[1],
        "default_left": trees.missing is None or not trees.missing[node],
    }
    if number == NO_SET:
        threshold = float(trees.threshold[node])
        builder.numerical_test(threshold=threshold, opname="<=", **common)
    else:
        levels = trees.categories(number).tolist()
        builder.categorical_test(category_list=levels, category_list_right_child=True, **common)
