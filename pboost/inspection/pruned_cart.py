"""A tree pruned by cross-validation."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.arguments import scaled_weights
from pboost.data.cart_training import CartProblem
from pboost.data.columns import BinnedColumns, SortedColumns
from pboost.data.features import as_features
from pboost.data.splits import deal
from pboost.models.node_walk import goes_right
from pboost.models.tree_nodes import LEAF
from pboost.models.trees import PruningTable, Tree
from pboost.trees.cart import fit_cart_problem, fit_tree
from pboost.trees.pruning import PruningPath, levels, link_prices, prune, prune_path
from pboost.values import (
    FloatArray,
    IntArray,
    as_generator,
    check_choice,
    check_integer,
    option_names,
    refuse_unknown,
)

RULES = ("min", "1se")
#: Those of the trees.
OPTIONS = tuple(inspect.getfullargspec(fit_cart_problem).kwonlyargs)


def fit_pruned_cart(
    X: Any,
    y: ArrayLike,
    *,
    folds: int = 10,
    rule: str = "min",
    rng: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    n_threads: int | None = None,
    **options: Any,
) -> Tree:
    """Fit a tree and prune it at the price of a leaf that cross-validation finds best.

    A tree is grown on all rows and its nested subtrees are found (`prune_path`). Each stands for
    the prices of a leaf for which it is the best; at the geometric mean of these, the trees grown
    without each of the folds are pruned, and tested on that fold.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features, finite numbers.
    y : array_like of shape (n,)
        Labels, of two or more different values; of a regression, finite numbers.
    folds : int
        Number of folds, 2 to the number of rows. Classes are dealt out evenly.
    rule : {"min", "1se"}
        "min": the subtree of least error, the smallest among equals. "1se": the smallest whose
        error is within one standard error of that.
    rng : None, int or numpy.random.Generator
        Shuffles the rows; also for `features_per_split`.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows, in training and in the errors.
    n_threads : int or None
        Threads; None: as many as the work is worth. The model does not depend on it.
    **options
        Options of `fit_cart`.

    Returns
    -------
    Tree
        ``tree.pruning`` is the table of prices, leaves, errors and standard errors.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984), sections 3.4 and 8.5.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = np.where(X[:, 0] > 0, 1.0, -1.0) + np.random.default_rng(1).normal(size=300)
    >>> tree = pb.fit_pruned_cart(X, y, task="regression", rule="1se", rng=0)
    >>> tree.n_leaves, round(float(tree.threshold[0]), 1)
    (2, -0.0)
    """
    check_choice("rule", rule, RULES)
    meant = [*OPTIONS, *option_names(fit_pruned_cart)]
    refuse_unknown(options, OPTIONS, "fit_pruned_cart", meant)
    if isinstance(X, BinnedColumns):
        raise TypeError("X: BinnedColumns hold no values to predict from; pass X or SortedColumns")
    generator = as_generator(rng)
    found = fit_cart_problem(X, y, sample_weight, n_threads, generator, **options)
    problem, weights, limits, settings, key = found
    problem = problem.sorted_once(n_threads)
    # In a unit of their own, so that neither sums nor products of prices leave the numbers.
    weights, exponent = scaled_weights(np.ones(problem.n_rows) if weights is None else weights)
    fold = _folds(problem, weights, folds, generator)
    source, rows = _values(problem, X)
    tree = fit_tree(problem, weights, limits, settings, key, n_threads)
    path = prune_path(tree)
    # Each subtree's stretch of prices, by its geometric middle; the last one's has no end.
    middle = np.append(_geometric_means(path.lam), np.inf) / weights.sum()
    loss, squares = np.zeros(len(middle)), np.zeros(len(middle))
    for k in range(int(fold.max()) + 1):
        train = np.where(fold == k, 0.0, weights)
        test = np.flatnonzero((fold == k) & (weights > 0))
        if not train.any() or not len(test):
            continue
        grown = fit_tree(problem, train, limits, settings, key, n_threads)
        values, price = source[rows[test]], middle * train.sum()
        for total, power in ((loss, 1), (squares, 2)):
            total += _losses(grown, problem, values, test, weights[test], power, price)
    error = loss / weights.sum()
    spread = np.maximum(squares / weights.sum() - error**2, 0.0)
    standard_error = np.sqrt(spread / np.count_nonzero(weights))
    best = len(error) - 1 - int(np.argmin(error[::-1]))
    if rule == "1se":
        best = int(np.flatnonzero(error <= error[best] + standard_error[best])[-1])
    pruned = prune(tree, float(path.lam[best]))
    table = _table(path, error, standard_error, best, exponent, 2 * problem.exponent)
    said = {
        "builder": "fit_pruned_cart",
        "folds": folds,
        "rule": rule,
        "pruned_at": float(table.lam[best]),
    }
    return replace(
        pruned, weight=np.ldexp(pruned.weight, exponent), pruning=table,
        settings={**pruned.settings, **said},
    )  # fmt: skip


def _table(
    path: PruningPath, error: FloatArray, spread: FloatArray, best: int, price: int, unit: int
) -> PruningTable:
    """Return the table, of prices and errors that are in units of powers of two."""
    with np.errstate(over="ignore"):
        lam, error, spread = (
            np.ldexp(values, power)
            for values, power in ((path.lam, price), (error, unit), (spread, unit))
        )
    if not np.isfinite([lam, error, spread]).all():
        raise ValueError(
            "y: expected numbers whose squares times the weights are finite; give y or the weights "
            "in other units"
        )
    return PruningTable(lam, path.n_leaves, error, spread, best)


def _geometric_means(lam: FloatArray) -> FloatArray:
    """Return the geometric mean of each price and the next."""
    exponent = int(np.frexp(lam.max())[1])  # by a power of two: nothing is rounded
    scaled = np.ldexp(lam, -exponent)
    means: FloatArray = np.ldexp(np.sqrt(scaled[:-1] * scaled[1:]), exponent)
    return means


def _values(problem: CartProblem, X: Any) -> tuple[NDArray[Any], NDArray[np.integer[Any]]]:
    """Return a matrix, and for each row of a problem the row of it that has its values."""
    if isinstance(problem.columns, SortedColumns):
        return problem.columns.source, problem.columns.rows
    return as_features(X).values, np.arange(problem.n_rows)  # bins hold no values


def _folds(
    problem: CartProblem, weights: FloatArray, folds: Any, rng: np.random.Generator
) -> IntArray:
    """Return the fold in which each row is tested."""
    n_rows = int(np.count_nonzero(weights))
    folds = check_integer("folds", folds, least=2)
    if folds > n_rows:
        raise ValueError(
            f"folds: expected at most {n_rows}, the number of rows of positive weight, got {folds}"
        )
    label = problem.label if len(problem.label) else np.zeros(problem.n_rows, dtype=np.int32)
    idle = weights == 0
    strata = [np.flatnonzero((label == j) & ~idle) for j in range(int(label.max()) + 1)]
    return deal([*strata, np.flatnonzero(idle)], folds, rng)


def _losses(
    tree: Tree,
    problem: CartProblem,
    X: NDArray[Any],
    test: NDArray[np.intp],
    weights: FloatArray,
    power: int,
    lam: FloatArray,
) -> FloatArray:
    """Return the sums over the test rows of the loss, to a power, of a tree pruned at prices."""
    here = _loss_by_node(tree, problem, X, test, weights, power)
    price = link_prices(tree)
    ends = np.isfinite(price)
    # The loss below a node once all that collapses there has; and what each collapse changes.
    after, change = np.where(tree.feature == LEAF, here, 0.0), np.zeros(tree.n_nodes)
    full = np.where(tree.feature == LEAF, here, 0.0).sum()
    for nodes in reversed(levels(tree)):
        below = after[tree.children[nodes]].sum(axis=1)
        after[nodes] = np.where(ends[nodes], here[nodes], below)
        change[nodes] = after[nodes] - below
    gone = np.flatnonzero(ends)
    gone = gone[np.argsort(price[gone], kind="stable")]
    totals = np.concatenate([[full], full + np.cumsum(change[gone])])
    found: FloatArray = totals[np.searchsorted(price[gone], lam, side="right")]
    return found


def _loss_by_node(
    tree: Tree,
    problem: CartProblem,
    X: NDArray[Any],
    test: NDArray[np.intp],
    weights: FloatArray,
    power: int,
) -> FloatArray:
    """Return the sum of the losses of the test rows that come through each node, if it predicts.

    Those of a regression are in the unit of ``problem.y``.
    """
    sums = np.zeros(tree.n_nodes)
    mean = np.ldexp(tree.value, -problem.exponent)
    at, rows = np.zeros(len(test), dtype=np.int32), np.arange(len(test))
    while len(rows):
        if tree.labels is None:
            loss = (problem.y[test[rows]] - mean[at]) ** 2
        else:
            loss = np.argmax(tree.value, axis=1)[at] != problem.label[test[rows]]
        sums += np.bincount(at, weights[rows] * loss.astype(np.float64) ** power, tree.n_nodes)
        stays = tree.feature[at] != LEAF
        rows, at = rows[stays], at[stays]
        above = goes_right(X[rows, tree.feature[at]], tree.threshold[at])
        at = tree.children[at, above.astype(np.intp)]
    return sums
