"""Early stopping of gradient boosting: losses and metrics of validation sets after each round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, Self, TypedDict

import numpy as np

from pboost.data.columns.sparse_columns import SparseFeatures
from pboost.data.read.check_xy import scaled_weights
from pboost.data.read.convert import Features
from pboost.data.training_data import Problem
from pboost.growth.validation import GIVEN, ValidationRows, rows_given, validation_rows
from pboost.losses import Loss
from pboost.losses.metrics import METRICS, Metric, MetricFunction, MetricName, check_metric
from pboost.models.gradient_boosting import probabilities_of
from pboost.models.single_tree import Tree
from pboost.trees.sparse_rounds import sparse_predictions
from pboost.values import FloatArray, Task, check_flag, check_number
from pboost.values.options import Option


class MetricOptions(TypedDict, total=False):
    """The options of the metrics of validation sets.

    Parameters
    ----------
    metric : str, callable or list of them, optional
        Metrics for ``model.metrics``; the first decides when training stops. Classification:
        "log_loss", "error", "roc_auc", "average_precision" or "brier". Regression: "rmse", "mae",
        "mape", "r2", "pinball", "poisson_deviance", "gamma_deviance" or "tweedie_deviance". Or
        functions ``f(y, prediction, sample_weight)``. Default: the loss.
    greater_is_better : bool
        Whether larger values of functions in `metric` are better.
    tol : float
        Smallest improvement that counts for early stopping.
    """

    metric: Annotated[
        MetricName | MetricFunction | list[MetricName | MetricFunction] | None, Option(None)
    ]
    greater_is_better: Annotated[bool, Option(False, check_flag)]
    tol: Annotated[float, Option(0.0, check_number, min_value=0.0)]


class HeldOut(NamedTuple):
    """The options of early stopping of a fit."""

    validation: Any = None
    n_iter_no_change: Any = None
    metric: Any = None
    greater_is_better: bool = False
    tol: float = 0.0

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the options of a fit function."""
        return cls(*(options[name] for name in cls._fields))

    @classmethod
    def continued(cls, validation: Any, settings: Mapping[str, Any]) -> Self:
        """Return the options for a fit that continues a model with these settings."""
        metric = settings.get("metric")
        unknown = [name for name in metric or () if name not in METRICS]
        if unknown:
            raise ValueError(
                f"model: expected metrics with names of pboost, got the function {unknown[0]!r}, "
                "which a model does not store; fit a new model"
            )
        stored = {name: settings[name] for name in cls._fields[1:] if name in settings}
        return cls(_validation_again(validation, settings.get("validation")), **stored)

    @property
    def first(self) -> Any:
        """The validation set that decides when training stops."""
        return next(iter(self.sets.values())) if self.has_names else self.validation

    @property
    def has_names(self) -> bool:
        """Whether the validation sets have names."""
        return isinstance(self.validation, Mapping)

    @property
    def sets(self) -> dict[str, Any]:
        """The validation sets by name."""
        if not self.has_names:
            return {} if self.validation is None else {"validation": self.validation}
        sets = dict(self.validation)
        if not sets or not all(isinstance(name, str) for name in sets):
            raise ValueError(
                "validation: expected a mapping from names to pairs (X, y), got the keys "
                f"{list(sets)}"
            )
        for name, value in sets.items():
            if not isinstance(value, tuple | list):
                raise TypeError(
                    f"validation[{name!r}]: expected (X, y) or (X, y, sample_weight), got "
                    f"{type(value).__name__}"
                )
        return sets


def _validation_again(validation: Any, known: Any) -> Any:
    """Return `validation` for a continued fit, given the setting of the model."""
    if known == GIVEN and validation is None:
        raise ValueError(
            "validation: expected the validation rows of the fit, which a model does not store; "
            "pass the same rows, validation=(X_val, y_val)"
        )
    if known is None and validation is not None:
        raise ValueError(
            "validation: expected None, because the model was fitted without validation rows; to "
            "stop early, fit a new model with validation"
        )
    if known != GIVEN and validation is not None:
        raise ValueError(
            f"validation: expected None, because the model was fitted with validation={known:g}; "
            "pass all training rows as X and y, and the same rows are held out again"
        )
    return validation if known == GIVEN else known


