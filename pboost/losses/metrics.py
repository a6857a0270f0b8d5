"""Metrics: numbers that measure how good predictions are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.values import Array, FloatArray, Task, shown

MetricName = Literal[
    "log_loss",
    "error",
    "roc_auc",
    "average_precision",
    "brier",
    "rmse",
    "mae",
    "mape",
    "r2",
    "pinball",
    "poisson_deviance",
    "gamma_deviance",
    "tweedie_deviance",
]
#: Function of (y, prediction, sample_weight), with the probabilities (n, J) or predicted numbers.
MetricFunction: TypeAlias = Callable[..., float]

#: Smallest probability in the log loss.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
#: Power of the variance in the Tweedie deviance, between Poisson (1) and gamma (2).
TWEEDIE_POWER = 1.5


class Metric(NamedTuple):
    """A metric of predictions.

    Attributes
    ----------
    name : str
        Its name.
    function : callable
        Called with the predictions, the true values and the weights or None. For classification,
        the predictions are probabilities (n, J) and the true values are class numbers.
    greater_is_better : bool
        Whether larger values are better.
    task : {"classification", "regression"}, or None
        Task of a metric of pboost; None for a function of the user, which is called with the true
        values first: class labels or numbers.
    ranks : bool
        Whether only the order of the predictions matters. With two classes, decision values then
        stand for probabilities, which need not be computed.
    """

    name: str
    function: Callable[..., float]
    greater_is_better: bool = False
    task: Task | None = None
    ranks: bool = False


def weighted_mean(values: Array, weight: FloatArray | None = None) -> float:
    """Return the weighted mean of values, even if the sum of the weights would overflow."""
    return float(np.average(values, weights=None if weight is None else weight / weight.max()))


def auc(share: FloatArray, code: Array, weight: FloatArray | None = None) -> float:
    """Return the area under the ROC curve, given probabilities of shape (n, J).

    With two classes, return the area for the second class, otherwise the unweighted mean of the
    one-vs-rest areas. A class is left out if none or all of the rows with positive weight belong to
    it. The result is NaN if no class remains.
    """
    return _mean_of_classes(_area, share, code, weight)


def average_precision(share: FloatArray, code: Array, weight: FloatArray | None = None) -> float:
    """Return the average precision, given probabilities of shape (n, J).

    It is the sum of (R_k - R_k-1) P_k over the distinct probabilities, from large to small, with
    the recall R_k and the precision P_k of the rows with at least this probability. Classes are
    treated as in `auc`.
    """
    return _mean_of_classes(_precision, share, code, weight)


def _mean_of_classes(
    of_class: Callable[..., float], share: FloatArray, code: Array, weight: FloatArray | None
) -> float:
    """Return the mean of a metric of the second of two classes, or of each class."""
    classes = range(1 if share.shape[1] == 2 else 0, share.shape[1])
    values = [of_class(code == k, share[:, k], weight) for k in classes]
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def _area(is_one: NDArray[np.bool_], score: FloatArray, weight: FloatArray | None) -> float:
    if weight is None:  # counts in one sorted pass, which is faster than `_by_score`
        order = np.argsort(score)
        score = score[order]
        last = np.flatnonzero(np.append(score[1:] != score[:-1], True))
        n_ones = np.cumsum(is_one[order])[last]
        n_others = last + 1 - n_ones
        before = np.append(0, n_others[:-1])
        pairs = 2 * int(n_ones[-1]) * int(n_others[-1])
        return int(np.diff(n_ones, prepend=0) @ (before + n_others)) / pairs if pairs else np.nan
    ones, others = _by_score(is_one, score, weight)
    below_each = np.cumsum(others) - others / 2
    total = ones.sum() * others.sum()
    return float(ones @ below_each / total) if total > 0 else np.nan


def _precision(is_one: NDArray[np.bool_], score: FloatArray, weight: FloatArray | None) -> float:
    ones, others = (of[::-1] for of in _by_score(is_one, score, weight))
    if not (ones.any() and others.any()):
        return np.nan
    right, total = np.cumsum(ones), np.cumsum(ones + others)
    precision = np.divide(right, total, out=np.zeros(len(total)), where=total > 0)
    return float(ones @ precision / right[-1])


def _by_score(
    is_one: NDArray[np.bool_], score: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the weights of the class and of the other rows at each distinct score, ascending."""
    weight = np.ones(len(score)) if weight is None else weight / weight.max()
    rank = np.unique(score, return_inverse=True)[1]
    ones, others = (np.bincount(rank, weight * of) for of in (is_one, ~is_one))
    return ones.astype(np.float64), others.astype(np.float64)


