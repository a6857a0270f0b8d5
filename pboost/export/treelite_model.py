"""Trees as a model of treelite, which others compile (TL2cgen) or run on a GPU (FIL)."""

from __future__ import annotations

from typing import Any

from pboost.export.packages import needed
from pboost.models.base import Model
from pboost.models.tree_record import LEAF, NO_SET, TreeSum
from pboost.models.trees_of import as_trees

#: How treelite makes probabilities of one value, and the factor of a sigmoid's; else of none.
OF_ONE = {
    "half log odds": ("sigmoid", 2.0),
    "log odds": ("sigmoid", 1.0),
    "exp": ("exponential", 1.0),
}


def to_treelite(model: Model | TreeSum, *, max_nodes: int = 100_000) -> Any:
    """Return a model as a ``treelite.Model``, all numbers float64.

    ``treelite.gtil.predict(found, rows, pred_margin=True)`` gives the values of a `TreeSum`,
    decision values or shares of the labels; without `pred_margin` probabilities where treelite has
    the function: half log odds, log odds, and, in float32, softmax.

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, StagewiseModel, a model of models, or TreeSum
        A fitted model, see `trees_of`, or its trees.
    max_nodes : int
        The most nodes that the trees of a graph may have.

    Returns
    -------
    treelite.Model
        Rows are as the trees read them, ``trees_of(model).rows(X)``.

    Raises
    ------
    ImportError
        If treelite 4 is not installed: the extra ``treelite``.
    TypeError, ValueError
        As in `trees_of`.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> found = pb.to_treelite(pb.fit_adaboost(X, y, rounds=5))  # doctest: +SKIP
    >>> found.num_tree  # doctest: +SKIP
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


def _builder(trees: TreeSum, module: Any) -> Any:
    """Return a builder that knows what is made of the values of the leaves."""
    j, n = trees.n_values, trees.n_trees
    of_one, factor = OF_ONE.get(trees.link, ("identity", 1.0))
    name = of_one if j == 1 else "softmax" if trees.link == "softmax" else "identity_multiclass"
    task = "kMultiClf" if j > 1 else "kRegressor" if trees.labels is None else "kBinaryClf"
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
        postprocessor=module.PostProcessorFunc(name=name, sigmoid_alpha=factor),
        base_scores=trees.bias.tolist(),
    )


def _test(builder: Any, trees: TreeSum, node: int, children: list[int]) -> None:
    """Add the test of a node."""
    number = int(trees.level_set[node])
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
        levels = trees.levels(number).tolist()
        builder.categorical_test(category_list=levels, category_list_right_child=True, **common)
