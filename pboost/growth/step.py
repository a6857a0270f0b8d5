"""The split step, and what every builder shares around it.

A split step (theory page, section 1) takes the class masses that a weak classifier sends to each
of its exits and gives the exits their votes; the votes reweight the rows, and the sum of the new
weights over all open exits is the certificate. Votes are computed by one kernel function, which
the compiled tree grower uses too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core.votes import half_log_odds
from pboost.data.training import TrainingData
from pboost.values import FloatArray, check_number
from pboost.weak.votes import VoteRule

#: Fixed-point images of an exit's weights add up to less than 2 to this power.
FIXED_BITS = 60

#: Orders in which the open exits of a tree are split.
GROWTHS = ("largest-bound", "largest-error", "look-ahead", "breadth-first")


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One opened node, as passed to ``callback(step, record)``.

    Attributes
    ----------
    node : int
        Index of the node.
    feature : int
        Column that it reads; the direction, counted from 0, where weak classifiers are affine.
    threshold : float
        In the units of what it compares.
    votes : tuple of float
        Votes of its two exits.
    bound : float
        Part of the certificate that the exit carried which was split.
    certificate : float
        Certificate after the step.
    parents : tuple of (int, int)
        The exits (node, exit) that lead to it; none for the root.
    """

    node: int
    feature: int
    threshold: float
    votes: tuple[float, float]
    bound: float
    certificate: float
    parents: tuple[tuple[int, int], ...] = ()


Callback = Callable[[int, StepRecord], Any]


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """Which exits of a tree are split, and how many.

    Attributes
    ----------
    nodes : int
        Greatest number of nodes.
    depth : int
        Greatest number of nodes on a path.
    growth : str
        One of `GROWTHS`.
    target : float
        Certificate at which growth ends; negative where there is no target.
    """

    nodes: int
    depth: int
    growth: str
    target: float


def check_target(target: Any) -> float:
    """Return a target certificate, checked; -1 for None."""
    if target is None:
        return -1.0
    return check_number(
        "target_certificate", target, least=0.0, most=1.0, open_least=True, open_most=True
    )


def constant_vote(data: TrainingData, rule: VoteRule) -> tuple[float, float]:
    """Return the vote of a model without nodes, and its certificate."""
    negative, positive = data.class_masses()
    total = negative + positive
    vote = rule.learning_rate * half_log_odds(positive, negative, rule.smoothing * total)
    return vote, (negative * math.exp(vote) + positive * math.exp(-vote)) / total


def cost_after(reach: NDArray[np.float64]) -> FloatArray:
    """Return the mean number of nodes evaluated before and after each node was opened."""
    return np.concatenate([[0.0], np.cumsum(reach)])


def fixed_scale(total: float) -> float:
    """Return the power of two that brings a sum of weights just below 2 to `FIXED_BITS`."""
    return math.ldexp(1.0, FIXED_BITS - math.frexp(total)[1])
