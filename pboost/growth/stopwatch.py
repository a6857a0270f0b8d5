"""Sampling by the stopwatch: ask once more, or train the next weak classifier?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pboost._core.voting import VoteRule
from pboost.observation.answers import Observer, Reach, RowAnswers, chain_reach
from pboost.observation.sampling import Sample, SampledObserver
from pboost.values import FloatArray
from pboost.weak.base import Weights


class StopwatchObserver(Observer):
    """Samples the classifiers of a chain for as long as that pays more than the next one.

    The next classifier is trained in advance and sampled once, with the weights that the current
    estimate gives. If it wins, it is the one that the chain finds next: the chain then computes
    the same weights.

    Parameters
    ----------
    sampler : SampledObserver
        Trains and samples.
    rule : VoteRule
        Makes votes of masses.
    """

    def __init__(self, sampler: SampledObserver, rule: VoteRule) -> None:
        super().__init__(sampler.search)
        self._sampler, self._rule = sampler, rule
        self.needs_class = sampler.needs_class
        # All rows reach all nodes of a chain; its weights are changed in place.
        self._start = self.search.data.weight.copy() if self.needs_class else None
        self._next: tuple[Any, Sample] | None = None
        self._round = 0
        self.find = self._find

    def _find(self, weights: Weights) -> Any:
        """Return the weak classifier that won, or else one for rows of these weights."""
        return self._next[0] if self._next else self._sampler.find(weights)

    def ask(self, cut: Any, weights: Weights, reach: Reach) -> RowAnswers:
        """Return the estimated answers of a weak classifier, sampled as long as it pays."""
        if self._next:
            sample = self._next[1]
            sample.weights = weights
        else:
            sample = self._sampler.begin(cut, weights, reach)
            sample.invoke()
        self._next = None
        self._round += 1
        while sample.draws < self._sampler.observation.max_draws:
            start = self._seconds(-math.inf)
            more = sample.copy()
            more.invoke()
            between = self._seconds(start)
            ahead = self._look_ahead(sample)
            if ahead is None:
                break
            end = self._seconds(between)
            rate_ahead = rate(ahead[1].shrink(), 1.0, end - between)
            if rate_ahead <= rate(more.shrink(), sample.shrink(), between - start):
                self._next = ahead
                break
            sample = more
        return self._sampler.answers(sample)

    def model_columns(self, tables: Sequence[FloatArray | None]) -> dict[str, Any]:
        """Return how nodes answer when the answers are not estimated."""
        return self._sampler.model_columns(tables)

    def _look_ahead(self, sample: Sample) -> tuple[Any, Sample] | None:
        """Return the next weak classifier, trained on the current estimate and asked once."""
        answers, now = self._sampler.answers(sample), sample.weights
        step = self._rule.step(answers.masses.tolist())
        after = Weights(np.empty_like(now.real), np.empty_like(now.fixed), now.scale, (0, 0))
        answers.send(step.factors, now.real, after)
        cut = self._sampler.find(after)
        if cut is None:
            return None
        reach = partial(chain_reach, self.search, cut, after, self._start)
        ahead = self._sampler.begin(cut, after, reach)
        ahead.invoke()
        return cut, ahead

    def _seconds(self, before: float) -> float:
        """Return the time of the clock, which must not be earlier than `before`."""
        where = f"clock: round {self._round}"
        try:
            now = float(self._sampler.observation.clock())
        except StopIteration as error:
            raise RuntimeError(f"{where}: the clock is exhausted") from error
        except Exception as error:
            raise RuntimeError(f"{where}: the clock failed: {error!r}") from error
        if not (math.isfinite(now) and now >= before):
            least = "" if before == -math.inf else f" not before {before}"
            raise RuntimeError(f"{where}: expected a finite time{least}, got {now}")
        return now


def rate(after: float, before: float, seconds: float) -> float:
    """Return the logarithm of (after / before) to the power of 1 / seconds.

    A change that takes no time is infinitely fast; no change has rate 0.
    """
    change = math.log(after / before) if min(after, before) > 0 else (after > 0) - (before > 0)
    if change == 0:
        return 0.0
    if after == 0 or before == 0 or seconds == 0:
        return math.copysign(math.inf, change)
    return change / seconds
