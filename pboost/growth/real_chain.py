"""The rounds of AdaBoostR with features, stumps or custom functions as hypotheses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pboost._core.voting import NO_VOTE, TIE, VoteRule, half_log_odds
from pboost.data.node_inputs.imputation import column_ends, column_moments
from pboost.data.node_inputs.inputs import in_sums, names_in_sums
from pboost.data.read.check_xy import check_answers
from pboost.data.read.codes import copied
from pboost.data.read.convert import Features
from pboost.data.training_data import Problem, TrainingData
from pboost.growth.generic_greedy import GenericGreedy, RoundRecord, leverage
from pboost.growth.graph_growth import PERFECT, STOPPED, Callback, Growth
from pboost.models.graph_arrays import ABOVE, BELOW, CERTAIN
from pboost.models.linear import CONSTANT, FunctionEnsemble, LinearModel
from pboost.models.schema import TrainingRecord
from pboost.observation.answers import Observer
from pboost.threads import Workers
from pboost.values import FloatArray, Floats
from pboost.weak.base import Cut, Weights
from pboost.weak.real import Feature, Hypothesis

#: A function that returns the outputs of a round's hypothesis, their upper bound and the feature.
Find: TypeAlias = Callable[[int], tuple[FloatArray, float | None, int | None]]
#: Outputs of the two sides of a confidence-rated stump.
AnswerScale: TypeAlias = Literal["share", "log_odds", "sign"]
CONFIDENCES: tuple[AnswerScale, ...] = get_args(AnswerScale)

ALL_DONE = "all rounds are done"
NOTHING_LEFT = "no hypothesis is left that changes the weights"


class RealChain:
    """Base class of boosting rounds whose hypotheses are arrays of outputs.

    Attributes
    ----------
    state : GenericGreedy
        Weights and decision values of the rows with a positive weight.
    values : ndarray of float64, shape (n, d)
        Features of these rows.
    """

    def __init__(
        self, problem: Problem, rule: VoteRule, rounds: int, callback: Callback | None
    ) -> None:
        columns, second, weight = problem.columns, problem.label == 1, problem.weights
        if isinstance(columns, Features) and weight is None:
            values = columns.values
        else:
            rows = np.arange(len(second)) if weight is None else np.flatnonzero(weight)
            values, second = problem.values(rows), second[rows]
            weight = None if weight is None else weight[rows]
        if second.all() or not second.any():
            raise ValueError(
                "sample_weight: expected both classes to have positive weight, got one class"
            )
        is_read = values.dtype == np.float64
        self.values: FloatArray = values if is_read else copied(values, np.float64, "K")
        self.problem, self.rule, self.rounds, self.callback = problem, rule, rounds, callback
        self.state = GenericGreedy(
            second, weight, smoothing=rule.smoothing, learning_rate=rule.learning_rate
        )
        self.mu: list[float] = []
        self.alpha: list[float] = []
        self.read: list[int | None] = []
        self.cost = [0.0]
        self.certificate = [1.0]

    def grow(self, find: Find) -> str:
        """Add up to `rounds` hypotheses from `find`; return the stop reason."""
        for t in range(self.rounds):
            h, max_abs, feature = find(t)
            if not h.any():
                return NOTHING_LEFT
            step = self.state.step(h, max_abs=max_abs)
            if abs(step.vote) < NO_VOTE:
                return NOTHING_LEFT
            self.mu.append(step.mu)
            self.alpha.append(step.alpha)
            self.read.append(feature)
            self.cost.append(t + 1.0 if feature is None else float(len({*self.read} - {CONSTANT})))
            self.certificate.append(self.state.certificate)
            if self.callback is not None:
                reached = self.state.bound, self.certificate[-1]
                if self.callback(t + 1, RoundRecord(t, feature, step.mu, step.alpha, *reached)):
                    return STOPPED
            if step.perfect or self.certificate[-1] == 0.0:
                return PERFECT
        return ALL_DONE

    def fields(self, stop_reason: str, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of additive models."""
        bias = 0.0
        if not self.mu:
            weight, second = self.state.weight, self.state.sign > 0
            positive, negative = float(weight[second].sum()), float(weight[~second].sum())
            odds = half_log_odds(positive, negative, self.rule.smoothing)
            bias = self.rule.learning_rate * odds
            self.certificate[0] = float(negative * np.exp(bias) + positive * np.exp(-bias))
        return {
            **self.problem.model_fields(),
            "mu": np.array(self.mu),
            "bias": bias,
            "settings": settings,
            "record": TrainingRecord(np.array(self.certificate), np.array(self.cost), stop_reason),
        }


