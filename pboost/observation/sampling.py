"""Observation model that estimates probabilities by calling weak classifiers repeatedly.

With the stopwatch rule, the next weak classifier is trained in advance, and sampling stops once
that classifier decreases the error faster than further calls.

Source: E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
arXiv:cs/0607110, sections 2 and 3.2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pboost._core import uncertain
from pboost._core.voting import VoteRule
from pboost.data.training_data import TrainingData
from pboost.observation.answers import (
    Observation,
    Observer,
    Reach,
    RowAnswers,
    TableObservation,
    chain_reach,
    exact,
    maker,
)
from pboost.observation.gaussian_search import Gaussian
from pboost.threads import Workers
from pboost.values import (
    FloatArray,
    check_choice,
    check_integer,
    draw_key,
    hint_missing_call,
    shown,
)
from pboost.weak.base import Weak, WeakSearch, Weights
from pboost.weak.function_search import Counts, Invoke, OracleCut, OracleSearch

#: Relative increase of an estimate that is more than a rounding error.
RISE = 1e-12
#: Rules to stop sampling a weak classifier, and estimators of its exit probabilities.
StopRule: TypeAlias = Literal["first_increase", "stopwatch"]
STOPS: tuple[StopRule, ...] = get_args(StopRule)
CountEstimator: TypeAlias = Literal["map", "ml"]
ESTIMATORS: tuple[CountEstimator, ...] = get_args(CountEstimator)
#: Largest number of draws, because exits are counted in 16 bits.
MOST_DRAWS = 65_535
#: Largest number of exits drawn per call of the kernel, which limits the memory.
MOST_AT_ONCE = 20_000_000


class Sample:
    """The sampled exits of one weak classifier.

    Attributes
    ----------
    counts : ndarray of uint16, shape (n,)
        Number of times that each row took exit 1.
    draws : int
        Number of draws.
    weights : Weights
        Weights of the rows at the node.
    table : ndarray of float64, shape (2, 2), or None
        Table that is stored in the model.
    """

    def __init__(
        self, invoke: Invoke, weights: Weights, estimator: str, table: FloatArray | None
    ) -> None:
        self.counts = np.zeros(len(weights.real), dtype=np.uint16)
        self.draws = 0
        self.weights, self.table = weights, table
        self._invoke, self._estimator = invoke, estimator
        self._above = [0, 0]  # weights at exit 1 per class, summed over the draws

    def copy(self) -> Sample:
        """Return an independent copy."""
        other = Sample(self._invoke, self.weights, self._estimator, self.table)
        other.counts, other.draws, other._above = self.counts.copy(), self.draws, [*self._above]
        return other

    def invoke(self, times: int = 1) -> None:
        """Draw the exits of all rows `times` more times."""
        end, block = self.draws + times, max(1, MOST_AT_ONCE // len(self.counts))
        while self.draws < end:
            last = min(self.draws + block, end)
            masses = self._invoke(self.counts, self.draws, last, self.weights.fixed)
            self.draws = last
            for k in (0, 1):
                # Python integers are added, because a sum over many draws may exceed 64 bits.
                self._above[k] += sum(masses[:, k].tolist())

    def shrink(self) -> float:
        """Return the estimate of Z, which is the sum over exits of 2 sqrt(W+ W-) / total weight."""
        prior = 1 if self._estimator == "map" else 0
        masses = self.weights.masses
        above = [prior * w + a for w, a in zip(masses, self._above, strict=True)]
        below = [prior * w + self.draws * w - a for w, a in zip(masses, self._above, strict=True)]
        total = (self.draws + 2 * prior) * sum(masses)
        return 2 * sum(math.sqrt(n / total) * math.sqrt(p / total) for n, p in (below, above))

    def estimate(self) -> Callable[[], FloatArray]:
        """Return a function that computes the estimated probability of exit 1 of each row."""
        # The function only refers to the counts, so that other arrays can be freed.
        return partial(estimates, self.counts, self.draws, self._estimator)


def estimates(counts: Counts, draws: int, estimator: str) -> FloatArray:
    """Return the estimated probability of an exit that was taken `counts` times."""
    if estimator == "map":
        return (counts + 1.0) / (draws + 2)
    return np.asarray(counts / draws, dtype=np.float64)


def probabilities(above: FloatArray) -> FloatArray:
    """Convert negative values to probabilities. They are minus the probability of exit 0."""
    return np.where(above < 0, 1.0 + above, above)


class SampledObserver(Observer):
    """Observer of the model `sampled`, which draws exits and estimates their probabilities.

    Parameters
    ----------
    observation : Sampled
        Observation model with stopping rule and estimator.
    base : Observer
        Observer with the true probabilities.
    generator : numpy.random.Generator
        Source of randomness for the key of the random numbers.
    """

    def __init__(
        self, observation: Sampled, base: Observer, generator: np.random.Generator
    ) -> None:
        super().__init__(base.search)
        self.observation, self.base, self.needs_class = observation, base, base.needs_class
        self._key = draw_key(generator)
        self._questions = 0

    def begin(self, cut: Any, weights: Weights, reach: Reach) -> Sample:
        """Return an empty sample of a weak classifier."""
        answers = self.base.ask(cut, weights, reach)
        if self.needs_class:
            self.search.fill_fixed(weights)  # the array may have been overwritten
        return self.sample(probabilities(answers.above()), weights, answers.table)

    def sample(self, above: FloatArray, weights: Weights, table: FloatArray | None) -> Sample:
        """Return an empty sample with these probabilities of exit 1."""
        invoke = drawing(self.search, above, self._key, self._questions)
        self._questions += 1
        return Sample(invoke, weights, self.observation.estimator, table)

    def ask(self, cut: Any, weights: Weights, reach: Reach) -> RowAnswers:
        """Return the estimated exit probabilities, sampled by the stopping rule."""
        sample, n_draws = self.begin(cut, weights, reach), self.observation.n_draws
        if isinstance(n_draws, int):
            sample.invoke(n_draws)
        else:
            until_increase(sample, self.observation.max_draws)
        return self.answers(sample)

    def answers(self, sample: Sample) -> RowAnswers:
        """Return the exit probabilities estimated from a sample."""
        return RowAnswers(self.search, sample.estimate(), sample.weights, sample.table)

    def model_columns(self, tables: Sequence[FloatArray | None]) -> dict[str, Any]:
        """Return the fields of a model that describe the true exit probabilities."""
        return self.base.model_columns(tables)


def until_increase(sample: Sample, max_draws: int) -> None:
    """Draw until the estimate of Z increases for the first time."""
    sample.invoke()
    before = sample.shrink()
    while sample.draws < max_draws:
        sample.invoke()
        now = sample.shrink()
        if now > before * (1 + RISE):
            return
        before = now


def drawing(search: WeakSearch, above: FloatArray, key: int, question: int) -> Invoke:
    """Return a function that draws exits with the probabilities `above` of exit 1."""
    data, workers = search.data, search.workers
    rows = data.given_rows

    def invoke(
        counts: Counts, first: int, last: int, fixed: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        def work(start: int, stop: int) -> NDArray[np.int64]:
            mass = np.empty((last - first, 2), dtype=np.int64)
            uncertain.draw(
                above,
                rows,
                data.n_negative,
                key,
                question,
                first,
                last,
                start,
                stop,
                fixed,
                counts,
                mass,
            )
            return mass

        return np.sum(workers.run(work, len(above), cells=last - first), axis=0)

    return invoke


class FunctionSampler(SampledObserver):
    """Observer of the model `sampled` for weak classifiers that are functions or estimators."""

    search: OracleSearch

    def __init__(
        self, observation: Sampled, base: Observer, generator: np.random.Generator
    ) -> None:
        super().__init__(observation, base, generator)
        self.search.queries_oracle = False

    def begin(self, cut: OracleCut, weights: Weights, reach: Reach) -> Sample:
        """Return an empty sample of a weak classifier."""
        if not self.search.is_oracle:
            return self.sample(self.search.probabilities(cut, weights), weights, None)
        invoke = self.search.invoking(cut, weights)
        return Sample(invoke, weights, self.observation.estimator, None)


@dataclass(frozen=True, slots=True)
class Sampled(Observation):
    """Observation model with estimated probabilities, created by `sampled`."""

    n_draws: StopRule | int
    estimator: CountEstimator
    max_draws: int
    clock: Callable[[], float]
    base: Observation
    kind: ClassVar[str] = "sampled"

    @property
    def needs_class(self) -> bool:  # type: ignore[override]
        """Whether the estimated probabilities depend on the class of the row."""
        return self.base.needs_class

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values. The clock is omitted."""
        plain = Observation.settings(self)
        return {name: value for name, value in plain.items() if name != "clock"}

    def pair(self, weak: Weak, *, is_chain: bool) -> Weak:
        """Return the weak learner adapted to this observation model."""
        if self.n_draws == "stopwatch" and not is_chain:
            raise ValueError(
                'observation: n_draws="stopwatch" is supported only by fit_adaboost; use a number '
                'or "first_increase"'
            )
        if weak.has_answers and not self.base.is_exact:
            raise ValueError(
                "observation: oracles and estimators provide the sampled exits themselves; "
                f"expected base=exact(), got {self.base!r}"
            )
        return self.base.pair(weak, is_chain=is_chain)

    def bind(
        self, data: TrainingData, weak: Weak, workers: Workers, generator: np.random.Generator
    ) -> SampledObserver:
        """Return the observer of these data."""
        base = self.base.bind(data, weak, workers, generator)
        return (FunctionSampler if weak.has_answers else SampledObserver)(self, base, generator)


