"""Matryoshki: trees whose nodes are trees of weak classifiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.boosting.graph_fit import GraphFit, GraphOptions, Learning
from pboost.data.training_data import reads_columns
from pboost.growth.graph_growth import GROWTHS as GROWTHS_OF_TREES
from pboost.growth.graph_growth import TreeLimits
from pboost.growth.matryoshki import COLLECTS, JOINS, Collect, GreedyGrowth, Join, NestedGrowth
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation
from pboost.values import INT32_MAX, check_choice, check_integer, shown, vote_rule
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.stump_search import Stump, stump_search

MatryoshkaGrowth: TypeAlias = Literal["nested", "greedy"]
GROWTHS: tuple[MatryoshkaGrowth, ...] = get_args(MatryoshkaGrowth)
#: Default shape and learning rate for each value of `join`.
DEFAULTS = {"sign": ((8, 8), 1.0), "all": ((8, 30), 0.3)}
#: Default shape of chains for more than two classes.
SHAPE_OF_MANY = (31, 30)
#: Default number of weak classifiers of greedy growth.
DEFAULT_NODES = 128
#: Maximum number of levels with more than two classes.
LEVELS_OF_MANY = 2
#: Maximum number of levels of a shape; each level takes three nested calls.
MOST_LEVELS = 100
_DEFAULT_WEAK = Stump()
_EXACT = Exact()


@reads_columns(stump_search)
@builder
def fit_matryoshka(
    X: Any,
    y: ArrayLike | None = None,
    *,
    shape: Sequence[int] | None = None,
    growth: MatryoshkaGrowth = "nested",
    max_nodes: int | None = None,
    collect: Collect = "additive",
    join: Join = "sign",
    weak_learner: Weak = _DEFAULT_WEAK,
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    learning_rate: float | None = None,
    **options: Unpack[GraphOptions],
) -> DecisionGraph:
    """Fit a matryoshka: a tree whose nodes are trees of weak classifiers, nested to any depth.

    When an inner tree is complete, its open exits are merged into two, by the sign of the votes
    inside the tree. The next classifiers are trained on all rows that reach a merged exit. The
    model is a decision graph whose accuracy and prediction cost lie between AdaBoost and a tree.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. Missing values go to the exit that gives the better split, or to the exit with
        more training weight if the node had no missing values in training. Categorical features are
        split by a set of categories. With a weak learner that is a function, X can be any sequence
        of rows.
    y : array_like of shape (n,), optional
        Class labels with two distinct values. More classes are possible with ``join="all"`` and a
        shape of at most two levels; each exit then has one vote per class, see `fit_adaboost`.
    shape : sequence of int, optional
        With ``growth="nested"``: the number of nodes of the trees of each level, innermost first,
        for at most 100 levels. The product is the maximum number of weak classifiers. Default: (8,
        8), or with ``join="all"`` (8, 30), or (31, 30) for more than two classes.
    growth : {"nested", "greedy"}
        "nested" builds the given shape. "greedy" has no shape: after each weak classifier it merges
        the exits of the outermost subtree whose bound then decreases faster, see Notes. Both kinds
        always split the exit with the largest bound next.
    max_nodes : int, optional
        With ``growth="greedy"``: the maximum number of weak classifiers. Default: 128.
    collect : {"additive", "sign"}
        How the exits of an inner tree are merged. "additive" keeps the votes inside the tree and
        adds up the weights. "sign" turns the tree into a weak classifier whose output is the sign
        of its votes, and replaces them by two new votes.
    join : {"sign", "all"}
        With "all", the outermost trees form a chain, in which all open exits of a tree lead to the
        next tree. It needs ``growth="nested"``.
    weak_learner : Weak
        Weak learner from `pboost.weak`.
    observation : Observation
        Observation model from `pboost.observation` for uncertain split outcomes.
    smoothing : float
        Fraction of the weight at the node, from 0 to 1, that is added to each class weight before
        the log odds are computed. With J > 2 classes it is a fraction of the weight at the root of
        the tree, divided by J, and chains grow until the certificate is below 1e-9.
    learning_rate : float, optional
        Factor in (0, 1] by which each vote is multiplied. Default: 0.3 with ``join="all"``, else 1.
    validation : tuple or float, optional
        Validation set for early stopping: ``(X, y)``, ``(X, y, sample_weight)``, or a fraction in
        (0, 0.5] of the training rows, stratified by class. The first model with the lowest
        validation error is returned; ``record.validation`` has all errors. With
        ``collect="sign"``, errors are computed when growth has ended.
    callback : callable, optional
        Called as ``callback(step, record)`` after each weak classifier with the number of weak
        classifiers so far and a `pboost.growth.graph_growth.StepRecord`. Return True to stop. With
        ``growth="nested"``, the record has the votes and the certificate before trees are merged;
        with "greedy", after the merge.
    **options
        See `GraphOptions`.

    Returns
    -------
    DecisionGraph
        The nodes are in the order in which they were added.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid, or options are incompatible; the message names the
        argument.
    NotImplementedError
        If `validation` is given and the weak learner is a function.
    RuntimeError
        If a custom weak learner or an estimator fails; the message gives the weak classifier.

    Notes
    -----
    With ``join="all"``, `predict_proba` divides decision values by a temperature, as in
    `fit_adaboost`.

    An additive merge does not change the certificate. If the exit with the largest bound could be
    split at each step, the certificate is at most ``F(T_L, … F(T_1, rho))``. Here F is the bound of
    a tree, and rho is the factor of the worst weak classifier. If merged paths have different
    votes, the sign of their mean vote, weighted by reach, is used.

    Greedy growth maintains one tree of super-nodes, which are weak classifiers or merged subtrees.
    A subtree is a super-node and everything below it. Let T >= 2 be its number of weak classifiers,
    C(T) its certificate relative to the weight that enters it, and C(T - 1) the certificate before
    the last weak classifier. If the subtree has at least 3 open exits, these exits are merged if
    ``C(T) - C(T - 1) > bounds.rate_matryoshka(T, C(T))`` by more than 1e-12. The whole tree is
    checked first, then the subtrees around the last weak classifier from the outermost inward. At
    most one subtree is merged.

    References
    ----------
    .. [1] E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
       section 5; 5.4 and equations 12 to 14 for greedy growth.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = pb.fit_matryoshka(X, y, shape=(4, 4), observation=pb.observation.adatree2())
    >>> model.n_nodes
    16
    """
    check_choice("growth", growth, GROWTHS)
    check_choice("join", join, JOINS)
    sizes, size = check_sizes(growth, shape, max_nodes, join)
    check_choice("collect", collect, COLLECTS)
    rate = DEFAULTS[join][1] if learning_rate is None else learning_rate
    rule = vote_rule("domain", smoothing, rate)
    fit = GraphFit(
        X,
        y,
        options,
        Learning(weak_learner, observation, rule),
        growth=NestedGrowth if size is None else GreedyGrowth,
        votes_stay=collect == "additive",
        two=_two(sizes, join, collect),
    )
    if shape is None and fit.data.problem.is_multiclass:
        sizes = SHAPE_OF_MANY
    settings = fit.settings(
        "fit_matryoshka",
        shape=list(sizes) or None,
        growth=growth,
        max_nodes=size,
        collect=collect,
        join=join,
    )
    total = math.prod(sizes) if size is None else size
    with fit.workers() as workers, fit.progress_callback(total, "nodes") as on_step:
        # Here the shape allows the number of classes; other shapes have raised an error.
        size_of_tree, rounds = (1, 1, *sizes)[-LEVELS_OF_MANY:]
        limits = TreeLimits(size_of_tree, INT32_MAX, GROWTHS_OF_TREES[0], -1.0)
        trees = fit.label_trees(workers, rounds, limits)
        if trees is not None:
            return fit.grown(trees, settings, on_step)
        observer = fit.observer(workers)
        size_options = (sizes, join) if size is None else (size,)
        return fit.grown(
            fit.growth(fit.data, observer, rule, collect, *size_options), settings, on_step
        )


def _two(sizes: tuple[int, ...], join: str, collect: str) -> str:
    """Return a text that names the options that support only two classes."""
    if join != "all":
        return f'with join={join!r} (join="all" allows more)'
    if len(sizes) > LEVELS_OF_MANY:
        return f"with a shape of {len(sizes)} levels (a shape of two levels allows more)"
    return "" if collect == "additive" else f"with collect={collect!r}"


def check_sizes(
    growth: str, shape: object, max_nodes: object, join: str
) -> tuple[tuple[int, ...], int | None]:
    """Return the shape for nested growth and the number of nodes for greedy growth."""
    if growth == "nested":
        if max_nodes is not None:
            raise ValueError(
                'max_nodes: expected None with growth="nested"; use shape, or growth="greedy"'
            )
        return _check_shape(DEFAULTS[join][0] if shape is None else shape), None
    if shape is not None:
        raise ValueError(
            'shape: expected None with growth="greedy"; use max_nodes, or growth="nested"'
        )
    if join == "all":
        raise ValueError(
            'join: expected "sign" with growth="greedy", got "all"; use growth="nested"'
        )
    return (), check_integer(
        "max_nodes", DEFAULT_NODES if max_nodes is None else max_nodes, min_value=1
    )


def _check_shape(shape: Any) -> tuple[int, ...]:
    is_array = isinstance(shape, np.ndarray) and shape.ndim > 0
    if not (is_array or isinstance(shape, list | tuple)):
        raise TypeError(
            f"shape: expected a tuple with one size per level such as (4, 4), got {shown(shape)}"
        )
    if not 0 < len(shape) <= MOST_LEVELS:
        raise ValueError(
            f"shape: expected the sizes of 1 to {MOST_LEVELS} levels, got {len(shape)}"
        )
    return tuple(check_integer("shape", size, min_value=1) for size in shape)
