"""Fit functions that call `fit_boosted_tree` with preset options."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from numpy.typing import ArrayLike

from pboost.boosting.boosted_tree import fit_boosted_tree
from pboost.boosting.graph_fit import GrowthOptions
from pboost.data.columns.prebuilt import LEVEL_SMOOTHING
from pboost.data.row_source import RowOptions
from pboost.data.targets import CRITERIA, ClassCriterion
from pboost.growth.graph_growth import GrowthOrder
from pboost.growth.impurity_search import Impurity, by_impurity
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation
from pboost.values import (
    check_choice,
    check_instance,
    check_integer,
)
from pboost.values.options import RunOptions, builder
from pboost.weak import separator, stump

_EXACT = Exact()


class TopdownOptions(RowOptions, RunOptions, total=False):
    """The options that `fit_topdown_tree` shares with other fit functions."""


@builder
def fit_oblique_tree(
    X: object,
    y: ArrayLike | None = None,
    *,
    max_nodes: int | None = None,
    max_depth: int | None = 4,
    n_stumps: int = 50,
    growth: GrowthOrder = "breadth_first",
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    **options: Unpack[GrowthOptions],
) -> DecisionGraph:
    """Fit an oblique tree (BoostODT). Each node splits by the sign of a sum of boosted stumps.

    This function is `fit_boosted_tree` with ``weak_learner=pboost.weak.separator(n_stumps)``;
    `separator` has more options.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features. Each stump of a separator sends missing values to the branch with the lower
        criterion, or to the branch with the larger weight if the training data had no missing
        values. Categorical features are one-hot encoded.
    y : array_like of shape (n,), optional
        Class labels with two distinct values.
    max_nodes : int or None
        Maximum number of nodes. By default, only the depth limits the number.
    max_depth : int or None
        Maximum number of separators evaluated for a row.
    n_stumps : int
        Maximum number of stumps in a separator.
    growth : {"breadth_first", "largest_bound", "largest_error", "look_ahead"}
        Which open exit is split next; see `fit_boosted_tree`.
    observation : Observation
        Observation model of the separators' outputs, from `pboost.observation`; it must not be
        gaussian.
    smoothing : float
        Share of the weight of the node that is added to each class weight when the vote of an exit
        is computed. The smoothing of the stumps in separators is always 1e-3.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for the validation set and for ``observation=sampled()``.
    validation : tuple or float, optional
        Validation set for early stopping and for model selection; see `fit_boosted_tree`.
    **options
        Options of `GrowthOptions`.

    Returns
    -------
    DecisionGraph
        The fitted tree; see `fit_boosted_tree`.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.

    Notes
    -----
    The paper sets T2 = 4, "as an observation is classified by 5 nodes (including leaves)". This is
    interpreted as a tree of depth 4 with up to 15 separators, because only this interpretation
    reproduces the published errors; see the page *Errata of the sources*. Use ``max_nodes=4,
    max_depth=None`` for the other interpretation.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an application to
       boosting oblique decision trees", IJCAI 2007, sections 4.3 and 5.

    Examples
    --------
    This tree solves the second MONK's problem without training errors:

    >>> import pboost as pb
    >>> X, y = pb.datasets.monks(2)
    >>> encoded, _ = pb.data.one_hot(X, range(6))
    >>> model = pb.fit_oblique_tree(encoded, y)
    >>> error = (pb.predict(model, encoded) != y).mean()
    >>> print(f"{model.n_nodes} nodes, training error {error:.3f}")
    3 nodes, training error 0.000
    """
    max_nodes = None if max_nodes is None else check_integer("max_nodes", max_nodes, min_value=1)
    check_instance("observation", Observation, observation)
    if max_nodes is None and max_depth is None and not observation.is_exact:
        raise ValueError(
            "max_nodes: expected a number, got None: with an observation model that is not exact, "
            "this tree grows forever; pass max_nodes or max_depth"
        )
    model = fit_boosted_tree(
        X,
        y,
        max_nodes=max_nodes,
        weak_learner=separator(n_stumps),
        observation=observation,
        growth=growth,
        max_depth=max_depth,
        smoothing=smoothing,
        **options,
    )
    return replace(model, settings={**model.settings, "builder": "fit_oblique_tree"})


@builder
def fit_topdown_tree(
    X: object,
    y: ArrayLike | None = None,
    *,
    max_nodes: int | None = 31,
    impurity: ClassCriterion | Impurity = "kearns_mansour",
    growth: GrowthOrder = "largest_bound",
    target_certificate: float | None = None,
    max_depth: int | None = None,
    min_weight_fraction: float = 0.0,
    min_samples_leaf: int = 1,
    categorical_smoothing: float = LEVEL_SMOOTHING,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    **options: Unpack[TopdownOptions],
) -> DecisionGraph:
    """Fit a decision tree top down, minimizing an impurity at every split.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A split sends missing values to the exit with the lower criterion, or to the exit
        with the larger reach if no training row at the node had a missing value. A split on a
        categorical feature divides the categories into two sets.
    y : array_like of shape (n,), optional
        Class labels with two distinct values.
    max_nodes : int or None
        Maximum number of splits. With None, the tree grows until no leaf can be split.
    impurity : {"kearns_mansour", "gini", "entropy", "error"} or callable
        The impurity as a function f of the share z of one class at a leaf: ``2 sqrt(z (1 - z))``,
        ``4 z (1 - z)``, the entropy in bits, or ``2 min(z, 1 - z)``. A custom function takes and
        returns an array. It must be concave and symmetric about 1/2, with f(0) = f(1) = 0 and
        f(1/2) = 1. A split minimizes the weighted sum of f over both branches. A custom function is
        called from Python for all thresholds of a leaf at once. It is several times slower than a
        named impurity.
    growth : {"largest_bound", "largest_error", "look_ahead", "breadth_first"}
        Which leaf is split next; see `fit_boosted_tree`.
    target_certificate : float, optional
        Stop as soon as the certificate is at most this value, in (0, 1).
    max_depth : int or None
        Maximum number of splits on a path.
    min_weight_fraction : float
        Minimum share, from 0 to 0.5, of the weight of a leaf in each branch of a split.
    min_samples_leaf : int
        Minimum number of training rows in each branch.
    categorical_smoothing : float
        Smoothing of differences between categories, which avoids splits on random differences; see
        `weak.stump`.
    smoothing : float
        See `fit_boosted_tree`. With 0, the decision value of a leaf is half the log odds of its
        rows, independent of the splits that lead to it (Theorem 2 of [1]_); the value is clipped if
        the leaf contains a single class.
    learning_rate : float
        Factor in (0, 1] by which each vote is multiplied.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; a row of weight k counts as k copies of the row.
    callback : callable, optional
        Called as ``callback(step, record)`` after each split, with the number of splits so far and
        a `pboost.growth.graph_growth.StepRecord`. If it returns True, fitting stops.
    **options
        Options of `TopdownOptions`.

    Returns
    -------
    DecisionGraph
        The fitted tree, with nodes in the order of creation. With "kearns_mansour", the tree is the
        same as with `fit_boosted_tree`, and the certificate is the impurity of the leaves.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid. The message names the argument; for an impurity that is
        not permissible, it names the violated condition and the value of z.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), equation 3 and Theorem 2.
    .. [2] M. Kearns and Y. Mansour, "On the boosting ability of top-down decision tree learning
       algorithms", J. Comput. Syst. Sci. 58 (1999).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 0]
    >>> model = pb.fit_topdown_tree(X, y, max_nodes=3, impurity=lambda z: (4 * z * (1 - z)) ** 0.75)
    >>> pb.predict(model, X).tolist()
    [0, 1, 1, 0]
    """
    weak = stump(
        min_weight_fraction=min_weight_fraction,
        min_samples_leaf=min_samples_leaf,
        categorical_smoothing=categorical_smoothing,
    )
    if callable(impurity):
        name = getattr(impurity, "__qualname__", type(impurity).__qualname__)
        weak = by_impurity(weak, impurity)
    else:
        name = check_choice("impurity", impurity, CRITERIA)
        weak = replace(weak, criterion=name)
    model = fit_boosted_tree(
        X,
        y,
        max_nodes=max_nodes,
        weak_learner=weak,
        growth=growth,
        target_certificate=target_certificate,
        max_depth=max_depth,
        smoothing=smoothing,
        learning_rate=learning_rate,
        **options,
    )
    settings = {**model.settings, "builder": "fit_topdown_tree", "impurity": name}
    if callable(impurity):
        del settings["observation"]
    return replace(model, settings=settings)
