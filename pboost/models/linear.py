"""Linear models, and weighted sums of user-defined functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import derived
from pboost._core import probit as kernel
from pboost.data.node_inputs.imputation import filled
from pboost.data.node_inputs.inputs import indicators_of, names_in_sums
from pboost.data.read.check_xy import check_answers
from pboost.data.read.table import Table
from pboost.models import schema as stored
from pboost.models.base import CostUnit, Model, Route, TwoClassModel
from pboost.models.evaluate.match_input import input_values, match_sigma, spread_of
from pboost.models.evaluate.partial_evaluation import SumInquiry
from pboost.models.schema import (
    MOST_SUM,
    HeaderAndArrays,
    NestedRecord,
    Settings,
    TrainingRecord,
    check_sum,
    table_field,
)
from pboost.models.shares import as_shares, falls, settled, times_spread
from pboost.models.text import counted, equation, headline, input_names, summary
from pboost.threads import run_ranges
from pboost.values import Array, FloatArray, IntArray, TableLike

#: Value of ``feature`` for the constant.
CONSTANT = -1
#: Power of two by which factors are scaled down if their product would overflow.
HALF = 540
#: Start of the error messages about features of a FunctionEnsemble.
OF_FUNCTIONS = "model: a FunctionEnsemble does not record which features its functions use; "
#: Limit of absolute values whose squares must not overflow.
FAR = 1e150


class AdditiveModel(TwoClassModel):
    """Base class of models that are a bias plus a weighted sum of weak hypotheses.

    `classes`, `n_features`, `feature_names`, `bias`, `settings` and `record` have the same
    meaning as for a `DecisionGraph`. Functions for nodes and exits (`reach`, `truncate`,
    `continue_fit`) are not available.
    """

    __slots__ = ()

    no_graph: ClassVar[str] = "which evaluates all hypotheses for every row"
    instead: ClassVar[Mapping[str, str]] = {
        "truncate": "staged_decision_function returns the values after each round",
        "reach": "decision_function returns the sum",
    }

    @property
    def n_nodes(self) -> int:
        """Number of rounds, each of which added one weak hypothesis."""
        return len(self.record.certificate) - 1

    def score_by_route(self, X: TableLike, route: Route) -> FloatArray:
        """Return the decision values, which are the same for all routes."""
        match_sigma(self, X, route.sigma)
        return self.decision_function(X)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the decision value of each row."""
        return within_range(self.score(input_values(self, X)))

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values after each round."""
        return self._stages(self.terms(input_values(self, X)))

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the prediction cost of each row, which is the same for all rows."""
        return np.full(len(input_values(self, X)), self.cost(unit))

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask that marks all features as read."""
        yield np.ones((len(input_values(self, X)), self.n_features), dtype=np.bool_)

    def describe(self) -> str:
        """Return the model as text."""
        return "\n".join([*summary(self), *self.lines(input_names(self))])

    def cost(self, unit: CostUnit) -> float:
        """Return the cost of a row: the number of features or of weak hypotheses."""
        return float(self.n_features) if unit == "features" else float(self.record.cost[-1])

    def terms(self, values: Array) -> Iterator[FloatArray]:
        """Yield the term that each round adds to the decision values of rows (n, d)."""
        raise NotImplementedError

    def score(self, values: Array) -> FloatArray:
        """Return the decision values of rows (n, d)."""
        total = np.full(len(values), self.bias)
        for term in self.terms(values):
            total = plus(total, term)
        return total

    def _stages(self, terms: Iterator[FloatArray]) -> Iterator[FloatArray]:
        return (within_range(plus(self.bias, total)) for total in accumulate(terms, plus))

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return the lines of `describe` for the given column names."""
        raise NotImplementedError


def times(factor: float, answer: FloatArray) -> FloatArray:
    """Return the product; an overflow gives infinity without a warning."""
    with np.errstate(over="ignore"):
        return factor * answer


