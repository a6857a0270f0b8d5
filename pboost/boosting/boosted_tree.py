"""Boosted trees: decision graphs whose exits never join."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from pboost.boosting.fit import GraphFit, GraphOptions, Learning
from pboost.data.training import reads_columns
from pboost.growth.impurity_search import ImpurityStump, ImpurityTree
from pboost.growth.soft_tree import SoftTree
from pboost.growth.step import GROWTHS, GrowthOrder, TreeLimits, check_target
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

#: What is said of a tree without an end.
NO_END = (
    "max_nodes: expected a number, got None: a tree of uncertain answers has always an exit that can "
    "be split; or give max_depth"
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
    """Fit a boosted decision tree: every open exit gets its own next weak classifier.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A test sends rows whose value is missing to the exit that lowers the criterion
        most; where no training row at the node was missing, to the exit of larger reach. A category
        is split by a set of its levels. For weak learners that are functions: rows of anything.
    y : array_like of shape (n,), optional
        Labels. Of more than two values exits have a vote for each, see `fit_adaboost`.
    max_nodes : int or None
        Greatest number of weak classifiers; None grows until no exit can be split, which with
        uncertain answers takes a `max_depth`.
    weak_learner : Weak
        The weak learner, from `pboost.weak`. With exact answers criteria are taken on the weight
        that reaches a node, as in CART, else on the boosted weights; "kearns_mansour" minimises
        the certificate either way.
    observation : Observation
        How sure answers are, from `pboost.observation`. With any but exact answers every node is
        trained on all rows.
    growth : {"largest_bound", "largest_error", "look_ahead", "breadth_first"}
        Which open exit is split next: that of the largest part of the certificate, that of the
        largest expected training error, that whose best split lowers the certificate most, or
        the one opened first.
    target_certificate : float, optional
        Stop as soon as the certificate is not above this, in (0, 1).
    max_depth : int or None
        Greatest number of weak classifiers evaluated for a row.
    smoothing : float
        Share of the mass at the node, 0 to 1, that is added to each class mass before the log
        odds are taken. 0 gives leaves their textbook votes ``0.5 ln(P+/P-)``, clipped. Of J > 2
        labels it is a share of 1/J of the mass at the root.
    learning_rate : float
        Factor in (0, 1] of every vote.
    **options
        Those of `GraphOptions`.

    Returns
    -------
    DecisionGraph
        Nodes in the order in which they were opened.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.
    NotImplementedError
        If `validation` is given with weak learners that are functions.
    RuntimeError
        If a function of yours fails, a weak learner or an estimator; the message says which weak
        classifier.

    References
    ----------
    .. [1] M. Kearns and Y. Mansour, "On the boosting ability of top-down decision tree learning
       algorithms", J. Comput. Syst. Sci. 58 (1999).

    Examples
    --------
    Parity of two bits, which no single split improves:

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