def log_loss(share: FloatArray, code: Array, weight: FloatArray | None = None) -> float:
    """Return the mean of -log of the probabilities (n, J) of the true classes.

    Probabilities are clipped to [2**-52, 1 - 2**-52], so that the result is finite.
    """
    of_truth = share[np.arange(len(share)), code]
    return weighted_mean(-np.log(of_truth.clip(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)), weight)


def error_rate(share: FloatArray, code: Array, weight: FloatArray | None = None) -> float:
    """Return the fraction of rows whose most probable class is not the true class."""
    return weighted_mean(np.argmax(share, axis=1) != code, weight)


def brier_score(share: FloatArray, code: Array, weight: FloatArray | None = None) -> float:
    """Return the mean squared error of the probability of the second of two classes.

    With more than two classes, return the sum of the mean squared errors of all classes.
    """
    error = np.square(share - (code[:, None] == np.arange(share.shape[1])))
    return weighted_mean(error[:, 1] if share.shape[1] == 2 else error.sum(axis=1), weight)


def root_mean_squared_error(
    predicted: FloatArray, truth: FloatArray, weight: FloatArray | None = None
) -> float:
    """Return the square root of the mean squared error of predicted values."""
    difference = predicted - truth
    scale = np.abs(difference).max() or 1.0  # squares of large values would overflow
    return float(scale * np.sqrt(weighted_mean(np.square(difference / scale), weight)))


def absolute_error(
    predicted: FloatArray, truth: FloatArray, weight: FloatArray | None = None
) -> float:
    """Return the mean absolute error of predicted values."""
    return weighted_mean(np.abs(predicted - truth), weight)


def absolute_percentage_error(
    predicted: FloatArray, truth: FloatArray, weight: FloatArray | None = None
) -> float:
    """Return the mean of abs(error / true value); true values are at least 2**-52 in size."""
    size = np.maximum(np.abs(truth), np.finfo(np.float64).eps)
    return weighted_mean(np.abs(predicted - truth) / size, weight)


def pinball_loss(
    predicted: FloatArray, truth: FloatArray, weight: FloatArray | None = None, alpha: float = 0.5
) -> float:
    """Return the mean of alpha times errors below, and 1 - alpha times errors above the truth."""
    low = truth - predicted
    return weighted_mean(np.maximum(alpha * low, (alpha - 1) * low), weight)


