"""Probit model trees: CART partitions with ProbitBoost in the leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.columns import MAX_BINS, BinnedColumns, SortedColumns, column_spread
from pboost.data.features import as_features
from pboost.data.training import Problem
from pboost.growth.tree import CartLimits, tree_columns
from pboost.models.probit_trees import ProbitTree
from pboost.models.trees import Tree
from pboost.probit.growth import ProbitGrower, ProbitLimits
from pboost.threads import Workers, resolve_threads
from pboost.trees.cart import fit_cart_problem
from pboost.values import FloatArray, check_flag, check_integer, check_number


class ProbitProblem(NamedTuple):
    """The checked arguments of builders of probit trees."""

    problem: Problem
    X: NDArray[Any]
    weights: FloatArray
    limits: CartLimits
    leaves: ProbitLimits
    settings: dict[str, Any]


def fit_probit_tree(
    X: Any,
    y: ArrayLike,
    *,
    depth: int = 6,
    min_leaf: int = 20,
    min_split: int = 2,
    steps: int = 100,
    tol: float | None = None,
    safeguard: bool = True,
    criterion: str = "gini",
    complexity: float = 0.0,
    search: str = "auto",
    max_bins: int = MAX_BINS,
    sample_weight: ArrayLike | None = None,
    n_threads: int | None = None,
) -> ProbitTree:
    """Fit a probit model tree: a small tree, and ProbitBoost on all columns in each leaf.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, or SortedColumns
        Features, finite numbers.
    y : array_like of shape (n,)
        Labels, of two or more different values. Of more than two, each leaf has a linear function
        for each class against the others.
    depth : int
        Greatest number of comparisons for a row; 0: one linear function for all rows, that of
        `fit_probitboost`.
    min_leaf : int
        Least number of training rows in a leaf, whatever their weights.
    min_split : int
        Least number of training rows of a node that is split, at least 2.
    steps : int
        Most steps of ProbitBoost in a leaf, at least 1.
    tol : float, optional
        A leaf is done where a step changes its deviance ``-2 sum(w ln Phi(Y f))`` by no more than
        this. None: never.
    safeguard : bool
        Whether steps are halved until the risk does not rise, as in `fit_probitboost`.
    criterion : {"gini", "entropy", "error", "kearns-mansour"}
        Impurity that splits lower.
    complexity : float
        Splits are undone that do not lower the weight misclassified by this share of that at the
        root, by the rule of R's rpart (`cp`), which is not that of `prune`. 0: none is.
    search : {"auto", "exact", "binned"}
        As in `fit_cart`.
    max_bins : int
        As in `fit_cart`.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows.
    n_threads : int or None
        Threads; None: as many as the work is worth. The model does not depend on it.

    Returns
    -------
    ProbitTree
        For `predict`, `predict_proba`, `apply`, `describe`, `coefficients` and others.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.

    Notes
    -----
    Slopes are in the units of the columns, and columns that are constant in a leaf have none there.
    A leaf of one class is constant: of n rows, ``Phi^-1((n + 1/2) / (n + 1))`` for the class and
    minus that for the others, where [1]_ has probabilities 1 and 0.

    References
    ----------
    .. [1] T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y = [0, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 0]
    >>> tree = pb.fit_probit_tree(X, y, depth=1, min_leaf=4, steps=5)
    >>> tree.n_leaves, pb.predict(tree, X).tolist()
    (2, [0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0])
    """
    task = probit_problem(
        X, y, sample_weight, n_threads, depth=depth, min_leaf=min_leaf, min_split=min_split,
        steps=steps, tol=tol, safeguard=safeguard, criterion=criterion, complexity=complexity,
        search=search, max_bins=max_bins,
    )  # fmt: skip
    task.settings["builder"] = "fit_probit_tree"
    cells = task.X.size * (1 + task.leaves.steps)
    with Workers(resolve_threads(n_threads, cells)) as workers:
        grower = ProbitGrower(
            task.problem, task.X, task.weights, task.limits, task.leaves, workers
        )  # fmt: skip
        grown = grower.grow(task.weights)
        risk = grower.risk(grown, grower.values(grown), task.weights)
    check_coefficients(grown.coefficient)
    problem = task.problem
    _, columns = tree_columns(problem, [grown.partition], task.limits.criterion)
    partition = Tree(
        **columns, labels=problem.labels, n_features=problem.n_features,
        feature_names=problem.names, settings=task.settings, stop_reason=grower.stop_reason,
    )  # fmt: skip
    return ProbitTree(
        partition, grown.coefficient, grown.taken, risk, column_spread(task.X, task.weights)
    )


def probit_problem(
    X: Any,
    y: Any,
    sample_weight: Any,
    n_threads: int | None,
    *,
    depth: Any,
    min_leaf: Any,
    min_split: Any,
    steps: Any,
    tol: Any,
    safeguard: Any,
    criterion: str,
    complexity: Any,
    search: str = "auto",
    max_bins: Any = MAX_BINS,
) -> ProbitProblem:
    """Check the arguments of builders of probit trees; the settings have no builder yet."""
    if isinstance(X, BinnedColumns):
        raise TypeError("X: BinnedColumns hold no values to fit lines to; pass X or SortedColumns")
    leaves = ProbitLimits(
        check_integer("steps", steps, least=1),
        0.0 if tol is None else check_number("tol", tol, least=0.0),
        safeguard,
        check_number("complexity", complexity, least=0.0),
    )
    safeguard = check_flag("safeguard", safeguard)
    depth = check_integer("depth", depth, least=0)
    if not isinstance(X, SortedColumns):
        X = as_features(X)
    problem, limits, settings, _ = fit_cart_problem(
        X, y, sample_weight, n_threads, np.random.default_rng(0), criterion=criterion,
        max_depth=max(depth, 1), min_leaf=min_leaf, min_split=min_split, search=search,
        max_bins=max_bins,
    )  # fmt: skip
    if isinstance(X, SortedColumns):
        values = X.source if len(X.rows) == len(X.source) else X.source[X.rows]
    else:
        values = X.values
    kept = ("criterion", "min_leaf", "min_split", "search", "max_bins")
    settings = {
        "depth": depth, **{name: settings[name] for name in kept}, "steps": leaves.steps,
        "tol": None if tol is None else leaves.tol, "safeguard": safeguard,
        "complexity": leaves.complexity,
    }  # fmt: skip
    weights = np.ones(problem.n_rows) if problem.weights is None else problem.weights
    # Splits there would be undone.
    limits = replace(limits, depth=depth, complexity=leaves.complexity)
    return ProbitProblem(problem, values, weights, limits, leaves, settings)


def check_coefficients(coefficient: FloatArray) -> None:
    """Raise where a slope is beyond the range of float64."""
    if not np.isfinite(coefficient).all():
        column = int(np.nonzero(~np.isfinite(coefficient))[-1].max()) - 1
        raise ValueError(
            f"X: column {column} spreads too little: its slope is beyond the largest number"
        )
