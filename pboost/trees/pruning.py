"""Cost-complexity pruning of trees, with the complexity parameter chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core.tree_walk import weakest_links
from pboost.data.columns.bin_and_sort import read_once
from pboost.data.columns.columns import SortedColumns, values_of
from pboost.data.read.check_xy import (
    as_targets,
    as_weights,
    class_codes,
    scaled_weights,
)
from pboost.data.read.table import Categorical
from pboost.data.resampling import any_folds
from pboost.data.row_source import rows_here
from pboost.data.targets import IMPURITIES, ClassCriterion, class_criteria
from pboost.data.training_data import Problem, Search, check_values, reads_columns, search_option
from pboost.models.schema import PruningTable, Stored, column
from pboost.models.single_tree import Tree, tree_only
from pboost.models.tree_ensemble import LEAF
from pboost.trees.cart import TAKES, FitData, TreeOptions, fit_cart_problem, fit_tree
from pboost.values import (
    Array,
    FloatArray,
    IntArray,
    Seed,
    Task,
    as_generator,
    check_choice,
    check_integer,
    check_number,
)
from pboost.values.options import builder, checked, option_names, refuse_unknown

#: Values of `rule`, which `fit_pruned_cart` uses to choose a subtree.
PruningRule: TypeAlias = Literal["min", "1se"]
RULES: tuple[PruningRule, ...] = get_args(PruningRule)
#: Tolerances for equal alphas, relative to `ccp_alpha` and to the risk of the root.
SAME_PRICE, SAME_RISK = 1e-12, 1e-15
#: Tolerance for equal errors of subtrees, relative to the largest error.
SAME_ERROR = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class PruningPath(Stored):
    """Nested subtrees of weakest-link pruning, from `cost_complexity_pruning_path`.

    Attributes
    ----------
    ccp_alpha : ndarray of float64, shape (k,)
        Smallest alpha at which each subtree is optimal, increasing from 0.
    n_leaves : ndarray of int32, shape (k,)
        Number of leaves of each subtree, decreasing to 1.
    risk : ndarray of float64, shape (k,)
        Sum of weight times impurity over the leaves of each subtree.
    """

    ccp_alpha: FloatArray = column(np.float64, finite=False)
    n_leaves: IntArray = column(np.int32)
    risk: FloatArray = column(np.float64, finite=False)


def cost_complexity_pruning_path(
    tree: Tree,
    X: object = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    criterion: ClassCriterion | None = None,
) -> PruningPath:
    """Return the sequence of optimal subtrees for increasing `ccp_alpha`.

    The cost of a subtree is its risk (the sum of weight times impurity over its leaves) plus
    `ccp_alpha` times the number of leaves. For each alpha there is a smallest subtree with minimal
    cost. These subtrees are nested: each subtree is obtained by pruning the previous subtree.

    Parameters
    ----------
    tree : Tree
        Fitted tree.
    X : array_like of shape (n, d), or data frame, optional
        Data for the weights and impurities of the nodes, together with `y`. By default, the values
        of the training data are used, which are stored in the tree.
    y : array_like of shape (n,), optional
        Targets of `X`.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows of `X`.
    criterion : {"gini", "entropy", "error", "kearns_mansour"}, optional
        Impurity of a classification tree. By default, the criterion that was used to fit the tree.

    Returns
    -------
    PruningPath
        Alphas are in units of the risk. Divide them by the sum of the weights to get the
        ``ccp_alpha`` of scikit-learn.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984), section 3.3.

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3]]
    >>> tree = pb.fit_cart(X, [9, -4, 2, 4, 2], task="regression")
    >>> path = pb.models.cost_complexity_pruning_path(tree)
    >>> path.n_leaves.tolist(), path.ccp_alpha.round(6).tolist()
    ([5, 4, 2, 1], [0.0, 2.0, 17.0, 51.2])
    """
    risk, exponent = _risks(tree_only(tree), X, y, sample_weight, criterion)
    price, gain, saved = _links(tree, risk)
    gone = np.flatnonzero(np.isfinite(price))
    gone = gone[np.argsort(price[gone], kind="stable")]
    steps = price[gone]
    bar = SAME_RISK * risk[0]
    # If several alphas are equal, only the last subtree is kept. The first alpha is 0.
    is_last = np.ones(len(steps), dtype=bool)
    is_last[:-1] = np.diff(steps) > SAME_PRICE * steps[1:] + bar
    leaves = tree.n_leaves - np.cumsum(saved[gone])
    risks = _total(risk, tree) + np.cumsum(gain[gone])
    ccp_alpha, leaves, risks = steps[is_last], leaves[is_last], risks[is_last]
    if not len(ccp_alpha) or ccp_alpha[0] > bar:
        ccp_alpha = np.concatenate([[0.0], ccp_alpha])
        leaves = np.concatenate([[tree.n_leaves], leaves])
        risks = np.concatenate([[_total(risk, tree)], risks])
    ccp_alpha[0] = 0.0
    ccp_alpha, risks = (_numbers(np.ldexp, values, exponent) for values in (ccp_alpha, risks))
    return PruningPath(ccp_alpha, leaves, risks)


def prune(tree: Tree, ccp_alpha: float, *, criterion: ClassCriterion | None = None) -> Tree:
    """Prune a tree to the smallest subtree with minimal cost.

    Parameters
    ----------
    tree : Tree
        Fitted tree.
    ccp_alpha : float
        Cost of a leaf, at least 0, on the scale of `cost_complexity_pruning_path`. Infinity leaves
        only the root.
    criterion : {"gini", "entropy", "error", "kearns_mansour"}, optional
        Impurity of a classification tree. By default, the criterion that was used to fit the tree.

    Returns
    -------
    Tree
        The pruned tree. With ``ccp_alpha=0`` only splits that do not reduce the risk are removed.

    Raises
    ------
    ValueError, TypeError
        If `ccp_alpha` is negative or NaN, or another argument is invalid.

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3]]
    >>> tree = pb.fit_cart(X, [9, -4, 2, 4, 2], task="regression")
    >>> pb.prune(tree, 20.0).n_leaves
    2
    """
    is_endless = isinstance(ccp_alpha, float | np.floating) and ccp_alpha == np.inf
    ccp_alpha = np.inf if is_endless else check_number("ccp_alpha", ccp_alpha, min_value=0.0)
    risk, _ = _risks(tree_only(tree), None, None, None, criterion)
    price = _links(tree, risk)[0]
    if is_endless:  # settings must be finite, so store the smallest alpha that prunes to the root
        ccp_alpha = min(float(price[0]), np.finfo(np.float64).max) if tree.n_nodes > 1 else 0.0
    slack = SAME_PRICE * ccp_alpha + SAME_RISK * risk[0]
    settings = {"pruned_at": ccp_alpha, "pruned_by": criterion or tree.settings.get("criterion")}
    at = np.isfinite(price) & (price <= ccp_alpha + slack)
    at[0] |= is_endless
    return collapsed(tree, at, settings)


def collapsed(tree: Tree, at: NDArray[np.bool_], settings: dict[str, Any]) -> Tree:
    """Return the tree with the marked nodes turned into leaves."""
    kept = np.ones(tree.n_nodes, dtype=bool)
    for nodes in levels(tree):
        below = tree.children[nodes]
        kept[below] = (kept[nodes] & ~at[nodes])[:, None]
    columns = tree.columns_at(kept)
    number = np.cumsum(kept) - 1
    is_leaf = at[kept] | (columns["feature"] == LEAF)
    columns["feature"] = np.where(is_leaf, LEAF, columns["feature"])
    columns["threshold"] = np.where(is_leaf, 0.0, columns["threshold"])
    columns["children"] = np.where(is_leaf[:, None], LEAF, number[columns["children"]])
    if columns["missing"] is not None:
        columns["missing"] = np.where(is_leaf, 0, columns["missing"])
    columns = tree.with_sets(columns)
    return replace(tree, settings={**tree.settings, **settings}, **columns)


def levels(tree: Tree) -> list[NDArray[np.intp]]:
    """Return the inner nodes, one array per depth, starting at the root."""
    depth = tree.node_depth()
    inner = np.flatnonzero(tree.feature != LEAF)
    inner = inner[np.argsort(depth[inner], kind="stable")]
    return np.split(inner, np.flatnonzero(np.diff(depth[inner])) + 1) if len(inner) else []


def _links(tree: Tree, risk: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the alpha at which each node is pruned, the added risk and the removed leaves."""
    n = tree.n_nodes
    price, gain, saved = np.empty(n), np.empty(n), np.empty(n, dtype=np.int32)
    work = np.empty((4, n), dtype=np.int32)
    weakest_links(tree.children, risk, price, gain, saved, work)
    return price, gain, saved


