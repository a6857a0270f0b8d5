"""Features measured with a known error: the best stump, and its answers.

The search minimises the criterion of the expected masses over the bin edges, with each row at the
middle of its bin; votes and weights are made with the rows' own values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import split, uncertain
from pboost.data.columns.columns import GROUP, MAX_BINS, midpoint
from pboost.data.columns.prebuilt import HOLES, LEVELS, has, is_heavier, levels_among
from pboost.data.node_inputs.fill import as_sigma, check_sigma_shape, known_sigma
from pboost.data.node_inputs.inputs import indicators_of
from pboost.data.node_inputs.sums import Projections
from pboost.data.training import TrainingData
from pboost.observation.answers import (
    Observation,
    Observer,
    Reach,
    RowAnswers,
    exit_masses,
    exit_sums,
    maker,
)
from pboost.threads import Workers
from pboost.values import FloatArray, freeze
from pboost.weak.base import Weak, Weights
from pboost.weak.stump_search import ColumnLearner, StumpCut, StumpSearch

MAX_LEVELS, QUAD = uncertain.SIZES
QUADS = MAX_BINS // QUAD
#: Levels into which the errors of a column are put, where each row has its own.
LEVELS_OF_ERROR = 2
#: Standard deviations beyond which nothing crosses a cut; a little more than the kernel's.
REACH = 8.31
#: Bin and position of a stump that was stored.
NOWHERE = -1


class Noise:
    """Standard deviations of the numbers that a search compares.

    Attributes
    ----------
    by_row : bool
        Whether each row has its own.

    Parameters
    ----------
    data : TrainingData
        Rows; their values must be known.
    observation : Gaussian
        The standard deviations of the columns of X.
    """

    def __init__(self, data: TrainingData, observation: Gaussian) -> None:
        self.data, problem = data, data.problem
        sigma = np.asarray(observation.sigma)
        deviations = self.checked(sigma)
        self._kept = None if sigma.ndim == 2 else deviations
        if isinstance(data.inputs, Projections) and problem.table is not None:
            # What stands for a missing value is known for certain.
            levels = indicators_of(problem.table)
            deviations = deviations if levels is None else deviations[..., levels.column]
            deviations = np.where(np.isnan(data.source[data.source_rows]), 0.0, deviations)
        self._sigma, self.by_row = deviations, deviations.ndim == 2

    def checked(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations of the columns of X, 0 where there is no value."""
        data, problem = self.data, self.data.problem
        if data.source is None:
            raise ValueError(
                "X: gaussian answers need the values of X, got BinnedColumns, which hold none"
            )
        check_sigma_shape(sigma, len(problem.first), problem.n_features)
        return known_sigma(
            sigma[data.given_rows] if sigma.ndim == 2 else sigma,
            partial(problem.values, data.rows),
            problem.names,
            problem.n_features,
            problem.table,
        )

    def column(self, feature: int) -> FloatArray:
        """Return the standard deviations of what `feature` counts, (1,) or one for each row."""
        data = self.data
        if data.inputs is None:
            deviations = self._sigma[..., feature]
        else:
            column_inputs = data.inputs.select(np.array([feature], dtype=np.int32))
            deviations = column_inputs.projected(self._sigma)[..., 0]
        return np.ascontiguousarray(deviations if self.by_row else deviations[None])

    def of_model(self) -> FloatArray:
        """Return what a model keeps: of each column of X, NaN where each cell had its own."""
        return np.full(self.data.problem.n_features, np.nan) if self._kept is None else self._kept