class ValidationSet:
    """The decision values of a validation set, its loss and its metrics.

    Parameters
    ----------
    rows : ValidationRows
        Its rows.
    loss : Loss
        The loss of the fit.
    metrics : tuple of Metric
        Its metrics.
    classes : ndarray, shape (J,), or None
        The classes, which functions of the user get.
    """

    def __init__(
        self, rows: ValidationRows, loss: Loss, metrics: tuple[Metric, ...], classes: Any
    ) -> None:
        self._loss, self._metrics, self._classes = loss, metrics, classes
        self.rows = replace(rows, weight=scaled_weights(rows.weight)[0])
        self._is_weighted = bool((rows.weight != rows.weight[:1]).any())
        #: The loss after each round, then the value of each metric.
        self.values: list[list[float]] = [[], *([] for _ in metrics)]

    def begin(self, bias: float | FloatArray) -> None:
        """Store the initial decision value, or one per class with softmax."""
        y = self.rows.y
        is_two = y.dtype.kind == "b" and not np.ndim(bias)
        self._y = np.where(y, 1.0, -1.0) if is_two else y
        self._f = np.repeat(np.expand_dims(bias, -1), len(y), axis=-1)
        self._measure()

    def add(self, made: Callable[[], Tree | list[Tree]], f: FloatArray) -> None:
        """Add the trees of a round; see `LossEarlyStopping.add`."""
        if self.rows.X is None:
            self._f = f[..., self.rows.drawn]
        else:
            self._f = self._f + self._predictions(made(), self.rows.X)
        self._measure()

    def _predictions(self, trees: Tree | list[Tree], X: Any) -> FloatArray:
        if isinstance(trees, list):
            return np.stack([self._predictions(tree, X) for tree in trees])
        if isinstance(X, SparseFeatures):
            return sparse_predictions(trees, X)
        return trees.predict(Features(X, trees.feature_names, trees.table)).T

    def _measure(self) -> None:
        """Add the mean loss and the values of the metrics."""
        score, weight = self._f.T, self.rows.weight if self._is_weighted else None
        mean = float(np.average(self._loss.value(self._y, score), weights=self.rows.weight))
        self.values[0].append(self._loss.reported * mean)
        if not self._metrics:
            return
        predicted = None
        for metric, values in zip(self._metrics, self.values[1:], strict=True):
            if metric.ranks and score.ndim == 1:
                values.append(self._value(metric, np.stack([-score, score]).T, weight))
                continue
            if predicted is None:
                predicted = self._predicted(score)
            values.append(self._value(metric, predicted, weight))

    def _predicted(self, score: FloatArray) -> FloatArray:
        """Return the probabilities, or the predicted numbers in regression."""
        if self._loss.is_regression:
            return self._loss.prediction(score)
        return probabilities_of(self._loss, score)

    def _value(self, metric: Metric, predicted: FloatArray, weight: FloatArray | None) -> float:
        """Return the value of a metric; the functions of pboost get class numbers."""
        truth = self.rows.y
        if truth.dtype.kind == "b":
            truth = truth.astype(np.intp)
        if metric.task is not None:
            return metric.function(predicted, truth, weight)
        y = truth if self._classes is None else self._classes[truth]
        try:
            value = metric.function(y, predicted, sample_weight=weight)
        except TypeError as error:
            raise TypeError(
                "metric: expected a function of (y, prediction, sample_weight), got "
                f"{metric.name}, which raises: {error}"
            ) from error
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise ValueError(
                f"metric: expected a finite number from {metric.name}, got {value!r}"
            ) from None
        return number


