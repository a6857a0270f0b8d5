"""Observation model for features with a known measurement error.

The split search minimizes the criterion of the expected weights over the bin edges, with each row
at the middle of its bin. Votes and weights are computed from the true values.
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
from pboost.data.node_inputs.imputation import as_sigma, check_sigma_shape, known_sigma
from pboost.data.node_inputs.inputs import indicators_of
from pboost.data.node_inputs.sums import Projections
from pboost.data.training_data import TrainingData
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
#: Number of standard deviations per feature in the search, if they differ by row.
LEVELS_OF_ERROR = 2
#: Distance in standard deviations beyond which exits are certain. It is slightly larger than the
#: distance in the kernel.
REACH = 8.31
#: Placeholder for the bin and the position of a stored stump, which only has a threshold.
NOWHERE = -1


class Noise:
    """Standard deviations of the features in the training data.

    Attributes
    ----------
    by_row : bool
        Whether the standard deviations differ by row.

    Parameters
    ----------
    data : TrainingData
        Training rows, with their values.
    observation : Gaussian
        Observation model with the standard deviations of the features.
    """

    def __init__(self, data: TrainingData, observation: Gaussian) -> None:
        self.data, problem = data, data.problem
        sigma = np.asarray(observation.sigma)
        deviations = self.checked(sigma)
        self._kept = None if sigma.ndim == 2 else deviations
        if isinstance(data.inputs, Projections) and problem.table is not None:
            # The value that replaces a missing value has no measurement error.
            levels = indicators_of(problem.table)
            deviations = deviations if levels is None else deviations[..., levels.column]
            deviations = np.where(np.isnan(data.source[data.source_rows]), 0.0, deviations)
        self._sigma, self.by_row = deviations, deviations.ndim == 2

    def checked(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations of the features. Missing values have 0."""
        data, problem = self.data, self.data.problem
        if data.source is None:
            raise ValueError(
                "X: the gaussian observation model requires feature values, got BinnedColumns "
                "without values; pass X or SortedColumns"
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
        """Return the standard deviations of a column, (1,) or one per row."""
        data = self.data
        if data.inputs is None:
            deviations = self._sigma[..., feature]
        else:
            column_inputs = data.inputs.select(np.array([feature], dtype=np.int32))
            deviations = column_inputs.projected(self._sigma)[..., 0]
        return np.ascontiguousarray(deviations if self.by_row else deviations[None])

    def of_model(self) -> FloatArray:
        """Return the standard deviation of each feature, or NaN if it varies by row."""
        return np.full(self.data.problem.n_features, np.nan) if self._kept is None else self._kept


class NoisyStumpSearch(StumpSearch):
    """Search for the stump with the smallest expected criterion.

    Parameters
    ----------
    data : TrainingData
        Binned columns and classes.
    weak : ColumnLearner
        Weak learner with criterion and limits.
    noise : Noise
        Standard deviations of the columns.
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
        # Features with missing values are searched twice: missing values above and below the split.
        looks = d if self._special is None else 2 * d
        self._mass = np.empty((looks, 4, MAX_BINS))
        self._score = np.empty((looks, MAX_BINS))

    def _levels(self) -> list[FloatArray]:
        """Assign rows to groups. Return the standard deviations of the groups for each column."""

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

        cells = 10 * self.data.n_rows if self.noise.by_row else 1  # sorting takes longer
        parts = self.workers.run(work, self.data.columns.n_features, cells=cells)
        return [*chain.from_iterable(parts)]

    def _is_known(self, feature: int) -> NDArray[np.bool_] | None:
        """Return a mask of the rows with a value in this column, or None if no value is missing."""
        columns = self.data.columns
        if not has(columns.special, HOLES, feature):
            return None
        return np.asarray(columns.codes[feature] != columns.n_bins[feature])

    def _crossings(self, sigmas: Sequence[FloatArray]) -> None:
        """Compute the probabilities of crossing each threshold, per column and group."""
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
        # The array must not be empty, because a kernel uses the address of the first entry.
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
        """Return the midpoints of the bins of a column and the thresholds between the bins."""
        lower, upper = self.data.columns.bin_ranges(feature)
        return midpoint(lower, upper), midpoint(upper[:-1], lower[1:])

    def place(
        self, feature: int, threshold: float, side: int = 0, members: int | None = None
    ) -> StumpCut:
        """Return the split of a stored stump, which may lie inside a bin."""
        if has(self._special, LEVELS, feature):
            return super().place(feature, threshold, side, members)
        return StumpCut(feature, (), NOWHERE, NOWHERE, threshold, side=side)

    def sides(self, cut: StumpCut) -> NDArray[np.bool_]:
        """Return a mask of the rows above a split."""
        if cut.levels is not None:
            return super().sides(cut)
        value = self.data.values(cut.feature)
        above = np.asarray(value > self.thresholds([cut])[0])
        if cut.side > 0:
            above |= np.isnan(value)
        return above

    def above(self, cut: StumpCut) -> FloatArray:
        """Return the probability of exit 1 of each row in the form of `RowAnswers`."""
        if cut.levels is not None:
            return self.sides(cut).astype(np.float64)
        value, sigma = self.data.values(cut.feature), self.noise.column(cut.feature)
        threshold = float(self.thresholds([cut])[0])
        return probabilities(value, threshold, sigma, cut.side, self.workers)

    def heavier_sides(self, cuts: Sequence[StumpCut]) -> list[int]:
        """Return the exit with more starting weight for each split, or 0 for ties."""
        return [self.noted(cut) for cut in cuts]

    def noted(self, cut: StumpCut) -> int:
        """Return the exit of a split with more starting weight, computing it if necessary."""
        heavier = self._heavier.get(_place(cut))
        return self.note(cut, self.above(cut)) if heavier is None else heavier

    def note(self, cut: StumpCut, above: FloatArray) -> int:
        """Compute the exit with more starting weight from the probabilities of exit 1."""
        sums = exit_sums(above, self._start, self.data.n_negative, self.data.scale, self.workers)
        below, above_ = exit_masses(sums, self.data.scale).sum(axis=1)
        return self.note_masses(cut, below, above_)

    def note_masses(self, cut: StumpCut, below: float, above: float) -> int:
        """Store and return the exit with more starting weight."""
        self._heavier[_place(cut)] = heavier = int(is_heavier(above, below))
        return heavier

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the stump with the smallest expected criterion, or None if no split is allowed."""
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
        """Compute the criterion of all thresholds of numeric features."""
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
        """Return the best split of a categorical feature or None. Categories have no errors."""
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
    """Return the probability that each value is above a threshold, in the form of `RowAnswers`.

    Missing values take `side`. `sigma` contains one standard deviation per row, or a single one.
    """
    above = np.empty(len(value))

    def work(start: int, stop: int) -> None:
        uncertain.probabilities(value, threshold, sigma, start, stop, above)

    workers.run(work, len(value), cells=10)
    if side > 0:
        above[np.isnan(value)] = 1.0
    return above


def _place(cut: StumpCut) -> tuple[int, int, float | None, int]:
    """Return a key that identifies a split."""
    return cut.feature, cut.cut_bin, cut.threshold, cut.side


class GaussianAnswers(RowAnswers):
    """Exit probabilities computed from the values and their standard deviations."""

    _search: NoisyStumpSearch

    def placed(self, cut: StumpCut) -> GaussianAnswers:
        """Return a copy with a different side for missing values."""
        answers = copy(self)
        answers._compute = partial(self._search.above, cut)
        answers.forget()
        return answers


class GaussianObserver(Observer):
    """Observer of features with a measurement error."""

    search: NoisyStumpSearch

    def ask(self, cut: StumpCut, weights: Weights, reach: Reach) -> RowAnswers:
        """Return the exit probabilities of a stump for weighted rows."""
        return self.stored_answers(cut, weights, None)

    def stored_answers(
        self, cut: StumpCut, weights: Weights, table: FloatArray | None
    ) -> RowAnswers:
        """Return the exit probabilities of a stored stump."""
        answers = GaussianAnswers(self.search, partial(self.search.above, cut), weights)
        if cut.side < 0:
            self.search.note(cut, answers.above())
        return answers

    def model_columns(self, tables: Sequence[FloatArray | None]) -> dict[str, Any]:
        """Return the standard deviations of the features."""
        return {"sigma": self.search.noise.of_model()}


def levels(
    sigma: FloatArray, is_known: NDArray[np.bool_] | None = None
) -> tuple[FloatArray, NDArray[np.uint16]]:
    """Group rows. Return the standard deviation of each group and the group of each row.

    There are at most `LEVELS_OF_ERROR` groups, plus one for 0. Groups have about the same number of
    distinct values. The number of rows does not matter, so repeating a row is the same as weighting
    it. A group is represented by its geometric midrange. Rows with a missing value are in group 0.
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
    """Return the first threshold that each group of bins may cross, and the last one plus 1."""
    with np.errstate(over="ignore"):
        first = np.searchsorted(threshold, value[::QUAD] - REACH * sigma)
        last_value = value[
            np.minimum(np.arange(QUAD - 1, len(value) + QUAD - 1, QUAD), len(value) - 1)
        ]
        last = np.searchsorted(threshold, last_value + REACH * sigma, side="right")
    return np.stack([first, last], axis=1).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gaussian(Observation):
    """Observation model for normal measurement errors, created by `gaussian`.

    Attributes
    ----------
    sigma : float or ndarray of float64, shape (d,) or (n, d)
        Standard deviation of the error: one for all features, one per feature, or one per cell.
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
        """Return the options as plain values for the training record of the model."""
        per_cell, sigma = np.ndim(self.sigma) == 2, np.asarray(self.sigma)
        known = np.where(np.isnan(sigma), None, sigma)  # type: ignore[call-overload]
        return {"kind": self.kind, "sigma": "per cell" if per_cell else known.tolist()}

    def pair(self, weak: Weak, *, is_chain: bool) -> Weak:
        """Return the weak learner adapted to this observation model."""
        return Observation.pair(self, weak, is_chain=is_chain).measured()

    def bind(
        self, data: TrainingData, weak: Weak, workers: Workers, generator: np.random.Generator
    ) -> GaussianObserver:
        """Return the observer of these data."""
        assert isinstance(weak, ColumnLearner)
        return GaussianObserver(NoisyStumpSearch(data, weak, Noise(data, self), workers))


@maker
def gaussian(sigma: float | ArrayLike) -> Gaussian:
    """Create an observation model for features with normally distributed measurement errors.

    A row with value x takes exit 1 of a split at the threshold θ with probability Φ((x - θ)/σ),
    where Φ is the normal distribution function. Stumps minimize the expected criterion, so they
    prefer thresholds in gaps that are wider than the error.

    Parameters
    ----------
    sigma : float, or array_like of shape (d,) or (n, d)
        Standard deviation of the error, at least 0: one for all features, one per feature, or one
        per cell of the training X. Use 0 for exact features, and NaN for missing values and
        categorical features, which are always exact.

    Returns
    -------
    Gaussian
        An observation model for the option ``observation`` of a fit function.

    Raises
    ------
    ValueError, TypeError
        If `sigma` has infinite or negative values. The fit function raises ValueError if the shape
        of `sigma` does not match X, if `sigma` is NaN for a known value, if X is BinnedColumns
        without values, or if the split search is "exact".

    Notes
    -----
    Errors at successive nodes are independent, as if the feature were measured again at each node,
    even though it is measured only once. Exits are certain beyond 8.3 standard deviations.

    Candidate thresholds are the bin edges of the weak learner (``max_bins``), and the search places
    rows at the middle of their bins. If each cell has its own standard deviation, the search uses
    at most two representative values per feature. ``min_weight_fraction`` applies to expected
    weights, ``min_samples_leaf`` to rows. Votes and weights are computed from the true values and
    standard deviations.

    References
    ----------
    .. [1] I. Reis, D. Baron and S. Shahaf, "Probabilistic random forest: a machine learning
       algorithm for noisy data sets", Astron. J. 157 (2019), which splits noisy features this way.

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
