"""Cross-validation: error, cost and certificate of models on rows they were not fitted to."""

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
from pboost.data.row_source import LabelOptions, RowSource, rows_of_fit
from pboost.data.splits import any_folds, assign_folds
from pboost.data.targets import (
    REGRESSION,
    SoftLabels,
    fitted,
    numbers_given,
    task_of_fit,
    with_task,
)
from pboost.data.training import check_values, rows_to_predict
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
from pboost.models.evaluate.new_rows import read_rows
from pboost.models.stored import Stored, column
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

#: Within which distance of 0 and 1 a logarithm takes probabilities.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


def weighted_mean(values: Array, weight: FloatArray | None = None) -> float:
    """Return the mean of values by weights, whose sum need not be a finite number."""
    return float(np.average(values, weights=None if weight is None else weight / weight.max()))


def auc(share: FloatArray, code: Array, weight: FloatArray | None = None) -> float:
    """Return the area under the receiver operating characteristic.

    It is the probability that a row of a class has a larger share (n, J) of that class than a row
    of the others, where equal ones count one half; of two classes that of the second, of more the
    mean over the classes. Classes that have no rows of positive weight, or all, are left out; NaN
    if no class remains, as where all rows are of one class.
    """
    classes = range(1 if share.shape[1] == 2 else 0, share.shape[1])
    areas = [_area(code == k, share[:, k], weight) for k in classes]
    known = [area for area in areas if not np.isnan(area)]
    return float(np.mean(known)) if known else np.nan


def _area(is_one: NDArray[np.bool_], score: FloatArray, weight: FloatArray | None) -> float:
    weight = np.ones(len(score)) if weight is None else weight / weight.max()
    rank = np.unique(score, return_inverse=True)[1]
    ones, others = (np.bincount(rank, weight * of) for of in (is_one, ~is_one))
    below = np.cumsum(others) - others / 2
    pairs = ones.sum() * others.sum()
    return float(ones @ below / pairs) if pairs > 0 else np.nan


def log_loss(share: FloatArray, code: Array, weight: FloatArray | None = None) -> float:
    """Return the mean of -log of the shares (n, J) of the true classes.

    Shares are held at a distance of 2**-52 from 0 and 1, so that it is finite.
    """
    of_truth = share[np.arange(len(share)), code]
    return weighted_mean(-np.log(of_truth.clip(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)), weight)


def brier_score(share: FloatArray, code: Array, weight: FloatArray | None = None) -> float:
    """Return the mean squared error of the share of the second of two classes.

    Of more, the sum of those of all classes.
    """
    error = np.square(share - (code[:, None] == np.arange(share.shape[1])))
    return weighted_mean(error[:, 1] if share.shape[1] == 2 else error.sum(axis=1), weight)


def absolute_error(
    predicted: FloatArray, truth: FloatArray, weight: FloatArray | None = None
) -> float:
    """Return the mean absolute error of numbers."""
    return weighted_mean(np.abs(predicted - truth), weight)


def r2(predicted: FloatArray, truth: FloatArray, weight: FloatArray | None = None) -> float:
    """Return by how much the squared error is less than that of the mean, as a share of that.

    NaN where the true numbers are all the same.
    """
    around = truth - weighted_mean(truth, weight)
    scale = np.abs(around).max()  # squares of large numbers are none
    if not scale > 0 or (truth == truth[0]).all():
        return np.nan
    left, total = (
        weighted_mean(np.square(of / scale), weight) for of in (predicted - truth, around)
    )
    return 1 - left / total if total > 0 else np.nan


def truth_for(model: Model, y: ArrayLike, n: int) -> Array:
    """Return the targets of n rows, or their labels, which the model must know."""
    classes = model.classes
    return as_targets(y, n) if classes is None else classes[class_codes(classes, y, n)]


def row_errors(model: Model, predicted: Array, truth: Array) -> Array:
    """Return the squared errors of predictions, or whether labels are missed."""
    return (predicted - truth) ** 2 if model.classes is None else predicted != truth


# The cross-validation