class NoisyStumpSearch(StumpSearch):
    """Search for the stump of least expected criterion.

    Parameters
    ----------
    data : TrainingData
        Binned columns and classes.
    weak : ColumnLearner
        Criterion and limits.
    noise : Noise
        Errors of the columns.
    workers : Workers
        Threads.
    """

    def __init__(
        self, data: TrainingData, weak: ColumnLearner, noise: Noise, workers: Workers
    ) -> None:
        super().__init__(data, weak, workers)
        d = data.columns.n_features
        self.noise, self._start = noise, data.weight.copy()
        self._heavier: dict[tuple[int, int, float | None, int], int] = {}
        self._cell = np.zeros((d, data.n_rows if noise.by_row else 0), dtype=np.uint16)
        sigmas = self._levels()
        self._slice_start = np.cumsum([0, *map(len, sigmas)], dtype=np.int32)
        self._crossings(sigmas)
        looks = d if self._special is None else 2 * d  # missing rows lie above, or below
        self._mass = np.empty((looks, 4, MAX_BINS))
        self._score = np.empty((looks, MAX_BINS))

    def _levels(self) -> list[FloatArray]:
        """Return the standard deviations of each column's levels; notes each row's cell."""

        def work(first: int, last: int) -> list[FloatArray]:
            sigmas = []
            for feature in range(first, last):
                sigma = self.noise.column(feature)
                if self.noise.by_row:
                    sigma, level = levels(sigma, self._is_known(feature))
                    np.multiply(level, MAX_BINS, out=self._cell[feature])
                    self._cell[feature] += self.data.columns.codes[feature]
                sigmas.append(sigma)
            return sigmas

        cells = 10 * self.data.n_rows if self.noise.by_row else 1  # sorted
        parts = self.workers.run(work, self.data.columns.n_features, cells=cells)
        return [*chain.from_iterable(parts)]

    def _is_known(self, feature: int) -> NDArray[np.bool_] | None:
        """Return which rows have a value of a column; None: all."""
        columns = self.data.columns
        if not has(columns.special, HOLES, feature):
            return None
        return np.asarray(columns.codes[feature] != columns.n_bins[feature])

    def _crossings(self, sigmas: Sequence[FloatArray]) -> None:
        """Compute what crosses each cut, for each column and level."""
        n_slices = int(self._slice_start[-1])
        self._span = np.zeros((n_slices, QUADS, 2), dtype=np.int32)
        places = [self.places(feature) for feature in range(len(sigmas))]
        for feature, (value, threshold) in enumerate(places):
            for k, sigma in enumerate(sigmas[feature]):
                at = self._slice_start[feature] + k
                self._span[at, : -(-len(value) // QUAD)] = spans(value, threshold, float(sigma))
        size = QUAD * (self._span[:, :, 1] - self._span[:, :, 0]).astype(np.int64).ravel()
        stop = np.cumsum(size)
        self._offset = (stop - size).reshape(n_slices, QUADS)
        # Not empty: a kernel takes the address of its first entry.
        self._crossing = np.empty(int(stop[-1]) + 1, dtype=np.float32)

        def work(first: int, last: int) -> None:
            for feature in range(first, last):
                for k, sigma in enumerate(sigmas[feature]):
                    at = self._slice_start[feature] + k
                    uncertain.fill_crossing(
                        *places[feature],
                        float(sigma),
                        self._span[at],
                        self._offset[at],
                        self._crossing,
                    )

        self.workers.run(work, len(sigmas), cells=LEVELS_OF_ERROR * MAX_BINS**2)

    def places(self, feature: int) -> tuple[FloatArray, FloatArray]:
        """Return where rows of each bin of a column stand, and the thresholds between them."""
        lower, upper = self.data.columns.bin_ranges(feature)
        return midpoint(lower, upper), midpoint(upper[:-1], lower[1:])

    def place(
        self, feature: int, threshold: float, side: int = 0, members: int | None = None
    ) -> StumpCut:
        """Return where a stored stump cuts its column: between values, not between bins."""
        if has(self._special, LEVELS, feature):
            return super().place(feature, threshold, side, members)
        return StumpCut(feature, (), NOWHERE, NOWHERE, threshold, side=side)

    def sides(self, cut: StumpCut) -> NDArray[np.bool_]:
        """Return whether each row lies above a cut."""
        if cut.levels is not None:
            return super().sides(cut)
        value = self.data.values(cut.feature)
        above = np.asarray(value > self.thresholds([cut])[0])
        if cut.side > 0:
            above |= np.isnan(value)
        return above

    def above(self, cut: StumpCut) -> FloatArray:
        """Return the probability of exit 1 of each row, as `RowAnswers` takes it."""
        if cut.levels is not None:
            return self.sides(cut).astype(np.float64)
        value, sigma = self.data.values(cut.feature), self.noise.column(cut.feature)
        threshold = float(self.thresholds([cut])[0])
        return probabilities(value, threshold, sigma, cut.side, self.workers)

    def heavier_sides(self, cuts: Sequence[StumpCut]) -> list[int]:
        """Return the exits that more of the starting weight takes; equal ones are 0."""
        return [self.noted(cut) for cut in cuts]

    def noted(self, cut: StumpCut) -> int:
        """Return the exit that more of the starting weight takes."""
        heavier = self._heavier.get(_place(cut))
        return self.note(cut, self.above(cut)) if heavier is None else heavier

    def note(self, cut: StumpCut, above: FloatArray) -> int:
        """Return the exit that more of the starting weight takes, given the answers to a cut."""
        sums = exit_sums(above, self._start, self.data.n_negative, self.data.scale, self.workers)
        below, above_ = exit_masses(sums, self.data.scale).sum(axis=1)
        return self.note_masses(cut, below, above_)

    def note_masses(self, cut: StumpCut, below: float, above: float) -> int:
        """Note which exit more of the starting weight takes, given the weight of either."""
        self._heavier[_place(cut)] = heavier = int(is_heavier(above, below))
        return heavier

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the stump of least expected criterion, None where no cut is legal."""
        limits = self._limits(*weights.masses)
        columns, special = self.data.columns, self._special
        self._judge(weights, limits)
        of_levels = self._best_of_levels(weights, limits)
        located = uncertain.locate(
            columns.n_bins,
            limits,
            self._score,
            special,
            *((of_levels.feature, self._best[of_levels.feature]) if of_levels else ()),
        )
        if located is None:
            return None
        row, cut_bin = located
        if cut_bin < 0:
            return of_levels
        n0, n1, p0, p1 = self._mass[row, :, cut_bin].tolist()
        feature, side = row % columns.n_features, -1
        if has(special, HOLES, feature) and self._mass[feature, :3:2, -1].any():
            side = int(row < columns.n_features)
        position = int(self._bin_start[feature, cut_bin + 1])
        return StumpCut(feature, ((n0, p0), (n1, p1)), cut_bin, position, side=side)

    def _judge(self, weights: Weights, limits: Any) -> None:
        """Judge all cuts of columns of numbers."""
        columns = self.data.columns

        def work(first: int, last: int) -> None:
            uncertain.search(
                columns.codes,
                self._cell,
                self._bin_start,
                columns.n_bins,
                weights.fixed,
                limits,
                self._slice_start,
                self._span,
                self._offset,
                self._crossing,
                first,
                last,
                self._mass,
                self._score,
                self._special,
            )

        d, cells = columns.n_features, self.data.n_rows + LEVELS_OF_ERROR * MAX_BINS**2
        self.workers.run(work, d, GROUP, cells)

    def _best_of_levels(self, weights: Weights, limits: Any) -> StumpCut | None:
        """Return the best cut of a column of levels, whose answers are certain; None: none."""
        columns, special = self.data.columns, self._special
        listed = levels_among(special, 0, columns.n_features)
        if not listed:
            return None
        self._best.fill(math.inf)
        self._least[0] = math.inf
        arrays = self._order, self._bin_start, columns.n_bins, weights.fixed, limits
        work = self._edge, self._bound, self._best
        for j in listed:
            split.search(
                columns.codes, *arrays, *work, self._least, j, j + 1, 0, special, self._smoothing
            )
        return self.located_cut(split.locate(*arrays, *work, special, self._smoothing), weights)


def probabilities(
    value: FloatArray, threshold: float, sigma: FloatArray, side: int, workers: Workers
) -> FloatArray:
    """Return how likely rows of these values lie above a threshold, as `RowAnswers` takes it.

    Those without a value lie on a side; `sigma` are their standard deviations, or that of all.
    """
    above = np.empty(len(value))

    def work(start: int, stop: int) -> None:
        uncertain.probabilities(value, threshold, sigma, start, stop, above)

    workers.run(work, len(value), cells=10)
    if side > 0:
        above[np.isnan(value)] = 1.0
    return above


def _place(cut: StumpCut) -> tuple[int, int, float | None, int]:
    """Return what tells a cut from others."""
    return cut.feature, cut.cut_bin, cut.threshold, cut.side


class GaussianAnswers(RowAnswers):
    """Answers that follow from the values and their errors."""

    _search: NoisyStumpSearch

    def placed(self, cut: StumpCut) -> GaussianAnswers:
        """Return the answers of the same weak classifier, in which absent rows lie elsewhere."""
        answers = copy(self)
        answers._compute = partial(self._search.above, cut)
        answers.forget()
        return answers


class GaussianObserver(Observer):
    """Answers of features that are measured with error."""

    search: NoisyStumpSearch

    def ask(self, cut: StumpCut, weights: Weights, reach: Reach) -> RowAnswers:
        """Return the answers of a stump to rows of these weights."""
        return self.stored_answers(cut, weights, None)

    def stored_answers(
        self, cut: StumpCut, weights: Weights, table: FloatArray | None
    ) -> RowAnswers:
        """Return the answers of a stored stump: they follow from the values and their errors."""
        answers = GaussianAnswers(self.search, partial(self.search.above, cut), weights)
        if cut.side < 0:
            self.search.note(cut, answers.above())
        return answers

    def model_columns(self, tables: Sequence[FloatArray | None]) -> dict[str, Any]:
        """Return the standard deviations of the columns."""
        return {"sigma": self.search.noise.of_model()}


def levels(
    sigma: FloatArray, is_known: NDArray[np.bool_] | None = None
) -> tuple[FloatArray, NDArray[np.uint16]]:
    """Return a few standard deviations that stand for all, and the level of each row.

    There are at most `LEVELS_OF_ERROR`, and 0. Rows that are not known have level 0. Where there
    are more different ones, each level holds the same number of them, whatever the number of their
    rows, so that copies of rows and weights make no difference. The geometric middle of a level
    stands for it.
    """
    if is_known is not None:
        level = np.zeros(len(sigma), dtype=np.uint16)
        level_sigma, level[is_known] = levels(sigma[is_known])
        return level_sigma, level
    distinct = np.unique(sigma)
    if len(distinct) <= LEVELS_OF_ERROR or not len(distinct):
        return distinct, np.searchsorted(distinct, sigma).astype(np.uint16)
    exact, distinct = distinct[distinct == 0], distinct[distinct > 0]
    n = min(LEVELS_OF_ERROR, len(distinct))
    first = len(distinct) * np.arange(n) // n
    last = np.append(first[1:], len(distinct)) - 1
    middle = np.sqrt(distinct[first]) * np.sqrt(distinct[last])
    lowest = distinct[first] if len(exact) else distinct[first[1:]]
    level = np.searchsorted(lowest, sigma, side="right").astype(np.uint16)
    return np.concatenate([exact, middle]), level


def spans(value: FloatArray, threshold: FloatArray, sigma: float) -> NDArray[np.int32]:
    """Return the first and the last cut + 1 that each group of bins may cross."""
    with np.errstate(over="ignore"):
        first = np.searchsorted(threshold, value[::QUAD] - REACH * sigma)
        last_value = value[
            np.minimum(np.arange(QUAD - 1, len(value) + QUAD - 1, QUAD), len(value) - 1)
        ]
        last = np.searchsorted(threshold, last_value + REACH * sigma, side="right")
    return np.stack([first, last], axis=1).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gaussian(Observation):
    """Features measured with a normal error; made by `gaussian`.

    Attributes
    ----------
    sigma : float or ndarray of float64, shape (d,) or (n, d)
        Standard deviation of the error: of all columns, of each, or of each cell.
    """

    sigma: float | FloatArray
    kind: ClassVar[str] = "gaussian"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gaussian) and np.array_equal(self.sigma, other.sigma)

    def __hash__(self) -> int:
        return hash(np.asarray(self.sigma).tobytes())

    def __repr__(self) -> str:
        shape = np.shape(self.sigma)
        return f"Gaussian(sigma={f'<array of shape {shape}>' if shape else self.sigma})"

    def settings(self) -> dict[str, Any]:
        """Return the model as plain values, for the record of how a classifier was made."""
        per_cell, sigma = np.ndim(self.sigma) == 2, np.asarray(self.sigma)
        known = np.where(np.isnan(sigma), None, sigma)  # type: ignore[call-overload]
        return {"kind": self.kind, "sigma": "per cell" if per_cell else known.tolist()}

    def pair(self, weak: Weak, *, is_chain: bool) -> Weak:
        """Return the weak learner as it is trained with these answers."""
        return Observation.pair(self, weak, is_chain=is_chain).measured()

    def bind(
        self, data: TrainingData, weak: Weak, workers: Workers, generator: np.random.Generator
    ) -> GaussianObserver:
        """Return the search and what answers its weak classifiers give."""
        assert isinstance(weak, ColumnLearner)
        return GaussianObserver(NoisyStumpSearch(data, weak, Noise(data, self), workers))


@maker
def gaussian(sigma: float | ArrayLike) -> Gaussian:
    """Features measured with error bars: a row takes exit 1 with probability Φ((x - θ)/σ).

    x is the row's value, θ the threshold and Φ the normal distribution function. Stumps are
    searched for the least expected criterion, so that a threshold in a gap wider than the error is
    preferred to one among values that the measurement cannot tell apart.

    Parameters
    ----------
    sigma : float, or array_like of shape (d,) or (n, d)
        Standard deviation of the measurement error, at least 0: of all columns, of each column, or
        of each cell of the training X. What has 0 is exact. NaN stands where X has no value, and
        for columns of categories, whose answers are certain.

    Returns
    -------
    Gaussian
        To be passed as ``observation=`` to a builder.

    Raises
    ------
    ValueError, TypeError
        If `sigma` is not finite numbers >= 0. Builders raise ValueError where its shape does not
        fit X, where it is NaN though X has a value, where X is BinnedColumns, which hold no values,
        or the search is exact.

    Notes
    -----
    The answers of successive nodes to a row are drawn independently, as if the feature were
    measured anew for each, although it is measured once. Beyond 8.3 standard deviations an answer
    is certain.

    Candidate thresholds are the edges of the bins of ``weak.max_bins``, and rows stand at the
    middle of their bin while the threshold is searched. Where each cell has its own standard
    deviation, the search puts those of a column into at most two levels.
    ``weak.min_weight_fraction`` is judged by expected weights, ``weak.min_samples_leaf`` by rows.
    Votes and weights are made with the true values and standard deviations.

    References
    ----------
    .. [1] I. Reis, D. Baron and S. Shahaf, "Probabilistic random forest: a machine learning
       algorithm for noisy data sets", Astron. J. 157 (2019), whose trees split noisy features so.

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> noise = pb.observation.gaussian(1)
    >>> model = pb.fit_boosted_tree(X, [0, 0, 1, 1], max_nodes=1, observation=noise)
    >>> pb.decision_function(model, [[1.5], [9.0]], route="expected").round(2).tolist()
    [0.0, 0.73]
    """
    values = as_sigma(sigma)
    return Gaussian(freeze(values) if values.ndim else float(values))