def plus(a: Any, b: FloatArray) -> FloatArray:
    """Return the sum; an overflow gives infinity or NaN without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        total: FloatArray = a + b
    return total


def within_range(score: FloatArray, where: str = "") -> FloatArray:
    """Return the decision values if all are finite, else raise ValueError."""
    wrong = np.flatnonzero(~np.isfinite(score))
    if len(wrong):
        raise ValueError(
            f"X: row {wrong[0]} is too far from the training rows{where}; its decision value is "
            "not finite"
        )
    return score


class RoundsRecord(NestedRecord):
    """A field with the training record of a model with rounds."""

    __slots__ = ()

    def check(self, record: Any, name: str) -> None:
        """Check the record first, because its length is the number of rounds."""
        record.record.check(record.n_nodes)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearModel(AdditiveModel):
    """A linear model from componentwise boosting, which updates one feature per round.

    Round t adds ``step[t] * (x[j] - center[j]) / scale[j]`` with ``j = feature[t]`` to the
    decision value, or the constant ``step[t]`` if j is -1.

    Attributes
    ----------
    feature : ndarray of int32, shape (rounds,)
        Feature that each round updates; -1 for the constant.
    step : ndarray of float64, shape (rounds,)
        Coefficient that each round adds.
    mu : ndarray of float64, shape (rounds,)
        Normalized margin (edge) of each round's hypothesis under the weights of this round.
    center, scale : ndarray of float64, shape (n_added,)
        Standardization of each column: the center is subtracted, then the column is divided by
        the scale. A categorical feature has one indicator column per category.
    classes : ndarray, shape (2,)
        The two class labels, sorted.
    n_features : int
        Number of training features.
    feature_names : tuple of str or None
        Names of the training features, or None.
    bias : float
        Initial decision value; 0 unless no hypothesis was better than random guessing.
    settings : mapping
        The options of the fit.
    record : TrainingRecord
        Certificate and cost (number of features) after each round, and the stop reason.
    takes_missing : bool
        Whether missing values are accepted; they are replaced by the center.
    table : Table or None
        Type and categories of each training feature, and whether it had missing values; see
        `pboost.data.read.table`. None if all features were numeric without missing values.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    feature: IntArray = stored.column(np.int32, "n_nodes", within=(CONSTANT, "n_added"))
    step: FloatArray = stored.column(np.float64, "n_nodes")
    mu: FloatArray = stored.column(np.float64, "n_nodes")
    center: FloatArray = stored.column(np.float64, "n_added")
    scale: FloatArray = stored.column(np.float64, "n_added")
    classes: Array = stored.classes(2)
    n_features: int = stored.n_features()
    feature_names: tuple[str, ...] | None = stored.names()
    bias: float = stored.number()
    settings: Settings = stored.settings()
    record: TrainingRecord = stored.kept_as(RoundsRecord(TrainingRecord))
    takes_missing: bool = stored.flag()
    table: Table | None = table_field()

    _public: ClassVar = ("coefficient", "intercept", "weights")
    file_kind = "linear"
    no_trees = "which is a linear function; use coefficients or to_c"
    sums_features = True

    def check_whole(self) -> None:
        """Check that the sum is finite and that the scale is positive."""
        check_sum("step, bias", self.step, self.bias)
        if not (self.scale > 0).all():
            raise ValueError("scale: expected numbers > 0")

    @property
    def weights(self) -> FloatArray:
        """Coefficient of each standardized column."""
        columns = self.feature >= 0
        total = np.zeros(self.n_added)
        np.add.at(total, self.feature[columns], self.step[columns])
        return total

    @property
    def coefficient(self) -> FloatArray:
        """Coefficient of each column in original units; infinite after an overflow."""
        with np.errstate(over="ignore"):  # the scale can be subnormal
            return self.weights / self.scale

    @property
    def intercept(self) -> float:
        """Decision value if all features are 0."""
        constant, factor = float(self.step[self.feature == CONSTANT].sum()), self.coefficient
        known = np.isfinite(factor)
        product = np.where(known, factor, 0.0) * self.center
        with np.errstate(over="ignore", invalid="ignore"):
            far = self.weights * (self.center / self.scale)
            return self.bias + constant - float(np.where(known, product, far).sum())

    def equations(self) -> tuple[FloatArray, FloatArray, None]:
        """Return the coefficients in the form of a tree with one leaf."""
        return np.concatenate([[self.intercept], self.coefficient])[None, None], np.ones(1), None

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the constant and the term of each feature for one row."""
        values, weights = input_values(self, X), self.weights
        constant = self.bias + float(self.step[self.feature == CONSTANT].sum())
        terms = [
            times(weights[j], self._answer(values, j))[0] if weights[j] else 0.0
            for j in range(self.n_added)
        ]
        return np.array([constant, *self.by_column(np.array(terms))])

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return normalized importances, from absolute coefficients times standard deviations."""
        known = self.scale if X is None else spread_of(self, X)
        with np.errstate(over="ignore"):
            return as_shares(self.by_column(times_spread(self.weights, known / self.scale)))

    def cost(self, unit: CostUnit) -> float:
        """Return the prediction cost, which is the number of features with a coefficient."""
        return float(self.record.cost[-1])

    def terms(self, values: Array) -> Iterator[FloatArray]:
        """Yield the term that each round adds to the decision values of rows (n, d)."""
        for j, step in zip(self.feature.tolist(), self.step.tolist(), strict=True):
            if j == CONSTANT:
                yield np.full(len(values), step)
            else:
                yield times(step, self._answer(values, j))

    def score(self, values: Array) -> FloatArray:
        """Return the decision values of rows (n, d), with one term per column."""
        constant = self.bias + float(self.step[self.feature == CONSTANT].sum())
        total = sums_of(values, self.weights, self.center, constant, self.center, self.scale)
        if not np.isfinite(total).all():
            for j in np.flatnonzero(self.weights).tolist():
                self._answer(values, j)  # this raises an error if the value is not finite
        return total

    def _answer(self, values: Array, j: int) -> FloatArray:
        """Return the standardized column j."""
        with np.errstate(over="ignore"):
            answer = (values[:, j].astype(np.float64) - self.center[j]) / self.scale[j]
        answer[np.isnan(answer)] = 0.0
        return within_range(answer, f" in column {j}")

    def inquiry(self, settles: bool) -> SumInquiry:
        """Return an evaluator for feature acquisition that reads all columns of the sum."""
        return SumInquiry(self, columns_of(self, self.weights != 0), 1)

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return the lines of `describe` for the given column names."""
        read = np.flatnonzero(np.isin(np.arange(self.n_added), self.feature)).tolist()
        lines = [f"{names[j]}: coefficient {self.coefficient[j]:+.6g}" for j in read]
        return [*lines, f"intercept {self.intercept:+.6g}"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionEnsemble(AdditiveModel):
    """A weighted sum of user-defined functions, which cannot be saved.

    Attributes
    ----------
    hypotheses : tuple of callable
        Functions that receive an array of shape (n, d) and return one number per row.
    alpha : ndarray of float64, shape (rounds,)
        Coefficient of each function.
    mu : ndarray of float64, shape (rounds,)
        Normalized margin (edge) of each function under the weights of its round.
    classes : ndarray, shape (2,)
        The two class labels, sorted.
    n_features : int
        Number of training features.
    feature_names : tuple of str or None
        Names of the training features, or None.
    bias : float
        Initial decision value; 0 unless no function was better than random guessing.
    settings : mapping
        The options of the fit.
    record : TrainingRecord
        Certificate and cost (number of functions) after each round, and the stop reason.
    table : Table or None
        Type and categories of each training feature, and whether it had missing values; see
        `pboost.data.read.table`. None if all features were numeric without missing values.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    hypotheses: tuple[Callable[[Any], Any], ...]
    alpha: FloatArray = stored.column(np.float64, "n_nodes")
    mu: FloatArray = stored.column(np.float64, "n_nodes")
    classes: Array = stored.classes(2)
    n_features: int = stored.n_features()
    feature_names: tuple[str, ...] | None = stored.names()
    bias: float = stored.number()
    settings: Settings = stored.settings()
    record: TrainingRecord = stored.kept_as(RoundsRecord(TrainingRecord))
    table: Table | None = table_field()

    takes_missing = True
    no_trees = "which consists of functions that no file format can store; pickle it"

    def terms(self, values: Array) -> Iterator[FloatArray]:
        """Yield the term that each round adds to the decision values of rows (n, d)."""
        rows = np.asarray(values, dtype=np.float64)
        for t, (h, alpha) in enumerate(zip(self.hypotheses, self.alpha.tolist(), strict=True)):
            yield times(alpha, check_answers(h(rows), len(rows), f"hypothesis of round {t + 1}"))

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return the lines of `describe`; the column names are not used."""
        pairs = zip(self.hypotheses, self.alpha.tolist(), strict=True)
        return [f"round {t + 1}: {alpha:+.6g} times {h!r}" for t, (h, alpha) in enumerate(pairs)]

    def contributions(self, X: TableLike) -> FloatArray:
        """Raise NotImplementedError."""
        raise NotImplementedError(OF_FUNCTIONS + "use staged_decision_function")

    def importances(self, X: TableLike | None) -> FloatArray:
        """Raise NotImplementedError."""
        raise NotImplementedError(OF_FUNCTIONS + "use permutation_importance")

    def inquiry(self, settles: bool) -> SumInquiry:
        """Raise NotImplementedError."""
        raise NotImplementedError(OF_FUNCTIONS + "call predict with all features")

    def members(self) -> HeaderAndArrays:
        """Raise TypeError."""
        raise TypeError("model: a FunctionEnsemble cannot be saved, because it contains functions")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProbitModel(Model):
    """A linear probit model from boosting; see `fit_probitboost`.

    The decision value f is linear in the features; the probability of the second class is Phi(f).

    Attributes
    ----------
    intercept : float
        Decision value if all features are 0.
    slopes : ndarray of float64, shape (n_added,)
        Coefficient of each column, in original units. A categorical feature has one indicator
        column per category.
    feature : ndarray of int32, shape (steps,)
        Column that each step updated; -1 if it only changed the intercept.
    step : ndarray of float64, shape (steps, 2)
        Amounts that each step added to the intercept and to the coefficient of the column.
    length : ndarray of float64, shape (steps,)
        Step size relative to the full step: 1, or less if the safeguard halved the step.
    risk : ndarray of float64, shape (steps + 1,)
        Weighted mean of -ln Phi(Y f) on the training rows: initially, and after each step.
    classes : ndarray, shape (2,)
        The two class labels, sorted.
    settings : mapping
        The options of the fit.
    stop_reason : str
        Why fitting ended, as a sentence.
    n_features : int
        Number of training features.
    feature_names : tuple of str or None
        Names of the training features, or None.
    mean : ndarray of float64, shape (n_added,), or None
        Weighted training mean of each column, which replaces missing values. With None, missing
        values raise an error.
    table : Table or None
        Type and categories of each training feature, and whether it had missing values; see
        `pboost.data.read.table`. None if all features were numeric without missing values.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    intercept: float = stored.number("intercept: expected a number, got {!r}")
    slopes: FloatArray = stored.column(np.float64, "n_added")
    feature: IntArray = stored.column(np.int32, "n_nodes", within=(CONSTANT, "n_added"))
    step: FloatArray = stored.column(np.float64, "n_nodes", 2)
    length: FloatArray = stored.column(np.float64, "n_nodes")
    risk: FloatArray = stored.column(np.float64, lambda model: (len(model) + 1,), positive=True)
    classes: Array = stored.classes(2)
    settings: Settings = stored.settings()
    stop_reason: str = stored.text()
    n_features: int = stored.n_features()
    feature_names: tuple[str, ...] | None = stored.names()
    mean: FloatArray | None = stored.in_header("n_added")
    table: Table | None = table_field()

    no_graph: ClassVar[str] = "whose decision value is not half the log odds"
    instead: ClassVar[Mapping[str, str]] = {
        "truncate": "staged_decision_function returns the values after each step",
        "reach": "all rows use the same linear function; call coefficients",
    }
    file_kind = "probit"
    no_trees = "which is a linear function; use coefficients or to_c"
    sums_features = True

    def check_whole(self) -> None:
        """Check that the step lengths are valid and that sums are finite."""
        if not ((self.length > 0) & (self.length <= 1)).all():
            raise ValueError("length: expected numbers > 0 and <= 1")
        with np.errstate(over="ignore"):
            sums = np.bincount(self.feature + 1, np.abs(self.step[:, 1]))
        if not (sums <= MOST_SUM).all():
            raise ValueError("step: expected numbers whose absolute values have a finite sum")
        check_sum("step", self.step[:, 0])

    def __repr__(self) -> str:
        steps, risk = counted(len(self), "step"), f"risk {self.risk[-1]:.4g}"
        return f"<fit_probitboost: {steps}, {self.n_features} features, {risk}>"

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def n_nodes(self) -> int:
        """Number of steps."""
        return len(self)

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether missing values are accepted."""
        return self.mean is not None

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return intercept + slopes . x for each row."""
        return self._score(input_values(self, X))

    def _score(self, values: FloatArray) -> FloatArray:
        mean = np.zeros(self.n_added) if self.mean is None else self.mean
        total = sums_of(values, self.slopes, mean, self.intercept)
        return in_range(total, values, self.intercept, self.slopes, mean)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values after each step; the last equals `decision_function`."""
        values = filled(input_values(self, X), self.mean)
        return self._stages(values, self._score(values))

    def _stages(self, values: FloatArray, last: FloatArray) -> Iterator[FloatArray]:
        total, intercept, slopes = np.zeros(len(values)), 0.0, np.zeros(self.n_added)
        for t, (constant, slope) in enumerate(self.step.tolist()):
            intercept += constant
            with np.errstate(over="ignore", invalid="ignore"):
                total = total + constant
                if self.feature[t] >= 0:
                    slopes[self.feature[t]] += slope
                    total += slope * values[:, self.feature[t]]
            at_end = t == len(self) - 1
            yield last if at_end else in_range(total, values, intercept, slopes, slopes)

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return Phi(-f) and Phi(f), with full precision for small probabilities."""
        return probabilities(score[:, None])

    def equations(self) -> tuple[FloatArray, FloatArray, None]:
        """Return the coefficients in the form of a tree with one leaf."""
        return np.concatenate([[self.intercept], self.slopes])[None, None], np.ones(1), None

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the intercept and the term of each feature for one row."""
        row = filled(input_values(self, X)[0], self.mean)
        with np.errstate(over="ignore"):
            return np.concatenate([[self.intercept], self.by_column(self.slopes * row)])

    def vote_parts(self, X: TableLike) -> FloatArray:
        """Return the sum of the constant steps and, for each feature, the sum of its steps."""
        row = filled(input_values(self, X)[0], self.mean)
        value = np.where(self.feature >= 0, row[self.feature], 0.0)
        with np.errstate(over="ignore"):
            steps = np.clip(self.step[:, 0] + self.step[:, 1] * value, -FAR, FAR)
        parts = np.bincount(self.feature + 1, steps, 1 + self.n_added).astype(np.float64)
        return np.concatenate([parts[:1], self.by_column(parts[1:])])

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return normalized importances, based on `X` or on the risk decreases in training."""
        if X is not None:
            return as_shares(self.by_column(times_spread(self.slopes, spread_of(self, X))))
        read = self.feature >= 0
        fall = falls(self.risk)[read]
        total = np.bincount(self.feature[read], fall, self.n_added).astype(np.float64)
        return as_shares(self.by_column(total))

    def inquiry(self, settles: bool) -> SumInquiry:
        """Return an evaluator for feature acquisition that reads all columns of the sum."""
        return SumInquiry(self, columns_of(self, self.slopes != 0), 1)

    @property
    def mean_prediction_cost(self) -> float:
        """Number of columns with a nonzero coefficient."""
        return float(max(1, int(np.count_nonzero(self.slopes))))

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the cost of each row: the number of columns with a nonzero coefficient."""
        return np.full(len(input_values(self, X)), self.mean_prediction_cost)

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of the features with a nonzero coefficient."""
        read = self.by_column((self.slopes != 0).astype(np.float64)) != 0
        yield np.broadcast_to(read, (len(input_values(self, X)), self.n_features))

    def describe(self) -> str:
        """Return the model as text: a summary and the equation."""
        names = tuple(names_in_sums(self.feature_names, self.n_features, self.table))
        return "\n".join(
            [
                headline(self, f"fit_probitboost: {counted(len(self), 'step')}"),
                f"risk {self.risk[-1]:.6g}",
                f"stopped: {self.stop_reason}",
                f"P({self.classes.tolist()[1]!r}) = Phi(f), f = "
                + equation(self.intercept, self.slopes, names),
            ]
        )