def fit_columns(
    chain: RealChain, weak: Feature, workers: Workers, settings: dict[str, Any]
) -> LinearModel:
    """Boost features: each round takes the feature with the largest absolute margin."""
    state, values = chain.state, in_sums(chain.values, chain.problem.table)
    center, scale = _center_and_scale(chain, values, weak.center)
    # Features are processed one by one, so that each margin is a sum of contiguous numbers.
    d = len(center)
    answers = np.empty((d, len(values)))
    for j in range(d):
        answers[j] = (values[:, j] - center[j]) / (scale[j] or 1.0)
        if (holes := np.isnan(answers[j])).any():
            np.copyto(answers[j], 0.0, where=holes)
    margin = np.zeros(d + 1)

    def find(_: int) -> tuple[FloatArray, float, int]:
        pull = state.weight * state.sign

        def work(first: int, last: int) -> None:
            for j in range(first, last):
                margin[j] = (answers[j] * pull).sum()

        workers.run(work, d, cells=len(pull))
        margin[d] = pull.sum() if weak.include_constant else 0.0
        size = np.abs(margin)
        best = int(np.argmax(size >= size.max() - TIE))
        return (np.ones(len(pull)), 1.0, CONSTANT) if best == d else (answers[best], 1.0, best)

    stop_reason = chain.grow(find)
    return LinearModel(
        feature=np.array(chain.read, dtype=np.int32),
        step=np.array(chain.alpha),
        center=center,
        scale=np.where(scale, scale, 1.0),
        takes_missing=True,
        **chain.fields(stop_reason, settings),
    )


def _center_and_scale(chain: RealChain, values: Floats, kind: str) -> tuple[FloatArray, FloatArray]:
    """Return the center of each feature, and the largest absolute difference from it.

    Missing values are ignored. If all values of a feature are missing, the results are 0.
    """
    problem, weight = chain.problem, chain.state.weight
    rows = np.arange(len(values), dtype=np.int32)
    lowest, highest = values.min(axis=0), values.max(axis=0)
    if has_holes := bool(np.isnan(lowest).any()):
        lowest, highest = column_ends(values, rows)
    with np.errstate(over="ignore"):
        width = highest - lowest
    if not np.isfinite(width).all():
        j = int(np.argmin(np.isfinite(width)))
        names = names_in_sums(problem.names, problem.n_features, problem.table)
        name = j if problem.names is None else repr(names[j])
        raise ValueError(
            f"X: expected values with a finite range in column {name}, got overflow; rescale them"
        )
    if kind == "zero":
        center = np.zeros(len(lowest))
    elif kind == "midrange":
        center = lowest + width / 2
    else:
        unit = np.where(width, width, 1.0)
        if has_holes:
            mass, mean, _ = column_moments(values, rows, weight, lowest, unit)
            mean /= np.where(mass, mass, 1.0)
        else:
            # The order of the summands must not depend on the memory order of X.
            part = np.multiply((values - lowest) / unit, weight[:, None], order="C")
            mean = part.sum(axis=0)
        center = lowest + width * mean
    return center, np.maximum(np.abs(lowest - center), np.abs(highest - center))


