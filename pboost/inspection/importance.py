"""Feature importances from training or by permutation."""

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
from pboost.models.evaluate.match_input import finite_columns, match_rows, reads_columns
from pboost.models.random_forest import RandomForest
from pboost.models.single_tree import Tree
from pboost.values import FloatArray, Seed, TableLike, as_generator, check_choice, check_integer

#: Values of the option `kind` other than the default.
ImportanceKind: TypeAlias = Literal["impurity"]
KINDS: tuple[ImportanceKind, ...] = get_args(ImportanceKind)


def feature_importances(
    model: Model, kind: ImportanceKind | None = None, *, X: TableLike | None = None
) -> FloatArray:
    """Return the importance of each feature in the training data.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest or another model
        A fitted model.
    kind : {None, "impurity"}
        By default, each kind of model has its own importance, see Notes. "impurity" is accepted for
        trees and forests only, where it is the default.
    X : array_like of shape (n, d), or data frame, optional
        Rows that determine the spreads (standard deviations) of the features. By default, spreads
        stored in the model are used.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        Nonnegative importances that sum to 1, or all zeros if the model has no split that lowers
        the loss.

    Raises
    ------
    NotImplementedError
        If base learners of the model are functions of a row, since the features that they use are
        not known. Use `permutation_importance` instead.
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    The importance of a feature is the sum of:

    DecisionGraph
        The decrease of the certificate at each node. This is the decrease of the mean exponential
        loss at the node, times the share of the weight that reaches the node under the observation
        model (see `reach`). Nodes without a decrease are ignored. The decrease at a node with
        several features is divided among them. For a projection, the parts are proportional to
        ``|coefficient| * spread`` if X is passed, else equal. For a separator, they are
        proportional to the range of each feature's sum of stumps.
    Tree, RandomForest
        The weighted decrease of the impurity at each split. For a forest, importances are averaged
        over the trees.
    GradientBoostingModel
        The mean of the importances of the trees, weighted by the decrease of the training loss.
    ProbitTree, SubaggedProbitTrees
        The decrease of the weighted loss -ln Phi(Y f). The decrease from the constant of a node to
        the constants of its children is assigned to the feature of the split. The decrease from the
        constant of a leaf to its linear functions is divided in proportion to ``|slope| * spread``.
        With several trees, this is the mean weighted by their votes.
    LinearModel
        ``|coefficient| * spread``. Without X, the spread is `scale`, the largest distance from the
        center in training.
    ProbitModel
        ``|slope| * spread`` if X is passed. Without X the spreads are not known, and the decrease
        of the risk in each step is assigned to the feature of the step.
    Bagging, OneVsRest, WeightedVote
        The mean over the base learners, weighted by their votes. Base learners without splits
        are ignored.

    These importances are biased, because they are computed on the training data. A feature with
    many distinct values offers many thresholds, and the best of them lowers the impurity even if
    the feature is unrelated to the target. Features with many values therefore look more important
    than features with few, especially in deep trees. If features are redundant, the one that
    happens to be selected gets all the importance. Use `permutation_importance` to measure the
    importance for predictions on new rows.

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
                f"{type(model).__name__}; pass kind=None"
            )
    if X is None:
        return model.importances(None)
    _reader(model)  # raises TypeError if the model does not store its features
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
    """Return the increase of a model's error when a feature is shuffled.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest, Bagging or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        Rows, preferably not the training rows, on which an overfitted model depends on irrelevant
        features. Base learners that are functions of a row receive rows of the same type.
    y : array_like of shape (n,)
        Classes, or targets for regression.
    n_repeats : int
        Number of times that each feature is shuffled.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for shuffling.

    Returns
    -------
    ndarray of float64, shape (d, n_repeats)
        Increase of the misclassification rate, or of the mean squared error, for each feature. For
        redundant features the increase is small, because each is shuffled alone.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, or `y` contains a class that the model does not have.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> tree = pb.fit_cart(X, X[:, 0] > 0)
    >>> increase = pb.inspection.permutation_importance(tree, X, X[:, 0] > 0, rng=0)
    >>> print(increase.mean(axis=1).round(2))
    [0.5 0. ]
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
    """Return the numbers of rows and features, and a function that shuffles one feature.

    Models that use functions of a row receive rows in the user's type. Other models receive
    float arrays.
    """
    if not reads_columns(model):
        matched = match_rows(_reader(model), X)
        return matched.n_rows, matched.n_features, partial(with_shuffled, matched.source)
    features = finite_columns(model, X)
    values, changed = copied(features.values), 0
    # Category codes are matched to the categories of the model through the table.
    rows = values if features.table is None else replace(features, values=values)

    def shuffled(column: int, order: NDArray[np.integer]) -> Any:
        nonlocal changed
        values[:, changed] = features.values[:, changed]
        values[:, column], changed = features.values[order, column], column
        return rows

    return *values.shape, shuffled


def _reader(model: Model) -> Any:
    """Return the model or one of its base learners that stores the training features."""
    if not isinstance(model, Ensemble):
        return model
    for member in model.models:
        if not is_foreign(member):
            return _reader(member)
    raise TypeError(f"model: expected a model that stores its training features, got {model!r}")