def r2(predicted: FloatArray, truth: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the coefficient of determination R², or NaN if the true values are all equal."""
    around = truth - weighted_mean(truth, weight)
    scale = np.abs(around).max()  # squares of large values would overflow
    if not scale > 0 or (truth == truth[0]).all():
        return np.nan
    left, total = (
        weighted_mean(np.square(of / scale), weight) for of in (predicted - truth, around)
    )
    return 1 - left / total if total > 0 else np.nan


def deviance(
    predicted: FloatArray, truth: FloatArray, weight: FloatArray | None = None, power: float = 1.0
) -> float:
    """Return the mean Tweedie deviance: power 1 is Poisson, power 2 gamma.

    The result is infinite if a predicted value is not positive.
    """
    if not (predicted > 0).all():
        return np.inf
    if power == 1:
        log = np.log(np.where(truth > 0, truth, predicted) / predicted)
        return weighted_mean(2 * (truth * log - truth + predicted), weight)
    if power == 2:
        with np.errstate(divide="ignore"):
            return weighted_mean(2 * (np.log(predicted / truth) + truth / predicted - 1), weight)
    parts = (
        truth ** (2 - power) / ((1 - power) * (2 - power))
        - truth * predicted ** (1 - power) / (1 - power)
        + predicted ** (2 - power) / (2 - power)
    )
    return weighted_mean(2 * parts, weight)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("log_loss", log_loss, task="classification"),
        Metric("error", error_rate, task="classification"),
        Metric("roc_auc", auc, True, "classification", ranks=True),
        Metric("average_precision", average_precision, True, "classification", ranks=True),
        Metric("brier", brier_score, task="classification"),
        Metric("rmse", root_mean_squared_error, task="regression"),
        Metric("mae", absolute_error, task="regression"),
        Metric("mape", absolute_percentage_error, task="regression"),
        Metric("r2", r2, True, "regression"),
        Metric("pinball", pinball_loss, task="regression"),
        Metric("poisson_deviance", deviance, task="regression"),
        Metric("gamma_deviance", partial(deviance, power=2.0), task="regression"),
        Metric("tweedie_deviance", partial(deviance, power=TWEEDIE_POWER), task="regression"),
    )
}

#: Names of metrics in other libraries.
ELSEWHERE = {
    **dict.fromkeys(
        ("logloss", "binary_logloss", "multi_logloss", "mlogloss", "multiclass", "neg_log_loss"),
        "log_loss",
    ),
    **dict.fromkeys(("binary_error", "multi_error", "merror", "accuracy"), "error"),
    **dict.fromkeys(("auc", "auc_mu", "roc_auc_ovr"), "roc_auc"),
    **dict.fromkeys(("aucpr", "prauc"), "average_precision"),
    **dict.fromkeys(
        ("l2", "mse", "l2_root", "mean_squared_error", "neg_mean_squared_error"), "rmse"
    ),
    **dict.fromkeys(("l1", "mean_absolute_error", "neg_mean_absolute_error"), "mae"),
    "quantile": "pinball",
    "mean_absolute_percentage_error": "mape",
}


def check_metric(
    value: Any, task: Task, greater_is_better: bool, quantile: float
) -> tuple[Metric, ...]:
    """Return the metrics for the option `metric`: a name, a function, or a sequence of them.

    "pinball" measures the quantile of the loss.
    """
    if isinstance(value, str) or callable(value):
        value = (value,)
    if not isinstance(value, tuple | list) or not value:
        raise TypeError(
            "metric: expected a name, a function, or a list of names and functions, got "
            f"{shown(value)}"
        )
    metrics = tuple(_one(each, task, greater_is_better, quantile) for each in value)
    names = ["loss", *(metric.name for metric in metrics)]
    if len(set(names)) < len(names):
        raise ValueError(
            f"metric: expected different names, other than 'loss', got {names[1:]}; rename a "
            "function"
        )
    return metrics


def _one(value: Any, task: Task, greater_is_better: bool, quantile: float) -> Metric:
    """Return the metric with a name, or of a function."""
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        return Metric(name, value, greater_is_better)
    if not isinstance(value, str) or value not in METRICS:
        ours, every = ELSEWHERE.get(str(value).lower()), ", ".join(map(repr, METRICS))
        raise ValueError(
            f"metric: expected a function or one of {every}, got {shown(value)}"
            + (f"; did you mean {ours!r}?" if ours else "")
        )
    metric = METRICS[value]
    if metric.task != task:
        names = [name for name, each in METRICS.items() if each.task == task]
        raise ValueError(f"metric: expected one of {names} for {task}, got {value!r}")
    if value == "pinball":
        return metric._replace(function=partial(pinball_loss, alpha=quantile))
    return metric