def fit_hypotheses(
    chain: RealChain, weak: Hypothesis, generator: np.random.Generator, settings: dict[str, Any]
) -> FunctionEnsemble:
    """Boost the hypotheses that a custom function trains."""
    values, sign = _read_only(chain.values), _read_only(chain.state.sign)
    hypotheses: list[Callable[[Any], Any]] = []

    def find(t: int) -> tuple[FloatArray, float | None, None]:
        where = f"weak_learner: hypothesis of round {t + 1}"
        h = weak.train(values, sign, _read_only(chain.state.weight), generator)
        if not callable(h):
            raise TypeError(f"{where}: expected a function of X, got {h!r}")
        answers = check_answers(h(values), len(values), where)
        if weak.max_abs is not None and np.abs(answers).max() > weak.max_abs:
            raise ValueError(
                f"{where}: expected outputs of at most max_abs={weak.max_abs} in absolute value, "
                f"got {np.abs(answers).max()}"
            )
        hypotheses.append(h)
        return answers, weak.max_abs, None

    stop_reason = chain.grow(find)
    return FunctionEnsemble(
        hypotheses=tuple(hypotheses[: len(chain.mu)]),
        alpha=np.array(chain.alpha),
        **chain.fields(stop_reason, settings),
    )


def _read_only(array: FloatArray) -> FloatArray:
    """Return a read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


class StumpChain(Growth):
    """A chain of weak classifiers with a real-valued output on each side."""

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, confidence: str
    ) -> None:
        super().__init__(data, observer, rule)
        self.confidence = confidence
        self.weights = Weights(data.weight, data.fixed, data.scale, data.class_masses())
        # Also store the losses exp(-y H). They are not the weights of G² if outputs differ in size.
        self.loss = Weights(data.weight.copy(), data.fixed.copy(), data.scale, (0, 0))
        self.start = float(data.weight.sum())

    def grow(self, rounds: int, callback: Callback | None) -> str:
        """Add up to `rounds` weak classifiers; return the stop reason."""
        rule, bound = self.rule, 1.0
        for node in range(rounds):
            cut = self.search.best(self.weights)
            if cut is None:
                return "no split is left"
            cut = self.placed(cut)
            answers = np.array(self.answers(cut))
            max_abs = float(np.abs(answers).max())
            if max_abs == 0.0:
                return NOTHING_LEFT
            u = answers / max_abs
            step = leverage(self.margin(cut, u), max_abs, rule)
            if abs(step.vote) < NO_VOTE:
                return NOTHING_LEFT
            votes = (step.vote * u).tolist()
            up = np.exp(votes)
            self.search.reweight(cut, np.stack([up, 1 / up], 1), self.loss.real, self.loss)
            certificate = float(self.loss.real.sum()) / self.start
            joined = ((node - 1, BELOW), (node - 1, ABOVE)) if node else ()
            self.add_node(joined, cut, votes, CERTAIN, 1.0, certificate)
            bound *= step.shrink
            if callback is not None:
                record = RoundRecord(node, cut.feature, step.mu, step.alpha, bound, certificate)
                if callback(node + 1, record):
                    return STOPPED
            if step.perfect or certificate == 0.0:
                return PERFECT
            factors = step.factors(np.stack([-u, u], 1))
            self.search.reweight(cut, factors, self.weights.real, self.weights)
        return ALL_DONE

    def answers(self, cut: Cut) -> list[float]:
        """Return the output on each side."""
        total = sum(map(sum, cut.masses))
        delta = self.rule.smoothing * total
        if self.confidence == "share":
            return [(p - n) / (p + n + 2 * delta) for n, p in cut.masses]
        if self.confidence == "log_odds":
            return [half_log_odds(p, n, delta) for n, p in cut.masses]
        return [1.0 if p - n > TIE * total else -1.0 for n, p in cut.masses]

    def margin(self, cut: Cut, u: FloatArray) -> float:
        """Return the normalized margin of the scaled outputs `u` of the two sides."""
        total = sum(map(sum, cut.masses))
        return sum((p - n) * at for (n, p), at in zip(cut.masses, u.tolist(), strict=True)) / total
