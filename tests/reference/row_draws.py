"""Rows that are drawn by a hash of their contents, with Python integers."""

from __future__ import annotations

import math
import struct

from reference.rounds import GOLDEN, mix

WORD = 2**64


def bits(value):
    """Return the bits of a number."""
    return struct.unpack("<Q", struct.pack("<d", 0.0 if value == 0 else value))[0]


def hash_of(lowest, lowest_of_zero, target):
    """Return the hash of a row.

    `lowest` has the smallest value of the row's bin in each feature (NaN if it is missing), and
    `lowest_of_zero` that of the bin of 0.
    """
    total = 0
    for j, pair in enumerate(zip(lowest, lowest_of_zero, strict=True)):
        own, zero = (mix((bits(v) + GOLDEN * (j + 1)) % WORD) for v in pair)
        total += own - zero
    total += mix(bits(math.frexp(target)[0]))
    return mix(total % WORD)


def is_drawn(row_hash, number, share, seed):
    """Return whether a row is in a draw."""
    key = mix((mix(seed) + GOLDEN * (number + 1)) % WORD)
    return mix(row_hash ^ key) < share * 2.0**64
