"""Weak learners, and what builders need of one that is bound to training data.

A search returns the best weak classifier for weighted rows as a `Cut`: two sides, and the class
masses on either. Whatever it looked at, the sides can be read off one code per row.
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
from pboost.data.splits import HoldOut
from pboost.data.training import Problem, TrainingData, boosted_problem
from pboost.threads import Workers
from pboost.values import Choice, FloatArray
from pboost.values.options import Kinds

#: Rows of less real weight are not there: kernels keep weights from becoming subnormal.
NO_WEIGHT = 1e-250
#: For each exit, or side, the mass of class -1 and that of class +1.
Masses = Sequence[Sequence[float]]


class Weak(Choice):
    """Base of the weak learners.

    Attributes
    ----------
    searches : type of WeakSearch
        Its search, made of the data, the learner, threads and a generator.
    has_answers : bool
        Whether weak classifiers are functions, whose answers can be drawn again and again.
    reads_codes : bool
        Whether of columns in bins that keep values the codes are read.
    takes : Takes
        Whether its search takes missing values, and columns of categories; others are refused when
        X is read.
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
        """Return the arguments of a builder, checked.

        `two` says that there can be two labels only, and because of what; None: any number. `hold`
        says which rows to hold out.
        """
        X = X if self.reads_codes else values_of(X)
        return boosted_problem(X, y, sample_weight, two, takes=self.takes, hold=hold)

    def measured(self) -> Weak:
        """Return the learner for features measured with errors; ValueError if there is none."""
        raise ValueError(
            "observation: 'gaussian' compares columns that are known before the first node, got "
            "separators or linear weak classifiers, which are made at the nodes"
        )

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the data that the learner's search reads."""
        raise NotImplementedError

    def workers(self, data: TrainingData, n_threads: int | None) -> AbstractContextManager[Workers]:
        """Return as many threads as the data are worth."""
        return Workers(n_threads, data.cells)


#: What makes the weak learners, by their kind.
KINDS = Kinds()
maker = KINDS.add


@dataclass(frozen=True, slots=True)
class Cut:
    """A weak classifier found by a search, and the class masses on either of its sides.

    Attributes
    ----------
    feature : int
        What it reads: a column, or the position among those of its kind.
    masses : tuple
        Fixed-point masses (side, class).
    side : int
        Side of rows without a value; -1 where these have no mass.
    levels : tuple of int or None
        Of a column of levels two sets, as integers whose bits are the levels: those that lie above,
        and those without mass, which lie where missing rows do.
    """

    feature: int
    masses: Masses
    side: int = field(default=-1, kw_only=True)
    levels: tuple[int, int] | None = field(default=None, kw_only=True)


@dataclass(slots=True, eq=False)
class Weights:
    """Weights of all rows at one open exit.

    Attributes
    ----------
    real : ndarray of float64, shape (n,)
        The weights.
    fixed : ndarray of int64, shape (n,)
        ``real * scale``, rounded.
    scale : float
        A power of two.
    masses : tuple of int
        Fixed-point mass of class -1 and of class +1.
    """

    real: FloatArray
    fixed: NDArray[np.int64]
    scale: float
    masses: tuple[int, int]


def class_units(masses: tuple[int, int], scale: float) -> FloatArray:
    """Return the powers of two that bring fixed-point masses of classes, in real units, below 1."""
    units: FloatArray = np.ldexp(1.0, -np.frexp(np.array(masses, dtype=np.float64) / scale)[1])
    return units


