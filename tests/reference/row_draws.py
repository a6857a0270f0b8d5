"""Rows that are drawn by a hash of their contents, with Python integers."""

from __future__ import annotations

import struct

WORD = 2**64


def mix(x):
    """Return the output of splitmix64 for a state."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def part_of(feature, code):
    """Return the hash of a bin of a feature."""
    return mix(0x9E3779B97F4A7C15 * (code + 1 + 256 * feature) % WORD)


def hash_of(codes, codes_of_zero, target):
    """Return the hash of a row with these codes, given the codes of the value 0."""
    total = 0
    for j, (code, zero) in enumerate(zip(codes, codes_of_zero, strict=True)):
        total += part_of(j, code) - part_of(j, zero)
    if target is not None:
        (bits,) = struct.unpack("<Q", struct.pack("<d", target))
        total += mix(0 if target == 0 else bits)
    return mix(total % WORD)


def is_drawn(row_hash, number, share, seed):
    """Return whether a row is in a draw."""
    key = mix((mix(seed) + 0x9E3779B97F4A7C15 * (number + 1)) % WORD)
    return mix(row_hash ^ key) < share * 2.0**64
