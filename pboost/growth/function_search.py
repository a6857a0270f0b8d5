"""Weak classifiers that are functions, trained on weighted rows and asked about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.functions import Oracles, ask, probability, train
from pboost.data.training import TrainingData
from pboost.observation.answers import Observer, Reach
from pboost.observation.models import Sampled
from pboost.observation.sampling import Counts, Invoke, Sample, SampledObserver, draw_key
from pboost.threads import Workers
from pboost.values import FloatArray
from pboost.weak.learners import Oracle, RowLearner
from pboost.weak.search import Weights
from pboost.weak.side_search import NO_WEIGHT, SideCut, SideSearch


@dataclass(frozen=True, slots=True, eq=False)
class OracleCut(SideCut):
    """A trained weak classifier, asked once unless it is to be sampled.

    Attributes
    ----------
    function : callable or fitted estimator
        The classifier.
    generator : numpy.random.Generator
        To ask it with.
    """

    function: Any
    generator: np.random.Generator


class OracleSearch(SideSearch):
    """Trains a user's weak learner.

    Parameters
    ----------
    data : TrainingData
        Rows and classes.
    weak : RowLearner
        The learner.
    workers : Workers
        Threads of the weight update.
    generator : numpy.random.Generator
        Seeds the generators that the learner gets.
    asks : bool
        Whether a trained classifier is asked once, for the sides of the rows; False leaves that
        to an observation model that samples.
    """

    def __init__(
        self,
        data: TrainingData,
        weak: RowLearner,
        workers: Workers,
        generator: np.random.Generator,
        asks: bool,
    ) -> None:
        super().__init__(data, workers)
        assert data.given is not None
        self.source, self.is_oracle = data.given, isinstance(weak, Oracle)
        self._weak, self._key, self._asks = weak, draw_key(generator), asks
        self._trained = 0

    def best(self, weights: Weights) -> OracleCut | None:
        """Return a newly trained weak classifier; None if both its sides have no weight."""
        if min(weights.masses) <= 0:
            return None
        number = self._trained
        self._trained += 1
        training, asking = (
            np.random.default_rng(np.random.SeedSequence(self._key, spawn_key=(number, k)))
            for k in (0, 1)
        )
        rows = self.in_order(weights.fixed > 0)
        y = np.where(rows < self.data.n_negative, -1, 1)
        share = weights.real[rows] / weights.real[rows].sum()
        X = self.source.take(self.data.rows[rows])
        function = train(self._weak, X, y, share, training, self.where(number))
        if not self._asks:
            codes = np.empty(0, dtype=np.uint8)
            return OracleCut(number, ((0.0, 0.0), (0.0, 0.0)), codes, function, asking)
        codes = self.codes(function, number, asking, weights)
        masses = self.masses(codes, weights)
        if not all(sum(side) > 0 for side in masses):
            return None
        return OracleCut(number, masses, codes, function, asking)

    def in_order(self, chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the chosen rows in the order in which the user gave them."""
        rows = np.flatnonzero(chosen)
        return rows[np.argsort(self.data.rows[rows])]

    def asked(self, weights: Weights) -> NDArray[np.intp]:
        """Return the rows that arrive, in the user's order."""
        return self.in_order(weights.real > NO_WEIGHT)

    def where(self, number: int) -> str:
        """Return how a weak classifier is named in errors."""
        return f"weak: weak classifier {number}"

    def codes(
        self, function: Any, number: int, generator: np.random.Generator, weights: Weights
    ) -> NDArray[np.uint8]:
        """Return the side of each row, 0 for rows that do not arrive."""
        rows = self.asked(weights)
        X, where = self.source.take(self.data.rows[rows]), self.where(number)
        if self.is_oracle:
            above = ask(function, X, len(rows), generator, where) > 0
        else:
            above = probability(function, X, len(rows), where) > 0.5
        codes = np.zeros(self.data.n_rows, dtype=np.uint8)
        codes[rows] = above
        return codes

    def probabilities(self, cut: OracleCut, weights: Weights) -> FloatArray:
        """Return the probability of +1 of each row that an estimator gives."""
        rows = self.asked(weights)
        X, where = self.source.take(self.data.rows[rows]), self.where(cut.feature)
        above = np.zeros(self.data.n_rows)
        above[rows] = probability(cut.function, X, len(rows), where)
        return above

    def invoking(self, cut: OracleCut, weights: Weights) -> Invoke:
        """Return what asks an oracle again about all rows that arrive."""
        rows, middle = self.asked(weights), self.data.n_negative
        X, where = self.source.take(self.data.rows[rows]), self.where(cut.feature)

        def invoke(
            counts: Counts, first: int, last: int, fixed: NDArray[np.int64]
        ) -> NDArray[np.int64]:
            mass = np.empty((last - first, 2), dtype=np.int64)
            for r in range(last - first):
                above = rows[ask(cut.function, X, len(rows), cut.generator, where) > 0]
                counts[above] += 1
                negative = above[above < middle]
                mass[r] = fixed[negative].sum(), fixed[above].sum() - fixed[negative].sum()
            return mass

        return invoke

    def thresholds(self, cuts: Sequence[OracleCut]) -> FloatArray:
        """Return 0, between -1 and +1, or 1/2, between probabilities."""
        return np.full(len(cuts), 0.0 if self.is_oracle else 0.5)

    def model_columns(self, cuts: Sequence[OracleCut]) -> dict[str, Any]:
        """Return the fields of a model: node i asks function i."""
        functions = tuple(cut.function for cut in cuts)
        return {
            "feature": np.arange(len(cuts), dtype=np.int32),
            "threshold": self.thresholds(cuts),
            "inputs": Oracles(functions, self.is_oracle, self.source.row_shape),
        }


class OracleSampler(SampledObserver):
    """Observation model `sampled` for weak classifiers with answers of their own."""

    def __init__(
        self,
        observation: Sampled,
        of: Observer,
        search: OracleSearch,
        generator: np.random.Generator,
    ) -> None:
        super().__init__(observation, of, generator)
        self._oracles = search

    def begin(self, cut: OracleCut, weights: Weights, reach: Reach) -> Sample:
        """Return a sample of a weak classifier that has not been asked yet."""
        if not self._oracles.is_oracle:
            return self.sample(self._oracles.probabilities(cut, weights), weights, None)
        invoke = self._oracles.invoking(cut, weights)
        return Sample(invoke, weights, self.observation.estimator, None)
