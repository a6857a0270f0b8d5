"""Digests of rows: the least hashes of different rows, and how often these occur."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import comb

from reference.sampled_bins import content_hash

MOST = 128


def row_hash(row):
    """Return 48 bits: the upper 16 of the first two columns, then the upper 32 of all."""
    return (content_hash(row[:2]) >> 48 << 32) | content_hash(row) >> 32


def digest(X):
    """Return hashes and counts of the different rows of least hash, in their order."""
    counts = Counter(row_hash(row) for row in X)
    return [(hashed, min(counts[hashed], 65535)) for hashed in sorted(counts)[:MOST]]


def numbers(digest):
    """Return a digest as models keep it."""
    return [hashed << 16 | count for hashed, count in digest]


def merged(*digests):
    """Return the digest of the rows of any, each as often as where it occurs most often."""
    maximum = Counter()
    for item in digests:
        maximum |= Counter(dict(item))
    return sorted(maximum.items())[:MOST]


def seen_among(digest, X):
    """Return how many rows are found, how many of how many comparable, and the same of the digest.

    Of its own rows those are found that others equal.
    """
    known, last = dict(digest), digest[-1][0] if len(digest) == MOST else 2**48
    hashed = [item for item in map(row_hash, X) if item <= last]
    rows = sum(known.values())
    once = sum(count == 1 for count in known.values())
    return sum(item in known for item in hashed), len(hashed), rows - once, rows


def tail(marked, drawn, marked_left, left):
    """Return the chance of so many marked ones or more among those drawn, by counting."""
    every, of_all = marked + marked_left, comb(drawn + left, drawn)
    ways = (
        comb(every, k) * comb(drawn + left - every, drawn - k)
        for k in range(marked, min(drawn, every) + 1)
    )
    return float(Fraction(sum(ways), of_all))
