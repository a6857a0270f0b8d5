"""Cross-validate models: measure error and cost on rows that were not used for training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.columns.columns import SortedColumns, values_of
from pboost.data.columns.prebuilt import MAX_BINS
from pboost.data.read.check_xy import (
    as_classes,
    as_targets,
    as_weights,
    check_has_rows,
    class_codes,
)
from pboost.data.read.convert import RowTable
from pboost.data.resampling import any_folds, assign_folds
from pboost.data.row_source import LabelOptions, RowSource, rows_of_fit
from pboost.data.targets import (
    REGRESSION,
    SoftLabels,
    fitted,
    numbers_given,
    task_of_fit,
    with_task,
)
from pboost.data.training_data import check_values, rows_to_predict
from pboost.losses.metrics import absolute_error, auc, brier_score, log_loss, r2, weighted_mean
from pboost.models.base import (
    Model,
    TwoClassModel,
    Walks,
    check_model,
    decision_function,
    predict,
    predict_proba,
    prediction_cost,
)
from pboost.models.early_exit_model import EarlyExitModel
from pboost.models.evaluate.match_input import read_rows
from pboost.models.schema import Stored, column
from pboost.values import (
    Array,
    FloatArray,
    IntArray,
    Seed,
    TableLike,
    Task,
    as_generator,
    bar_of,
    check_integer,
    child,
    draw_seed,
    freeze,
)
from pboost.values.options import BarOptions, builder, check_fit, takes_rng, unwrapped


def truth_for(model: Model, y: ArrayLike, n: int) -> Array:
    """Return the true targets or classes of n rows. The model must have these classes."""
    classes = model.classes
    return as_targets(y, n) if classes is None else classes[class_codes(classes, y, n)]


def row_errors(model: Model, predicted: Array, truth: Array) -> Array:
    """Return the squared error of each prediction for regression, else 1 for a wrong class."""
    return (predicted - truth) ** 2 if model.classes is None else predicted != truth


# The cross-validation

#: Measures other than the error, and their titles in the summary.
MEASURES = {
    "auc": "AUC",
    "log_loss": "log loss",
    "brier": "Brier score",
    "mae": "mean absolute error",
    "r2": "R squared",
}


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation(Stored):
    """Result of a cross-validation. ``print`` shows it.

    Attributes
    ----------
    error : ndarray of float64, shape (folds,)
        Weighted misclassification rate on the test rows of each fold; for regression, the mean
        squared error.
    cost : ndarray of float64, shape (folds,)
        Mean number of weak classifiers evaluated per test row, weighted in the same way.
    certificate : ndarray of float64, shape (folds,)
        Certificate of each model, an upper bound on its training error; NaN if it has none.
    n_nodes : ndarray of int32, shape (folds,)
        Number of nodes of each model.
    fit_seconds, predict_seconds : ndarray of float64, shape (folds,)
        Wall-clock time of each fit, and of predicting all test rows of each fold.
    test_fold : ndarray of int32, shape (n,)
        The fold in which each row was tested.
    certificate_note : str
        Explanation of the certificates. It is empty if observations are exact.
    task : {"classification", "regression"}
        The task of the models.
    auc : ndarray of float64, shape (folds,), or None
        Area under the ROC curve, for classification. It is computed from the probability of the
        second class, or from the decision value if the model has no probabilities. With more than
        two classes it is the mean of the one-vs-rest areas. NaN if all test rows of a fold have the
        same class.
    log_loss, brier : ndarray of float64, shape (folds,), or None
        Log loss and Brier score, for classification. For the log loss, probabilities are clipped to
        [2**-52, 1 - 2**-52]. The Brier score is the mean squared error of the probability of the
        second class or, with more than two classes, the sum over all classes. NaN if the model has
        no probabilities.
    proven_cost : ndarray of float64, shape (folds,), or None
        The cost if the prediction of a row stops as soon as the remaining votes cannot change the
        class; NaN for models that do not support this.
    whole_cost : ndarray of float64, shape (folds,), or None
        The cost without early exits. It differs from `cost` only for an `EarlyExitModel`.
    mae, r2 : ndarray of float64, shape (folds,), or None
        Mean absolute error and R², for regression, with the same weights as the error. R² is NaN if
        the targets of the test rows are all equal.
    """

    error: FloatArray = column(np.float64, finite=False)
    cost: FloatArray = column(np.float64, finite=False)
    certificate: FloatArray = column(np.float64, finite=False)
    n_nodes: IntArray = column(np.int32)
    fit_seconds: FloatArray = column(np.float64, finite=False)
    predict_seconds: FloatArray = column(np.float64, finite=False)
    test_fold: IntArray = column(np.int32)
    certificate_note: str = ""
    task: Task = "classification"
    auc: FloatArray | None = column(np.float64, finite=False, optional=True)
    log_loss: FloatArray | None = column(np.float64, finite=False, optional=True)
    brier: FloatArray | None = column(np.float64, finite=False, optional=True)
    mae: FloatArray | None = column(np.float64, finite=False, optional=True)
    r2: FloatArray | None = column(np.float64, finite=False, optional=True)
    proven_cost: FloatArray | None = column(np.float64, finite=False, optional=True)
    whole_cost: FloatArray | None = column(np.float64, finite=False, optional=True)

    @property
    def error_sd(self) -> float:
        """Return the standard deviation of the error over the folds (``ddof=1``)."""
        return float(np.std(self.error, ddof=1)) if len(self.error) > 1 else 0.0

    def _mean(self, name: str) -> str:
        """Return the mean of a measure over the folds as text, or "" if there is none."""
        values = getattr(self, name)
        if values is None or np.isnan(values).all():
            return ""
        known = values[~np.isnan(values)]
        of = "" if len(known) == len(values) else f" ({len(known)} of {len(values)} folds)"
        return f"{known.mean():.4g}{of}"

    def _other_costs(self) -> list[tuple[str, str]]:
        """Return the names and means of the other costs that are defined and differ from `cost`."""
        named = ("until settled", self.proven_cost), ("whole model", self.whole_cost)
        return [
            (name, f"{costs.mean():.2f}")
            for name, costs in named
            if not (costs is None or np.isnan(costs).any() or np.array_equal(costs, self.cost))
        ]

    def summary(self) -> str:
        """Return the means over the folds as text.

        Returns
        -------
        str
            One line per quantity.
        """
        unbounded = bool(np.isnan(self.certificate).any())
        share = ("test error", f"{self.error.mean():.2%} ± {self.error_sd:.2%} (sd)")
        square = ("mean squared error", f"{self.error.mean():.4g} ± {self.error_sd:.4g} (sd)")
        rows = [
            share if self.task == "classification" else square,
            *((title, mean) for name, title in MEASURES.items() if (mean := self._mean(name))),
            ("comparisons per row", f"{self.cost.mean():.2f}"),
            *self._other_costs(),
            *([] if unbounded else [("certificate", f"{self.certificate.mean():.4g}")]),
            ("nodes", f"{self.n_nodes.mean():.1f}"),
            ("fit time", f"{self.fit_seconds.mean():.4g} s"),
            ("predict time", f"{self.predict_seconds.mean():.4g} s"),
        ]
        title = f"{len(self.error)}-fold cross-validation of {len(self.test_fold)} rows, means:"
        lines = [title, *(f"  {name:<20} {value}" for name, value in rows)]
        if self.certificate_note:
            lines.append(f"  the certificate {self.certificate_note}")
        return "\n".join(lines)

    __str__ = summary


class FoldOptions(LabelOptions, BarOptions, total=False):
    """The options that `cross_validate` shares with fit functions."""


@builder
def cross_validate(
    fit: Callable[..., Model],
    X: TableLike | SortedColumns | RowSource,
    y: ArrayLike | None = None,
    *,
    task: Task | None = None,
    cv: int = 10,
    rng: Seed = None,
    **options: Unpack[FoldOptions],
) -> CrossValidation:
    """Fit and test a model once per fold, testing each row exactly once.

    Folds are stratified: their sizes, and their numbers of rows of each class, differ by at most
    one. A class with fewer rows than folds is absent from some folds, and a UserWarning is issued.

    Parameters
    ----------
    fit : callable
        A function ``fit(X, y)`` that returns a model, for example
        ``functools.partial(pb.fit_adaboost, n_estimators=100)``. If sample weights are passed, it
        is also called with ``sample_weight``; if class probabilities are passed, it is called with
        ``y_proba`` and ``classes`` instead of y. If it is a ``functools.partial`` with
        ``observation=pb.observation.gaussian(sigma)``, and `sigma` has one row per row of X, each
        fit receives the rows of `sigma` for its training rows.
    X : array_like of shape (n, d), data frame or SortedColumns
        Features. `fit` receives rows of the same type: arrays or data frames. Sorted columns are
        not sorted again for each fold.
    y : array_like of shape (n,), optional
        Class labels; more than two classes are possible if `fit` supports them. For regression,
        finite numbers.
    task : {"classification", "regression"}, optional
        The task. By default, it is inferred from `fit` if the function or its options, such as the
        loss, allow only one task. Otherwise text, booleans and at most 20 distinct integers are
        classes, and numbers that are not all integers are regression targets. With more than 20
        distinct integers, pass the task. If `fit` has an option `task` that is not set, it receives
        this task. It must return models of this task. The folds of a regression are not stratified.
    cv : int, default 10
        Number of folds, from 2 to the number of rows of the most frequent class.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState, optional
        Source of randomness for shuffling the rows. If `fit` takes an `rng` that has not been set
        (for example by ``functools.partial``), each fold receives a generator derived from this
        one.
    sample_weight : array_like of shape (n,), optional
        Weight of each row, in training and in the test measures.
    callback : callable, optional
        Called as ``callback(fold, error)`` after each fold, where `fold` starts at 1. If it returns
        True, cross-validation stops and the result contains the folds so far.
    **options
        See `FoldOptions`.

    Returns
    -------
    CrossValidation
        The errors, costs, certificates, times and other measures of each fold.

    Raises
    ------
    ValueError
        If lengths differ, if there are fewer than two classes, if every class has fewer rows than
        there are folds, if a training part would contain a single class, or if `fit` returns models
        of the other task.

    Warns
    -----
    UserWarning
        If a class has fewer rows than there are folds.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> y = np.where(X[:, 0] < 20, "low", "high")
    >>> result = pb.cross_validate(partial(pb.fit_adaboost, n_estimators=3), X, y, cv=5, rng=0)
    >>> print(result.error)
    [0.125 0.    0.    0.125 0.   ]
    """
    X, target, sample_weight = rows_of_fit(X, y, options)
    needs = {"sample_weight": sample_weight, "y_proba": options["y_proba"]}
    check_fit(cross_validate, "fit", fit, {}, [name for name in needs if needs[name] is not None])
    cv = check_integer("cv", cv, min_value=2)
    if isinstance(X, RowSource):
        check_values(X.bins)
        rows: Any = X
        task = X.task(task)
        target, sample_weight = X.targets_here(task)
    else:
        rows = rows_to_predict(X)
    n = rows.n_rows
    check_has_rows(n)
    task = task_of_fit(fit, {}, target, task)
    fit = with_task(fit, task)
    weight, generator = as_weights(sample_weight, n), as_generator(rng)
    truth, values = _truth(target, n, task)
    test_fold = deal_rows(truth, task, weight, cv, generator)
    results: list[dict[str, float]] = []
    folds_ = fold_fits(fit, X, rows, truth, weight, test_fold, cv, generator)
    with bar_of(options)(cv, "folds") as on_step:
        for model, test, test_rows, fit_seconds in folds_:
            _check_task(model, task)
            importance = None if weight is None else weight[test]
            tested = _tested(model, test_rows, truth[test], values, importance)
            results.append({**tested, "fit_seconds": fit_seconds})
            if on_step is not None and on_step(len(results), tested["error"]):
                break
    measured = {name: np.array([result[name] for result in results]) for name in results[0]}
    return CrossValidation(
        **measured, test_fold=test_fold, certificate_note=model.certificate_note, task=task
    )


def _truth(target: Any, n: int, task: str) -> tuple[Any, Array | None]:
    """Check and return the target of n rows. Also return its classes, or None for regression."""
    if task == "regression":
        return as_targets(numbers_given(target), n), None
    if isinstance(target, SoftLabels):
        target.check_rows(n)
        return target, target.classes
    values, code = as_classes(target, n)
    return values[code], values


def _tested(
    model: Model, rows: TableLike, truth: Any, classes: Array | None, weight: FloatArray | None
) -> dict[str, float]:
    """Return the measures of a model on test rows; `classes` is None for regression."""
    start = time.perf_counter()
    rows = read_rows(model, rows)
    predicted = predict(model, rows)
    seconds = time.perf_counter() - start
    of_rows = weight
    if classes is None:
        loss = (predicted - truth) ** 2
        more = {
            "mae": absolute_error(predicted, truth, weight),
            "r2": r2(predicted, truth, weight),
        }
    else:
        at, code, weight = _classes(truth, classes, weight)
        loss, more = (
            predicted[at] != classes[code],
            _of_shares(model, rows, at, code, classes, weight),
        )
    return {
        "error": weighted_mean(loss, weight),
        **_costs(model, rows, of_rows),
        "certificate": model.record.certificate[-1] if isinstance(model, TwoClassModel) else np.nan,
        "n_nodes": model.n_nodes,
        "predict_seconds": seconds,
        **more,
    }


def _costs(model: Model, rows: TableLike, weight: FloatArray | None) -> dict[str, float]:
    """Return three mean costs: with the model's exits, with proven exits and without exits."""
    cost = weighted_mean(prediction_cost(model, rows), weight)
    full_cost, proven = cost, np.nan
    if isinstance(model, EarlyExitModel):
        full_cost = weighted_mean(prediction_cost(model, rows, exit="none"), weight)
    walked = model.without_exits
    if (
        model.classes is not None
        and isinstance(walked, Walks)
        and walked.proven_nodes() is not None
    ):
        proven = weighted_mean(prediction_cost(model, rows, exit="proven"), weight)
    return {"cost": cost, "proven_cost": proven, "whole_cost": full_cost}


