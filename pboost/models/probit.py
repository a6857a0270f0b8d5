"""The model of ProbitBoost: a linear function whose normal distribution is a probability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import (
    MOST_SUM,
    check_columns,
    check_finite_arrays,
    check_labels,
    check_not_negative,
    check_settings,
    check_shape,
    check_sum,
    is_number,
)
from pboost.models.base import Predictor, one_of_two
from pboost.models.new_rows import input_values
from pboost.models.probit_values import probabilities
from pboost.models.text import equation
from pboost.values import FloatArray, IntArray, freeze

#: The arrays of the model, and the dtype in which they are kept.
COLUMNS: dict[str, type[np.generic]] = {
    "slopes": np.float64,
    "feature": np.int32,
    "step": np.float64,
    "length": np.float64,
    "risk": np.float64,
}
#: Halves the exponents of products that would overflow.
FAR = 540


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProbitModel(Predictor):
    """A linear model f of the probability Phi(f) of the second label, made by `fit_probitboost`.

    Attributes
    ----------
    intercept : float
        Decision value where all columns are 0.
    slopes : ndarray of float64, shape (n_features,)
        Factor of each column, in its own units.
    feature : ndarray of int32, shape (steps,)
        Column of each step, -1 where it is a constant only.
    step : ndarray of float64, shape (steps, 2)
        What each step added to the intercept, and to the slope of its column.
    length : ndarray of float64, shape (steps,)
        Share of the full step that was taken: 1, or less where the safeguard has halved it.
    risk : ndarray of float64, shape (steps + 1,)
        Weighted mean of -ln Phi(Y f) on the training rows before the first step and after each.
    labels : ndarray, shape (2,)
        The two label values, sorted.
    settings : mapping
        The options the model was fitted with.
    stop_reason : str
        Why fitting ended, as a sentence.
    n_features : int
        Number of columns.
    feature_names : tuple of str or None
        Their names.
    """

    intercept: float
    slopes: FloatArray
    feature: IntArray
    step: FloatArray
    length: FloatArray
    risk: FloatArray
    labels: NDArray[Any]
    settings: Mapping[str, Any]
    stop_reason: str
    n_features: int
    feature_names: tuple[str, ...] | None

    no_graph: ClassVar[str] = "whose value is not half the log odds"
    instead: ClassVar[Mapping[str, str]] = {
        "prefix": "staged_decision_function has the values after each step",
        "reach": "every row gets the same linear function, see coefficients",
        "explain": "coefficients has its slopes",
    }
    file_kind: ClassVar[str] = "probit"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        **{name: np.dtype(dtype).newbyteorder("<") for name, dtype in COLUMNS.items()},
        "labels": None,
    }

    def __post_init__(self) -> None:
        for name, dtype in COLUMNS.items():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype))
        object.__setattr__(self, "labels", freeze(self.labels))
        object.__setattr__(self, "settings", dict(self.settings))
        self.validate()

    def validate(self) -> None:
        """Check the arrays; ValueError names the one that is wrong."""
        steps = len(self)
        check_columns(self.n_features, self.feature_names)
        shapes = {
            "slopes": (self.n_features,), "feature": (steps,), "step": (steps, 2),
            "length": (steps,), "risk": (steps + 1,),
        }  # fmt: skip
        for name, shape in shapes.items():
            check_shape(self, {name: shape})
            check_finite_arrays(self, name)
        check_not_negative(self, "risk")
        if not ((self.length > 0) & (self.length <= 1)).all():
            raise ValueError("length: expected numbers above 0, at most 1")
        if not is_number(self.intercept):
            raise ValueError(f"intercept: expected a finite number, got {self.intercept}")
        if ((self.feature < -1) | (self.feature >= self.n_features)).any():
            raise ValueError(f"feature: expected values in [-1, {self.n_features})")
        check_labels(self.labels, 2)
        check_settings(self.settings)
        if not isinstance(self.stop_reason, str):
            raise ValueError(f"stop_reason: expected a string, got {self.stop_reason!r}")
        with np.errstate(over="ignore"):
            sums = np.bincount(self.feature + 1, np.abs(self.step[:, 1]))
        if not (sums <= MOST_SUM).all():
            raise ValueError("step: expected numbers whose absolute values have a finite sum")
        check_sum("step", self.step[:, 0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def __repr__(self) -> str:
        return (
            f"<fit_probitboost: {len(self)} step{'s' * (len(self) != 1)}, "
            f"{self.n_features} features, risk {self.risk[-1]:.4g}>"
        )

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def n_nodes(self) -> int:
        """Number of steps."""
        return len(self)

    def decision_function(self, X: Any) -> FloatArray:
        """Return intercept + slopes . x of each row."""
        values = input_values(self, X)
        total = np.full(len(values), self.intercept)
        # Column by column: a product of matrices could differ between batches of rows.
        with np.errstate(over="ignore", invalid="ignore"):
            for j in np.flatnonzero(self.slopes).tolist():
                total += self.slopes[j] * values[:, j]
        return within_range(total, values, self.intercept, self.slopes)

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield the decision values after each step, the last those of the model."""
        values = input_values(self, X)
        return self._stages(values, self.decision_function(values))

    def _stages(self, values: FloatArray, last: FloatArray) -> Iterator[FloatArray]:
        total, intercept, slopes = np.zeros(len(values)), 0.0, np.zeros(self.n_features)
        for t, (constant, slope) in enumerate(self.step.tolist()):
            intercept += constant
            with np.errstate(over="ignore", invalid="ignore"):
                total = total + constant
                if self.feature[t] >= 0:
                    slopes[self.feature[t]] += slope
                    total += slope * values[:, self.feature[t]]
            yield last if t == len(self) - 1 else within_range(total, values, intercept, slopes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the second label where the decision value is positive, else the first."""
        return self.labels_of(self.decision_function(X))

    def labels_of(self, score: FloatArray) -> NDArray[Any]:
        """Return the predictions that go with decision values."""
        return one_of_two(self.labels, score)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each label for each row."""
        return self.probabilities(self.decision_function(X))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return Phi(-f) and Phi(f), either exact where it is small."""
        return probabilities(score[:, None])

    def equations(self) -> tuple[FloatArray, FloatArray, None]:
        """Return the coefficients, in one leaf."""
        return np.concatenate([[self.intercept], self.slopes])[None, None], np.ones(1), None

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return the number of columns with a slope, the same for all rows."""
        cost = max(1, int(np.count_nonzero(self.slopes)))
        return np.full(len(input_values(self, X)), float(cost))

    def describe(self) -> str:
        """Return the model as text: a summary and the equation."""
        count = f"{self.n_features} feature{'s' * (self.n_features != 1)}"
        return "\n".join(
            [
                f"fit_probitboost: {len(self)} step{'s' * (len(self) != 1)}, {count}, labels "
                f"{self.labels.tolist()!r}",
                f"risk {self.risk[-1]:.6g}",
                f"stopped: {self.stop_reason}",
                f"P({self.labels.tolist()[1]!r}) = Phi(f), f = "
                + equation(self.intercept, self.slopes, self.feature_names),
            ]
        )

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays."""
        header = {
            "settings": self.settings,
            "n_features": int(self.n_features),
            "feature_names": self.feature_names,
            "intercept": float(self.intercept),
            "stop_reason": self.stop_reason,
        }
        return header, {name: getattr(self, name) for name in (*COLUMNS, "labels")}

    @classmethod
    def from_members(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> ProbitModel:
        """Return the model of a file; ValueError or TypeError where it is none."""
        intercept, names = header.get("intercept"), header.get("feature_names")
        if not isinstance(intercept, float):
            raise ValueError(f"intercept: expected a number, got {intercept!r}")
        return cls(
            intercept, **{name: arrays[name] for name in (*COLUMNS, "labels")},
            settings=header["settings"], stop_reason=header["stop_reason"],
            n_features=header["n_features"],
            feature_names=None if names is None else tuple(names),
        )  # fmt: skip


def within_range(
    total: FloatArray, values: FloatArray, intercept: float, slopes: FloatArray
) -> FloatArray:
    """Return intercept + slopes . x, given as `total`, within the range of float64.

    Where terms overflow they are added up with exponents that are smaller by 2 `FAR`.
    """
    far = np.flatnonzero(~np.isfinite(total))
    if not len(far):
        return total
    sums = np.full(len(far), np.ldexp(intercept, -2 * FAR))
    for j in np.flatnonzero(slopes).tolist():
        sums += np.ldexp(slopes[j], -FAR) * np.ldexp(np.float64(values[far, j]), -FAR)
    total, most = total.copy(), np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        total[far] = np.clip(np.ldexp(sums, 2 * FAR), -most, most)
    return total