class LossEarlyStopping:
    """Early stopping on a validation set, with the options of `HeldOut`.

    Attributes
    ----------
    settings : dict
        The options; empty without validation.
    losses : list of float
        Mean validation loss before the first tree and after each round.
    best : int
        Smallest number of rounds with the best loss, or value of the first metric.
    seen : ndarray of uint64, or None
        Digest of the training and validation rows.
    """

    def __init__(
        self,
        held_out: HeldOut,
        problem: Problem,
        loss: Loss,
        generator: np.random.Generator,
        remote_watch: Any = None,
    ) -> None:
        """`remote_watch` computes the losses if the validation rows are in partitions."""
        self.settings: Mapping[str, Any] = {}
        self.losses: list[float] = []
        self.best, self._best_value, self._tol = 0, np.inf, held_out.tol
        self._sets: list[ValidationSet] = []
        self._metrics, self._reported = _metrics_of(held_out, loss), loss.reported
        self.rows = validation_rows(held_out.first, held_out.n_iter_no_change, problem, generator)
        self.seen = problem.seen if self.rows is None else self.rows.problem.seen
        self._there: Any = None
        if self.rows is None:
            return
        self.settings = {**self.rows.settings, **_settings_of(held_out, self._metrics)}
        if self.rows.elsewhere is not None:
            self._there = remote_watch
            _refuse_metrics(held_out)
            self._begin_there(loss)
            return
        for name, value in held_out.sets.items():
            rows = self.rows
            if self._sets:  # the first set is already read
                rows = replace(rows, **rows_given(f"validation[{name!r}]", value, problem))
            try:
                _check_targets(rows, problem, loss)
            except ValueError as error:
                raise ValueError(f"validation: {error}") from None
            self._sets.append(ValidationSet(rows, loss, self._metrics, problem.classes))

    def _begin_there(self, loss: Loss) -> None:
        """Prepare the rows in partitions."""
        try:
            self._there.begin_watch(loss)
        except ValueError as error:
            raise ValueError(f"validation: {error}") from None

    @property
    def latest(self) -> float | None:
        """Mean validation loss after the latest tree."""
        return self.losses[-1] if self.losses else None

    @property
    def values(self) -> FloatArray | None:
        """The losses and metrics of all sets after each round; None if there is only one loss."""
        values = [values for each in self._sets for values in each.values]
        return np.array(values) if len(values) > 1 else None

    def begin(self, bias: float | FloatArray) -> None:
        """Store the initial decision value, or one per class with softmax."""
        if self._there is not None:
            self._note_there(())
        for each in self._sets:
            each.begin(bias)
        if self._sets:
            self._note_first()

    def add(self, made: Callable[[], Tree | list[Tree]], f: FloatArray) -> bool:
        """Compute the loss after a round; return whether to stop.

        `made` returns the trees of the round. `f` contains the decision values of the training
        rows, with shape (n,), or (J, n) with softmax.
        """
        if self.rows is None:
            return False
        if self._there is not None:
            trees = made()
            self._note_there(trees if isinstance(trees, list) else [trees])
        else:
            for each in self._sets:
                each.add(made, f)
            self._note_first()
        return len(self.losses) - 1 - self.best >= self.rows.n_iter_no_change

    def _note_there(self, trees: Sequence[Tree]) -> None:
        """Add the loss of the rows in partitions after these trees."""
        self._note(self._reported * self._there.watched(trees))

    def _note_first(self) -> None:
        """Add the loss of the first set, and compare its first metric."""
        loss, *metrics = (values[-1] for values in self._sets[0].values)
        sign = -1 if metrics and self._metrics[0].greater_is_better else 1
        self._note(loss, sign * metrics[0] if metrics else loss)

    def _note(self, loss: float, value: float | None = None) -> None:
        """Add the loss of a round, and update the best round by `value`, by default the loss."""
        self.losses.append(loss)
        value = loss if value is None else value
        if value < self._best_value - self._tol:
            self.best, self._best_value = len(self.losses) - 1, value


def _metrics_of(held_out: HeldOut, loss: Loss) -> tuple[Metric, ...]:
    """Return the metrics of a fit."""
    metrics = () if held_out.metric is None else _checked(held_out, loss)
    for name in MetricOptions.__annotations__:
        value, default = getattr(held_out, name), HeldOut._field_defaults[name]
        if held_out.validation is None and value != default:
            raise ValueError(
                f"{name}: expected {default} without validation, got {value!r}; pass "
                "validation=(X, y) or a fraction of the rows"
            )
    if held_out.greater_is_better and not metrics:
        raise ValueError("greater_is_better: expected False without metric, got True")
    return metrics


def _checked(held_out: HeldOut, loss: Loss) -> tuple[Metric, ...]:
    """Return the metrics of the option `metric`."""
    task: Task = "regression" if loss.is_regression else "classification"
    level = getattr(loss, "quantile", 0.5)
    return check_metric(held_out.metric, task, held_out.greater_is_better, level)


def _settings_of(held_out: HeldOut, metrics: tuple[Metric, ...]) -> dict[str, Any]:
    """Return the settings of a model for options that are not at their defaults."""
    settings: dict[str, Any] = {}
    if metrics:
        settings["metric"] = [metric.name for metric in metrics]
        settings["greater_is_better"] = held_out.greater_is_better
    if held_out.tol:
        settings["tol"] = held_out.tol
    if held_out.has_names:
        settings["validation_names"] = list(held_out.sets)
    return settings


def _refuse_metrics(held_out: HeldOut) -> None:
    """Raise an error if there are metrics or several sets, with rows in partitions."""
    if held_out.metric is not None or held_out.has_names:
        name = "metric" if held_out.metric is not None else "validation"
        raise NotImplementedError(
            f"{name}: expected the loss of one validation set with rows in partitions; use the "
            "default metric=None and a fraction of the rows"
        )


def _check_targets(rows: ValidationRows, problem: Problem, loss: Loss) -> None:
    """Raise ValueError if the loss does not allow a target of the validation rows."""
    if problem.classes is None:
        drawn = rows.drawn
        Loss.check_targets(loss, rows.y, drawn if len(drawn) else np.arange(len(rows.y)))
