"""Observation models define the probabilities that a row takes each exit of a node.

Pass an observation model as ``observation=`` to a fit function.
"""

from __future__ import annotations

from pboost.observation.answers import KINDS as KINDS
from pboost.observation.answers import (
    AdaTree2,
    Exact,
    Flip,
    Half,
    Observation,
    TableObservation,
    Uniform,
    adatree2,
    exact,
    flip,
    half,
    uniform,
)
from pboost.observation.gaussian_search import Gaussian, gaussian
from pboost.observation.sampling import Sampled, sampled

__all__ = [
    "AdaTree2",
    "Exact",
    "Flip",
    "Gaussian",
    "Half",
    "Observation",
    "Sampled",
    "TableObservation",
    "Uniform",
    "adatree2",
    "exact",
    "flip",
    "gaussian",
    "half",
    "sampled",
    "uniform",
]
