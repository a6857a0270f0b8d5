"""Directions trained at the nodes of a graph, each with its best threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.derived import GrownInputs
from pboost.data.features import Features
from pboost.data.projections import Projections, from_terms
from pboost.data.sorting import sorted_columns, to_fixed_point
from pboost.data.training import TrainingData
from pboost.threads import Workers
from pboost.values import FloatArray
from pboost.weak import directions
from pboost.weak.learners import Linear
from pboost.weak.search import Weights
from pboost.weak.side_search import SideCut, SideSearch
from pboost.weak.stump_search import StumpCut, StumpSearch

#: Bits of a coefficient that are kept; more say nothing of a direction that was searched for.
BITS = 24


@dataclass(frozen=True, slots=True, eq=False)
class LinearCut(SideCut):
    """A direction, which its number stands for, cut at a threshold."""

    threshold: float


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A direction, its best cut, and the criterion there."""

    projection: Projections
    cut: StumpCut
    threshold: float
    score: float


class LinearSearch(SideSearch):
    """Trains directions on the rows that arrive.

    Parameters
    ----------
    data : TrainingData
        Columns and classes; its `inputs` take the directions that are trained.
    weak : Linear
        Options.
    workers : Workers
        Threads.
    """

    def __init__(self, data: TrainingData, weak: Linear, workers: Workers) -> None:
        super().__init__(data, workers)
        self._weak = weak
        self._pairs = listed_pairs(data.n_features, weak.pairs, weak.seed)

    def best(self, weights: Weights) -> LinearCut | None:
        """Return a direction trained with these weights, and its threshold."""
        return self._train(weights, weights.real)

    def best_by_reach(self, weights: Weights, by_class: FloatArray) -> LinearCut | None:
        """Return one trained with what weights are times a factor of each class."""
        return self._train(weights, self.by_class(weights, by_class))

    def _train(self, weights: Weights, real: FloatArray) -> LinearCut | None:
        rows = np.flatnonzero(weights.fixed)
        if min(weights.masses) <= 0:
            return None
        weight = real[rows] / real[rows].max()
        scale, fixed = to_fixed_point(weight)
        data, inputs = self.data, self.data.inputs
        part = replace(
            data, exact=True, n_negative=int(np.searchsorted(rows, data.n_negative)),
            weight=weight, fixed=fixed, scale=scale, rows=data.rows[rows],
            source_rows=data.source_rows[rows], inputs=None,
        )  # fmt: skip
        found = self._chosen(part)
        if found is None:
            return None
        arriving, source = self.arriving(weights), data.source
        assert source is not None
        value = found.projection.at(source, data.source_rows[arriving])[:, 0]
        codes = np.zeros(data.n_rows, dtype=np.uint8)
        codes[arriving] = value > found.threshold
        masses = self.masses(codes, weights)
        if not all(sum(side) > 0 for side in masses):
            return None
        assert isinstance(inputs, GrownInputs)
        return LinearCut(inputs.add(found.projection), masses, codes, found.threshold)

    def _chosen(self, part: TrainingData) -> Candidate | None:
        """Return the best direction of one or two columns, or of all if that is much better."""
        assert part.source is not None
        X = part.source[part.source_rows].astype(np.float64)
        weight = part.weight / part.weight.sum()
        scale, centred = in_units(X, weight)
        varying = np.flatnonzero(scale)
        if not len(varying) or min(part.class_masses()) <= 0:
            return None
        rows = directions.Rows(centred, weight, part.n_negative)
        varies = scale > 0
        listed = self._pairs[varies[self._pairs].all(axis=1)]
        place = np.cumsum(varies) - 1
        sparse = [
            self._candidate(
                part, varying[columns], in_own_units(coefficient, scale[varying[columns]])
            )
            for columns, coefficient in directions.pairs(rows, place[listed].astype(np.int32))
        ]
        best = _least(sparse)
        if len(varying) <= 2 or self._weak.dense_gain == math.inf:
            return best
        coefficient = directions.all_columns(rows)
        dense = self._candidate(part, varying, in_own_units(coefficient, scale[varying]))
        if best is None or dense is None:
            return best or dense
        negative, positive = part.class_masses()
        start = 2 * math.sqrt(negative) * math.sqrt(positive)
        gain = self._weak.dense_gain * (start - best.score)
        return dense if start - dense.score > gain else best

    def _candidate(
        self, part: TrainingData, columns: NDArray[np.intp], coefficient: FloatArray
    ) -> Candidate | None:
        """Return a direction with its best cut, None if it has none."""
        assert part.source is not None
        projection = from_terms([columns], [coefficient])
        values = Features(part.source, None)
        sorted_ = sorted_columns(values, part.source_rows, 256, self.workers.n_threads, projection)
        search = StumpSearch(replace(part, columns=sorted_), self._weak.stump, self.workers)
        weights = Weights(part.weight, part.fixed, part.scale, part.class_masses())
        cut = search.best(weights)
        if cut is None:
            return None
        score = sum(2 * math.sqrt(n) * math.sqrt(p) for n, p in cut.masses)
        return Candidate(projection, cut, float(search.thresholds([cut])[0]), score)

    def thresholds(self, cuts: Sequence[Any]) -> FloatArray:
        """Return the thresholds of cuts."""
        return np.array([cut.threshold for cut in cuts], dtype=np.float64)

    def model_columns(self, cuts: Sequence[Any]) -> dict[str, Any]:
        """Return the fields of a model that say what its nodes compare."""
        columns = super().model_columns(cuts)
        return columns | self.data.model_columns(columns["feature"])


def listed_pairs(n_columns: int, most: int, seed: int) -> NDArray[np.int32]:
    """Return all pairs of columns, or so many drawn ones, as (m, 2)."""
    if n_columns * (n_columns - 1) // 2 <= most:
        found = list(combinations(range(n_columns), 2))
    else:
        generator = np.random.default_rng(seed)
        drawn = (generator.choice(n_columns, 2, replace=False) for _ in range(most))
        found = sorted({(int(min(pair)), int(max(pair))) for pair in drawn})
    return np.array(found, dtype=np.int32).reshape(-1, 2)


def in_units(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the standard deviations of columns, 0 of constant ones; and the others, in them."""
    scale, found = np.zeros(X.shape[1]), []
    for j, column in enumerate(X.T):
        # In units of the largest number, whose square need not be finite.
        unit = float(np.abs(column).max())
        centred = column / unit if unit else column
        centred = centred - centred @ weight
        deviation = math.sqrt(float(centred**2 @ weight))
        if deviation * unit > np.finfo(np.float64).tiny and deviation > 1e-12:
            scale[j] = deviation * unit
            found.append(centred / deviation)
    return scale, np.ascontiguousarray(found).reshape(len(found), len(X))


def in_own_units(coefficient: FloatArray, scale: FloatArray) -> FloatArray:
    """Return coefficients of columns, given those in units of standard deviations, rounded there.

    A single column is left as it is.
    """
    if len(coefficient) == 1:
        return np.ones(1)
    largest = coefficient[np.argmax(np.abs(coefficient))]
    return np.ldexp(np.rint(np.ldexp(coefficient / largest, BITS)), -BITS) / scale


def _least(candidates: Sequence[Candidate | None]) -> Candidate | None:
    """Return the candidate of least criterion, the first of equal ones."""
    return min((c for c in candidates if c is not None), key=lambda c: c.score, default=None)