class WeakSearch:
    """Base of the searches: one weak learner on one set of training rows.

    Parameters
    ----------
    data : TrainingData
        Rows and classes.
    weak : Weak
        Options.
    workers : Workers
        Threads.
    generator : numpy.random.Generator, optional
        Source of randomness, for learners that draw.
    """

    #: Whether weak classifiers are functions of a row.
    is_function = False

    def __init__(
        self,
        data: TrainingData,
        weak: Any,
        workers: Workers,
        generator: np.random.Generator | None = None,
    ) -> None:
        self.data, self.weak, self.workers = data, weak, workers
        # Returns the fields of a model that say what its nodes read, given numbers of cuts.
        self.model_columns = data.model_columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.data.n_rows

    def real_sum(self, weights: Weights | None = None) -> float:
        """Return the sum of real weights, or of those at the start, rounded once."""
        return math.fsum(self.data.starting_weight() if weights is None else weights.real)

    def class_sums(self) -> tuple[float, float]:
        """Return the sums of the starting weights of the classes, each rounded once."""
        return self.data.class_sums()

    def best(self, weights: Weights) -> Cut | None:
        """Return the weak classifier for rows of these weights, None where there is none."""
        raise NotImplementedError

    def best_by_reach(self, weights: Weights, by_class: FloatArray) -> Cut | None:
        """Return the weak classifier for a node of a tree of exact answers.

        The weights times `by_class` are reach masses, with which some learners train.
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
        """Return a stored weak classifier as a cut of these rows, with their masses.

        `side` is that of rows without a value; `members` are the levels that lie above, as bits of
        an integer, where it asks for one of a set.
        """
        raise NotImplementedError

    def reweight(self, cut: Any, factors: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply the source weight of each row by the factor (side, class) of its side.

        The products, their fixed-point images in the target's scale and their masses are written
        to `target`, whose weights may be the source.
        """
        raise NotImplementedError

    def sides(self, cut: Any) -> NDArray[np.bool_]:
        """Return whether each row lies above a cut."""
        n = self.data.n_rows
        target = Weights(np.empty(n), np.empty(n, dtype=np.int64), 1.0, (0, 0))
        self.reweight(cut, np.array([[1.0, 1.0], [2.0, 2.0]]), np.ones(n), target)
        return target.fixed > 1

    def thresholds(self, cuts: Sequence[Any]) -> FloatArray:
        """Return the thresholds of cuts."""
        raise NotImplementedError

    def heavier_sides(self, cuts: Sequence[Any]) -> list[int]:
        """Return the sides of larger starting weight; equal ones are 0."""
        weight, sides = self.data.starting_weight(), []
        for cut in cuts:
            is_above = self.sides(cut)
            sides.append(int(is_heavier(weight[is_above].sum(), weight[~is_above].sum())))
        return sides

    def is_open(self, cut: Any) -> bool:
        """Return whether rows without a value may lie at a cut that does not say on which side.

        Their weights are 0 in fixed point.
        """
        return False

    def model_nodes(self, cuts: Sequence[Any], heavier: Sequence[int]) -> dict[str, Any]:
        """Return the fields of a model that say what its nodes ask, and where NaN goes there.

        `heavier` are the exits of larger reach, none where all rows reach all nodes.
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
        """Write the fixed-point images of weights, and their masses."""
        voting.to_fixed(weights.real, weights.scale, weights.fixed)
        weights.masses = self.data.by_class(weights.fixed)

    def side_masses(
        self, cut: Cut, source: FloatArray, scratch: Weights, unit: FloatArray | None = None
    ) -> FloatArray:
        """Return the masses (side, class) that a cut makes of other weights.

        Each class is brought to full precision by a power of two of its own, however little of it
        there is, and is returned in its own unit; `unit` are these powers where they are known.
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
    """A weak classifier, and the answers that it gave.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n,)
        Side of each row, 0 for rows that do not arrive; empty if it has not been asked.
    """

    codes: NDArray[np.uint8]


class SideSearch(WeakSearch):
    """Search whose cuts hold the side of each row."""

    def masses(self, codes: NDArray[np.uint8], weights: Weights) -> Masses | None:
        """Return the fixed-point masses (side, class), None where a side has none."""
        negative, positive = self.data.by_class(weights.fixed * codes)
        n, p = weights.masses
        if not 0 < negative + positive < n + p:
            return None
        return (float(n - negative), float(p - positive)), (float(negative), float(positive))

    def sides(self, cut: SideCut) -> NDArray[np.bool_]:
        """Return whether each row lies above."""
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
        """Return 0, up to which exit 0 is taken."""
        return np.zeros(len(cuts))


@dataclass(frozen=True, slots=True, eq=False)
class GrownCut(SideCut):
    """What is made of columns at a node, which its number stands for, cut at a threshold."""

    threshold: float


class GrownSearch(SideSearch):
    """Base of the searches that make what is compared, of the columns, at each node.

    The `inputs` of the data take what is made.
    """

    def train(self, rows: NDArray[np.intp], real: FloatArray) -> tuple[Any, float] | None:
        """Return inputs of one number, trained on rows with these weights, and a threshold."""
        raise NotImplementedError

    def best(self, weights: Weights) -> GrownCut | None:
        """Return what is trained with these weights; None if all rows are on one side of it."""
        return self._grown(weights, weights.real)

    def best_by_reach(self, weights: Weights, by_class: FloatArray) -> GrownCut | None:
        """Return what is trained with what weights are times a factor of each class."""
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
        """Return the thresholds of cuts."""
        return np.array([cut.threshold for cut in cuts], dtype=np.float64)
