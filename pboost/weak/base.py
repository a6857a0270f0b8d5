"""Base classes of the weak learners and of their split searches.

A search returns the best weak classifier for weighted rows as a `Cut`: a split into two sides,
with the weight of each class on each side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import voting
from pboost.data.columns.columns import values_of
from pboost.data.columns.prebuilt import is_heavier
from pboost.data.node_inputs.inputs import GrownInputs
from pboost.data.read.table import NUMBERS, Takes
from pboost.data.resampling import HoldOut
from pboost.data.training_data import Problem, TrainingData, boosted_problem
from pboost.threads import Workers
from pboost.values import Choice, FloatArray
from pboost.values.options import Kinds

#: Rows with a weight below this are ignored, because kernels avoid subnormal weights.
NO_WEIGHT = 1e-250
#: The weight of class -1 and of class +1, for each exit or side of a split.
Masses = Sequence[Sequence[float]]


class Weak(Choice):
    """Base class of the weak learners.

    Attributes
    ----------
    searches : type of WeakSearch
        Search class, called with the data, the learner, the workers and a generator.
    has_answers : bool
        Whether weak classifiers are functions that can be called repeatedly.
    reads_codes : bool
        Whether the search reads bin codes even if the values are stored, too.
    takes : Takes
        Whether missing values and categorical features are supported. If not, reading X raises an
        error.
    """

    __slots__ = ()

    searches: ClassVar[Callable[..., WeakSearch]]
    has_answers: ClassVar[bool] = False
    reads_codes: ClassVar[bool] = False
    takes: ClassVar[Takes] = NUMBERS

    def read(
        self,
        X: object,
        y: object,
        sample_weight: ArrayLike | None,
        two: str | None,
        hold: HoldOut | None = None,
    ) -> Problem:
        """Return the checked arguments of a fit function.

        `two` is the reason why only binary problems are supported, or None if there is no such
        limit. `hold` selects the validation rows.
        """
        X = X if self.reads_codes else values_of(X)
        return boosted_problem(X, y, sample_weight, two, takes=self.takes, hold=hold)

    def measured(self) -> Weak:
        """Return the learner for features with measurement errors, or raise an error."""
        raise ValueError(
            "observation: 'gaussian' requires features that are known before training; "
            "separators and linear weak classifiers are created at each node; use weak.stump()"
        )

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the training data in the form that the search reads."""
        raise NotImplementedError

    def workers(self, data: TrainingData, n_threads: int | None) -> AbstractContextManager[Workers]:
        """Return the threads; their number depends on the size of the data."""
        return Workers(n_threads, data.cells)


#: Factory functions of the weak learners, by kind.
KINDS = Kinds()
maker = KINDS.add


@dataclass(frozen=True, slots=True)
class Cut:
    """A split found by a search, with the weight of each class on each side.

    Attributes
    ----------
    feature : int
        Index of the feature, or of the derived feature or function.
    masses : tuple
        Fixed-point weights (side, class).
    side : int
        Side of rows with a missing value; -1 if no such row has weight.
    levels : tuple of int or None
        For a categorical feature, two bit masks: the categories above the split, and the categories
        without weight, which take the side of missing values.
    """

    feature: int
    masses: Masses
    side: int = field(default=-1, kw_only=True)
    levels: tuple[int, int] | None = field(default=None, kw_only=True)


@dataclass(slots=True, eq=False)
class Weights:
    """Weights of all rows at one open exit of the decision graph.

    Attributes
    ----------
    real : ndarray of float64, shape (n,)
        The weights.
    fixed : ndarray of int64, shape (n,)
        ``real * scale``, rounded.
    scale : float
        A power of two.
    masses : tuple of int
        Fixed-point weight of class -1 and of class +1.
    """

    real: FloatArray
    fixed: NDArray[np.int64]
    scale: float
    masses: tuple[int, int]


def class_units(masses: tuple[int, int], scale: float) -> FloatArray:
    """Return, per class, the power of two that scales the class weight below 1."""
    units: FloatArray = np.ldexp(1.0, -np.frexp(np.array(masses, dtype=np.float64) / scale)[1])
    return units