@maker
def sampled(
    n_draws: StopRule | int = "first_increase",
    estimator: CountEstimator = "map",
    *,
    max_draws: int | None = None,
    clock: Callable[[], float] | None = None,
    base: Observation | None = None,
) -> Sampled:
    """Create an observation model that estimates exit probabilities from repeated calls.

    Parameters
    ----------
    n_draws : {"first_increase", "stopwatch"} or int
        Number of times that each weak classifier is called on all rows. "first_increase" stops
        when the estimate of Z, the factor by which the classifier multiplies the certificate,
        increases for the first time. "stopwatch" (`fit_adaboost` only) stops when training the next
        classifier decreases the estimated certificate faster, per second, than another call.
    estimator : {"map", "ml"}
        Estimate of the probability of exit 1 after k of R calls: "map" is ``(1 + k) / (R + 2)``,
        "ml" is ``k / R``.
    max_draws : int, optional
        Largest number of calls under a stopping rule, 1 to 65535. By default 1000.
    clock : callable, optional
        Function that returns the time in seconds for "stopwatch", by default ``time.perf_counter``.
        With a real clock, models are not reproducible.
    base : Observation, optional
        Observation model that generates the exits, by default `exact`. The weak learners
        `pboost.weak.oracle` and `pboost.weak.from_estimator` generate exits themselves.

    Returns
    -------
    Sampled
        An observation model for the option ``observation`` of a fit function. With this model, the
        certificate is an estimate instead of an upper bound.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range, or does not apply to the stopping rule.

    Notes
    -----
    If all exits are certain, the estimate of Z never increases and sampling ends at `max_draws`.

    "stopwatch" reads the clock three times per comparison: before an additional call, after this
    call, and after the next weak classifier was trained and called once. As in the reference, the
    rates are Z of the next classifier to the power of 1/seconds, and the ratio of the two estimates
    to the power of 1/seconds. A decrease in zero time counts as infinitely fast. If both rates are
    equal, the next classifier is used. In the last round, one more classifier is trained for the
    comparison.

    References
    ----------
    .. [1] E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
       arXiv:cs/0607110, sections 2 and 3.2.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.sampled(20, base=pb.observation.flip(0.1)).settings()["base"]
    {'kind': 'flip', 'flip_rate': 0.1}
    """
    if isinstance(n_draws, str):
        check_choice("n_draws", n_draws, STOPS)
        draw_limit = check_integer(
            "max_draws", 1000 if max_draws is None else max_draws, min_value=1, max_value=MOST_DRAWS
        )
    else:
        draw_limit = n_draws = check_integer("n_draws", n_draws, min_value=1, max_value=MOST_DRAWS)
        if max_draws is not None:
            raise ValueError(
                "max_draws: expected None because n_draws is a number; omit one of the two"
            )
    check_choice("estimator", estimator, ESTIMATORS)
    if clock is not None and n_draws != "stopwatch":
        raise ValueError(f'clock: expected n_draws="stopwatch", got n_draws={n_draws!r}')
    if clock is not None and not callable(clock):
        raise TypeError(f"clock: expected a function that returns seconds, got {clock!r}")
    base = exact() if base is None else base
    if not isinstance(base, TableObservation | Gaussian):
        raise TypeError(
            f"base: expected an observation model with known probabilities, got {shown(base)}"
            + hint_missing_call(base)
        )
    return Sampled(n_draws, estimator, draw_limit, clock or time.perf_counter, base)


