"""What happens to rows in models: the parts and the path of one, those of many through a tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pboost.data.node_inputs.inputs import ColumnNames
from pboost.data.read.check_xy import as_features, check_finite
from pboost.data.read.codes import copied
from pboost.data.read.convert import Features, as_array, is_frame, is_series
from pboost.models.base import Model, check_model
from pboost.models.calibrated import CalibratedModel
from pboost.models.early_exit_model import EarlyExitModel
from pboost.models.evaluate.graph_walk import asks_functions, functions_of
from pboost.models.evaluate.new_rows import (
    input_values,
    match_columns,
    match_rows,
    reads_columns,
    table_for,
)
from pboost.models.forest import RandomForest
from pboost.models.graph import DecisionGraph
from pboost.models.nodes import BELOW
from pboost.models.probit_trees import ProbitTree
from pboost.models.text import answer as answer_in_words
from pboost.models.text import input_names, signed
from pboost.models.tree_record import LEAF
from pboost.models.tree_sum import GradientBoostingModel
from pboost.models.trees import Tree, tree_only
from pboost.values import FloatArray, IntArray, TableLike, freeze


@dataclass(frozen=True, slots=True)
class PathTest:
    """One test on the path of a row.

    Attributes
    ----------
    node : int
        Index of the weak classifier.
    name : str
        What it compares, such as the name of a column, ``x[j]`` where columns have no names.
    value : float
        The row's value there, NaN where it is missing; 1 for a level in a set, else 0.
    threshold : float
        What the value is compared with.
    answer : int
        Exit taken: 0 for ``value <= threshold``, 1 for ``value > threshold``.
    vote : float, or tuple of float
        Vote of that exit, or its several votes.
    total : float, or tuple of float
        Decision value after it.
    text : str
        What was found, in words, where it is no comparison: that the value is missing and on which
        side it goes, that a level is in a set, what an oracle answered.
    classes : tuple
        The labels to which several votes belong.
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
    """Why a row gets its label, or its number: what each column contributes.

    Of a decision graph it has the tests on the path of the row, too, and ``print`` shows these;
    of other models the contributions, the largest first.

    Attributes
    ----------
    tests : tuple of PathTest
        Of a decision graph, in the order in which they are evaluated; of other models empty.
    bias : float, or ndarray of float64, shape (J,)
        The part of the score that no column has.
    score : float, or ndarray of float64, shape (J,)
        What is explained: the sum of `bias` and all `contributions`.
    label : object
        Predicted label, or number.
    contributions : ndarray of float64, shape (d,) or (d, J), or None
        The part of each column; None of a graph whose weak classifiers are functions of a row.
    values : ndarray of float64, shape (d,), or None
        The row, in the order of the model's columns; None likewise.
    names : sequence of str
        The columns, ``x[j]`` where they have no names.
    explained : {"decision value", "probability", "prediction"}
        What the score is.
    classes : tuple
        The labels to which the numbers of a score of several belong.
    goes_with : mapping of int to str
        Of a Tree: with which values the row goes, by columns in which its own is missing; of a
        RandomForest or a GradientBoostingModel with which it goes in most tests.
    left : str
        Of an EarlyExitModel: where the row left it, and why; of a CalibratedModel: its
        probabilities.
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
        """Return the columns that contribute, the largest contribution first."""
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
        """Return what is said beside the tests: a table of contributions, or the score alone."""
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
        """Return columns with their values; if one is missing, with which values the row goes."""
        names = self.names
        if not isinstance(names, ColumnNames):
            names = ColumnNames(tuple(names), len(names))
        sides = {j: f", treated as {side}" for j, side in self.goes_with.items()}
        assert self.values is not None
        return [names.value_text(j, float(self.values[j])) + sides.get(j, "") for j in columns]


def _are_words(classes: tuple[object, ...]) -> bool:
    """Return whether there are labels that can stand before numbers without looking like these."""
    return bool(classes) and isinstance(classes[0], str)


def _by_label(classes: tuple[object, ...], votes: float | tuple[float, ...] | FloatArray) -> str:
    """Return votes, each behind its label."""
    return ", ".join(
        f"{label} {vote:+.4f}" for label, vote in zip(classes, np.ravel(votes), strict=True)
    )


def _table(titles: list[str], cells: list[list[str]], classes: tuple[object, ...]) -> list[str]:
    """Return the lines of a table, with the labels of its columns if there are any."""
    if classes:
        titles, cells = ["", *titles], [[repr(label) for label in classes], *cells]
    width = max(map(len, titles))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        f"{title:<{width}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(row, widths, strict=True))
        for title, row in zip(titles, cells, strict=True)
    ]


def explain(model: Model, x: TableLike) -> Explanation:
    """Return what each column contributes to the decision value of one row.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    x : array_like of shape (d,) or (1, d), Series, or data frame of one row
        The row. The values of a pandas Series go by their names, its index.

    Returns
    -------
    Explanation
        Of a decision graph its string is one line per test on the row's path, of others one per
        column. ``contributions.sum(axis=0) + bias`` is the score, to 1e-12 of the sum of the sizes
        of all parts where that is above 1.

    Raises
    ------
    ValueError
        If `x` is not one row with the model's columns, or holds what the model refuses, or lies so
        far from the training rows that a contribution is not finite.
    NotImplementedError
        If members of the model, or its hypotheses, are functions, of which is not known which
        columns they read.

    Notes
    -----
    What adds up to the score:

    DecisionGraph
        The votes of the exits that the row takes, by the columns that the nodes read: of a node
        that reads several, shared as in `feature_importances`.
    Tree, RandomForest
        For each comparison on the way to the leaf the change of what the node says: the share of
        the second label less that of the first; of more labels the share of each, and of a
        regression the mean target. Bias: the root. Of a forest the mean over the trees.
    GradientBoostingModel
        The same, nodes being the means of their leaves by weight; over the trees, the sum.
    LinearModel, ProbitModel
        Coefficient times value; of a LinearModel, of the centred and scaled columns.
    ProbitTree
        Slope times value, of the equations of the leaf; and for each comparison on the way there
        the change of the constant that goes with the shares of the classes at a node. Bias: the
        constant of the root, and by what the leaf's intercept differs from the leaf's constant.
    OneVsRest
        Contributions to the decision value of each class's model.
    EarlyExitModel
        What adds up to the value of the model up to the joint where the row leaves, before it is
        multiplied by the slope; ``left`` says where that is, and why.
    CalibratedModel
        What adds up to the value of the model that is calibrated; the label, and ``left``, are
        those of its calibrated probabilities.
    Bagging, WeightedVote, SubaggedProbitTrees
        A member's vote, or its probability of a class, is divided among the columns whose
        contributions to the member's value speak for the class, as these are; where none does, it
        is part of the bias. They add up to the shares of the votes: of two labels to the decision
        value, and of a WeightedVote to the sums of the votes for each label. Bagged numbers, and
        bagged probabilities of trees and forests, are sums already: of those the mean.

    References
    ----------
    .. [1] A. Saabas, "Interpreting random forests" (2014), of the changes along the path.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, ["no", "no", "yes", "yes"], max_nodes=1)
    >>> found = pb.explain(model, [2.5])
    >>> print(found)
    node 0: x[0] = 2.5 >  1.5, vote +4.2587, total +4.2587
    decision value +4.2587: yes
    >>> found.contributions.round(4).tolist()
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
            "model: parts of it are functions of a row, of which is not known which columns they "
            "read"
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
            "x: lies too far from the training rows: what a column contributes is not a finite "
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
    """Return the explanation of a graph, with the tests on the path of the row."""
    names, tests = input_names(model), []
    classes = tuple(model.classes.tolist()) if model.n_votes > 1 else ()
    total = np.asarray(model.bias, dtype=np.float64)
    for node, value, answer in model.path(value_of):
        name, threshold = names[model.feature[node]], float(model.threshold[node])
        vote = model.vote[node, answer]
        total = total + vote
        text = answer_in_words(model, names, node, value_of)
        both = _plain(vote), _plain(total)
        value = math.nan if np.isnan(value) else float(value)  # equal to itself in a tuple
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
    """Return a number, or several as a tuple."""
    return tuple(votes.tolist()) if np.ndim(votes) else float(votes)


