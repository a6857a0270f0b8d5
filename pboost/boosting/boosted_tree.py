"""Boosted decision trees, which are decision graphs without merged exits."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from pboost.boosting.graph_fit import GraphFit, GraphOptions, Learning
from pboost.data.training_data import reads_columns
from pboost.growth.graph_growth import GROWTHS, GrowthOrder, TreeLimits, check_target
from pboost.growth.impurity_search import ImpurityStump, ImpurityTree
from pboost.growth.soft_tree import SoftTree
from pboost.growth.tree import BoostedArrays, grow_tree
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation
from pboost.values import (
    INT32_MAX,
    check_choice,
    check_instance,
    check_integer,
    vote_rule,
)
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.stump_search import ColumnLearner, Stump, stump_search

#: Error message for a tree whose growth would never end.
NO_END = (
    "max_nodes: expected a number with uncertain observations, got None; without a limit this "
    "tree grows forever, so set max_nodes or max_depth"
)
_DEFAULT_WEAK = Stump()
_EXACT = Exact()


@reads_columns(stump_search)
@builder
def fit_boosted_tree(
    X: object,
    y: ArrayLike | None = None,
    *,
    max_nodes: int | None = 31,
    weak_learner: Weak = _DEFAULT_WEAK,
    observation: Observation = _EXACT,
    growth: GrowthOrder = "largest_bound",
    target_certificate: float | None = None,
    max_depth: int | None = None,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    **options: Unpack[GraphOptions],
) -> DecisionGraph:
    """Fit a boosted decision tree.

    Each open exit of the tree is split by its own weak classifier, up to `max_nodes`.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. Missing values go to the exit that gives the better split, or to the exit with
        more training weight if the node had no missing values in training. Categorical features are
        split by a set of categories. With a weak learner that is a function, X can be any sequence
        of rows.
    y : array_like of shape (n,), optional
        Class labels. With more than two classes each exit has one vote per class, see
        `fit_adaboost`.
    max_nodes : int or None
        Maximum number of weak classifiers. None means no limit; with uncertain observations you
        must then set `max_depth`.
    weak_learner : Weak
        Weak learner from `pboost.weak`. With exact observations its criterion uses the original
        weights at a node, as in CART, otherwise the boosted weights. The default criterion
        "kearns_mansour" minimizes the certificate in both cases.
    observation : Observation
        Observation model from `pboost.observation` for uncertain split outcomes. Unless it is
        exact, every node is trained on all rows.
    growth : {"largest_bound", "largest_error", "look_ahead", "breadth_first"}
        Open exit to split next: the exit with the largest part of the certificate, with the largest
        expected training error, with the split that lowers the certificate most, or the oldest.
    target_certificate : float, optional
        Stop when the certificate is at most this number in (0, 1).
    max_depth : int or None
        Maximum number of weak classifiers on a path. None means no limit.
    smoothing : float
        Fraction of the weight at the node, from 0 to 1, that is added to each class weight before
        the log odds are computed. 0 gives the textbook votes ``0.5 ln(P+/P-)``, clipped. With J > 2
        classes it is a fraction of the weight at the root, divided by J.
    learning_rate : float
        Factor in (0, 1] by which each vote is multiplied.
    **options
        See `GraphOptions`.

    Returns
    -------
    DecisionGraph
        The nodes are in the order in which they were added.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.
    NotImplementedError
        If `validation` is given and the weak learner is a function.
    RuntimeError
        If a custom weak learner or an estimator fails; the message gives the weak classifier.

    References
    ----------
    .. [1] M. Kearns and Y. Mansour, "On the boosting ability of top-down decision tree learning
       algorithms", J. Comput. Syst. Sci. 58 (1999).

    Examples
    --------
    The XOR of two features, which no single split improves:

    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> model = pb.fit_boosted_tree(X, [0, 1, 1, 0], max_nodes=3)
    >>> pb.predict(model, X).tolist()
    [0, 1, 1, 0]
    """
    size = INT32_MAX if max_nodes is None else check_integer("max_nodes", max_nodes, min_value=1)
    check_choice("growth", growth, GROWTHS)
    target = check_target(target_certificate)
    depth = INT32_MAX if max_depth is None else check_integer("max_depth", max_depth, min_value=1)
    rule = vote_rule("domain", smoothing, learning_rate)
    is_exact = check_instance("observation", Observation, observation).is_exact
    if max_nodes is None and max_depth is None and not is_exact:
        raise ValueError(NO_END)
    learning = Learning(weak_learner, observation, rule)
    fit = GraphFit(X, y, options, learning, growth=BoostedArrays if is_exact else SoftTree)
    settings = fit.settings(
        "fit_boosted_tree",
        max_nodes=max_nodes,
        observation=observation.settings(),
        growth=growth,
        target_certificate=target_certificate,
        max_depth=max_depth,
    )
    limits = TreeLimits(size, depth, growth, target)
    with fit.workers() as workers, fit.progress_callback(max_nodes, "nodes") as on_step:
        tree = fit.label_trees(workers, 1, limits)
        if tree is not None:
            return fit.grown(tree, settings, on_step)
        if isinstance(weak_learner, ImpurityStump):
            impurity_tree = ImpurityTree(fit.data, weak_learner, rule, limits)
            return impurity_tree.model(settings, impurity_tree.grow(on_step))
        is_plain = is_exact and options["feature_costs"] is None
        if is_plain and isinstance(weak_learner, ColumnLearner):
            arrays = fit.growth(fit.data, fit.learner, rule, limits)
            return fit.best(arrays.model(settings, grow_tree(arrays, workers, on_step)))
        soft = SoftTree if is_exact else fit.growth
        return fit.grown(soft(fit.data, fit.observer(workers), rule, limits), settings, on_step)