#: Fields that are measured beside the error, and what they are called.
MEASURES = {
    "auc": "AUC",
    "log_loss": "log loss",
    "brier": "Brier score",
    "mae": "mean absolute error",
    "r2": "R squared",
}


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation(Stored):
    """Result of a cross-validation; ``print`` shows it.

    Attributes
    ----------
    error : ndarray of float64, shape (folds,)
        Share of each fold's test rows that were misclassified (of their weight, where sample
        weights were given); of a regression the mean squared error.
    cost : ndarray of float64, shape (folds,)
        Mean number of weak classifiers evaluated per test row (weighted likewise).
    certificate : ndarray of float64, shape (folds,)
        The bound on the training error that each model carries; NaN where it has none.
    n_nodes : ndarray of int32, shape (folds,)
        Size of each model.
    fit_seconds, predict_seconds : ndarray of float64, shape (folds,)
        Wall-clock time of each fit, and of predicting all test rows of each fold.
    test_fold : ndarray of int32, shape (n,)
        The fold in which each row was tested.
    certificate_note : str
        What to know of the certificates; empty where answers are exact.
    task : {"classification", "regression"}
        What was predicted.
    auc : ndarray of float64, shape (folds,), or None
        Of a classification: area under the receiver operating characteristic, by the probability
        of the second label, or by the decision value where the model gives no probabilities. Of
        more labels it is the mean over the labels, each against the others. NaN where all test rows
        of a fold have the same label.
    log_loss, brier : ndarray of float64, shape (folds,), or None
        Of a classification: mean of -log of the probability of the true label (which is held at a
        distance of 2**-52 from 0 and 1), and mean squared error of the probability of the second
        label, of more labels the sum of those of all. NaN where the model gives no probabilities.
    proven_cost : ndarray of float64, shape (folds,), or None
        The cost where rows leave as soon as no vote that is left can change the label; NaN of
        models of which that is not known without a walk through all of them.
    whole_cost : ndarray of float64, shape (folds,), or None
        The cost where rows leave at the end only: of an `EarlyExitModel` it is another than `cost`.
    mae, r2 : ndarray of float64, shape (folds,), or None
        Of a regression: mean absolute error, and 1 - (mean squared error) / (variance of the test
        rows' numbers), NaN where these are all the same. All are weighted as the error is.
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
        """Standard deviation of the error between folds (``ddof=1``)."""
        return float(np.std(self.error, ddof=1)) if len(self.error) > 1 else 0.0

    def _mean(self, name: str) -> str:
        """Return the mean of a measure over the folds that have one; nothing if none has."""
        values = getattr(self, name)
        if values is None or np.isnan(values).all():
            return ""
        known = values[~np.isnan(values)]
        of = "" if len(known) == len(values) else f" ({len(known)} of {len(values)} folds)"
        return f"{known.mean():.4g}{of}"

    def _other_costs(self) -> list[tuple[str, str]]:
        """Return what is said of other costs, if they are known and others."""
        named = ("until settled", self.proven_cost), ("whole model", self.whole_cost)
        return [
            (name, f"{costs.mean():.2f}")
            for name, costs in named
            if not (costs is None or np.isnan(costs).any() or np.array_equal(costs, self.cost))
        ]

    def summary(self) -> str:
        """Return the means over the folds as readable text.

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
    """The options of `cross_validate` that builders have, too."""


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
    """Fit and test a model once per fold, each row being tested exactly once.

    The folds are stratified: their sizes, and their numbers of rows of each class, differ by
    one at most. A class with fewer rows than there are folds is missing in some of them, which a
    UserWarning says.

    Parameters
    ----------
    fit : callable
        ``fit(X, y)`` returning a model, for example
        ``functools.partial(pb.fit_adaboost, n_estimators=100)``. Called with ``sample_weight=`` of
        the training rows in addition if sample weights are given, with ``y_proba=`` and
        ``classes=`` in place of y if these are. Of ``observation=pb.observation.gaussian(sigma)``,
        given by ``functools.partial``, with an error for each cell it gets those of the training
        rows.
    X : array_like of shape (n, d), data frame or SortedColumns
        `fit` gets rows of it in the same type: arrays as arrays, data frames as data frames.
        Sorted columns are not sorted again for each fold.
    y : array_like of shape (n,), optional
        Labels; of two values, or of more where `fit` takes more. Of a regression, finite numbers.
    task : {"classification", "regression"}, optional
        What `y` is. By default options of `fit` decide, such as a loss of numbers, and a builder
        without a regression. Otherwise text, booleans and at most 20 different whole numbers are
        classes, and numbers that are not all whole are a regression. With more different whole
        numbers it must be given.
        `fit` is passed it if it takes a `task` and its options leave it open, and must
        return models of this task. The folds of a regression are not stratified.
    cv : int, default 10
        Number of folds, at least 2 and at most the number of rows of the most frequent class.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState, optional
        Shuffles the rows. If `fit` takes an `rng`, and has not been given one, as by
        ``functools.partial``, it is given a generator for each fold that follows from this one.
    sample_weight : array_like of shape (n,), optional
        Weight of each row, in training and in the test error.
    callback : callable, optional
        Called as ``callback(fold, error)`` after each fold, `fold` counting from 1; returning
        True stops, and the result then holds the folds done so far.
    **options
        Those of `FoldOptions`.

    Returns
    -------
    CrossValidation
        Errors and other measures, costs, certificates and times per fold.

    Raises
    ------
    ValueError
        If lengths differ, there are not two classes, or there are more folds than rows of any
        class, or a training part would have rows of one class only; or if `fit` returns models of
        the other task.

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
    >>> result.error.shape
    (5,)
    >>> bool(result.error.mean() <= 0.05)
    True
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
    """Return numbers, labels or `SoftLabels` of n rows, and all labels, None of numbers."""
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
    """Return what is measured of a model on rows; of all labels, None of a regression."""
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
    """Return what rows cost: as the model has it, until labels are settled, and in the end."""
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
    """Return rows, for each a class that it is of, and the weight with which it is of that."""
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
    """Return what is measured of the probabilities of labels, of which the model may lack some."""
    try:
        probabilities = predict_proba(model, rows)[at]
    except NotImplementedError:  # the loss tells none
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
    """Return the fold in which each row is tested: stratified by labels, soft or not."""
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
    """Yield each fold's model, its test rows, by their numbers and as they are, and fit seconds."""
    seed = draw_seed(generator) if takes_rng(fit) else None
    for fold in range(folds):
        train, test = np.flatnonzero(test_fold != fold), np.flatnonzero(test_fold == fold)
        options: dict[str, Any] = {} if weight is None else {"sample_weight": weight[train]}
        y = truth[train]
        if isinstance(X, RowSource):  # which has them
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
    """Return a builder whose option `observation` knows the errors of these of n rows only."""
    observation: Any = unwrapped(fit)[1].get("observation")
    sigma = np.asarray(getattr(observation, "sigma", 0.0))
    if sigma.ndim < 2 or len(sigma) != n:
        return fit
    return partial(fit, observation=replace(observation, sigma=freeze(sigma[rows])))


def _check_task(model: Model, task: str) -> None:
    """Raise unless `fit` has returned a model of the task."""
    check_model(model)
    model_task = "regression" if model.classes is None else "classification"
    if model_task != task:
        raise ValueError(
            f"task: expected a fit of the same task, got {task!r} and models of a {model_task}; "
            f"pass task={model_task!r}, or make the fit one of {task!r}"
        )
