"""Weak learners, as builders see them.

What users call is in `pboost.weak`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns import AUTO_BINNED_CELLS, AUTO_BINNED_ROWS, SEARCHES
from pboost.data.projections import (
    Projections,
    grid_of_directions,
    random_directions,
    standard_deviations,
)
from pboost.data.sharing import Search
from pboost.values import check_choice, check_integer, check_number, shown, uncalled

#: Split criteria, in the order of the codes that the kernels use.
CRITERIA = ("kearns-mansour", "gini", "entropy", "error")


class Weak:
    """Base of the weak learners."""

    __slots__ = ()

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ColumnLearner(Weak):
    """Weak learners that compare one number per row, a column, with a threshold."""

    criterion: str = "kearns-mansour"
    search: str = "auto"
    max_bins: int = 256
    min_weight: float = 0.0
    min_count: int = 1

    def resolve_search(self, n_rows: int) -> str:
        """Return "exact" or "binned" for data of `n_rows` rows."""
        if self.search != "auto":
            return self.search
        return "exact" if n_rows < AUTO_BINNED_ROWS else "binned"


@dataclass(frozen=True, slots=True)
class Stump(ColumnLearner):
    """A weak classifier that compares one feature with one threshold; made by `stump`."""

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        return {"kind": "stump", **asdict(self)}


def stump_search(options: Mapping[str, Any]) -> Search | None:
    """Return the search of builders with a weak learner; None where that is no stump."""
    weak = options.get("weak", Stump())
    return Search(weak.search, weak.max_bins) if isinstance(weak, Stump) else None


@dataclass(frozen=True, slots=True)
class Affine(ColumnLearner):
    """A weak classifier that is the sign of an affine function; made by `affine`."""

    directions: int = 180
    terms: int = 2
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        return {"kind": "affine", **asdict(self)}

    def resolve_search(self, n_rows: int) -> str:
        """Return "exact" or "binned" for data of `n_rows` rows."""
        if self.search != "auto":
            return self.search
        return "exact" if n_rows * self.directions < AUTO_BINNED_CELLS else "binned"

    def projections(
        self, X: NDArray[Any], rows: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> Projections:
        """Return what is compared with thresholds, made for the listed rows of X."""
        d = X.shape[1]
        if d == 2:
            return grid_of_directions(self.directions)
        scale = standard_deviations(X, rows, weights) if d > 2 else np.zeros(d)
        generator = np.random.default_rng(self.seed)
        return random_directions(scale, self.directions, self.terms, generator)


@dataclass(frozen=True, slots=True)
class Separator(Weak):
    """A weak classifier that is the sign of a sum of stumps; made by `separator`."""

    stumps: int
    smoothing: float
    learning_rate: float
    votes: str
    stump: Stump

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        return {"kind": "separator", **asdict(self), "stump": self.stump.settings()}


@dataclass(frozen=True, slots=True)
class Linear(Weak):
    """A weak classifier that compares a sum of columns, found at the node; made by `linear`."""

    dense_gain: float
    pairs: int
    seed: int
    stump: Stump

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        gain = None if self.dense_gain == math.inf else self.dense_gain
        own = {"dense_gain": gain, "pairs": self.pairs, "seed": self.seed}
        return {"kind": "linear", **own, "stump": self.stump.settings()}


@dataclass(frozen=True, slots=True)
class RowLearner(Weak):
    """Weak learners that are given rows of X as they are, and answer for rows."""


@dataclass(frozen=True, slots=True)
class Oracle(RowLearner):
    """A user's own weak learner; made by `oracle`."""

    train: Callable[..., Callable[..., Any]]

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        name = getattr(self.train, "__qualname__", type(self.train).__qualname__)
        return {"kind": "oracle", "train": name}


@dataclass(frozen=True, slots=True)
class FromEstimator(RowLearner):
    """An estimator with ``fit`` and ``predict_proba``; made by `from_estimator`."""

    estimator: Any

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        return {"kind": "from_estimator", "estimator": type(self.estimator).__qualname__}


def check_weak(weak: Any) -> Weak:
    """Return `weak` if it is a weak learner."""
    if not isinstance(weak, Weak):
        raise TypeError(f"weak: expected one of pboost.weak, got {shown(weak)}{uncalled(weak)}")
    return weak


def checked_columns(
    criterion: str, search: str, max_bins: int, min_weight: float, min_count: int
) -> tuple[str, str, int, float, int]:
    """Return the options of all weak learners that compare columns, in the order of the fields."""
    return (
        check_choice("criterion", criterion, CRITERIA),
        check_choice("search", search, SEARCHES),
        check_integer("max_bins", max_bins, least=2, most=256),
        check_number("min_weight", min_weight, least=0.0, most=0.5),
        check_integer("min_count", min_count, least=1),
    )