def _classes(
    truth: Any, classes: Array, weight: FloatArray | None
) -> tuple[slice | NDArray[np.integer], NDArray[np.integer], FloatArray | None]:
    """Return the row number, class code and weight for each row and each possible class."""
    if not isinstance(truth, SoftLabels):
        return slice(None), np.searchsorted(classes, truth), weight
    class_data = truth.expanded(weight)
    return (
        slice(None) if class_data.entries is None else class_data.entries.rows,
        class_data.label,
        class_data.weights,
    )


def _of_shares(
    model: Model,
    rows: TableLike,
    at: slice | NDArray[np.integer],
    code: NDArray[np.integer],
    classes: Array,
    weight: FloatArray | None,
) -> dict[str, float]:
    """Return measures of the class probabilities. The model may lack some of the classes."""
    try:
        probabilities = predict_proba(model, rows)[at]
    except NotImplementedError:  # losses such as hinge have no probabilities
        score = decision_function(model, rows)[at]
        area = auc(np.column_stack([-score, score]), code, weight)
        return {"auc": area, "log_loss": np.nan, "brier": np.nan}
    share = np.zeros((len(probabilities), len(classes)))
    assert model.classes is not None
    known = np.isin(model.classes, classes)
    share[:, np.searchsorted(classes, model.classes[known])] = probabilities[:, known]
    return {
        "auc": auc(share, code, weight),
        "log_loss": log_loss(share, code, weight),
        "brier": brier_score(share, code, weight),
    }