def link_prices(tree: Tree) -> FloatArray:
    """Return the alpha at which each node becomes a leaf, inf for never, -inf for always."""
    return _links(tree, _risks(tree, None, None, None, None)[0])[0]


def _total(risk: FloatArray, tree: Tree) -> float:
    return float(risk[tree.feature == LEAF].sum())


def _risks(
    tree: Tree, X: object, y: object, sample_weight: ArrayLike | None, criterion: str | None
) -> tuple[FloatArray, int]:
    """Return weight times impurity of each node, scaled by 2**-exponent, and the exponent."""
    if criterion is not None:
        check_choice("criterion", criterion, _criteria(tree))
    if X is None and y is None:
        if sample_weight is not None:
            raise ValueError("sample_weight: expected None without X and y, got weights")
        known = criterion is None or tree.classes is None
        impurity = tree.impurity if known else IMPURITIES[str(criterion)](tree.value)
        return _numbers(np.multiply, tree.weight, impurity), 0
    if X is None or y is None:
        raise ValueError(
            "cost_complexity_pruning_path: expected both X and y, or neither, got only one of them"
        )
    at = tree.nodes_of(X)
    weights = as_weights(sample_weight, len(at))
    weights, exponent = scaled_weights(np.ones(len(at)) if weights is None else weights)
    if tree.classes is None:
        return _square_risks(tree, at, as_targets(y, len(at)), weights), exponent
    code = class_codes(tree.classes, y, len(at))
    mass = np.zeros((tree.n_nodes, len(tree.classes)))
    np.add.at(mass, (at, code), weights)
    for nodes in reversed(levels(tree)):
        mass[nodes] = mass[tree.children[nodes]].sum(axis=1)
    total = mass.sum(axis=1)
    share = mass / np.where(total > 0, total, 1.0)[:, None]
    if criterion is None and "criterion" not in tree.settings:
        raise ValueError("criterion: expected a name, since the tree does not record its criterion")
    if criterion is None:  # a stored tree can contain any text
        name = tree.settings["criterion"]
        criterion = check_choice("tree.settings['criterion']", name, _criteria(tree))
    return total * np.where(total > 0, IMPURITIES[criterion](share), 0.0), exponent


