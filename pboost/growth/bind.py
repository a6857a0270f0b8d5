"""Weak learner and observation model, bound to training data.

Here it is decided which of them go together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pboost.data.training import TrainingData
from pboost.growth.function_search import OracleSampler, OracleSearch
from pboost.growth.separator_search import SeparatorSearch
from pboost.models.graph import DecisionGraph
from pboost.observation import adatree2, exact, flip, half, uniform
from pboost.observation.answers import Observer, TableObserver
from pboost.observation.models import (
    Gaussian,
    Observation,
    Sampled,
    TableObservation,
    check_observation,
)
from pboost.observation.noisy_search import GaussianObserver, Noise, NoisyStumpSearch
from pboost.observation.sampling import SampledObserver
from pboost.threads import Workers
from pboost.weak import affine, stump
from pboost.weak.learners import ColumnLearner, Linear, RowLearner, Separator, Weak, check_weak
from pboost.weak.linear_search import LinearSearch
from pboost.weak.real import RealLearner
from pboost.weak.search import WeakSearch
from pboost.weak.stump_search import StumpSearch

#: What makes the weak learners that compare columns, by the kind that settings name.
LEARNERS: dict[str, Callable[..., ColumnLearner]] = {"stump": stump, "affine": affine}
#: What makes the observation models that are tables, by the kind that settings name.
TABLES: dict[str, Callable[..., TableObservation]] = {
    "exact": exact,
    "flip": flip,
    "half": half,
    "uniform": uniform,
    "adatree2": adatree2,
}


def check_pair(weak: Any, observation: Any, *, is_chain: bool = False) -> None:
    """Raise TypeError or ValueError if these are not a pair that can be trained together.

    `is_chain` says that the builder has one next classifier at any time.
    """
    check_weak(weak)
    check_observation(observation)
    if isinstance(weak, RealLearner):
        raise ValueError(
            f"weak: expected a weak learner with two exits, got {weak!r}, whose answers are real "
            "numbers: that is for fit_adaboost_real"
        )
    if isinstance(weak, RowLearner) and not isinstance(observation, TableObservation | Sampled):
        raise ValueError(
            f"observation: {observation.kind!r} compares a number with a threshold, which oracles "
            "and estimators do not have"
        )
    if isinstance(observation, Sampled):
        if observation.stop == "stopwatch" and not is_chain:
            raise ValueError(
                'observation: stop="stopwatch" compares with the one next weak classifier, which '
                'only fit_adaboost has; use a number or "first-increase"'
            )
        if isinstance(weak, RowLearner) and not observation.of.is_exact:
            raise ValueError(
                "observation: oracles and estimators have answers of their own to be sampled: "
                f"expected of=exact(), got {observation.of!r}"
            )
    if isinstance(_source_of(observation), Gaussian) and isinstance(weak, Separator | Linear):
        raise ValueError(
            "observation: 'gaussian' compares columns that are known before the first node, got "
            "separators or linear weak classifiers, which are made at the nodes"
        )
    is_exact = isinstance(weak, ColumnLearner) and weak.search == "exact"
    if isinstance(_source_of(observation), Gaussian) and is_exact:
        raise ValueError(
            'weak: search="exact" cannot be had with gaussian answers: expected masses are '
            'computed at the edges of bins; use search="auto" or "binned"'
        )


def as_searched(weak: Weak, observation: Observation) -> Weak:
    """Return the weak learner with the search that "auto" stands for under this observation."""
    if isinstance(_source_of(observation), Gaussian) and isinstance(weak, ColumnLearner):
        return replace(weak, search="binned")
    return weak


def _source_of(observation: Observation) -> Observation:
    """Return the observation model from which answers come."""
    return observation.of if isinstance(observation, Sampled) else observation


def stored_weak(settings: Mapping[str, Any]) -> Weak:
    """Return the weak learner that the settings of a model describe."""
    try:
        options = dict(settings["weak"])
        return LEARNERS[options.pop("kind")](**options)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"weak: expected a weak learner, the model names none that is known: {error}"
        ) from None


def stored_observation(model: DecisionGraph) -> Observation:
    """Return the observation model with which a model was trained."""
    if model.sigma is not None:
        if np.isnan(model.sigma).any():
            raise ValueError(
                "observation: expected gaussian(sigma) with the standard deviations of these "
                "rows: in training each cell had its own, which the model does not keep"
            )
        first = float(model.sigma[0])
        return Gaussian(first if (model.sigma == first).all() else model.sigma)
    try:
        options = dict(model.settings["observation"])
        return TABLES[options.pop("kind")](**options)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            "observation: expected an observation model, the model names none that is known: "
            f"{error}"
        ) from None


def bind(
    data: TrainingData,
    weak: Weak,
    observation: Observation,
    workers: Workers,
    generator: np.random.Generator,
) -> Observer:
    """Return what finds weak classifiers for these data, and what answers they give.

    `generator` is the source of randomness of those that draw.
    """
    if isinstance(weak, RowLearner):
        is_sampled = isinstance(observation, Sampled)
        oracles = OracleSearch(data, weak, workers, generator, asks=not is_sampled)
        if isinstance(observation, Sampled):
            certain = bind_table(observation.of, oracles)
            return OracleSampler(observation, certain, oracles, generator)
        return bind_table(observation, oracles)
    if isinstance(observation, Sampled):
        of = bind(data, weak, observation.of, workers, generator)
        return SampledObserver(observation, of, generator)
    search: WeakSearch
    if isinstance(weak, Separator):
        search = SeparatorSearch(data, weak, workers)
    elif isinstance(weak, Linear):
        search = LinearSearch(data, weak, workers)
    else:
        assert isinstance(weak, ColumnLearner)
        if isinstance(observation, Gaussian):
            return GaussianObserver(NoisyStumpSearch(data, weak, Noise(data, observation), workers))
        search = StumpSearch(data, weak, workers)
    return bind_table(observation, search)


def bind_table(observation: Observation, search: WeakSearch) -> TableObserver:
    """Return the observer of an observation model of tables."""
    assert isinstance(observation, TableObservation)
    return TableObserver(observation, search)
