"""Answers estimated from invocations: counts, estimates, and when to stop asking.

Source: E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
arXiv:cs/0607110, sections 2 and 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import sampling
from pboost.observation.answers import Observer, Reach, RowAnswers
from pboost.observation.models import Sampled
from pboost.values import FloatArray
from pboost.weak.search import WeakSearch, Weights

Counts: TypeAlias = NDArray[np.uint16]
#: Invokes a weak classifier: (counts to be raised, first draw, end of the draws, fixed-point
#: weights); returns the masses (draw, class) of the rows that took exit 1.
Invoke: TypeAlias = Callable[[Counts, int, int, NDArray[np.int64]], NDArray[np.int64]]
#: Share by which an estimate must rise to count as risen: more than rounding.
RISE = 1e-12
#: Draws of all rows that are made at a time, so that few masses are held.
MOST_AT_ONCE = 20_000_000


class Sample:
    """The invocations of one weak classifier so far.

    Attributes
    ----------
    counts : ndarray of uint16, shape (n,)
        How often each row took exit 1.
    draws : int
        Number of invocations.
    weights : Weights
        Weights asked with.
    table : ndarray of float64, shape (2, 2), or None
        What a model keeps of the answers.
    """

    def __init__(
        self, invoke: Invoke, weights: Weights, estimator: str, table: FloatArray | None
    ) -> None:
        self.counts = np.zeros(len(weights.real), dtype=np.uint16)
        self.draws = 0
        self.weights, self.table = weights, table
        self._invoke, self._estimator = invoke, estimator
        self._above = [0, 0]  # masses of exit 1, by class, summed over the invocations

    def copy(self) -> Sample:
        """Return a sample that goes on independently."""
        other = Sample(self._invoke, self.weights, self._estimator, self.table)
        other.counts, other.draws, other._above = self.counts.copy(), self.draws, [*self._above]
        return other

    def invoke(self, times: int = 1) -> None:
        """Ask about all rows again."""
        end, block = self.draws + times, max(1, MOST_AT_ONCE // len(self.counts))
        while self.draws < end:
            last = min(self.draws + block, end)
            masses = self._invoke(self.counts, self.draws, last, self.weights.fixed)
            self.draws = last
            for k in (0, 1):
                # Python integers: a sum over many draws may exceed 64 bits.
                self._above[k] += sum(masses[:, k].tolist())

    def shrink(self) -> float:
        """Return the estimate of Z: the sum over exits of 2 sqrt(W+ W-) over all mass."""
        prior = 1 if self._estimator == "map" else 0
        whole = self.weights.masses
        above = [prior * w + a for w, a in zip(whole, self._above, strict=True)]
        below = [prior * w + self.draws * w - a for w, a in zip(whole, self._above, strict=True)]
        total = (self.draws + 2 * prior) * sum(whole)
        return 2 * sum(math.sqrt(n / total) * math.sqrt(p / total) for n, p in (below, above))

    def estimate(self) -> Callable[[], FloatArray]:
        """Return what computes the estimated probability of exit 1 of each row."""
        # Holds the counts and nothing else that takes memory.
        return partial(estimates, self.counts, self.draws, self._estimator)


def estimates(counts: Counts, draws: int, estimator: str) -> FloatArray:
    """Return the estimated probability of an answer that was given `counts` times."""
    if estimator == "map":
        return (counts + 1.0) / (draws + 2)
    return np.asarray(counts / draws, dtype=np.float64)


def probabilities(above: FloatArray) -> FloatArray:
    """Return probabilities of exit 1, some given as that of exit 0 with a minus sign."""
    return np.where(above < 0, 1.0 + above, above)


class SampledObserver(Observer):
    """Observation model `sampled`: answers are drawn, and their probabilities estimated.

    Parameters
    ----------
    observation : Sampled
        Stopping rule and estimator.
    of : Observer
        Where the answers come from.
    generator : numpy.random.Generator
        Gives the key of the random numbers.
    """

    def __init__(self, observation: Sampled, of: Observer, generator: np.random.Generator) -> None:
        super().__init__(of.search)
        self.observation, self.of, self.needs_class = observation, of, of.needs_class
        self._key = draw_key(generator)
        self._questions = 0

    def begin(self, cut: Any, weights: Weights, reach: Reach) -> Sample:
        """Return a sample of a weak classifier that has not been asked yet."""
        answers = self.of.ask(cut, weights, reach)
        if self.needs_class:
            self.search.fill_fixed(weights)  # `reach` may have used the array
        return self.sample(probabilities(answers.above()), weights, answers.table)

    def sample(self, above: FloatArray, weights: Weights, table: FloatArray | None) -> Sample:
        """Return a sample of answers that take exit 1 with these probabilities."""
        invoke = drawing(self.search, above, self._key, self._questions)
        self._questions += 1
        return Sample(invoke, weights, self.observation.estimator, table)

    def ask(self, cut: Any, weights: Weights, reach: Reach) -> RowAnswers:
        """Return the estimated answers of a weak classifier, sampled by the stopping rule."""
        sample, stop = self.begin(cut, weights, reach), self.observation.stop
        if isinstance(stop, int):
            sample.invoke(stop)
        else:
            until_increase(sample, self.observation.max_draws)
        return self.answers(sample)

    def answers(self, sample: Sample) -> RowAnswers:
        """Return what a sample says of the answers."""
        return RowAnswers(self.search, sample.estimate(), sample.weights, sample.table)

    def model_columns(self, tables: Sequence[FloatArray | None]) -> dict[str, Any]:
        """Return how nodes answer when the answers are not estimated."""
        return self.of.model_columns(tables)


def until_increase(sample: Sample, max_draws: int) -> None:
    """Invoke until the estimate of Z rises for the first time; that invocation is kept."""
    sample.invoke()
    before = sample.shrink()
    while sample.draws < max_draws:
        sample.invoke()
        now = sample.shrink()
        if now > before * (1 + RISE):
            return
        before = now


def drawing(search: WeakSearch, above: FloatArray, key: int, question: int) -> Invoke:
    """Return what draws answers with the probabilities `above` of exit 1."""
    data, workers = search.data, search.workers

    def invoke(
        counts: Counts, first: int, last: int, fixed: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        def work(start: int, stop: int) -> NDArray[np.int64]:
            mass = np.empty((last - first, 2), dtype=np.int64)
            sampling.draw(
                above, data.rows, data.n_negative, key, question, first, last, start, stop, fixed,
                counts, mass,
            )  # fmt: skip
            return mass

        return np.sum(workers.run(work, len(above), cells=last - first), axis=0)

    return invoke


def draw_key(generator: np.random.Generator) -> int:
    """Return the key of the random numbers of one fit."""
    return int(generator.integers(2**64, dtype=np.uint64))
