"""Errors and bounds of votes, summed term by term."""

from __future__ import annotations

import math
from fractions import Fraction


def crowd_error(T, gamma):
    """Return the binomial tail in exact arithmetic; gamma is a Fraction."""
    right, wrong, n = Fraction(1, 2) + gamma, Fraction(1, 2) - gamma, 2 * T + 1
    return sum(math.comb(n, i) * right**i * wrong ** (n - i) for i in range(T + 1))


def margin_bound(share, m, theta, delta, N, size=None, vc=None):
    """Return the bound for one N."""
    events = Fraction(N * (N + 1) ** 2)
    if size is not None:
        spread = math.sqrt((math.log(events) + N * math.log(size) - math.log(delta)) / (2 * m))
    else:
        growth = N * vc * math.log(math.e * m / vc)
        spread = math.sqrt(32 / m * (math.log(8 * events) + growth - math.log(delta)))
    return share + 2 * math.exp(-N * theta**2 / 8) + spread