def _answers_of(model: DecisionGraph, x: TableLike) -> Callable[[int], float]:
    """Return the function that gives the answers of functions about one row."""
    functions, x = functions_of(model), table_for(model, x)
    if not is_frame(x):
        x, shape = as_array(x), functions.row_shape
        # One row as the function would be given it, or a matrix of one row.
        x = x[None] if x.shape == shape or (shape is None and x.ndim == 1) else x
    rows = match_rows(model, x)
    _check_one(rows.n_rows)
    return lambda number: float(functions.value(number, rows, np.arange(1))[0])


def _one_row(model: Model, x: Any) -> Features:
    """Return one row as features with the model's columns, in float64."""
    if not (is_series(x) or is_frame(x)):
        row = x[None] if isinstance(x, np.ma.MaskedArray) else [x]  # keeps the mask
        x = ([[x]], row, x)[min(np.ndim(x), 2)]
    # Of a model without members no columns are known.
    features = match_columns(model, x) if model.n_features else as_features(x)
    check_finite(features, model.takes_missing)
    _check_one(len(features.values))
    return replace(features, values=copied(features.values, np.float64))


def _check_one(n_rows: int) -> None:
    if n_rows != 1:
        raise ValueError(f"x: expected one row, got {n_rows}")


def apply(tree: Tree | RandomForest | GradientBoostingModel | ProbitTree, X: TableLike) -> IntArray:
    """Return the leaf that each row reaches.

    Parameters
    ----------
    tree : Tree, ProbitTree, RandomForest or GradientBoostingModel
        A fitted tree, or forest or sum of trees.
    X : array_like of shape (n, d), or data frame
        Rows with the columns of training; infinities are refused.

    Returns
    -------
    ndarray of int32, shape (n,); of a forest or a sum of trees (n, n_trees)
        Numbers of leaves, from 0 on, from left to right; ``tree.leaf`` has them by node,
        of a ProbitTree ``tree.partition.leaf``.

    Examples
    --------
    >>> import pboost as pb
    >>> tree = pb.fit_cart([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"])
    >>> pb.inspection.apply(tree, [[0.5], [2.2], [9.0]]).tolist()
    [0, 1, 2]
    """
    if isinstance(tree, GradientBoostingModel):
        tree = tree.trees
    if isinstance(tree, RandomForest):
        return tree.leaves_of(X)
    if isinstance(tree, ProbitTree):
        tree = tree.partition
    return tree_only(tree).leaf[tree.nodes_of(X)]


def decision_path(tree: Tree, X: TableLike) -> list[IntArray]:
    """Return the nodes through which each row goes.

    Parameters
    ----------
    tree : Tree
        A fitted tree.
    X : array_like of shape (n, d), or data frame
        Rows with the columns of training; infinities are refused.

    Returns
    -------
    list of ndarray of int32
        For each row its nodes, from the root to the leaf.

    Examples
    --------
    >>> import pboost as pb
    >>> tree = pb.fit_cart([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"])
    >>> [path.tolist() for path in pb.inspection.decision_path(tree, [[0.5], [9.0]])]
    [[0, 1], [0, 2, 4]]
    """
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
    """Return the parent of each node, -1 of the root."""
    parent = np.full(tree.n_nodes, -1, dtype=np.int32)
    inner = np.flatnonzero(tree.feature != LEAF)
    parent[tree.children[inner].ravel()] = np.repeat(inner, 2)
    return parent
