"""Explain single predictions, and find the leaves and paths of rows in trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pboost.data.node_inputs.inputs import ColumnNames
from pboost.data.read.check_xy import as_features, check_finite
from pboost.data.read.codes import copied
from pboost.data.read.convert import (
    Features,
    as_array,
    is_frame,
    is_series,
    is_sparse,
    refuse_path,
)
from pboost.data.read.table import column_order
from pboost.models.base import Model, check_model
from pboost.models.calibrated import CalibratedModel
from pboost.models.early_exit_model import EarlyExitModel
from pboost.models.evaluate.graph_walk import asks_functions, functions_of
from pboost.models.evaluate.match_input import (
    input_values,
    match_columns,
    match_rows,
    reads_columns,
    table_for,
)
from pboost.models.evaluate.sparse_rows import by_blocks
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import BELOW
from pboost.models.probit_trees import ProbitTree
from pboost.models.random_forest import RandomForest
from pboost.models.single_tree import Tree, tree_only
from pboost.models.text import answer as answer_in_words
from pboost.models.text import input_names, signed
from pboost.models.tree_ensemble import LEAF
from pboost.values import Array, FloatArray, IntArray, TableLike, freeze


@dataclass(frozen=True, slots=True)
class PathTest:
    """One comparison on the path of a row.

    Attributes
    ----------
    node : int
        Index of the weak classifier.
    name : str
        The compared quantity, usually a feature name (``x[j]`` if features have no names).
    value : float
        The row's value, NaN if missing. For a set of categories, 1 if the row's category is in the
        set, else 0.
    threshold : float
        The threshold of the comparison.
    answer : int
        Exit taken: 0 for ``value <= threshold``, 1 for ``value > threshold``.
    vote : float, or tuple of float
        Vote of this exit; one vote per class in multiclass graphs.
    total : float, or tuple of float
        Decision value after this vote.
    text : str
        Description of a step that is not a comparison of numbers: a missing value, a set of
        categories or the result of an oracle.
    classes : tuple
        The classes of the votes, in multiclass graphs.
    """

    node: int
    name: str
    value: float
    threshold: float
    answer: int
    vote: float | tuple[float, ...]
    total: float | tuple[float, ...]
    text: str = ""
    classes: tuple[object, ...] = ()

    def __str__(self) -> str:
        sign = "<=" if self.answer == BELOW else "> "
        text = self.text or f"{self.name} = {self.value:.6g} {sign} {self.threshold:.6g}"
        if _are_words(self.classes):
            return f"node {self.node}: {text}, votes for {_by_label(self.classes, self.vote)}"
        return f"node {self.node}: {text}, vote {signed(self.vote)}, total {signed(self.total)}"


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Contributions of the features to the prediction for one row.

    For a decision graph, ``print`` shows the path of the row. For other models, it shows the
    contributions in decreasing order of absolute value.

    Attributes
    ----------
    tests : tuple of PathTest
        Comparisons on the path of the row in a decision graph, in order; empty for other models.
    bias : float, or ndarray of float64, shape (J,)
        The part of the score that does not depend on any feature.
    score : float, or ndarray of float64, shape (J,)
        The explained score: the sum of `bias` and all `contributions`.
    label : object
        Predicted class or value.
    contributions : ndarray of float64, shape (d,) or (d, J), or None
        The contribution of each feature; None for graphs whose weak classifiers are functions of a
        row.
    values : ndarray of float64, shape (d,), or None
        Feature values of the row, in the model's order. None if `contributions` is None.
    names : sequence of str
        Feature names, ``x[j]`` if features have no names.
    explained : {"decision value", "probability", "prediction"}
        The kind of score.
    classes : tuple
        The classes of the entries of a multiclass score.
    goes_with : mapping of int to str
        For each feature with a missing value, the values whose branch the row takes; in a
        RandomForest or GradientBoostingModel, the values whose branch it takes most often.
    left : str
        For an EarlyExitModel, the stage at which prediction stopped and the reason. For a
        CalibratedModel, the calibrated probabilities.
    """

    tests: tuple[PathTest, ...]
    bias: float | FloatArray
    score: float | FloatArray
    label: object
    contributions: FloatArray | None = None
    values: FloatArray | None = None
    names: Sequence[str] = ()
    explained: str = "decision value"
    classes: tuple[object, ...] = ()
    goes_with: Mapping[int, str] = field(default_factory=dict)
    left: str = ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Explanation):
            return NotImplemented
        fields = ("bias", "score", "contributions", "values")
        numbers = [
            [np.asarray(getattr(item, name), dtype=np.float64) for name in fields]
            for item in (self, other)
        ]
        same = self.tests == other.tests and self.label == other.label
        return same and all(
            np.array_equal(a, b, equal_nan=True) for a, b in zip(*numbers, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def order(self) -> list[int]:
        """Return the features with nonzero contributions, in decreasing order of absolute value."""
        if self.contributions is None:
            return []
        size = np.abs(self.contributions).reshape(len(self.contributions), -1).max(axis=1)
        order = np.argsort(-size, kind="stable")
        columns: list[int] = order[size[order] > 0].tolist()
        return columns

    def __str__(self) -> str:
        lines = [*map(str, self.tests), *self._summary()]
        is_plain = bool(self.tests and self.classes) and not _are_words(self.classes)
        if not (self.label is None or self.explained == "prediction" or is_plain):
            lines[-1] += f": {self.label}"
        return "\n".join([*lines, self.left] if self.left else lines)

    def _summary(self) -> list[str]:
        """Return a table of the contributions, or of the score if comparisons are shown."""
        number = "+.6g" if self.explained == "prediction" else "+.4f"
        order = [] if self.tests else self.order()
        if order and self.contributions is not None and self.values is not None:
            rows = np.vstack([self.bias, *self.contributions[order], np.atleast_1d(self.score)])
            cells = [[f"{value:{number}}" for value in row] for row in rows.tolist()]
            return _table(["bias", *self._titles(order), self.explained], cells, self.classes)
        if _are_words(self.classes) and self.explained == "decision value":
            return [f"{self.explained}s for {_by_label(self.classes, self.score)}"]
        score = np.atleast_1d(self.score).tolist()
        return [" ".join([self.explained, *(f"{value:{number}}" for value in score)])]

    def _titles(self, columns: list[int]) -> list[str]:
        """Return the row titles. If a value is missing, list values with the same branch."""
        names = self.names
        if not isinstance(names, ColumnNames):
            names = ColumnNames(tuple(names), len(names))
        sides = {j: f", treated as {side}" for j, side in self.goes_with.items()}
        assert self.values is not None
        return [names.value_text(j, float(self.values[j])) + sides.get(j, "") for j in columns]


def _are_words(classes: tuple[object, ...]) -> bool:
    """Return whether the classes are text. Text cannot be confused with votes."""
    return bool(classes) and isinstance(classes[0], str)


def _by_label(classes: tuple[object, ...], votes: float | tuple[float, ...] | FloatArray) -> str:
    """Return the votes as text with their classes."""
    return ", ".join(
        f"{label} {vote:+.4f}" for label, vote in zip(classes, np.ravel(votes), strict=True)
    )


def _table(titles: list[str], cells: list[list[str]], classes: tuple[object, ...]) -> list[str]:
    """Return the lines of a table. Classes, if there are any, are its column titles."""
    if classes:
        titles, cells = ["", *titles], [[repr(label) for label in classes], *cells]
    width = max(map(len, titles))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        f"{title:<{width}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(row, widths, strict=True))
        for title, row in zip(titles, cells, strict=True)
    ]


def explain(model: Model, x: TableLike) -> Explanation:
    """Return the contribution of each feature to the prediction for one row.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    x : array_like of shape (d,) or (1, d), mapping, Series, or data frame of one row
        The row. A mapping, such as a dict, has the value of each feature by its name, or by its
        position if features have no names. The values of a pandas Series are matched to features
        by their index.

    Returns
    -------
    Explanation
        ``print`` shows one line per comparison on the path for a decision graph, and one line per
        feature for other models. ``contributions.sum(axis=0) + bias`` equals the score up to
        rounding (1e-12, relative to the sum of the absolute values of all parts if this sum is
        above 1).

    Raises
    ------
    ValueError
        If `x` is not one row with the model's features, contains values that the model does not
        accept, or is so far from the training rows that a contribution is not finite.
    NotImplementedError
        If base learners of the model are functions of a row, since the features that they use are
        not known.

    Notes
    -----
    The contributions of each kind of model are:

    DecisionGraph
        The votes of the exits that the row takes, assigned to the features of the nodes. The vote
        of a node with several features is divided as in `feature_importances`.
    Tree, RandomForest
        The change of the node value at each split on the path to the leaf. The node value is the
        share of the second class minus the share of the first; with more classes, the share of
        each class; for regression, the mean target. The bias is the value of the root. For a forest
        contributions are averaged over the trees.
    GradientBoostingModel
        The change of the node value at each split, summed over the trees. The value of a node is
        the weighted mean of the leaf values below it.
    LinearModel, ProbitModel
        Coefficient times value; a LinearModel uses centered and scaled features.
    ProbitTree
        Coefficient times value, in the equation of the leaf. At each split on the path, the feature
        also gets the change of the constant that corresponds to the class shares of the node. The
        bias is the constant of the root plus the difference between the intercept of the leaf and
        its constant.
    OneVsRest
        Contributions to the decision value of each class's model.
    EarlyExitModel
        Contributions to the value of the stage at which prediction stops, before it is multiplied
        by the slope; ``left`` describes this stage and the reason.
    CalibratedModel
        Contributions to the score of the uncalibrated model. The class and ``left`` are based on
        the calibrated probabilities.
    Bagging, WeightedVote, SubaggedProbitTrees
        The vote of a base learner, or its probability of a class, is divided among the features
        whose contributions support this class, in proportion to these contributions. If no feature
        supports it, the vote is part of the bias. The contributions add up to the decision value
        for two classes, to the sum of votes of each class for a WeightedVote, and to the vote
        shares otherwise. For bagged regression models, and bagged probabilities of trees and
        forests, contributions are averaged.

    References
    ----------
    .. [1] A. Saabas, "Interpreting random forests" (2014): the changes along the path.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, ["no", "no", "yes", "yes"], max_nodes=1)
    >>> explanation = pb.explain(model, [2.5])
    >>> print(explanation)
    node 0: x[0] = 2.5 >  1.5, vote +4.2587, total +4.2587
    decision value +4.2587: yes
    >>> explanation.contributions.round(4).tolist()
    [4.2587]
    >>> print(pb.explain(pb.fit_cart(X, ["no", "no", "yes", "no"]), [2.5]))
    bias            -0.5000
    x[0] = 2.5      +1.5000
    decision value  +1.0000: yes
    """
    check_model(model)
    if isinstance(model, DecisionGraph) and asks_functions(model):
        return _path(model, _answers_of(model, x), None, None)
    if not reads_columns(model):
        raise NotImplementedError(
            "model: expected base learners that use features, got functions of a row; it is "
            "not known which features these functions use"
        )
    row = _one_row(model, x)
    if isinstance(model, EarlyExitModel):
        passed, reason = model.left_after(row)
        return replace(explain(passed, x), left=reason)
    if isinstance(model, CalibratedModel):
        explanation, score = explain(model.model, x), model.decision_function(row)
        reason = "\n".join(
            [*([explanation.left] if explanation.left else []), model.in_words(score)]
        )
        return replace(explanation, label=model.labels_of(score)[0].item(), left=reason)
    parts = model.contributions(row)
    if not np.isfinite(parts).all():
        raise ValueError(
            "x: lies too far from the training rows: the contribution of a feature is not a finite "
            "number"
        )
    values = row.values[0]
    if isinstance(model, DecisionGraph):
        return _path(model, input_values(model, row)[0].__getitem__, values, parts[1:])
    ask = model.predict_proba if model.explained == "probability" else model.decision_function
    score, label = ask(row)[0], model.predict(row)[0]
    explanation = _explanation(model, (), parts[0], score, label, parts[1:], values)
    return replace(explanation, goes_with=model.goes_with(row))


def _path(
    model: DecisionGraph,
    value_of: Callable[[int], float],
    row: FloatArray | None,
    parts: FloatArray | None,
) -> Explanation:
    """Return the explanation for a graph. It contains the comparisons on the path of the row."""
    names, tests = input_names(model), []
    classes = tuple(model.classes.tolist()) if model.n_votes > 1 else ()
    total = np.asarray(model.bias, dtype=np.float64)
    for node, value, answer in model.path(value_of):
        name, threshold = names[model.feature[node]], float(model.threshold[node])
        vote = model.vote[node, answer]
        total = total + vote
        text = answer_in_words(model, names, node, value_of)
        both = _plain(vote), _plain(total)
        value = math.nan if np.isnan(value) else float(value)  # tuples with math.nan compare equal
        tests.append(PathTest(node, name, value, threshold, answer, *both, text, classes))
    label = model.labels_of(total[None])[0]
    return _explanation(model, tuple(tests), model.bias, total, label, parts, row)


def _explanation(
    model: Model,
    tests: tuple[PathTest, ...],
    bias: float | FloatArray,
    score: float | FloatArray,
    label: np.generic | None,
    parts: FloatArray | None,
    row: FloatArray | None,
) -> Explanation:
    return Explanation(
        tests,
        freeze(bias) if np.ndim(bias) else float(bias),
        freeze(score) if np.ndim(score) else float(score),
        None if label is None else label.item(),
        None if parts is None else freeze(parts),
        None if row is None else freeze(row),
        ColumnNames(model.feature_names, model.n_features, model.table),
        model.explained,
        tuple(model.classes.tolist()) if np.ndim(score) and model.classes is not None else (),
    )


def _plain(votes: FloatArray) -> float | tuple[float, ...]:
    """Return a single vote as a float, several votes as a tuple."""
    return tuple(votes.tolist()) if np.ndim(votes) else float(votes)


def _answers_of(model: DecisionGraph, x: TableLike) -> Callable[[int], float]:
    """Return a function that maps the number of a weak classifier to its value for one row."""
    functions, x = functions_of(model), table_for(model, x)
    if not is_frame(x):
        x, shape = as_array(x), functions.row_shape
        # If x has the shape of a single row, convert it to an array of one row.
        x = x[None] if x.shape == shape or (shape is None and x.ndim == 1) else x
    rows = match_rows(model, x)
    _check_one(rows.n_rows)
    return lambda number: float(functions.value(number, rows, np.arange(1))[0])


def _one_row(model: Model, x: Any) -> Features:
    """Return the features of one row as float64 in the model's order."""
    refuse_path(x)
    if isinstance(x, Mapping):
        x = _in_order(model, x)
    if not (is_series(x) or is_frame(x)):
        row = x[None] if isinstance(x, np.ma.MaskedArray) else [x]  # keeps the mask
        x = ([[x]], row, x)[min(np.ndim(x), 2)]
    # A model without base learners does not store its features.
    features = match_columns(model, x) if model.n_features else as_features(x)
    check_finite(features, model.takes_missing)
    _check_one(len(features.values))
    return replace(features, values=copied(features.values, np.float64))


def _in_order(model: Model, row: Mapping[Any, object]) -> Array:
    """Return the values of a mapping from features to values, in the model's order."""
    features = model.feature_names or tuple(map(str, range(model.n_features)))
    keys = tuple(map(str, row))
    values = np.empty(len(keys), dtype=object)
    values[:] = list(row.values())
    order = column_order(features, keys) if model.n_features else None
    return values if order is None else values[order]


def _check_one(n_rows: int) -> None:
    if n_rows != 1:
        raise ValueError(f"x: expected one row, got {n_rows}")


def apply(tree: Tree | RandomForest | GradientBoostingModel | ProbitTree, X: TableLike) -> IntArray:
    """Return the index of the leaf that each row reaches.

    Parameters
    ----------
    tree : Tree, ProbitTree, RandomForest or GradientBoostingModel
        A fitted tree or ensemble of trees.
    X : array_like of shape (n, d), data frame or sparse matrix
        Rows with the same features as the training data; infinite values are not allowed.

    Returns
    -------
    ndarray of int32, shape (n,); (n, n_trees) for ensembles
        Index of the leaf, counted from the left, starting at 0. ``tree.leaf`` maps nodes to leaf
        indices (``tree.partition.leaf`` for a ProbitTree).

    Examples
    --------
    >>> import pboost as pb
    >>> tree = pb.fit_cart([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"])
    >>> pb.inspection.apply(tree, [[0.5], [2.2], [9.0]]).tolist()
    [0, 1, 2]
    """
    if isinstance(tree, GradientBoostingModel):
        tree = tree.trees
    if isinstance(tree, ProbitTree):
        tree = tree.partition
    if is_sparse(X):
        return by_blocks(apply, tree, X)
    if isinstance(tree, RandomForest):
        return tree.leaves_of(X)
    return tree_only(tree).leaf[tree.nodes_of(X)]


def decision_path(tree: Tree, X: TableLike) -> list[IntArray]:
    """Return the nodes on the path of each row.

    Parameters
    ----------
    tree : Tree
        A fitted tree.
    X : array_like of shape (n, d), data frame or sparse matrix
        Rows with the same features as the training data; infinite values are not allowed.

    Returns
    -------
    list of ndarray of int32
        The nodes of each row, from the root to the leaf.

    Examples
    --------
    >>> import pboost as pb
    >>> tree = pb.fit_cart([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"])
    >>> [path.tolist() for path in pb.inspection.decision_path(tree, [[0.5], [9.0]])]
    [[0, 1], [0, 2, 4]]
    """
    if is_sparse(X):
        return by_blocks(decision_path, tree_only(tree), X)
    ends = tree_only(tree).nodes_of(X)
    parent = parents(tree)
    paths = {}
    for leaf in np.unique(ends).tolist():
        path = [leaf]
        while path[-1]:
            path.append(int(parent[path[-1]]))
        paths[leaf] = np.array(path[::-1], dtype=np.int32)
    return [paths[leaf] for leaf in ends.tolist()]


def parents(tree: Tree) -> IntArray:
    """Return the parent of each node, or -1 for the root."""
    parent = np.full(tree.n_nodes, -1, dtype=np.int32)
    inner = np.flatnonzero(tree.feature != LEAF)
    parent[tree.children[inner].ravel()] = np.repeat(inner, 2)
    return parent
