"""Top-down induction of decision trees by an impurity: generic greedy boosting of constants."""

from __future__ import annotations

import dataclasses
from typing import Any

from numpy.typing import ArrayLike

from pboost.boosting.boosted_tree import fit_boosted_tree
from pboost.data.training import prepare
from pboost.growth.impurity_search import TopDownTree
from pboost.growth.permissible import Impurity, check_permissible
from pboost.growth.step import GROWTHS, Callback, TreeLimits, check_target
from pboost.models.graph import DecisionGraph
from pboost.values import INT32_MAX, check_callback, check_choice, check_integer, check_size
from pboost.weak import stump
from pboost.weak.learners import CRITERIA
from pboost.weak.votes import vote_rule


def fit_topdown_tree(
    X: Any,
    y: ArrayLike,
    *,
    nodes: int | None,
    impurity: str | Impurity = "kearns-mansour",
    growth: str = "largest-bound",
    target_certificate: float | None = None,
    max_depth: int | None = None,
    min_weight: float = 0.0,
    min_count: int = 1,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    sample_weight: ArrayLike | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
) -> DecisionGraph:
    """Fit a decision tree top down: every split minimises an impurity, a permissible function.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features, finite numbers.
    y : array_like of shape (n,)
        Labels, any two values.
    nodes : int or None
        Greatest number of splits; None grows until no leaf can be split.
    impurity : {"kearns-mansour", "gini", "entropy", "error"} or callable
        A function f of the share z of one class at a leaf: ``2 sqrt(z (1 - z))``, ``4 z (1 - z)``,
        the entropy in bits, ``2 min(z, 1 - z)``, or one of your own, which takes and returns an
        array. It must be concave and symmetric about 1/2 with f(0) = f(1) = 0 and f(1/2) = 1. A
        split minimises f over its two sides, weighted by their sample weights. A function of your
        own is evaluated in Python, on all cuts of a leaf at once: several times slower.
    growth : {"largest-bound", "largest-error", "look-ahead", "breadth-first"}
        Which leaf is split next; see `fit_boosted_tree`.
    target_certificate : float, optional
        Stop as soon as the certificate is not above this, in (0, 1).
    max_depth : int or None
        Greatest number of splits on a path.
    min_weight : float
        Least share, 0 to 0.5, of the leaf's weight on either side of a cut.
    min_count : int
        Least number of training rows on either side.
    smoothing : float
        See `fit_boosted_tree`. With 0 a leaf's decision value is half the log odds of its rows
        whatever splits lead there (Theorem 2 of the source); clipped where it holds one class.
    learning_rate : float
        Factor in (0, 1] of every vote.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the model of k copies of the row.
    n_threads : int or None
        Threads; None: as many as the work is worth. The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each split with their number so far and a
        `pboost.growth.step.StepRecord`; returning True stops.

    Returns
    -------
    DecisionGraph
        Nodes in the order in which they were opened. With "kearns-mansour" it is the tree of
        `fit_boosted_tree`, whose certificate is this impurity of its leaves.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument, and for an
        impurity that is not permissible the condition and the place.

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
    >>> model = pb.fit_topdown_tree(X, y, nodes=3, impurity=lambda z: (4 * z * (1 - z)) ** 0.75)
    >>> pb.predict(model, X).tolist()
    [0, 1, 1, 0]
    """
    settings: dict[str, Any] = {"builder": "fit_topdown_tree"}
    weak = stump(min_weight=min_weight, min_count=min_count)
    if not callable(impurity):
        criterion = check_choice("impurity", impurity, CRITERIA)
        model = fit_boosted_tree(
            X,
            y,
            nodes=nodes,
            weak=dataclasses.replace(weak, criterion=criterion),
            growth=growth,
            target_certificate=target_certificate,
            max_depth=max_depth,
            smoothing=smoothing,
            learning_rate=learning_rate,
            sample_weight=sample_weight,
            n_threads=n_threads,
            callback=callback,
        )
        settings = {**model.settings, **settings, "impurity": criterion}
        return dataclasses.replace(model, settings=settings)
    check_permissible(impurity)
    max_nodes = INT32_MAX if nodes is None else check_size("nodes", nodes)
    depth = INT32_MAX if max_depth is None else check_integer("max_depth", max_depth, least=1)
    target = check_target(target_certificate)
    limits = TreeLimits(max_nodes, depth, check_choice("growth", growth, GROWTHS), target)
    rule = vote_rule("domain", smoothing, learning_rate)
    check_callback(callback)
    data = prepare(X, y, sample_weight, weak, n_threads)
    settings |= {
        "impurity": getattr(impurity, "__qualname__", type(impurity).__qualname__),
        "nodes": nodes,
        "growth": growth,
        "target_certificate": target_certificate,
        "max_depth": max_depth,
        "smoothing": rule.smoothing,
        "learning_rate": rule.learning_rate,
        "weak": {key: value for key, value in weak.settings().items() if key != "criterion"},
    }
    tree = TopDownTree(data, impurity, weak.min_weight, weak.min_count, rule, limits)
    return tree.model(settings, tree.grow(callback))
