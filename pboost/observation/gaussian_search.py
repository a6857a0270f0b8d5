"""Features measured with a known error: the best stump, and its answers.

The search minimises the criterion of the expected masses over the bin edges, with each row at the
middle of its bin; votes and weights are made with the rows' own values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import noisy_split
from pboost.data.check_xy import as_sigma, check_sigma_shape
from pboost.data.columns import GROUP, MAX_BINS, midpoint
from pboost.data.training import TrainingData
from pboost.observation.answers import Observation, Observer, Reach, RowAnswers, maker
from pboost.threads import Workers
from pboost.values import FloatArray, freeze
from pboost.weak.base import Weak, WeakSearch, Weights
from pboost.weak.stump_search import ColumnLearner, StumpCut, StumpSearch

MAX_LEVELS, QUAD = noisy_split.SIZES
QUADS = MAX_BINS // QUAD
#: Levels into which the errors of a column are put, where each row has its own.
LEVELS = 2
#: Standard deviations beyond which nothing crosses a cut; a little more than the kernel's.
REACH = 8.31
#: Bin and position of a stump that was stored.
NOWHERE = -1


class Noise:
    """Standard deviations of the numbers that a search compares.

    Parameters
    ----------
    data : TrainingData
        Rows; their values must be known.
    observation : Gaussian
        The standard deviations of the columns of X.
    """

    def __init__(self, data: TrainingData, observation: Gaussian) -> None:
        if data.source is None:
            raise ValueError(
                "X: gaussian answers need the values of X, got BinnedColumns, which hold none"
            )
        sigma = np.asarray(observation.sigma)
        check_sigma_shape(sigma, data.problem.n_rows, data.problem.n_features)
        self.data, self.per_cell = data, sigma.ndim == 2
        self._sigma = sigma if self.per_cell else np.full(data.problem.n_features, sigma)

    def column(self, feature: int) -> FloatArray:
        """Return the standard deviations of what `feature` counts, (1,) or one for each row."""
        data = self.data
        if data.inputs is None:
            found = self._sigma[..., feature]
        else:
            one = data.inputs.select(np.array([feature], dtype=np.int32))
            found = one.projected(self._sigma)[..., 0]
        return np.ascontiguousarray(found[data.rows] if self.per_cell else found[None])

    def of_model(self) -> FloatArray:
        """Return what a model keeps: of each column of X, NaN where each cell had its own."""
        return np.full(self.data.problem.n_features, np.nan) if self.per_cell else self._sigma


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
        self.noise = noise
        self._cell = np.zeros((d, data.n_rows if noise.per_cell else 0), dtype=np.uint16)
        sigmas = self._levels()
        self._slice_start = np.cumsum([0, *map(len, sigmas)], dtype=np.int32)
        self._crossings(sigmas)
        self._mass = np.empty((d, 4, MAX_BINS))
        self._score = np.empty((d, MAX_BINS))

    def _levels(self) -> list[FloatArray]:
        """Return the standard deviations of each column's levels; notes each row's cell."""

        def work(first: int, last: int) -> list[FloatArray]:
            found = []
            for feature in range(first, last):
                sigma = self.noise.column(feature)
                if self.noise.per_cell:
                    sigma, level = levels(sigma)
                    np.multiply(level, MAX_BINS, out=self._cell[feature])
                    self._cell[feature] += self.data.columns.codes[feature]
                found.append(sigma)
            return found

        cells = 10 * self.data.n_rows if self.noise.per_cell else 1  # sorted
        parts = self.workers.run(work, self.data.columns.n_features, cells=cells)
        return [*chain.from_iterable(parts)]

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
                    noisy_split.fill_crossing(
                        *places[feature], float(sigma), self._span[at], self._offset[at],
                        self._crossing,
                    )  # fmt: skip

        self.workers.run(work, len(sigmas), cells=LEVELS * MAX_BINS**2)

    def places(self, feature: int) -> tuple[FloatArray, FloatArray]:
        """Return where rows of each bin of a column stand, and the thresholds between them."""
        lower, upper = self.data.columns.bin_ranges(feature)
        return midpoint(lower, upper), midpoint(upper[:-1], lower[1:])

    def place(
        self, feature: int, threshold: float, side: int = 0, members: int | None = None
    ) -> StumpCut:
        """Return where a stored stump cuts its column: between values, not between bins."""
        return StumpCut(feature, (), NOWHERE, NOWHERE, threshold, side=side)

    def sides(self, cut: StumpCut) -> NDArray[np.bool_]:
        """Return whether each row lies above a cut."""
        return np.asarray(self.data.values(cut.feature) > self.thresholds([cut])[0])

    def heavier_sides(self, cuts: Sequence[StumpCut]) -> list[int]:
        """Return the sides of larger starting weight; equal ones are 0."""
        return WeakSearch.heavier_sides(self, cuts)

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the stump of least expected criterion, None where no cut is legal."""
        limits = self._limits(*weights.masses)
        columns = self.data.columns

        def work(first: int, last: int) -> None:
            noisy_split.search(
                columns.codes, self._cell, self._bin_start, columns.n_bins, weights.fixed, limits,
                self._slice_start, self._span, self._offset, self._crossing, first, last,
                self._mass, self._score,
            )  # fmt: skip

        cells = self.data.n_rows + LEVELS * MAX_BINS**2
        self.workers.run(work, columns.n_features, GROUP, cells)
        found = noisy_split.locate(columns.n_bins, limits, self._score)
        if found is None:
            return None
        feature, cut_bin = found
        n0, n1, p0, p1 = self._mass[feature, :, cut_bin].tolist()
        position = int(self._bin_start[feature, cut_bin + 1])
        return StumpCut(feature, ((n0, p0), (n1, p1)), cut_bin, position)


