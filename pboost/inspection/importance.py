"""How much a model's features matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.check_xy import (
    as_weights,
    check_has_rows,
    scaled_weights,
)
from pboost.data.read.codes import copied
from pboost.data.read.convert import with_shuffled
from pboost.inspection.cross_validation import row_errors, truth_for
from pboost.models.base import Model, check_model, predict
from pboost.models.ensembles import Ensemble, is_foreign
from pboost.models.evaluate.new_rows import finite_columns, match_rows, reads_columns
from pboost.models.forest import RandomForest
from pboost.models.trees import Tree
from pboost.values import FloatArray, Seed, TableLike, as_generator, check_choice, check_integer

#: What importances can be made of, beside what is each model's own.
ImportanceKind: TypeAlias = Literal["impurity"]
KINDS: tuple[ImportanceKind, ...] = get_args(ImportanceKind)


def feature_importances(
    model: Model, kind: ImportanceKind | None = None, *, X: TableLike | None = None
) -> FloatArray:
    """Return the share of each column in what a model has learnt from its training data.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest or another model
        A fitted model.
    kind : {None, "impurity"}
        None: what each kind of model has of its own, see Notes. "impurity": of trees and forests
        only, whose own it is.
    X : array_like of shape (n, d), or data frame, optional
        Rows whose standard deviations are the spreads of the columns. Default: spreads that the
        model knows.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        Not negative and adding up to 1; all 0 where nothing is gained, as in a model without a
        split. A number for each column of the training data, also where the model reads few of
        very many.

    Raises
    ------
    NotImplementedError
        If parts of the model are functions, of which is not known which columns they read; see
        `permutation_importance`.
    TypeError, ValueError
        If an argument is not as described.

    Notes
    -----
    What is added up by column:

    DecisionGraph
        For each node the decrease of the certificate: that of the mean exponential loss of the
        rows that arrive, under the answers assumed in training, times their share of the weight
        (`reach`). A node at which it does not fall counts nothing. Of a node that reads several
        columns each gets a share: of a projection, by ``|coefficient| * spread`` if X is given,
        else the same; of a separator, by the width of the range of its sum of stumps.
    Tree, RandomForest
        For each split the decrease of weight times impurity, by the criterion of the fit; of a
        forest the mean of the shares in each tree.
    GradientBoostingModel
        The mean of the shares in each tree, by how much the tree has lowered the training loss.
    ProbitTree, SubaggedProbitTrees
        The decrease of the weighted loss -ln Phi(Y f): from a constant at each node to constants
        at its children, by the column that is compared, and from a constant at each leaf to the
        functions of the leaf, in which the columns share by ``|slope| * spread``. Of several
        trees the mean, by their votes.
    LinearModel
        ``|coefficient| * spread``; without X the spread is `scale`, the largest distance from
        the center in training.
    ProbitModel
        With X, ``|slope| * spread``. No spread is known without: the decrease of the risk, by
        the column of each step.
    Bagging, OneVsRest, WeightedVote
        The mean over the members, by the sizes of their votes; members that have gained nothing
        do not count.

    This is measured on the training data and biased. A feature of many different values offers
    many cuts, the best of which lowers the impurity even where the feature says nothing of the
    class; so features of many values look important beside those of few, the more so the deeper
    the tree. Of features that say the same, the one that happens to be chosen gets all. What
    matters for new rows is measured by `permutation_importance`.

    References
    ----------
    .. [1] C. Strobl, A.-L. Boulesteix, A. Zeileis and T. Hothorn, "Bias in random forest
       variable importance measures", BMC Bioinformatics 8 (2007).

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[0, 5], [1, 5], [2, 5], [3, 6]], ["a", "a", "b", "b"]
    >>> pb.feature_importances(pb.fit_cart(X, y)).tolist()
    [1.0, 0.0]
    >>> pb.feature_importances(pb.fit_boosted_tree(X, [0, 1, 0, 0], max_nodes=3)).round(2).tolist()
    [1.0, 0.0]
    """
    check_model(model)
    if kind is not None:
        check_choice("kind", kind, KINDS)
        if not isinstance(model, Tree | RandomForest):
            raise TypeError(
                f"model: expected a Tree or a RandomForest for kind={kind!r}, got a "
                f"{type(model).__name__}; kind=None is what it has of its own"
            )
    if X is None:
        return model.importances(None)
    _reader(model)  # raises TypeError if there is none
    features = finite_columns(model, X)
    check_has_rows(len(features.values))
    return model.importances(features)


def permutation_importance(
    model: Model,
    X: TableLike,
    y: ArrayLike,
    *,
    n_repeats: int = 10,
    sample_weight: ArrayLike | None = None,
    rng: Seed = None,
) -> FloatArray:
    """Return by how much a model's error rises when a column is shuffled.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest, Bagging or other model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        Rows, better not those of training: there a model that has learnt noise needs the columns
        in which it has found it. Functions in a model get them in the type in which they are given.
    y : array_like of shape (n,)
        Their labels, or targets of a regression.
    n_repeats : int
        How often each column is shuffled.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Shuffles.

    Returns
    -------
    ndarray of float64, shape (d, n_repeats)
        Rise of the share of rows misclassified, or of the mean squared error, by the model's
        columns. Of columns that say the same, each alone may be shuffled with little harm.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or `y` holds other labels than the model.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> tree = pb.fit_cart(X, X[:, 0] > 0)
    >>> rise = pb.inspection.permutation_importance(tree, X, X[:, 0] > 0, rng=0)
    >>> bool(rise[0].mean() > 0.4), float(rise[1].mean())
    (True, 0.0)
    """
    n_repeats = check_integer("n_repeats", n_repeats, min_value=1)
    generator = as_generator(rng)
    check_model(model)
    n, d, shuffled = _shuffled(model, X)
    if n == 0:
        raise ValueError("X: expected at least one row, got none")
    weights = as_weights(sample_weight, n)
    weights = None if weights is None else scaled_weights(weights)[0]
    truth = truth_for(model, y, n)

    def error(rows: object) -> float:
        predicted = predict(model, rows)
        with np.errstate(over="ignore"):
            average = float(np.average(row_errors(model, predicted, truth), weights=weights))
        if not np.isfinite(average):
            raise ValueError("model: expected predictions whose squared errors are finite")
        return average

    before = error(shuffled(0, np.arange(n)))
    rise = np.empty((d, n_repeats))
    for j in range(d):
        for k in range(n_repeats):
            rise[j, k] = error(shuffled(j, generator.permutation(n))) - before
    return rise


def _shuffled(
    model: Model, X: TableLike
) -> tuple[int, int, Callable[[int, NDArray[np.integer]], Any]]:
    """Return the number of rows and columns, and what gives the rows with one column in an order.

    Functions get rows as they are given, other models the numbers of their columns.
    """
    if not reads_columns(model):
        matched = match_rows(_reader(model), X)
        return matched.n_rows, matched.n_features, partial(with_shuffled, matched.source)
    features = finite_columns(model, X)
    values, changed = copied(features.values), 0
    # Of categories these are level numbers, which are matched by what they stand for.
    rows = values if features.table is None else replace(features, values=values)

    def shuffled(column: int, order: NDArray[np.integer]) -> Any:
        nonlocal changed
        values[:, changed] = features.values[:, changed]
        values[:, column], changed = features.values[order, column], column
        return rows

    return *values.shape, shuffled


def _reader(model: Model) -> Any:
    """Return the model, or of several members one, that knows the columns of training."""
    if not isinstance(model, Ensemble):
        return model
    for member in model.models:
        if not is_foreign(member):
            return _reader(member)
    raise TypeError(f"model: expected one that knows the columns of its training, got {model!r}")
