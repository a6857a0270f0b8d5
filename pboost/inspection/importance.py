"""How much a model's features matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.blocks import copied
from pboost.data.check_xy import as_targets, as_weights, check_finite, class_codes, scaled_weights
from pboost.models.base import Model, check_model, predict
from pboost.models.ensembles import Bagging, Ensemble, is_foreign
from pboost.models.forest import Forest
from pboost.models.new_rows import match_names
from pboost.models.tree_sum import StagewiseModel
from pboost.models.trees import LEAF, Tree, tree_only
from pboost.values import FloatArray, Seed, as_generator, check_choice, check_integer

#: Halves the exponents of products that would overflow.
FAR = 540


def feature_importances(tree: Tree | Forest, kind: str = "impurity") -> FloatArray:
    """Return how much of the tree's gain each feature's splits bring.

    Parameters
    ----------
    tree : Tree or Forest
        A fitted tree, or forest, of which the mean over the trees is returned.
    kind : {"impurity"}
        The decrease of weight times impurity, summed over the splits of each feature.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        Adding up to 1; all 0 where nothing is gained. A number for each column of the training
        data, also where the tree reads few of very many.

    Notes
    -----
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
    >>> tree = pb.fit_cart([[0, 5], [1, 5], [2, 5], [3, 6]], ["a", "a", "b", "b"])
    >>> pb.feature_importances(tree).tolist()
    [1.0, 0.0]
    """
    check_choice("kind", kind, ("impurity",))
    if isinstance(tree, Forest):
        total = np.zeros(tree.n_features)  # not an array for each tree
        for one in tree:
            total += feature_importances(one, kind)
        return total / len(tree)
    inner = np.flatnonzero(tree_only(tree).feature != LEAF)
    with np.errstate(over="ignore"):
        risk = tree.weight * tree.impurity
        if not np.isfinite(risk.sum()):  # the unit does not matter
            risk = np.ldexp(tree.weight, -FAR) * np.ldexp(tree.impurity, -FAR)
    gain = np.maximum(risk[inner] - risk[tree.children[inner]].sum(axis=1), 0.0)
    sums: FloatArray = np.bincount(tree.feature[inner], gain, tree.n_features).astype(np.float64)
    total = sums.sum()
    return sums / total if total > 0 else sums


def permutation_importance(
    model: Model,
    X: Any,
    y: ArrayLike,
    *,
    repeats: int = 10,
    sample_weight: ArrayLike | None = None,
    rng: Seed = None,
) -> FloatArray:
    """Return by how much a model's error rises when a column is shuffled.

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, Bagging or other model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        Rows, better not those of training: there a model that has learnt noise needs the columns
        in which it has found it.
    y : array_like of shape (n,)
        Their labels, or targets of a regression.
    repeats : int
        How often each column is shuffled.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.
    rng : None, int or numpy.random.Generator
        Shuffles.

    Returns
    -------
    ndarray of float64, shape (d, repeats)
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
    >>> rise = pb.permutation_importance(tree, X, X[:, 0] > 0, rng=0)
    >>> bool(rise[0].mean() > 0.4), float(rise[1].mean())
    (True, 0.0)
    """
    repeats = check_integer("repeats", repeats, least=1)
    generator = as_generator(rng)
    check_model(model)
    reader = _reader(model)
    features = match_names(reader.feature_names, reader.n_features, X)
    check_finite(features)
    values = copied(features.values)
    n = len(values)
    if n == 0:
        raise ValueError("X: expected at least one row, got none")
    weights = as_weights(sample_weight, n)
    weights = None if weights is None else scaled_weights(weights)[0]
    numbers = isinstance(model, Tree | Forest | Bagging | StagewiseModel) and model.labels is None
    if numbers:
        truth: NDArray[Any] = as_targets(y, n)
    else:
        assert model.labels is not None
        truth = model.labels[class_codes(model.labels, y, n)]

    def error() -> float:
        found = predict(model, values)
        with np.errstate(over="ignore"):
            loss = (found - truth) ** 2 if numbers else found != truth
            average = float(np.average(loss, weights=weights))
        if not np.isfinite(average):
            raise ValueError("model: expected predictions whose squared errors are finite")
        return average

    before = error()
    rise = np.empty((values.shape[1], repeats))
    for j in range(values.shape[1]):
        column = values[:, j].copy()
        for k in range(repeats):
            values[:, j] = generator.permutation(column)
            rise[j, k] = error() - before
        values[:, j] = column
    return rise


def _reader(model: Any) -> Any:
    """Return the model, or of several members one, that knows the columns of training."""
    if not isinstance(model, Ensemble):
        return model
    for member in model.models:
        if not is_foreign(member):
            return _reader(member)
    raise TypeError(f"model: expected one that knows the columns of its training, got {model!r}")
