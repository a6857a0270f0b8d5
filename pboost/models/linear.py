"""Models that are sums, all of whose terms are asked about every row: linear functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import derived
from pboost._core import probit as kernel
from pboost.data.node_inputs.fill import filled
from pboost.data.node_inputs.inputs import indicators_of, names_in_sums
from pboost.data.read.check_xy import check_answers
from pboost.data.read.table import Table
from pboost.models import stored
from pboost.models.base import CostUnit, Model, Route, TwoClassModel
from pboost.models.evaluate.known_values import SumInquiry
from pboost.models.evaluate.new_rows import input_values, match_sigma, spread_of
from pboost.models.shares import as_shares, falls, settled, times_spread
from pboost.models.stored import (
    MOST_SUM,
    HeaderAndArrays,
    NestedRecord,
    Settings,
    TrainingRecord,
    check_sum,
    table_field,
)
from pboost.models.text import counted, equation, headline, input_names, summary
from pboost.threads import run_ranges
from pboost.values import Array, FloatArray, IntArray, TableLike

#: ``feature`` of the constant hypothesis.
CONSTANT = -1
#: Halves the exponents of products that would overflow.
HALF = 540
#: Said of the columns where a model is made of functions.
OF_FUNCTIONS = "model: which columns a FunctionEnsemble reads is not known, as it is made of functions of rows; "
#: Beyond this size a value's square overflows.
FAR = 1e150


class AdditiveModel(TwoClassModel):
    """Base of the models that are a bias and a sum of leveraged weak hypotheses.

    `classes`, `n_features`, `feature_names`, `bias`, `settings` and `record` are those of a
    `DecisionGraph`; so are the functions of a model, except those that speak of nodes and exits
    (`reach`, `truncate`, `continue_fit`).
    """

    __slots__ = ()

    no_graph: ClassVar[str] = "all of whose hypotheses are asked about every row"
    instead: ClassVar[Mapping[str, str]] = {
        "truncate": "staged_decision_function has the values after each round",
        "reach": "decision_function is their sum",
    }

    @property
    def n_nodes(self) -> int:
        """Number of rounds: weak hypotheses, with repetitions."""
        return len(self.record.certificate) - 1

    def score_by_route(self, X: TableLike, route: Route) -> FloatArray:
        """Answers are exact: all routes agree, and sigma is refused."""
        match_sigma(self, X, route.sigma)
        return self.decision_function(X)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the decision value of each row."""
        return within_range(self.score(input_values(self, X)))

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values after each round."""
        return self._stages(self.terms(input_values(self, X)))

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return what evaluating each row costs, the same for all."""
        return np.full(len(input_values(self, X)), self.cost(unit))

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield that all columns are read of each row."""
        yield np.ones((len(input_values(self, X)), self.n_features), dtype=np.bool_)

    def describe(self) -> str:
        """Return the model as text."""
        return "\n".join([*summary(self), *self.lines(input_names(self))])

    def cost(self, unit: CostUnit) -> float:
        """Return what evaluating a row costs, in "features", else in weak hypotheses."""
        return float(self.n_features) if unit == "features" else float(self.record.cost[-1])

    def terms(self, values: Array) -> Iterator[FloatArray]:
        """Yield what each round adds to the decision values of rows (n, d)."""
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
        """Return the model in words, given the names of its columns."""
        raise NotImplementedError


def times(factor: float, answer: FloatArray) -> FloatArray:
    """Return a multiple of numbers, infinite where it is too large for one."""
    with np.errstate(over="ignore"):
        return factor * answer


def plus(a: Any, b: FloatArray) -> FloatArray:
    """Return sums, infinite or NaN where they are too large for a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        total: FloatArray = a + b
    return total


def within_range(score: FloatArray, where: str = "") -> FloatArray:
    """Return decision values; ValueError names a row whose value is too large for a number."""
    wrong = np.flatnonzero(~np.isfinite(score))
    if len(wrong):
        raise ValueError(
            f"X: row {wrong[0]} lies too far from the training rows{where}: its decision value is "
            "not a finite number"
        )
    return score


