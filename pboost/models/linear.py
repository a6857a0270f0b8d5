"""Models that are sums of real-valued weak hypotheses: all of them are asked about every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import (
    check_columns,
    check_dimensions,
    check_finite_arrays,
    check_labels,
    check_settings,
    check_shape,
    check_sum,
    is_number,
)
from pboost.data.targets import check_answers
from pboost.models.base import (
    OF_RECORD,
    TWO_CLASS_MEMBERS,
    TwoClassPredictor,
    two_class_fields,
    two_class_members,
)
from pboost.models.graph import TrainingRecord, check_record
from pboost.models.new_rows import input_values, match_sigma
from pboost.models.text import input_names, summary
from pboost.values import FloatArray, IntArray, freeze

#: ``feature`` of the constant hypothesis.
CONSTANT = -1


class AdditiveModel(TwoClassPredictor):
    """Base of the models that are a bias and a sum of leveraged weak hypotheses.

    `labels`, `n_features`, `feature_names`, `bias`, `settings` and `record` are those of a
    `DecisionGraph`; so are the functions of a model, except those that speak of nodes and exits
    (`explain`, `reach`, `prefix`, `continue_fit`).
    """

    __slots__ = ()

    no_graph: ClassVar[str] = "all of whose hypotheses are asked about every row"
    instead: ClassVar[Mapping[str, str]] = {
        "prefix": "staged_decision_function has the values after each round",
        "reach": "decision_function is their sum",
        "explain": "describe lists them",
    }
    labels: NDArray[Any]
    n_features: int
    feature_names: tuple[str, ...] | None
    bias: float
    settings: Mapping[str, Any]
    record: TrainingRecord

    def __repr__(self) -> str:
        return (
            f"<{self.settings.get('builder', type(self).__name__)}: {self.n_nodes} rounds, "
            f"{self.n_features} features, certificate {self.record.certificate[-1]:.4g}>"
        )

    def check_route(self, route: str, X: Any, sigma: Any) -> None:
        """Answers are exact: all routes agree, and sigma is refused."""
        match_sigma(self, X, sigma)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision value of each row."""
        return within_range(self.score(input_values(self, X)))

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield the decision values after each round."""
        return self._stages(self.terms(input_values(self, X)))

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return what evaluating each row costs, the same for all."""
        return np.full(len(input_values(self, X)), self.cost(unit))

    def describe(self) -> str:
        """Return the model as text."""
        return "\n".join([*summary(self), *self.lines(input_names(self))])

    def cost(self, unit: str) -> float:
        """Return what evaluating a row costs, in "features", else in weak hypotheses."""
        return float(self.n_features) if unit == "features" else float(self.record.cost[-1])

    def terms(self, values: NDArray[Any]) -> Iterator[FloatArray]:
        """Yield what each round adds to the decision values of rows (n, d)."""
        raise NotImplementedError

    def score(self, values: NDArray[Any]) -> FloatArray:
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

    def _freeze(self, arrays: Mapping[str, Any]) -> None:
        for name, dtype in arrays.items():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype))
        object.__setattr__(self, "labels", freeze(self.labels))
        object.__setattr__(self, "settings", dict(self.settings))
        check_finite_arrays(self, *arrays)
        check_labels(self.labels, 2)
        check_columns(self.n_features, self.feature_names)
        check_settings(self.settings)
        if not is_number(self.bias):
            raise ValueError(f"bias: expected a finite number, got {self.bias}")
        check_dimensions(self.record, {"certificate": 1})
        check_record(self.record, self.n_nodes)

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]


def times(factor: float, answer: FloatArray) -> FloatArray:
    """Return a multiple of numbers, infinite where it is too large for one."""
    with np.errstate(over="ignore"):
        return factor * answer


