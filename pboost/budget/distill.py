"""Small models that imitate large ones, on real and synthetic rows."""

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
from pboost.data.row_digest import digest_of_rows, merged
from pboost.models.base import Model, evaluation_cost, predict, predict_proba
from pboost.models.tree_sum import StagewiseModel
from pboost.trees.stagewise import fit_stagewise
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

#: Where a row has what it takes from another: from one of the nearest, or from any.
SyntheticKind: TypeAlias = Literal["neighbours", "random"]
KINDS: tuple[SyntheticKind, ...] = get_args(SyntheticKind)
#: Of more rows than these so many are drawn, and neighbours are looked for among them.
MANY_ROWS, DRAWN_ROWS = 20_000, 10_000
#: Distances that are known at a time.
BLOCK = 1 << 22
#: Parts of a row of distances whose minima bound what is near, at least.
PARTS = 128

_Places: TypeAlias = tuple[FloatArray, list[FloatArray], list[float]]


def synthetic_rows(
    X: Features, count: int, kind: str, share: float, neighbours: int, rng: np.random.Generator
) -> Array:
    """Return so many rows, (count, d), whose values all occur in their columns.

    Each is a row of `X` that is drawn, which takes the value of each column with probability
    `share` from one of its nearest rows, missing values and levels as they are.
    """
    values, table = X.values, X.table
    if X.n_rows > MANY_ROWS:
        values = values[np.sort(rng.choice(X.n_rows, DRAWN_ROWS, replace=False))]
    n, d = values.shape
    base, other = rng.integers(n, size=count), rng.integers(n, size=count)
    n_near = min(neighbours, n - 1)
    if kind == "neighbours" and n_near > 0:
        is_level = np.array([table is not None and table.levels[j] is not None for j in range(d)])
        other = nearest(values, is_level, n_near)[base, rng.integers(n_near, size=count)]
    found = np.empty((count, d), dtype=values.dtype)
    for j in range(d):
        row = np.where(rng.random(count) < share, other, base)
        found[:, j] = values[row, j]
    return found


def nearest(values: Array, is_level: NDArray[np.bool_], k: int) -> NDArray[np.intp]:
    """Return the k other rows, (n, k), that are nearest to each, the nearest first.

    Distances are Euclidean, between the ranks of numbers by their standard deviation. A missing
    value is in the middle and one further away; different levels are as far apart as two rows of a
    column of numbers are on average.
    """
    from scipy.spatial.distance import cdist  # not at import: see bounds._tree.terms_at_2

    n = len(values)
    place, level, weight = _places(values, is_level)
    found = np.empty((n, k), dtype=np.intp)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        far = cdist(place[rows], place, "sqeuclidean")
        for of_column, of_level in zip(level, weight, strict=True):
            far += of_level * (of_column[rows, None] != of_column)
        far[np.arange(len(rows)), rows] = np.inf
        found[rows] = _least(far, start, k)
    return found


def _least(far: FloatArray, first: int, k: int) -> NDArray[np.intp]:
    """Return the places of the k least values of each row, in order, of rows `first`, first + 1, ….

    Of equal values those that follow the row come first, round about: so rows that are equally far
    take turns. The k-th least of the minima of parts of a row bounds what can be among them.
    (`numpy.argpartition` takes longer, and its order depends on the processor.)
    """
    m, n = far.shape
    bound = np.full(m, np.inf)
    if n >= 2 * (parts := max(PARTS, k)):
        least = far[:, :parts].copy()
        for start in range(parts, n - parts + 1, parts):
            np.minimum(least, far[:, start : start + parts], out=least)
        bound = np.partition(least, k - 1, axis=1)[:, k - 1]
    row, place = np.divmod(np.flatnonzero(far <= bound[:, None]), n)
    order = np.lexsort(((place - first - row) % n, far[row, place], row))
    at = np.searchsorted(row, np.arange(m))[:, None] + np.arange(k)
    return place[order[at]]


def _places(values: Array, is_level: NDArray[np.bool_]) -> _Places:
    """Return where rows lie, (n, d'); the levels of columns of these, and what levels are apart."""
    from scipy.stats import rankdata  # not at import: see bounds._tree.terms_at_2

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
#: Synthetic rows by default: at least, for each row, and at most.
LEAST, PER_ROW, MOST = 15_000, 5, 100_000
#: Comparisons from which on steps are smaller and synthetic rows nearer to real ones.
LONG = 90.0
#: Least probability of one of two labels, that of log odds of 4, and of one of many.
LEAST_OF_TWO, LEAST_OF_MANY = 1 / (1 + math.exp(4.0)), 0.01
#: By how much probabilities of a row may miss 1.
SLACK = 1e-6
#: Rows on which the comparisons of trees are counted, at most.
COUNTED = 10_000


