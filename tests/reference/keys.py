"""The keys by which the open exit to be split next is chosen, in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction


def rounded(key):
    """Return the key to 41 significant bits: the nearest, of two the one farther from 0."""
    if key == 0:
        return key
    mantissa, exponent = math.frexp(key)
    full = math.floor(abs(Fraction(mantissa)) * 2**41 + Fraction(1, 2))
    return math.ldexp(math.copysign(full, mantissa), exponent - 41)


def decrease(before, lowered):
    """Return the key of a split that makes `before` less by `lowered`.

    As a share of `before` it is rounded to a multiple of 2**-40, of two to the even one.
    """
    share = lowered / before if before > 0 else 0.0
    return rounded(before * (round(Fraction(share) * 2**40) / 2**40))


def first_largest(keys):
    """Return the position of the largest key, of equal ones the first."""
    return keys.index(max(keys))
