"""Weak learner and observation model, bound to training data.

Here it is decided which of them go together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.answers import Observer, TableObserver
from pboost.data import TrainingData
from pboost.observation import Observation, TableObservation, check_observation
from pboost.stump_search import StumpSearch
from pboost.threads import Workers
from pboost.weak import ColumnLearner, Weak, check_weak


def check_pair(weak: Any, observation: Any) -> None:
    """Raise TypeError or ValueError if these are not a pair that can be trained together."""
    check_weak(weak)
    check_observation(observation)


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
    assert isinstance(observation, TableObservation)
    return TableObserver(observation, StumpSearch(data, weak, workers))