def distill(
    teacher: Teacher,
    X: TableLike,
    *,
    comparisons: float = 60.0,
    labels: ArrayLike | None = None,
    task: Task | None = None,
    synthetic: int | None = None,
    kind: SyntheticKind = "neighbours",
    share: float | None = None,
    neighbours: int = 10,
    learning_rate: float | None = None,
    first_tree: float = 4.6,
    other_trees: float = 4.0,
    categorical: Categorical = None,
    rng: Seed = None,
    n_threads: int | None = None,
) -> StagewiseModel:
    """Fit a short sum of trees that imitates a larger model.

    The teacher says of many synthetic rows, and of the rows given, how probable each label is; a
    sum of trees is fitted to these probabilities, whose trees grow by gain per comparison. It is
    more accurate than one of the same length that is fitted to the labels of the rows. With
    `early_exit` it is a model for a budget of about a third of `comparisons`.

    Parameters
    ----------
    teacher : model, or callable
        A fitted model; or a function that returns for an array of rows, (m, d), the probabilities
        (m, J) of labels, or (m,) of the second of two, or with ``task="regression"`` numbers (m,).
    X : array_like of shape (n, d), data frame
        Rows as they will come, such as those that the teacher was fitted to. No labels are needed.
    comparisons : float
        Mean number of comparisons of a row, at least 1, at which the sum ends.
    labels : array_like of shape (J,), optional
        Of a function: the labels of its probabilities; default 0, 1, ....
    task : {"classification", "regression"}, optional
        What a function returns; default "classification". A model knows.
    synthetic : int, optional
        Number of synthetic rows; default 15,000, or five for each row where that is more, 100,000
        at most. 0: none.
    kind : {"neighbours", "random"}
        Where a synthetic row takes values from: one of the `neighbours` rows next to it, by the
        ranks of their values; or any row.
    share : float, optional
        Probability in [0, 1] with which a synthetic row takes the value of a column from there;
        default 0.25 below 90 `comparisons`, else 0.2.
    neighbours : int
        How many rows are next to a row.
    learning_rate : float, optional
        See `fit_stagewise`; default 0.5 below 90 `comparisons`, else 0.25.
    first_tree, other_trees : float
        Mean number of comparisons in the first tree and in each of the others, at most, at least 1.
    categorical : sequence of str or int, optional
        See `fit_stagewise`.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the synthetic rows.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth. The model does not depend on it.

    Returns
    -------
    StagewiseModel
        Of the logistic loss, of softmax with one tree a round, or of the squared loss.

    Raises
    ------
    ValueError
        If what the teacher returns is not as described, as NaN, labels, or another shape; or if an
        option is out of its range.
    TypeError
        If the teacher is neither a model nor a function.
    NotImplementedError
        If the teacher is a function and `X` has categories.

    Notes
    -----
    Above 20,000 rows synthetic ones are made from 10,000 that are drawn. All values of a synthetic
    row occur in their columns, missing ones and levels, too. Probabilities of two labels beyond
    those of log odds of 4 are set there; of more labels those below 0.01 are left out.

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
    >>> teacher = pb.fit_stagewise(X, y, steps=150, bag=0.6, rng=0)
    >>> small = pb.distill(teacher, X, comparisons=20, synthetic=2000, rng=0)
    >>> bool(pb.evaluation_cost(small, X).mean() <= 20.5)
    True
    >>> bool(np.mean(pb.predict(small, X) == pb.predict(teacher, X)) > 0.9)
    True
    """
    features = as_features(X, categorical)
    most = check_number("comparisons", comparisons, least=1.0)
    share = (0.25 if most < LONG else 0.2) if share is None else share
    rate = (0.5 if most < LONG else 0.25) if learning_rate is None else learning_rate
    n = features.n_rows
    count = min(max(LEAST, PER_ROW * n), MOST) if synthetic is None else synthetic
    drawn = (
        check_integer("synthetic", count, least=0),
        check_choice("kind", kind, KINDS),
        check_number("share", share, least=0.0, most=1.0),
        check_integer("neighbours", neighbours, least=1),
    )
    trees = [
        min(check_number(name, bound, least=1.0), most)
        for name, bound in (("first_tree", first_tree), ("other_trees", other_trees))
    ]
    if n == 0:
        raise ValueError("X: expected at least one row, got no rows")
    made = synthetic_rows(features, *drawn, as_generator(rng))
    rows = replace(features, values=np.concatenate([made, features.values]))
    options = _told(teacher, rows, labels, check_choice("task", task or TASKS[0], TASKS))
    held = held_back(options.get("task"))
    student = fit_stagewise(
        rows,
        **options,
        learning_rate=rate,
        steps=math.ceil(1.2 * most / trees[1]) + 1,
        growth="per-comparison",
        tree_comparisons=trees,
        max_depth=None,
        min_weight=held,
        l2=held,
        leaf_step="newton",
        n_threads=n_threads,
    )
    student = student.prefix(_length(student, features, most))
    said = dict(zip(("synthetic", "kind", "share", "neighbours"), drawn, strict=True))
    # Synthetic rows are nobody's; what the teacher was fitted to, it has told.
    known = teacher.digests() if isinstance(teacher, Model) and features.table is None else []
    seen = merged(digest_of_rows(features.values), *known)
    settings = {**student.settings, **said, "distilled": most}
    return replace(student, settings=settings, seen=seen)


