"""Distillation: small models that imitate large ones, on real and synthetic rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.check_xy import TASKS, as_features
from pboost.data.read.convert import Features
from pboost.data.read.table import Categorical
from pboost.data.row_fingerprint import digest_of_rows, merged
from pboost.models.base import Model, predict, predict_proba
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.trees.gradient_boosting import fit_gradient_boosting
from pboost.values import (
    Array,
    FloatArray,
    Seed,
    TableLike,
    Task,
    as_generator,
    check_choice,
    check_integer,
    check_number,
    first_false,
)

#: Rows that replace values of a synthetic row: nearest neighbors or random rows.
SyntheticKind: TypeAlias = Literal["neighbors", "random"]
KINDS: tuple[SyntheticKind, ...] = get_args(SyntheticKind)
#: With more than MANY_ROWS rows, neighbors are searched in a random sample of DRAWN_ROWS rows.
MANY_ROWS, DRAWN_ROWS = 20_000, 10_000
#: Maximum number of distances in memory at once.
BLOCK = 1 << 22
#: Minimum number of groups of distances in the search for neighbors, see `_least`.
PARTS = 128

_Places: TypeAlias = tuple[FloatArray, list[FloatArray], list[float]]


def synthetic_rows(
    X: Features,
    count: int,
    kind: str,
    synthetic_fraction: float,
    n_neighbors: int,
    rng: np.random.Generator,
) -> Array:
    """Return `count` synthetic rows. Each of their values occurs in the same feature of X.

    Each synthetic row is a copy of a random row. With probability `synthetic_fraction`, the value
    of a feature is replaced by its value in a random neighbor or, if `kind` is "random", in any
    row.
    """
    values, table = X.values, X.table
    if X.n_rows > MANY_ROWS:
        values = values[np.sort(rng.choice(X.n_rows, DRAWN_ROWS, replace=False))]
    n, d = values.shape
    base, other = rng.integers(n, size=count), rng.integers(n, size=count)
    n_near = min(n_neighbors, n - 1)
    if kind == "neighbors" and n_near > 0:
        is_level = np.array(
            [table is not None and table.categories[j] is not None for j in range(d)]
        )
        other = nearest(values, is_level, n_near)[base, rng.integers(n_near, size=count)]
    result = np.empty((count, d), dtype=values.dtype)
    for j in range(d):
        row = np.where(rng.random(count) < synthetic_fraction, other, base)
        result[:, j] = values[row, j]
    return result


def nearest(values: Array, is_level: NDArray[np.bool_], k: int) -> NDArray[np.intp]:
    """Return the indices (n, k) of the k nearest neighbors of each row, in order of distance.

    Distances are Euclidean distances between ranks, scaled to unit standard deviation. A missing
    value has the mean rank and an additional distance of one. The distance between different
    categories equals the mean distance between two values of a numerical feature.
    """
    from scipy.spatial.distance import cdist  # imported late, see bounds._tree.terms_at_2

    n = len(values)
    place, level, weight = _places(values, is_level)
    neighbors = np.empty((n, k), dtype=np.intp)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        far = cdist(place[rows], place, "sqeuclidean")
        for of_column, of_level in zip(level, weight, strict=True):
            far += of_level * (of_column[rows, None] != of_column)
        far[np.arange(len(rows)), rows] = np.inf
        neighbors[rows] = _least(far, start, k)
    return neighbors


def _least(far: FloatArray, first: int, k: int) -> NDArray[np.intp]:
    """Return the indices of the k smallest distances in each row, in increasing order.

    The first row of `far` has the index `first`. Ties are broken cyclically, starting after the row
    itself, so that equally distant rows are used equally often. `numpy.argpartition` is slower, and
    its order depends on the processor.
    """
    m, n = far.shape
    bound = np.full(m, np.inf)  # an upper bound on the k-th smallest distance of each row
    if n >= 2 * (parts := max(PARTS, k)):
        group_minimum = far[:, :parts].copy()
        for start in range(parts, n - parts + 1, parts):
            np.minimum(group_minimum, far[:, start : start + parts], out=group_minimum)
        bound = np.partition(group_minimum, k - 1, axis=1)[:, k - 1]
    row, place = np.divmod(np.flatnonzero(far <= bound[:, None]), n)
    order = np.lexsort(((place - first - row) % n, far[row, place], row))
    at = np.searchsorted(row, np.arange(m))[:, None] + np.arange(k)
    return place[order[at]]


def _places(values: Array, is_level: NDArray[np.bool_]) -> _Places:
    """Return coordinates (n, d') of rows, category codes, and distances between categories."""
    from scipy.stats import rankdata  # imported late, see bounds._tree.terms_at_2

    place, level, weight = [np.zeros(len(values))], [], []
    for j, column in enumerate(values.T):
        is_missing = np.isnan(column)
        if is_level[j]:
            level.append(np.where(is_missing, -1.0, column))
            shares = np.unique(level[-1], return_counts=True)[1] / len(column)
            weight.append(2.0 / max(1.0 - float(np.square(shares).sum()), 1.0 / len(column)))
            continue
        rank = np.zeros(len(column))
        rank[~is_missing] = rankdata(column[~is_missing])
        rank[~is_missing] -= rank[~is_missing].mean() if not is_missing.all() else 0.0
        spread = rank.std()
        place.append(rank / spread if spread > 0 else rank)
        if is_missing.any():
            place.append(is_missing.astype(np.float64))
    return np.column_stack(place), level, weight


# Distillation

Teacher: TypeAlias = Model | Callable[[Array], ArrayLike]
#: The default is PER_ROW synthetic rows per row, but at least LEAST and at most MOST rows.
LEAST, PER_ROW, MOST = 15_000, 5, 100_000
#: For budgets of at least this value, the default learning rate and synthetic fraction are smaller.
LONG = 90.0
#: Minimum probability of a class: log odds of -4 for two classes, 0.01 for more classes.
LEAST_OF_TWO, LEAST_OF_MANY = 1 / (1 + math.exp(4.0)), 0.01
#: Tolerance for the sum of the probabilities of a row.
SLACK = 1e-6
#: Maximum number of rows on which the comparisons of trees are counted.
COUNTED = 10_000


def distill(
    teacher: Teacher,
    X: TableLike,
    *,
    mean_comparisons: float = 60.0,
    classes: ArrayLike | None = None,
    task: Task | None = None,
    n_synthetic: int | None = None,
    kind: SyntheticKind = "neighbors",
    synthetic_fraction: float | None = None,
    n_neighbors: int = 10,
    learning_rate: float | None = None,
    first_tree_comparisons: float = 4.6,
    tree_comparisons: float = 4.0,
    categorical_features: Categorical = None,
    rng: Seed = None,
    n_threads: int | None = None,
) -> GradientBoostingModel:
    """Fit a small gradient boosting model that imitates a larger model (distillation).

    The teacher predicts class probabilities for many synthetic rows and for the rows of X. A
    gradient boosting model, whose trees grow by gain per comparison, is fitted to these
    probabilities. It is more accurate than a model of the same size that is fitted to the classes.
    If you add exits with `early_exit`, set `mean_comparisons` to about three times the budget.

    Parameters
    ----------
    teacher : model, or callable
        A fitted model, or a function of an array of rows (m, d). The function returns class
        probabilities (m, J), the probabilities (m,) of the second of two classes or, with
        ``task="regression"``, predicted values (m,).
    X : array_like of shape (n, d), data frame
        Rows from the distribution of new rows, such as the training rows of the teacher. No classes
        are needed.
    mean_comparisons : float
        Maximum mean number of comparisons per row, at least 1.
    classes : array_like of shape (J,), optional
        The classes, in the order of the probabilities, if the teacher is a function. By default
        0, 1, ....
    task : {"classification", "regression"}, optional
        The task, if the teacher is a function. By default "classification".
    n_synthetic : int, optional
        Number of synthetic rows, which may be 0. By default, five per row of `X`, but at least
        15,000 and at most 100,000.
    kind : {"neighbors", "random"}
        Source of the replaced values of a synthetic row. With "neighbors", it is one of the
        `n_neighbors` nearest rows, by the ranks of the feature values. With "random", it is any
        row.
    synthetic_fraction : float, optional
        Probability, in [0, 1], that the value of a feature is replaced. By default 0.25 if
        `mean_comparisons` is below 90, else 0.2.
    n_neighbors : int
        Number of nearest rows.
    learning_rate : float, optional
        See `fit_gradient_boosting`. By default 0.5 if `mean_comparisons` is below 90, else 0.25.
    first_tree_comparisons, tree_comparisons : float
        Maximum mean number of comparisons in the first tree and in each other tree, at least 1.
    categorical_features : sequence of str or int, optional
        See `fit_gradient_boosting`.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for the synthetic rows.
    n_threads : int or None
        Number of threads; -1 uses all cores. By default, the number depends on the amount of work.
        The model does not depend on it.

    Returns
    -------
    GradientBoostingModel
        A model with the log loss for two classes and the squared error for regression. With more
        classes, it has the softmax loss and one tree per iteration.

    Raises
    ------
    ValueError
        If the teacher returns invalid predictions, such as NaN, class labels or an array of another
        shape, or if an option is out of range.
    TypeError
        If the teacher is neither a model nor a function.
    NotImplementedError
        If the teacher is a function and `X` has categorical features.

    Notes
    -----
    If there are more than 20,000 rows, synthetic rows are made from a random sample of 10,000 rows.
    All values of a synthetic row occur in the data, including missing values and categories. For
    two classes, probabilities are clipped at log odds of 4 and -4. For more classes, probabilities
    below 0.01 are set to 0.

    References
    ----------
    .. [1] C. Bucila, R. Caruana and A. Niculescu-Mizil, "Model compression", KDD 2006.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2] > 0
    >>> teacher = pb.fit_gradient_boosting(X, y, n_estimators=150, subsample=0.6, rng=0)
    >>> small = pb.distill(teacher, X, mean_comparisons=20, n_synthetic=2000, rng=0)
    >>> for model in teacher, small:
    ...     print(f"{pb.prediction_cost(model, X).mean():.1f} comparisons per row")
    888.5 comparisons per row
    16.6 comparisons per row
    >>> print(f"{np.mean(pb.predict(small, X) == pb.predict(teacher, X)):.1%} equal predictions")
    98.8% equal predictions
    """
    features = as_features(X, categorical_features)
    budget = check_number("mean_comparisons", mean_comparisons, min_value=1.0)
    synthetic_fraction = (
        (0.25 if budget < LONG else 0.2) if synthetic_fraction is None else synthetic_fraction
    )
    rate = (0.5 if budget < LONG else 0.25) if learning_rate is None else learning_rate
    n = features.n_rows
    count = min(max(LEAST, PER_ROW * n), MOST) if n_synthetic is None else n_synthetic
    drawn = (
        check_integer("n_synthetic", count, min_value=0),
        check_choice("kind", kind, KINDS),
        check_number("synthetic_fraction", synthetic_fraction, min_value=0.0, max_value=1.0),
        check_integer("n_neighbors", n_neighbors, min_value=1),
    )
    trees = [
        min(check_number(name, bound, min_value=1.0), budget)
        for name, bound in (
            ("first_tree_comparisons", first_tree_comparisons),
            ("tree_comparisons", tree_comparisons),
        )
    ]
    if n == 0:
        raise ValueError("X: expected at least one row, got no rows")
    made = synthetic_rows(features, *drawn, as_generator(rng))
    rows = replace(features, values=np.concatenate([made, features.values]))
    options = _told(teacher, rows, classes, check_choice("task", task or TASKS[0], TASKS))
    held = held_back(options.get("task"))
    student = fit_gradient_boosting(
        rows,
        **options,
        learning_rate=rate,
        n_estimators=math.ceil(1.2 * budget / trees[1]) + 1,
        growth="cost_efficient",
        tree_comparisons=trees,
        max_depth=None,
        min_child_weight=held,
        l2_regularization=held,
        leaf_shrinkage=0.0,
        leaf_update="newton",
        n_threads=n_threads,
    )
    student = student.truncate(_length(student, features, budget))
    synthetic_settings = dict(
        zip(("n_synthetic", "kind", "synthetic_fraction", "n_neighbors"), drawn, strict=True)
    )
    # `seen` contains the rows of X and the training rows of the teacher, but no synthetic rows.
    known = teacher.digests() if isinstance(teacher, Model) and features.table is None else []
    seen = merged(digest_of_rows(features.values), *known)
    settings = {**student.settings, **synthetic_settings, "distilled": budget}
    return replace(student, settings=settings, seen=seen)


def held_back(task: str | None) -> float:
    """Return the value of `min_child_weight` and `l2_regularization` for a task."""
    return 0.5 if task == TASKS[1] else 1.0


def _length(model: GradientBoostingModel, X: Features, budget: float) -> int:
    """Return the number of trees within a budget of comparisons, at least 1."""
    rows = X.take(slice(None, None, max(1, X.n_rows // COUNTED)))
    trees = model.trees
    depth = trees.node_depth()[trees.nodes_of(rows) + trees.root[:-1]]
    cost = np.cumsum(depth.mean(axis=0))
    return max(1, int(np.count_nonzero(cost <= budget)))


def _told(teacher: Teacher, rows: Features, classes: ArrayLike | None, task: str) -> dict[str, Any]:
    """Return the predictions of the teacher as options of `fit_gradient_boosting`."""
    if isinstance(teacher, Model):
        if teacher.classes is None:
            return _numbers(predict(teacher, rows))
        return _probabilities(predict_proba(teacher, rows), teacher.classes)
    if not callable(teacher):
        raise TypeError(
            f"teacher: expected a model or a function of rows, got {type(teacher).__name__}; for a "
            "scikit-learn estimator, pass its method predict_proba"
        )
    if rows.table is not None and rows.table.has_levels:
        raise NotImplementedError(
            "teacher: expected a model, since X has categorical features, got a function; a "
            "function receives an array of numbers without categories"
        )
    predictions = np.asarray(teacher(rows.values))
    if predictions.dtype.kind != "f":
        raise ValueError(
            f"teacher: expected probabilities, got an array of {predictions.dtype}; for a "
            "scikit-learn estimator, pass its method predict_proba"
        )
    n, shapes = rows.n_rows, "(n,)" if task == TASKS[1] else "(n,) or (n, J) with J >= 2"
    is_shaped = predictions.ndim == 1 or (
        task != TASKS[1] and predictions.ndim == 2 and predictions.shape[1] > 1
    )
    if not is_shaped or len(predictions) != n:
        raise ValueError(
            f"teacher: expected an array of shape {shapes} for n = {n} rows, got shape "
            f"{predictions.shape}"
        )
    if task == TASKS[1]:
        return _numbers(predictions)
    return _probabilities(predictions.astype(np.float64), classes)


def _numbers(predictions: FloatArray) -> dict[str, Any]:
    if (k := first_false(np.isfinite(predictions))) >= 0:
        raise ValueError(f"teacher: expected finite numbers, got {predictions[k]} for row {k}")
    return {"y": predictions, "task": "regression", "loss": "squared_error"}


def _probabilities(probabilities: FloatArray, classes: ArrayLike | None) -> dict[str, Any]:
    is_fine = (probabilities >= -SLACK) & (probabilities <= 1.0 + SLACK)
    if probabilities.ndim == 2:
        is_fine = is_fine.all(axis=1) & (np.abs(probabilities.sum(axis=1) - 1.0) <= SLACK)
    if (k := first_false(is_fine)) >= 0:
        raise ValueError(
            "teacher: expected probabilities in [0, 1] that sum to 1 in each row, got "
            f'{probabilities[k]} for row {k}; for predicted values, pass task="regression"'
        )
    if probabilities.ndim == 1 or probabilities.shape[1] == 2:
        second = probabilities if probabilities.ndim == 1 else probabilities[:, 1]
        share = np.clip(second, LEAST_OF_TWO, 1.0 - LEAST_OF_TWO)
        return {"y_proba": share, "classes": classes, "loss": "log_loss"}
    share = np.where(probabilities < LEAST_OF_MANY, 0.0, probabilities)
    share /= share.sum(axis=1, keepdims=True)
    return {
        "y_proba": share,
        "classes": classes,
        "loss": "softmax",
        "multi_strategy": "multi_output_tree",
    }
