"""Rows that are drawn by a hash of their contents, with Python integers."""

from __future__ import annotations

import math
import struct

WORD = 2**64


def mix(x):
    """Return the output of splitmix64 for a state."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


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
        own, zero = (mix((bits(v) + 0x9E3779B97F4A7C15 * (j + 1)) % WORD) for v in pair)
        total += own - zero
    total += mix(bits(math.frexp(target)[0]))
    return mix(total % WORD)


def is_drawn(row_hash, number, share, seed):
    """Return whether a row is in a draw."""
    key = mix((mix(seed) + 0x9E3779B97F4A7C15 * (number + 1)) % WORD)
    return mix(row_hash ^ key) < share * 2.0**64