def deal_rows(
    truth: Any, task: str, weight: FloatArray | None, folds: int, generator: np.random.Generator
) -> IntArray:
    """Return the fold in which each row is tested, stratified by class."""
    if task == REGRESSION:
        return any_folds(np.zeros(len(truth), dtype=np.int32), weight, folds, generator)
    if isinstance(truth, SoftLabels):
        return any_folds(truth.likeliest, weight, folds, generator)
    return assign_folds(truth, weight, folds, generator)


def fold_fits(
    fit: Callable[..., Model],
    X: TableLike | SortedColumns | RowSource,
    rows: RowTable,
    truth: Any,
    weight: FloatArray | None,
    test_fold: IntArray,
    folds: int,
    generator: np.random.Generator,
) -> Iterator[tuple[Model, NDArray[np.intp], TableLike, float]]:
    """Yield the model, the test row numbers, the test rows and the fit time of each fold."""
    seed = draw_seed(generator) if takes_rng(fit) else None
    for fold in range(folds):
        train, test = np.flatnonzero(test_fold != fold), np.flatnonzero(test_fold == fold)
        options: dict[str, Any] = {} if weight is None else {"sample_weight": weight[train]}
        y = truth[train]
        if isinstance(X, RowSource):  # the source contains targets and weights
            options, y = {}, None
        if seed is not None:
            options["rng"] = child(seed, fold)
        if isinstance(X, SortedColumns):
            of_fit = X.select(train.astype(np.int32), MAX_BINS)
        else:
            of_fit = rows.take(train)
        test_rows, start = rows.take(test), time.perf_counter()
        if isinstance(X, RowSource):
            test_rows = values_of(test_rows.gather().X)
        model = fitted(_cut(fit, train, len(test_fold)), of_fit, y, options)
        yield model, test, test_rows, time.perf_counter() - start


def _cut(fit: Callable[..., Model], rows: NDArray[np.intp], n: int) -> Callable[..., Model]:
    """Return `fit` with the standard deviations of its option `observation` for these rows."""
    observation: Any = unwrapped(fit)[1].get("observation")
    sigma = np.asarray(getattr(observation, "sigma", 0.0))
    if sigma.ndim < 2 or len(sigma) != n:
        return fit
    return partial(fit, observation=replace(observation, sigma=freeze(sigma[rows])))


def _check_task(model: Model, task: str) -> None:
    """Raise ValueError unless the fitted model has the expected task."""
    check_model(model)
    model_task = "regression" if model.classes is None else "classification"
    if model_task != task:
        raise ValueError(
            f"task: expected a fit function for {task!r}, got a function that returns {model_task} "
            f"models; pass task={model_task!r} or another fit function"
        )