def held_back(task: str | None) -> float:
    """Return `min_weight` and `l2` of trees of a task: half as much with the squared loss."""
    return 0.5 if task == TASKS[1] else 1.0


def _length(model: StagewiseModel, X: Features, most: float) -> int:
    """Return how many trees take so many comparisons of rows at most, at least one."""
    rows = X.take(slice(None, None, max(1, X.n_rows // COUNTED)))
    cost = np.cumsum([evaluation_cost(tree, rows).mean() for tree in model.trees])
    return max(1, int(np.count_nonzero(cost <= most)))


def _told(teacher: Teacher, rows: Features, labels: ArrayLike | None, task: str) -> dict[str, Any]:
    """Return what a sum of trees is fitted to, as its options."""
    if isinstance(teacher, Model):
        if teacher.labels is None:
            return _numbers(predict(teacher, rows))
        return _probabilities(predict_proba(teacher, rows), teacher.labels)
    if not callable(teacher):
        raise TypeError(
            f"teacher: expected a model or a function of rows, got {type(teacher).__name__}; of an "
            "estimator its method predict_proba is one"
        )
    if rows.table is not None and rows.table.has_levels:
        raise NotImplementedError(
            "teacher: expected a model, since X has categories: a function is given an array of "
            "numbers, which has none"
        )
    found = np.asarray(teacher(rows.values))
    if found.dtype.kind != "f":
        raise ValueError(
            f"teacher: expected probabilities, floats, got an array of {found.dtype}: labels? Of "
            "an estimator pass the method predict_proba"
        )
    n, shapes = rows.n_rows, "(n,)" if task == TASKS[1] else "(n,) or (n, J) with J of 2 or more"
    is_shaped = found.ndim == 1 or (task != TASKS[1] and found.ndim == 2 and found.shape[1] > 1)
    if not is_shaped or len(found) != n:
        raise ValueError(
            f"teacher: expected an array of shape {shapes} for n = {n} rows, got {found.shape}"
        )
    if task == TASKS[1]:
        return _numbers(found)
    return _probabilities(found.astype(np.float64), labels)


def _numbers(found: FloatArray) -> dict[str, Any]:
    if (k := first_false(np.isfinite(found))) >= 0:
        raise ValueError(f"teacher: expected finite numbers, got {found[k]} for row {k}")
    return {"y": found, "task": "regression", "loss": "squared"}


def _probabilities(found: FloatArray, labels: ArrayLike | None) -> dict[str, Any]:
    is_fine = (found >= -SLACK) & (found <= 1.0 + SLACK)
    if found.ndim == 2:
        is_fine = is_fine.all(axis=1) & (np.abs(found.sum(axis=1) - 1.0) <= SLACK)
    if (k := first_false(is_fine)) >= 0:
        raise ValueError(
            "teacher: expected probabilities in [0, 1], those of a row with the sum 1, got "
            f'{found[k]} for row {k}; with task="regression" a function gives numbers'
        )
    if found.ndim == 1 or found.shape[1] == 2:
        second = found if found.ndim == 1 else found[:, 1]
        share = np.clip(second, LEAST_OF_TWO, 1.0 - LEAST_OF_TWO)
        return {"y_proba": share, "labels": labels, "loss": "logistic"}
    share = np.where(found < LEAST_OF_MANY, 0.0, found)
    share /= share.sum(axis=1, keepdims=True)
    return {"y_proba": share, "labels": labels, "loss": "softmax", "trees": "one"}
