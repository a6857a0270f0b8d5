"""Votes, for Python: of one exit, and the split step, which makes votes of masses and reweights.

Kernels vote with the same function, see `_vote.pxd`.
"""
from libc.math cimport exp

import numpy as np

from pboost._core cimport _vote

#: Kinds of votes.
VOTES = ("domain", "symmetric")
#: Share of the mass by which two classes may differ and count as equal.
TIE = 1e-12
#: Votes below this change no weight.
NO_VOTE = 1e-12
#: The largest vote, before the learning rate.
VOTE_LIMIT = _vote.VOTE_LIMIT


def half_log_odds(double positive, double negative, double smoothing):
    """Half log odds of two masses, each raised by `smoothing`, clipped to +-0.5 ln(2**52)."""
    return _vote.half_log_odds(positive, negative, smoothing)


cdef class SplitStep:
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

    cdef readonly tuple votes
    cdef readonly double shrink
    cdef readonly bint perfect
    cdef readonly object factors


cdef class VoteRule:
    """How masses become votes.

    Parameters
    ----------
    kind : {"domain", "symmetric"}
        A vote for each exit by its own masses, or one vote with the sign of each exit's majority.
    smoothing : float
        Added to each mass, as a share of the mass that is split.
    learning_rate : float
        Factor of every vote.
    """

    cdef readonly str kind
    cdef readonly double smoothing
    cdef readonly double learning_rate

    def __init__(self, str kind, double smoothing, double learning_rate):
        self.kind, self.smoothing, self.learning_rate = kind, smoothing, learning_rate

    def step(self, masses):
        """Return the split step for the class masses of each exit; Schapire & Singer (1999), 4."""
        cdef double n0, p0, n1, p1, total, delta, below, above, wrong, size, tie = TIE
        (n0, p0), (n1, p1) = masses
        total = n0 + p0 + n1 + p1
        delta = self.smoothing * total
        if self.kind == "domain":
            below = _vote.half_log_odds(p0, n0, delta)
            above = _vote.half_log_odds(p1, n1, delta)
        else:
            wrong = min(n0, p0) + min(n1, p1)
            size = _vote.half_log_odds(total - wrong, wrong, delta)
            tie *= total
            below = size if p0 - n0 > tie else -size
            above = size if p1 - n1 > tie else -size
        return _step(n0, p0, n1, p1, self.learning_rate * below, self.learning_rate * above)


def step_of(masses, votes):
    """Return what votes that are given do to the class masses of each exit."""
    cdef double n0, p0, n1, p1, below, above
    (n0, p0), (n1, p1) = masses
    below, above = votes
    return _step(n0, p0, n1, p1, below, above)


cdef SplitStep _step(double n0, double p0, double n1, double p1, double below, double above):
    cdef double by[2][2]
    cdef double after, total = n0 + p0 + n1 + p1
    cdef double[:, ::1] factors
    cdef SplitStep step = SplitStep.__new__(SplitStep)
    cdef int i, k
    by[0][0], by[0][1], by[1][0], by[1][1] = exp(below), exp(-below), exp(above), exp(-above)
    after = n0 * by[0][0] + p0 * by[0][1] + n1 * by[1][0] + p1 * by[1][1]
    step.votes = below, above
    step.shrink = after / total if total != 0.0 else 1.0
    step.perfect = min(n0, p0) == 0.0 and min(n1, p1) == 0.0
    step.factors = factors = np.empty((2, 2))
    for i in range(2):
        for k in range(2):
            factors[i, k] = by[i][k] / step.shrink
    return step