class RoundsRecord(NestedRecord):
    """The record of the rounds, which counts them."""

    __slots__ = ()

    def check(self, record: Any, name: str) -> None:
        """Check the record, before what has an entry for each round."""
        record.record.check(record.n_nodes)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearModel(AdditiveModel):
    """A linear model, boosted column by column.

    Round t adds ``step[t] * (x[j] - center[j]) / scale[j]`` with ``j = feature[t]``, or the
    constant ``step[t]`` where j is -1, to the decision value.

    Attributes
    ----------
    feature : ndarray of int32, shape (rounds,)
        Column of each round, -1 for the constant.
    step : ndarray of float64, shape (rounds,)
        Vote of each round for an answer of 1.
    mu : ndarray of float64, shape (rounds,)
        Normalised margin of each round's hypothesis on the weights of that round.
    center, scale : ndarray of float64, shape (n_added,)
        What is subtracted from each column and what the difference is divided by. Columns are those
        of X, but for categories, which have one of zeros and ones for each level.
    classes : ndarray, shape (2,)
        The two label values, sorted.
    n_features : int
        Number of columns.
    feature_names : tuple of str or None
        Their names.
    bias : float
        Vote of every row at the start; not 0 only where nothing could be learnt.
    settings : mapping
        The options the model was fitted with.
    record : TrainingRecord
        Certificate and cost (columns read) after each round, and why boosting stopped.
    takes_missing : bool
        Whether rows may have missing values, for which a column answers 0, as for its center.
    table : Table or None
        What the columns were in training: levels of categories, and which had missing values; see
        `pboost.data.read.table`. None where all were numbers and none was missing.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the rows that it was fitted to, :doc:`/how_to/error_bounds_and_prediction_sets`; None where it
        is not known.
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
    no_trees = "which is one linear function: see coefficients and to_c"
    sums_features = True

    def check_whole(self) -> None:
        """Check that the sum is finite, and the scale."""
        check_sum("step, bias", self.step, self.bias)
        if not (self.scale > 0).all():
            raise ValueError("scale: expected numbers above 0")

    @property
    def weights(self) -> FloatArray:
        """Sum of the steps of each centred and scaled column, (n_features,)."""
        columns = self.feature >= 0
        total = np.zeros(self.n_added)
        np.add.at(total, self.feature[columns], self.step[columns])
        return total

    @property
    def coefficient(self) -> FloatArray:
        """Factor of each column in its own units, (n_features,); infinite beyond all numbers."""
        with np.errstate(over="ignore"):  # of a column whose numbers are denormal
            return self.weights / self.scale

    @property
    def intercept(self) -> float:
        """Decision value where all columns are 0."""
        constant, factor = float(self.step[self.feature == CONSTANT].sum()), self.coefficient
        known = np.isfinite(factor)
        product = np.where(known, factor, 0.0) * self.center
        with np.errstate(over="ignore", invalid="ignore"):
            far = self.weights * (self.center / self.scale)
            return self.bias + constant - float(np.where(known, product, far).sum())

    def equations(self) -> tuple[FloatArray, FloatArray, None]:
        """Return the coefficients, in one leaf."""
        return np.concatenate([[self.intercept], self.coefficient])[None, None], np.ones(1), None

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the votes of constants, and of the centred and scaled columns of a row."""
        values, weights = input_values(self, X), self.weights
        constant = self.bias + float(self.step[self.feature == CONSTANT].sum())
        terms = [
            times(weights[j], self._answer(values, j))[0] if weights[j] else 0.0
            for j in range(self.n_added)
        ]
        return np.array([constant, *self.by_column(np.array(terms))])

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the shares of the coefficients times `scale`, or another spread, without signs."""
        known = self.scale if X is None else spread_of(self, X)
        with np.errstate(over="ignore"):
            return as_shares(self.by_column(times_spread(self.weights, known / self.scale)))

    def cost(self, unit: CostUnit) -> float:
        """Return what evaluating a row costs: a product for each different column, in any unit."""
        return float(self.record.cost[-1])

    def terms(self, values: Array) -> Iterator[FloatArray]:
        """Yield what each round adds to the decision values of rows (n, d)."""
        for j, step in zip(self.feature.tolist(), self.step.tolist(), strict=True):
            if j == CONSTANT:
                yield np.full(len(values), step)
            else:
                yield times(step, self._answer(values, j))

    def score(self, values: Array) -> FloatArray:
        """Return the decision values of rows (n, d); a column is read once."""
        constant = self.bias + float(self.step[self.feature == CONSTANT].sum())
        total = sums_of(values, self.weights, self.center, constant, self.center, self.scale)
        if not np.isfinite(total).all():
            for j in np.flatnonzero(self.weights).tolist():
                self._answer(values, j)  # says in which column a value lies too far
        return total

    def _answer(self, values: Array, j: int) -> FloatArray:
        """Return the centred and scaled column j."""
        with np.errstate(over="ignore"):
            answer = (values[:, j].astype(np.float64) - self.center[j]) / self.scale[j]
        answer[np.isnan(answer)] = 0.0
        return within_range(answer, f" in column {j}")

    def inquiry(self, settles: bool) -> SumInquiry:
        """Return what is asked of a row: all columns of the sum."""
        return SumInquiry(self, columns_of(self, self.weights != 0), 1)

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return the model in words, given the names of its columns."""
        read = np.flatnonzero(np.isin(np.arange(self.n_added), self.feature)).tolist()
        lines = [f"{names[j]}: coefficient {self.coefficient[j]:+.6g}" for j in read]
        return [*lines, f"intercept {self.intercept:+.6g}"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionEnsemble(AdditiveModel):
    """A sum of the user's own weak hypotheses; it holds the functions and cannot be saved.

    Attributes
    ----------
    hypotheses : tuple of callable
        Functions of rows (n, d) that return a real number for each.
    alpha : ndarray of float64, shape (rounds,)
        Leverage of each.
    mu : ndarray of float64, shape (rounds,)
        Normalised margin of each on the weights of its round.
    classes : ndarray, shape (2,)
        The two label values, sorted.
    n_features : int
        Number of columns.
    feature_names : tuple of str or None
        Their names.
    bias : float
        Vote of every row at the start; not 0 only where nothing could be learnt.
    settings : mapping
        The options the model was fitted with.
    record : TrainingRecord
        Certificate and cost (hypotheses) after each round, and why boosting stopped.
    table : Table or None
        What the columns were in training: levels of categories, and which had missing values; see
        `pboost.data.read.table`. None where all were numbers and none was missing.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the rows that it was fitted to, :doc:`/how_to/error_bounds_and_prediction_sets`; None where it
        is not known.
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
    no_trees = "which is made of functions of a row, that no format holds; pickle it"

    def terms(self, values: Array) -> Iterator[FloatArray]:
        """Yield what each round adds to the decision values of rows (n, d)."""
        rows = np.asarray(values, dtype=np.float64)
        for t, (h, alpha) in enumerate(zip(self.hypotheses, self.alpha.tolist(), strict=True)):
            yield times(alpha, check_answers(h(rows), len(rows), f"hypothesis of round {t + 1}"))

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return the model in words, given the names of its columns."""
        pairs = zip(self.hypotheses, self.alpha.tolist(), strict=True)
        return [f"round {t + 1}: {alpha:+.6g} times {h!r}" for t, (h, alpha) in enumerate(pairs)]

    def contributions(self, X: TableLike) -> FloatArray:
        """Raise NotImplementedError."""
        raise NotImplementedError(OF_FUNCTIONS + "staged_decision_function has their sums")

    def importances(self, X: TableLike | None) -> FloatArray:
        """Raise NotImplementedError."""
        raise NotImplementedError(OF_FUNCTIONS + "see permutation_importance")

    def inquiry(self, settles: bool) -> SumInquiry:
        """Raise NotImplementedError."""
        raise NotImplementedError(OF_FUNCTIONS + "predict asks them about whole rows")

    def members(self) -> HeaderAndArrays:
        """Raise TypeError."""
        raise TypeError("model: a FunctionEnsemble cannot be stored, as it holds functions")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProbitModel(Model):
    """A linear model f of the probability Phi(f) of the second label, made by `fit_probitboost`.

    Attributes
    ----------
    intercept : float
        Decision value where all columns are 0.
    slopes : ndarray of float64, shape (n_added,)
        Factor of each column, in its own units; a category has one of zeros and ones for each
        level.
    feature : ndarray of int32, shape (steps,)
        Column of each step, -1 where it is a constant only.
    step : ndarray of float64, shape (steps, 2)
        What each step added to the intercept, and to the slope of its column.
    length : ndarray of float64, shape (steps,)
        Share of the full step that was taken: 1, or less where the safeguard has halved it.
    risk : ndarray of float64, shape (steps + 1,)
        Weighted mean of -ln Phi(Y f) on the training rows before the first step and after each.
    classes : ndarray, shape (2,)
        The two label values, sorted.
    settings : mapping
        The options the model was fitted with.
    stop_reason : str
        Why fitting ended, as a sentence.
    n_features : int
        Number of columns.
    feature_names : tuple of str or None
        Their names.
    mean : ndarray of float64, shape (n_added,), or None
        What a missing value counts as: the weighted mean of the others of its column on the
        training rows. With None missing values are refused.
    table : Table or None
        What the columns were in training: levels of categories, and which had missing values; see
        `pboost.data.read.table`. None where all were numbers and none was missing.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the rows that it was fitted to, :doc:`/how_to/error_bounds_and_prediction_sets`; None where it
        is not known.
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

    no_graph: ClassVar[str] = "whose value is not half the log odds"
    instead: ClassVar[Mapping[str, str]] = {
        "truncate": "staged_decision_function has the values after each step",
        "reach": "every row gets the same linear function, see coefficients",
    }
    file_kind = "probit"
    no_trees = "which is one linear function: see coefficients and to_c"
    sums_features = True

    def check_whole(self) -> None:
        """Check the lengths, and that sums are finite."""
        if not ((self.length > 0) & (self.length <= 1)).all():
            raise ValueError("length: expected numbers above 0, at most 1")
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
        """Whether rows may have missing values."""
        return self.mean is not None

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return intercept + slopes . x of each row."""
        return self._score(input_values(self, X))

    def _score(self, values: FloatArray) -> FloatArray:
        mean = np.zeros(self.n_added) if self.mean is None else self.mean
        total = sums_of(values, self.slopes, mean, self.intercept)
        return in_range(total, values, self.intercept, self.slopes, mean)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values after each step, the last those of the model."""
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
        """Return Phi(-f) and Phi(f), either exact where it is small."""
        return probabilities(score[:, None])

    def equations(self) -> tuple[FloatArray, FloatArray, None]:
        """Return the coefficients, in one leaf."""
        return np.concatenate([[self.intercept], self.slopes])[None, None], np.ones(1), None

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the intercept, and the slopes times the values of a row."""
        row = filled(input_values(self, X)[0], self.mean)
        with np.errstate(over="ignore"):
            return np.concatenate([[self.intercept], self.by_column(self.slopes * row)])

    def vote_parts(self, X: TableLike) -> FloatArray:
        """Return the constant steps, and for each column all of the steps with it."""
        row = filled(input_values(self, X)[0], self.mean)
        value = np.where(self.feature >= 0, row[self.feature], 0.0)
        with np.errstate(over="ignore"):
            steps = np.clip(self.step[:, 0] + self.step[:, 1] * value, -FAR, FAR)
        parts = np.bincount(self.feature + 1, steps, 1 + self.n_added).astype(np.float64)
        return np.concatenate([parts[:1], self.by_column(parts[1:])])

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the shares of the slopes times spread; else of the fall of the risk."""
        if X is not None:
            return as_shares(self.by_column(times_spread(self.slopes, spread_of(self, X))))
        read = self.feature >= 0
        fall = falls(self.risk)[read]
        total = np.bincount(self.feature[read], fall, self.n_added).astype(np.float64)
        return as_shares(self.by_column(total))

    def inquiry(self, settles: bool) -> SumInquiry:
        """Return what is asked of a row: all columns of the sum."""
        return SumInquiry(self, columns_of(self, self.slopes != 0), 1)

    @property
    def mean_prediction_cost(self) -> float:
        """Number of columns with a slope, the same for all rows."""
        return float(max(1, int(np.count_nonzero(self.slopes))))

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the number of columns with a slope, the same for all rows."""
        return np.full(len(input_values(self, X)), self.mean_prediction_cost)

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield that the columns with a slope are read of each row."""
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
    """Return the columns of X of which some of what is added up is made, (n_added,)."""
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
    """Return constant + slopes . x of rows (n, d), x centred and scaled if that is given.

    Terms are added up column by column: a product of matrices could differ between batches of
    rows. `fill` (d,) stands for missing values.
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
    """Return intercept + slopes . x, given as `total`, within the range of float64.

    Where terms overflow they are added up with exponents that are smaller by 2 `HALF`. `fill` (d,)
    stands for missing values.
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
    """Return probabilities (n, J) of values (n, K); the class chosen has the largest, alone.

    Two classes have one value, f, and Phi(-f) and Phi(f); more have Phi of their values, divided
    by the sum. Where another probability is equal in float64 though the values are not, that of
    the class chosen is made larger by one unit in the last place.
    """
    if values.shape[1] == 1:
        share = np.exp(log_probability(np.concatenate([-values, values], axis=1)))
    else:
        logs = log_probability(values)
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
    return settled(share, chosen(values))


def chosen(values: FloatArray) -> NDArray[np.intp]:
    """Return the class of largest value (n, K), the first of equal ones."""
    if values.shape[1] == 1:
        return (values[:, 0] > 0).astype(np.intp)
    return np.argmax(values, axis=1)
