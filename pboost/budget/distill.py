"""Small sums of trees that imitate a larger model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pboost.budget.synthetic import KINDS, synthetic_rows
from pboost.data.read.check_xy import TASKS, as_features
from pboost.data.read.convert import Features
from pboost.data.read.table import Categorical
from pboost.data.row_digest import digest_of_rows, merged
from pboost.models.base import Model, evaluation_cost, predict, predict_proba
from pboost.models.tree_sum import StagewiseModel
from pboost.trees.stagewise import fit_stagewise
from pboost.values import (
    FloatArray,
    Seed,
    as_generator,
    check_choice,
    check_integer,
    check_number,
    first_false,
)

Teacher: TypeAlias = Model | Callable[[Any], ArrayLike]
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
    X: Any,
    *,
    comparisons: float = 60.0,
    labels: ArrayLike | None = None,
    task: str | None = None,
    synthetic: int | None = None,
    kind: str = "neighbours",
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


def _told(teacher: Any, rows: Features, labels: Any, task: str) -> dict[str, Any]:
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


def _probabilities(found: FloatArray, labels: Any) -> dict[str, Any]:
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