def columns_of(model: Model, is_added: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the features whose columns are marked in `is_added`, shape (n_added,)."""
    indicators = indicators_of(model.table)
    every = np.flatnonzero(is_added)
    return every if indicators is None else np.unique(indicators.column[every]).astype(np.intp)


def sums_of(
    values: FloatArray,
    slopes: FloatArray,
    fill: FloatArray,
    constant: float,
    center: FloatArray | None = None,
    scale: FloatArray | None = None,
) -> FloatArray:
    """Return constant + slopes . x for rows (n, d), with x standardized if requested.

    The terms are added column by column, because the rounding errors of a matrix product can
    depend on the number of rows. `fill` (d,) replaces missing values.
    """
    out = np.empty(len(values))
    index = np.flatnonzero(slopes).astype(np.int32)
    factor, known = slopes[index], fill[index]
    units = [] if center is None or scale is None else [center[index], scale[index]]

    def work(first: int, last: int) -> None:
        derived.sum_rows(values, index, factor, known, constant, first, out[first:last], *units)

    run_ranges(work, len(values), cells=1 + len(index))
    return out


def in_range(
    total: FloatArray,
    values: FloatArray,
    intercept: float,
    slopes: FloatArray,
    fill: FloatArray,
) -> FloatArray:
    """Return the decision values `total`; recompute those that are not finite.

    To recompute a value, the terms of intercept + slopes . x are scaled down, and their sum is
    clipped to the range of float64. `fill` (d,) replaces missing values.
    """
    far = np.flatnonzero(~np.isfinite(total))
    if not len(far):
        return total
    sums, rows = np.full(len(far), np.ldexp(intercept, -2 * HALF)), filled(values[far], fill)
    for j in np.flatnonzero(slopes).tolist():
        sums += np.ldexp(slopes[j], -HALF) * np.ldexp(np.float64(rows[:, j]), -HALF)
    total, largest = total.copy(), np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        total[far] = np.clip(np.ldexp(sums, 2 * HALF), -largest, largest)
    return total


def log_probability(values: FloatArray) -> FloatArray:
    """Return ln Phi of values of any shape."""
    flat = np.clip(values, -FAR, FAR).ravel()
    loss = np.empty(len(flat))
    kernel.losses(flat, loss)
    return -loss.reshape(values.shape)


def probabilities(values: FloatArray) -> FloatArray:
    """Return class probabilities (n, J) for decision values (n, K).

    With two classes there is one value f, and the probabilities are Phi(-f) and Phi(f). With more
    classes, the probabilities are Phi of the values, divided by the sum. If rounding makes two
    probabilities equal, the predicted class gets the next larger number.
    """
    if values.shape[1] == 1:
        share = np.exp(log_probability(np.concatenate([-values, values], axis=1)))
    else:
        logs = log_probability(values)
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
    return settled(share, chosen(values))


def chosen(values: FloatArray) -> NDArray[np.intp]:
    """Return the position of the predicted class for decision values (n, K)."""
    if values.shape[1] == 1:
        return (values[:, 0] > 0).astype(np.intp)
    return np.argmax(values, axis=1)
