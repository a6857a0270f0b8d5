"""Weak learner and observation model, bound to training data.

Here it is decided which of them go together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pboost.answers import Observer, TableObserver
from pboost.data import TrainingData
from pboost.noisy_search import GaussianObserver, Noise, NoisyStumpSearch
from pboost.observation import Gaussian, Observation, TableObservation, check_observation
from pboost.stump_search import StumpSearch
from pboost.threads import Workers
from pboost.weak import ColumnLearner, Weak, check_weak


def check_pair(weak: Any, observation: Any) -> None:
    """Raise TypeError or ValueError if these are not a pair that can be trained together."""
    check_weak(weak)
    check_observation(observation)
    if isinstance(observation, Gaussian):
        if not isinstance(weak, ColumnLearner):
            raise ValueError("observation: gaussian answers need a weak learner with thresholds")
        if weak.search == "exact":
            raise ValueError(
                'weak: search="exact" cannot be had with gaussian answers: expected masses are '
                'computed at the edges of bins; use search="auto" or "binned"'
            )


def as_searched(weak: Weak, observation: Observation) -> Weak:
    """Return the weak learner with the search that "auto" stands for under this observation."""
    if isinstance(observation, Gaussian) and isinstance(weak, ColumnLearner):
        return replace(weak, search="binned")
    return weak


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
    assert isinstance(weak, ColumnLearner)
    if isinstance(observation, Gaussian):
        return GaussianObserver(NoisyStumpSearch(data, weak, Noise(data, observation), workers))
    assert isinstance(observation, TableObservation)
    return TableObserver(observation, StumpSearch(data, weak, workers))