def plus(a: Any, b: FloatArray) -> FloatArray:
    """Return sums, infinite or NaN where they are too large for a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        total: FloatArray = a + b
    return total


def within_range(score: FloatArray) -> FloatArray:
    """Return decision values; ValueError names a row whose value is too large for a number."""
    wrong = np.flatnonzero(~np.isfinite(score))
    if len(wrong):
        raise ValueError(
            f"X: row {wrong[0]} lies too far from the training rows: its decision value is not a "
            "finite number"
        )
    return score


#: The arrays of a linear model, and the dtype in which they are kept.
LINEAR_COLUMNS: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "step": np.float64,
    "mu": np.float64,
    "center": np.float64,
    "scale": np.float64,
}


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
    center, scale : ndarray of float64, shape (n_features,)
        What is subtracted from each column and what the difference is divided by.
    labels : ndarray, shape (2,)
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
    """

    feature: IntArray
    step: FloatArray
    mu: FloatArray
    center: FloatArray
    scale: FloatArray
    labels: NDArray[Any]
    n_features: int
    feature_names: tuple[str, ...] | None
    bias: float
    settings: Mapping[str, Any]
    record: TrainingRecord

    file_kind: ClassVar[str] = "linear"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        **{name: np.dtype(dtype).newbyteorder("<") for name, dtype in LINEAR_COLUMNS.items()},
        **TWO_CLASS_MEMBERS,
    }
    file_optional: ClassVar[Mapping[str, np.dtype[Any] | None]] = OF_RECORD

    def __post_init__(self) -> None:
        self._freeze(LINEAR_COLUMNS)
        rounds, d = (self.n_nodes,), (self.n_features,)
        check_shape(
            self, {"feature": rounds, "step": rounds, "mu": rounds, "center": d, "scale": d}
        )
        check_sum("step, bias", self.step, self.bias)
        if ((self.feature < CONSTANT) | (self.feature >= self.n_features)).any():
            raise ValueError(f"feature: expected values in [-1, {self.n_features})")
        if not (self.scale > 0).all():
            raise ValueError("scale: expected numbers above 0")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields()

    @property
    def weights(self) -> FloatArray:
        """Sum of the steps of each centred and scaled column, (n_features,)."""
        columns = self.feature >= 0
        total = np.zeros(self.n_features)
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

    def cost(self, unit: str) -> float:
        """Return what evaluating a row costs: a product for each different column, in any unit."""
        return float(self.record.cost[-1])

    def terms(self, values: NDArray[Any]) -> Iterator[FloatArray]:
        """Yield what each round adds to the decision values of rows (n, d)."""
        for j, step in zip(self.feature.tolist(), self.step.tolist(), strict=True):
            if j == CONSTANT:
                yield np.full(len(values), step)
            else:
                yield times(step, self._answer(values, j))

    def score(self, values: NDArray[Any]) -> FloatArray:
        """Return the decision values of rows (n, d); a column is read once."""
        total = np.full(len(values), self.bias + float(self.step[self.feature == CONSTANT].sum()))
        weights = self.weights
        # Column by column: a product of matrices could differ between batches of rows.
        for j in np.flatnonzero(weights).tolist():
            total = plus(total, times(weights[j], self._answer(values, j)))
        return total

    def _answer(self, values: NDArray[Any], j: int) -> FloatArray:
        """Return the centred and scaled column j."""
        with np.errstate(over="ignore"):
            answer = (values[:, j].astype(np.float64) - self.center[j]) / self.scale[j]
        wrong = np.flatnonzero(~np.isfinite(answer))
        if len(wrong):
            raise ValueError(
                f"X: row {wrong[0]} lies too far from the training rows in column {j}: its "
                "decision value is not a finite number"
            )
        return answer

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return the model in words, given the names of its columns."""
        read = np.flatnonzero(np.isin(np.arange(self.n_features), self.feature)).tolist()
        found = [f"{names[j]}: coefficient {self.coefficient[j]:+.6g}" for j in read]
        return [*found, f"intercept {self.intercept:+.6g}"]

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays."""
        header, arrays = two_class_members(self)
        return header, {**{name: getattr(self, name) for name in LINEAR_COLUMNS}, **arrays}

    @classmethod
    def from_members(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> LinearModel:
        """Return the model of a file; ValueError or TypeError where it is none."""
        own: dict[str, Any] = {name: arrays[name] for name in LINEAR_COLUMNS}
        return cls(**own, **two_class_fields(header, arrays))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HypothesisSum(AdditiveModel):
    """A sum of the user's own weak hypotheses; it holds the functions and cannot be saved.

    Attributes
    ----------
    hypotheses : tuple of callable
        Functions of rows (n, d) that return a real number for each.
    alpha : ndarray of float64, shape (rounds,)
        Leverage of each.
    mu : ndarray of float64, shape (rounds,)
        Normalised margin of each on the weights of its round.
    labels : ndarray, shape (2,)
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
    """

    hypotheses: tuple[Callable[[Any], Any], ...]
    alpha: FloatArray
    mu: FloatArray
    labels: NDArray[Any]
    n_features: int
    feature_names: tuple[str, ...] | None
    bias: float
    settings: Mapping[str, Any]
    record: TrainingRecord

    def __post_init__(self) -> None:
        self._freeze({"alpha": np.float64, "mu": np.float64})
        check_shape(self, {"alpha": (self.n_nodes,), "mu": (self.n_nodes,)})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields()

    def terms(self, values: NDArray[Any]) -> Iterator[FloatArray]:
        """Yield what each round adds to the decision values of rows (n, d)."""
        rows = np.asarray(values, dtype=np.float64)
        for t, (h, alpha) in enumerate(zip(self.hypotheses, self.alpha.tolist(), strict=True)):
            yield times(alpha, check_answers(h(rows), len(rows), f"hypothesis of round {t + 1}"))

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return the model in words, given the names of its columns."""
        pairs = zip(self.hypotheses, self.alpha.tolist(), strict=True)
        return [f"round {t + 1}: {alpha:+.6g} times {h!r}" for t, (h, alpha) in enumerate(pairs)]

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Raise TypeError."""
        raise TypeError("model: a HypothesisSum cannot be stored, as it holds functions")