class StopwatchObserver(Observer):
    """Observer that samples a classifier until training the next one is better.

    The next classifier is trained in advance with the estimated weights, and sampled once. If
    training it decreases the error faster than another call, the chain uses it in the next round.

    Parameters
    ----------
    sampler : SampledObserver
        Observer that finds and samples classifiers.
    rule : VoteRule
        Rule that computes votes from weights.
    """

    def __init__(self, sampler: SampledObserver, rule: VoteRule) -> None:
        super().__init__(sampler.search)
        self._sampler, self._rule = sampler, rule
        self.needs_class = sampler.needs_class
        # The weights of a chain are modified in place, so they are copied. All rows reach all
        # nodes.
        self._start = self.search.data.weight.copy() if self.needs_class else None
        self._next: tuple[Any, Sample] | None = None
        self._round = 0
        self.find = self._find

    def _find(self, weights: Weights) -> Any:
        """Return the classifier that was trained in advance. If there is none, search for one."""
        return self._next[0] if self._next else self._sampler.find(weights)

    def ask(self, cut: Any, weights: Weights, reach: Reach) -> RowAnswers:
        """Return the estimated exit probabilities, sampled by the stopwatch rule."""
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
        """Return the fields of a model that describe the true exit probabilities."""
        return self._sampler.model_columns(tables)

    def _look_ahead(self, sample: Sample) -> tuple[Any, Sample] | None:
        """Train the next classifier on the current estimate and sample it once."""
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
        """Read the clock. Raise an error if the time is earlier than `before`."""
        where = f"clock: round {self._round}"
        try:
            now = float(self._sampler.observation.clock())
        except StopIteration as error:
            raise RuntimeError(f"{where}: the clock raised StopIteration") from error
        except Exception as error:
            raise RuntimeError(f"{where}: the clock failed: {error!r}") from error
        if not (math.isfinite(now) and now >= before):
            lower_limit = "" if before == -math.inf else f" not before {before}"
            raise RuntimeError(f"{where}: expected a finite time{lower_limit}, got {now}")
        return now


def rate(after: float, before: float, seconds: float) -> float:
    """Return log(after / before) / seconds.

    A change in zero time is infinitely fast; no change has rate 0.
    """
    change = math.log(after / before) if min(after, before) > 0 else (after > 0) - (before > 0)
    if change == 0:
        return 0.0
    if after == 0 or before == 0 or seconds == 0:
        return math.copysign(math.inf, change)
    return change / seconds