class WeakSearch:
    """Base class of the searches, which run one weak learner on one training set.

    Parameters
    ----------
    data : TrainingData
        Training rows and classes.
    weak : Weak
        The weak learner with its options.
    workers : Workers
        Threads.
    generator : numpy.random.Generator, optional
        Source of randomness, for learners that draw random numbers.
    """

    #: Whether weak classifiers are Python functions of a row.
    is_function = False

    def __init__(
        self,
        data: TrainingData,
        weak: Any,
        workers: Workers,
        generator: np.random.Generator | None = None,
    ) -> None:
        self.data, self.weak, self.workers = data, weak, workers
        # Maps feature indices to the fields of a model that describe the inputs of its nodes.
        self.model_columns = data.model_columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.data.n_rows

    def real_sum(self, weights: Weights | None = None) -> float:
        """Return the exact sum of the real weights (default: the starting weights)."""
        return math.fsum(self.data.starting_weight() if weights is None else weights.real)

    def class_sums(self) -> tuple[float, float]:
        """Return the exact sum of the starting weights of each class."""
        return self.data.class_sums()

    def best(self, weights: Weights) -> Cut | None:
        """Return the best weak classifier for these weights, or None if there is none."""
        raise NotImplementedError

    def best_by_reach(self, weights: Weights, by_class: FloatArray) -> Cut | None:
        """Return the best weak classifier for a node of a tree with exact exits.

        Some learners train with the reach of each row, its weight times a factor in `by_class`.
        """
        return self.best(weights)

    def cut_at(
        self,
        feature: int,
        threshold: float,
        weights: Weights,
        side: int = 0,
        members: int | None = None,
    ) -> Cut:
        """Return the split of a stored weak classifier, with its class weights on these rows.

        `side` is the side of rows with a missing value. For a categorical split, `members` is the
        bit mask of the categories above.
        """
        raise NotImplementedError

    def reweight(self, cut: Any, factors: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply the source weight of each row by the factor (side, class) of its side.

        Write the products, their fixed-point values and their sums to `target`. Source and target
        can be the same array.
        """
        raise NotImplementedError

    def sides(self, cut: Any) -> NDArray[np.bool_]:
        """Return a mask of the rows above a split."""
        n = self.data.n_rows
        target = Weights(np.empty(n), np.empty(n, dtype=np.int64), 1.0, (0, 0))
        self.reweight(cut, np.array([[1.0, 1.0], [2.0, 2.0]]), np.ones(n), target)
        return target.fixed > 1

    def thresholds(self, cuts: Sequence[Any]) -> FloatArray:
        """Return the thresholds of splits."""
        raise NotImplementedError

    def heavier_sides(self, cuts: Sequence[Any]) -> list[int]:
        """Return the side of each split with the larger starting weight; 0 in case of a tie."""
        weight, sides = self.data.starting_weight(), []
        for cut in cuts:
            is_above = self.sides(cut)
            sides.append(int(is_heavier(weight[is_above].sum(), weight[~is_above].sum())))
        return sides

    def is_open(self, cut: Any) -> bool:
        """Return whether a split has no side for missing values, although they may occur.

        At such splits, rows with a missing value have the fixed-point weight 0.
        """
        return False

    def model_nodes(self, cuts: Sequence[Any], heavier: Sequence[int]) -> dict[str, Any]:
        """Return the fields of a model that describe its splits and the side of missing values.

        `heavier` contains the exit with the larger reach for each node. It is empty if all rows
        reach all nodes.
        """
        feature = np.array([cut.feature for cut in cuts], dtype=np.int32)
        threshold = self.thresholds(cuts)
        if self.is_function or self.data.inputs is not None:
            return {"threshold": threshold, **self.model_columns(feature)}
        sides = [cut.side for cut in cuts]
        open_ = [k for k, side in enumerate(sides) if side < 0]
        if heavier:
            larger = [heavier[k] for k in open_]
        else:
            larger = self.heavier_sides([cuts[k] for k in open_]) if open_ else []
        for k, side in zip(open_, larger, strict=True):
            sides[k] = side
        missing = np.array(sides, dtype=np.float64)
        if not any(cut.levels for cut in cuts):
            return {"threshold": threshold, "missing": missing, **self.model_columns(feature)}
        levels = [cut.levels or (0, 0) for cut in cuts]
        members = [k | (absent if s else 0) for (k, absent), s in zip(levels, sides, strict=True)]
        cut_fields = self.data.cuts_of_levels(feature, threshold, members)
        return {"missing": missing, **cut_fields}

    def fill_fixed(self, weights: Weights) -> None:
        """Compute the fixed-point values of the weights, and their sums per class."""
        voting.to_fixed(weights.real, weights.scale, weights.fixed)
        weights.masses = self.data.by_class(weights.fixed)

    def side_masses(
        self, cut: Cut, source: FloatArray, scratch: Weights, unit: FloatArray | None = None
    ) -> FloatArray:
        """Return the sums (side, class) of the given weights on both sides of a split.

        Each class is scaled by its own power of two, so that the sums of a class with a small
        weight are precise. The result is in these units. Pass `unit` if the powers are known.
        """
        if unit is None:
            unit = np.ldexp(1.0, -np.frexp(self.data.by_class(source))[1])
        scratch.scale = 2.0**60
        self.reweight(cut, np.stack([unit, unit]), source, scratch)
        total = np.array(scratch.masses, dtype=np.float64)
        self.reweight(cut, np.stack([unit, 0 * unit]), source, scratch)
        below = np.array(scratch.masses, dtype=np.float64)
        return np.stack([below, total - below])


@dataclass(frozen=True, slots=True, eq=False)
class SideCut(Cut):
    """A weak classifier with the sides of the training rows.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n,)
        Side of each row, 0 for rows that do not reach the node; empty before the first call.
    """

    codes: NDArray[np.uint8]


class SideSearch(WeakSearch):
    """Base class of the searches whose splits store the side of each row."""

    def masses(self, codes: NDArray[np.uint8], weights: Weights) -> Masses | None:
        """Return the fixed-point weights (side, class), or None if a side is empty."""
        negative, positive = self.data.by_class(weights.fixed * codes)
        n, p = weights.masses
        if not 0 < negative + positive < n + p:
            return None
        return (float(n - negative), float(p - positive)), (float(negative), float(positive))

    def sides(self, cut: SideCut) -> NDArray[np.bool_]:
        """Return a mask of the rows above a split."""
        return cut.codes > 0

    def reweight(
        self, cut: SideCut, factors: FloatArray, source: FloatArray, target: Weights
    ) -> None:
        """Multiply the source weight of each row by the factor (side, class) of its side."""
        work = partial(
            voting.reweight,
            cut.codes,
            0,
            False,
            self.data.n_negative,
            factors,
            target.scale,
            source,
            target.real,
            target.fixed,
        )
        parts = self.workers.run_shared(work, self.data.n_rows)
        target.masses = (sum(p[0] for p in parts), sum(p[1] for p in parts))

    def thresholds(self, cuts: Sequence[Any]) -> FloatArray:
        """Return the threshold 0 for each split: side codes above 0 take exit 1."""
        return np.zeros(len(cuts))


@dataclass(frozen=True, slots=True, eq=False)
class GrownCut(SideCut):
    """A threshold on a derived feature that was created at a node."""

    threshold: float


class GrownSearch(SideSearch):
    """Base class of the searches that create a derived feature at each node.

    New features are added to the `inputs` of the data.
    """

    def train(self, rows: NDArray[np.intp], real: FloatArray) -> tuple[Any, float] | None:
        """Train a derived feature on weighted rows; return the feature and a threshold."""
        raise NotImplementedError

    def best(self, weights: Weights) -> GrownCut | None:
        """Return the split trained with these weights; None if one side is empty."""
        return self._grown(weights, weights.real)

    def best_by_reach(self, weights: Weights, by_class: FloatArray) -> GrownCut | None:
        """Return the split trained with the weights times a factor for each class."""
        middle, real = self.data.n_negative, weights.real.copy()
        real[:middle] *= by_class[0]
        real[middle:] *= by_class[1]
        return self._grown(weights, real)

    def _grown(self, weights: Weights, real: FloatArray) -> GrownCut | None:
        data, trained = self.data, None
        if min(weights.masses) > 0:
            rows = np.flatnonzero(weights.fixed)
            trained = self.train(rows, real[rows])
        if trained is None:
            return None
        inputs, threshold = trained
        assert isinstance(data.inputs, GrownInputs)
        arriving = np.flatnonzero(weights.real > NO_WEIGHT)
        value = inputs.at(data.source, data.source_rows[arriving], self.workers)[:, 0]
        codes = np.zeros(data.n_rows, dtype=np.uint8)
        codes[arriving] = value > threshold
        masses = self.masses(codes, weights)
        if masses is None:
            return None
        return GrownCut(data.inputs.add(inputs), masses, codes, threshold)

    def thresholds(self, cuts: Sequence[Any]) -> FloatArray:
        """Return the thresholds of splits."""
        return np.array([cut.threshold for cut in cuts], dtype=np.float64)