def _numbers(compute: np.ufunc, *values: object) -> FloatArray:
    """Compute a function of risks; raise ValueError on overflow."""
    with np.errstate(over="ignore"):
        numbers: FloatArray = compute(*values)
    if not np.isfinite(numbers).all():
        raise ValueError(
            "tree: expected finite products of weight and impurity; rescale y or the weights and "
            "fit again"
        )
    return numbers


def _criteria(tree: Tree) -> tuple[str, ...]:
    """Return the criteria that fit the task of a tree."""
    return ("squared_error",) if tree.classes is None else class_criteria(len(tree.classes))


def _square_risks(tree: Tree, at: IntArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the sum of squared deviations from the mean at each node."""
    n = tree.n_nodes
    mass = np.bincount(at, weights, n)
    mean = np.bincount(at, weights * y, n) / np.where(mass > 0, mass, 1.0)
    risk: FloatArray = np.bincount(at, weights * (y - mean[at]) ** 2, n).astype(np.float64)
    for nodes in reversed(levels(tree)):
        first, second = tree.children[nodes].T
        both = np.maximum(mass[first] + mass[second], np.finfo(np.float64).tiny)
        apart = mean[second] - mean[first]
        mass[nodes] = mass[first] + mass[second]
        mean[nodes] = mean[first] + apart * (mass[second] / both)
        between = apart**2 * (mass[first] * (mass[second] / both))
        risk[nodes] = risk[first] + risk[second] + between
    return risk


def _search_of_values(options: Mapping[str, object]) -> Search:
    """Return the search options of a fit that needs unbinned values for predictions."""
    return search_option(options)._replace(takes_bins=False)


@reads_columns(_search_of_values)
@builder
def fit_pruned_cart(
    X: object,
    y: ArrayLike | None = None,
    *,
    task: Task | None = None,
    cv: int = 10,
    rule: PruningRule = "min",
    rng: Seed = None,
    y_proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    categorical_features: Categorical = None,
    n_threads: int | None = None,
    **options: Any,
) -> Tree:
    """Fit a tree and prune it with `ccp_alpha` chosen by cross-validation.

    A tree is grown on all rows, and its nested subtrees are found by
    `cost_complexity_pruning_path`. Each subtree is optimal for an interval of alphas. In each fold,
    a tree is pruned at the geometric mean of this interval and tested.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features, which may contain missing values and categorical features, see `fit_cart`.
    y : array_like of shape (n,), optional
        Target: class labels, two or more, or finite numbers for regression.
    task : {"classification", "regression"}, optional
        Type of the target. By default, text, booleans and up to 20 distinct integers are classes,
        and non-integers are regression targets. With more than 20 distinct integers, set `task` or
        `criterion`.
    cv : int
        Number of folds, from 2 to the number of rows. Folds are stratified by class.
    rule : {"min", "1se"}
        "min" chooses the subtree with the lowest error, and the smallest of several such subtrees.
        "1se" chooses the smallest subtree whose error is within one standard error of the lowest
        error.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed for the folds and for `max_features`.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        Class probabilities of each row, in place of `y`. A row counts for each class with its
        weight times the probability. A one-dimensional array contains the probabilities of the
        second class.
    classes : array_like of shape (J,), optional
        The class labels of the columns of `y_proba`. By default 0, 1, ..., or the column names.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows, for training and for the errors.
    categorical_features : sequence of str or int, optional
        Names or positions of categorical features, in addition to data frame columns that hold text
        or have a categorical type.
    n_threads : int or None
        Number of threads; -1 uses all cores. By default, the number depends on the amount of work.
        The model does not depend on it.
    **options
        Options of `fit_cart`.

    Returns
    -------
    Tree
        The pruned tree. ``tree.pruning`` is a table of alphas, leaves, errors and standard errors.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.

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
    known = [*TreeOptions.__annotations__, *option_names(fit_pruned_cart)]
    refuse_unknown(options, known, "fit_pruned_cart")
    of_trees = checked(TreeOptions, {**options, "task": task})
    generator = as_generator(rng)
    row_options = {"y_proba": y_proba, "classes": classes, "sample_weight": sample_weight}
    row_options["categorical_features"] = categorical_features
    X, y, sample_weight = rows_here("fit_pruned_cart", X, y, row_options)
    check_values(X)
    X = read_once(values_of(X), sample_weight, TAKES)
    data = FitData(X, y, sample_weight, n_threads, generator)
    problem, limits, settings, key = fit_cart_problem(data, of_trees)
    problem, weights = problem.sorted_once(n_threads), problem.weights
    # Weights are scaled, so that sums and products stay within the range of float64.
    weights, exponent = scaled_weights(np.ones(problem.n_rows) if weights is None else weights)
    source, rows = _source(X, problem)
    fold = _folds(problem, weights, check_integer("cv", cv, min_value=2), generator)
    tree = fit_tree(problem, weights, limits, settings, key, n_threads)
    path = cost_complexity_pruning_path(tree)
    # Each subtree is tested at the geometric mean of its interval of alphas. The last interval is
    # unbounded.
    middle = np.append(_geometric_means(path.ccp_alpha), np.inf) / weights.sum()
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
    standard_error = np.sqrt(spread / np.count_nonzero(weights[problem.first]))
    best = _last_within(error, error.min())
    if rule == "1se":
        best = _last_within(error, error[best] + standard_error[best])
    pruned = prune(tree, float(path.ccp_alpha[best]))
    table = _table(path, error, standard_error, best, exponent, 2 * problem.exponent)
    pruning_settings = {
        "builder": "fit_pruned_cart",
        "cv": cv,
        "rule": rule,
        "pruned_at": float(table.ccp_alpha[best]),
    }
    return replace(
        pruned,
        weight=np.ldexp(pruned.weight, exponent),
        pruning=table,
        settings={**pruned.settings, **pruning_settings},
    )


def _last_within(error: FloatArray, bound: float) -> int:
    """Return the index of the smallest subtree whose error is at most `bound`."""
    return int(np.flatnonzero(error <= bound + SAME_ERROR * error.max())[-1])


def _source(X: Any, problem: Problem) -> tuple[Array, IntArray]:
    """Return the values of X, and the index in X of each row of the problem."""
    if isinstance(X, SortedColumns):
        source, rows = X.source, X.rows
    else:
        source, rows = X.values, np.arange(len(X.values), dtype=np.int32)
    return source, rows[problem.input_rows(np.arange(problem.n_rows))]


def _folds(
    problem: Problem, weights: FloatArray, folds: int, generator: np.random.Generator
) -> IntArray:
    """Return the test fold of each row. With soft labels, all entries of a row are in one fold."""
    n, first, entries = problem.n_rows, problem.first, problem.entries
    label = problem.label if len(problem.label) else np.zeros(n, dtype=np.int32)
    kinds = label if entries is None else entries.likeliest
    fold = any_folds(kinds, weights[first], folds, generator)
    return fold[problem.input_rows(np.arange(n))]


def _table(
    path: PruningPath, error: FloatArray, spread: FloatArray, best: int, price: int, unit: int
) -> PruningTable:
    """Return the pruning table. The scaling of weights and targets is undone."""
    is_error, smallest = error.any(), np.finfo(np.float64).tiny
    with np.errstate(over="ignore"):
        ccp_alpha, error, spread = (
            np.ldexp(values, power)
            for values, power in ((path.ccp_alpha, price), (error, unit), (spread, unit))
        )
    if not np.isfinite([ccp_alpha, error, spread]).all() or (is_error and error.max() < smallest):
        raise ValueError(
            "y: expected numbers whose weighted squares are within the range of float64; rescale y "
            "or the weights"
        )
    return PruningTable(ccp_alpha, path.n_leaves, error, spread, best)


def _geometric_means(ccp_alpha: FloatArray) -> FloatArray:
    """Return the geometric means of successive alphas."""
    exponent = int(np.frexp(ccp_alpha.max())[1])  # scaling by a power of two is exact
    scaled = np.ldexp(ccp_alpha, -exponent)
    means: FloatArray = np.ldexp(np.sqrt(scaled[:-1] * scaled[1:]), exponent)
    return means


def _losses(
    tree: Tree,
    problem: Problem,
    X: Array,
    test: NDArray[np.intp],
    weights: FloatArray,
    power: int,
    ccp_alpha: FloatArray,
) -> FloatArray:
    """Return the sum of ``loss ** power`` over the test rows for the tree pruned at each alpha."""
    node_loss = _loss_by_node(tree, problem, X, test, weights, power)
    price = link_prices(tree)
    ends = np.isfinite(price)
    # Loss in the leaves below each node after pruning, and its change when a node is pruned.
    after, change = np.where(tree.feature == LEAF, node_loss, 0.0), np.zeros(tree.n_nodes)
    full = np.where(tree.feature == LEAF, node_loss, 0.0).sum()
    for nodes in reversed(levels(tree)):
        below = after[tree.children[nodes]].sum(axis=1)
        after[nodes] = np.where(ends[nodes], node_loss[nodes], below)
        change[nodes] = after[nodes] - below
    gone = np.flatnonzero(ends)
    gone = gone[np.argsort(price[gone], kind="stable")]
    totals = np.concatenate([[full], full + np.cumsum(change[gone])])
    losses: FloatArray = totals[
        np.searchsorted(price[gone], ccp_alpha * (1 + SAME_PRICE), side="right")
    ]
    return losses


def _loss_by_node(
    tree: Tree,
    problem: Problem,
    X: Array,
    test: NDArray[np.intp],
    weights: FloatArray,
    power: int,
) -> FloatArray:
    """Return the sum of ``loss ** power`` at each node over its test rows, as if it were a leaf.

    Regression losses are in the unit of ``problem.y``.
    """
    sums = np.zeros(tree.n_nodes)
    mean, column = np.ldexp(tree.value, -problem.exponent), tree.column
    at, rows = np.zeros(len(test), dtype=np.int32), np.arange(len(test))
    while len(rows):
        if tree.classes is None:
            loss = (problem.y[test[rows]] - mean[at]) ** 2
        else:
            loss = np.argmax(tree.value, axis=1)[at] != problem.label[test[rows]]
        sums += np.bincount(at, weights[rows] * loss.astype(np.float64) ** power, tree.n_nodes)
        stays = tree.feature[at] != LEAF
        rows, at = rows[stays], at[stays]
        above = tree.goes_to_second(X[rows, column[at]], at)
        at = tree.children[at, above.astype(np.intp)]
    return sums