class GaussianObserver(Observer):
    """Answers of features that are measured with error."""

    search: NoisyStumpSearch

    def ask(self, cut: StumpCut, weights: Weights, reach: Reach) -> RowAnswers:
        """Return the answers of a stump to rows of these weights."""
        return self.given(cut, weights, None)

    def given(self, cut: StumpCut, weights: Weights, table: FloatArray | None) -> RowAnswers:
        """Return the answers of a stored stump: they follow from the values and their errors."""
        return RowAnswers(self.search, partial(self.above, cut), weights)

    def above(self, cut: StumpCut) -> FloatArray:
        """Return the probability of exit 1 of each row, as `RowAnswers` takes it."""
        search = self.search
        value = search.data.values(cut.feature)
        sigma = search.noise.column(cut.feature)
        threshold = float(search.thresholds([cut])[0])
        above = np.empty(len(value))

        def work(start: int, stop: int) -> None:
            noisy_split.probabilities(value, threshold, sigma, start, stop, above)

        search.workers.run(work, len(value), cells=10)
        return above

    def model_columns(self, tables: Sequence[FloatArray | None]) -> dict[str, Any]:
        """Return the standard deviations of the columns."""
        return {"sigma": self.search.noise.of_model()}


def levels(sigma: FloatArray) -> tuple[FloatArray, NDArray[np.uint16]]:
    """Return at most `LEVELS` standard deviations that stand for all, and the level of each row.

    Where there are more different ones, each level holds the same number of them, whatever the
    number of their rows, so that copies of rows and weights make no difference. The geometric
    middle of a level stands for it.
    """
    distinct = np.unique(sigma)
    if len(distinct) <= LEVELS:
        return distinct, np.searchsorted(distinct, sigma).astype(np.uint16)
    first = len(distinct) * np.arange(LEVELS) // LEVELS
    last = np.append(first[1:], len(distinct)) - 1
    middle = np.sqrt(distinct[first]) * np.sqrt(distinct[last])
    return middle, np.searchsorted(distinct[first[1:]], sigma, side="right").astype(np.uint16)


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
        per_cell = np.ndim(self.sigma) == 2
        sigma = "per cell" if per_cell else np.asarray(self.sigma).tolist()
        return {"kind": self.kind, "sigma": sigma}

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
        Standard deviation of the measurement error, positive: of all columns, of each column, or
        of each cell of the training X.

    Returns
    -------
    Gaussian
        To be passed as ``observation=`` to a builder.

    Raises
    ------
    ValueError, TypeError
        If `sigma` is not positive finite numbers. Builders raise ValueError where its shape does
        not fit X, where X is BinnedColumns, which hold no values, or the search is exact.

    Notes
    -----
    The answers of successive nodes to a row are drawn independently, as if the feature were
    measured anew for each, although it is measured once. Beyond 8.3 standard deviations an answer
    is certain.

    Candidate thresholds are the edges of the bins of ``weak.max_bins``, and rows stand at the
    middle of their bin while the threshold is searched. Where each cell has its own standard
    deviation, the search puts those of a column into at most two levels. ``weak.min_weight`` is
    judged by expected weights, ``weak.min_leaf`` by rows. Votes and weights are made with the
    true values and standard deviations.

    References
    ----------
    .. [1] I. Reis, D. Baron and S. Shahaf, "Probabilistic random forest: a machine learning
       algorithm for noisy data sets", Astron. J. 157 (2019), whose trees split noisy features so.

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> noise = pb.observation.gaussian(1)
    >>> model = pb.fit_boosted_tree(X, [0, 0, 1, 1], nodes=1, observation=noise)
    >>> pb.decision_function(model, [[1.5], [9.0]], route="expected").round(2).tolist()
    [0.0, 0.73]
    """
    values = as_sigma(sigma)
    return Gaussian(freeze(values) if values.ndim else float(values))
