"""The split step: votes of the exits of a weak classifier, and what they do to the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pboost._core.votes import half_log_odds
from pboost.values import FloatArray, check_choice, check_number

#: Kinds of votes.
VOTES = ("domain", "symmetric")
#: Share of the mass by which two classes may differ and count as equal.
TIE = 1e-12
#: Votes below this change no weight.
NO_VOTE = 1e-12
#: For each exit, the mass of class -1 and that of class +1.
Masses = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True, eq=False)
class SplitStep:
    """Votes of the two exits of a weak classifier, and what they do to the weights.

    Attributes
    ----------
    votes : tuple of float
        Votes of exit 0 and exit 1.
    shrink : float
        Sum of the weights after the step over their sum before it; Z of AdaBoost.
    perfect : bool
        Whether each exit holds one class only.
    factors : ndarray of float64, shape (2, 2)
        What each weight is multiplied by, (exit, class), for a sum that stays.
    """

    votes: tuple[float, float]
    shrink: float
    perfect: bool
    factors: FloatArray


@dataclass(frozen=True, slots=True)
class VoteRule:
    """How masses become votes.

    Attributes
    ----------
    kind : {"domain", "symmetric"}
        A vote for each exit by its own masses, or one vote with the sign of each exit's majority.
    smoothing : float
        Added to each mass, as a share of the mass that is split.
    learning_rate : float
        Factor of every vote.
    """

    kind: str
    smoothing: float
    learning_rate: float

    def step(self, masses: Masses) -> SplitStep:
        """Return the split step for the class masses of each exit; Schapire & Singer (1999), 4."""
        (n0, p0), (n1, p1) = masses
        total = n0 + p0 + n1 + p1
        delta = self.smoothing * total
        if self.kind == "domain":
            below, above = half_log_odds(p0, n0, delta), half_log_odds(p1, n1, delta)
        else:
            wrong = min(n0, p0) + min(n1, p1)
            size = half_log_odds(total - wrong, wrong, delta)
            tie = TIE * total
            below, above = (size if p - n > tie else -size for n, p in masses)
        return step_of(masses, (self.learning_rate * below, self.learning_rate * above))


def step_of(masses: Masses, votes: tuple[float, float]) -> SplitStep:
    """Return what votes that are given do to the class masses of each exit."""
    (n0, p0), (n1, p1) = masses
    (n_below, p_below), (n_above, p_above) = factors = [(math.exp(v), math.exp(-v)) for v in votes]
    after = n0 * n_below + p0 * p_below + n1 * n_above + p1 * p_above
    perfect = not min(n0, p0) and not min(n1, p1)
    total = n0 + p0 + n1 + p1
    shrink = after / total if total else 1.0
    return SplitStep(votes, shrink, perfect, np.array(factors) / shrink)


def vote_rule(kind: Any, smoothing: Any, learning_rate: Any) -> VoteRule:
    """Return a `VoteRule` from a builder's options, checked."""
    return VoteRule(
        check_choice("votes", kind, VOTES),
        check_number("smoothing", smoothing, least=0.0, most=1.0),
        check_number("learning_rate", learning_rate, least=0.0, most=1.0, open_least=True),
    )
