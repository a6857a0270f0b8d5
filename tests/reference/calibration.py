"""Platt's map and the isotonic one, row by row."""

from __future__ import annotations

import math


def platt(values, is_one, weights):
    """Return slope and intercept by the pseudocode of Lin, Lin and Weng (2007), with weights."""
    ones = sum(w for w, item in zip(weights, is_one, strict=True) if item)
    others = sum(weights) - ones
    high, low = (ones + 1) / (ones + 2), 1 / (others + 2)
    rows = [
        (f, high if item else low, w) for f, item, w in zip(values, is_one, weights, strict=True)
    ]
    a, b = 0.0, math.log((ones + 1) / (others + 1))

    def loss(a, b):
        return sum(
            w * (max(a * f + b, 0) + math.log1p(math.exp(-abs(a * f + b))) - t * (a * f + b))
            for f, t, w in rows
        )

    for _ in range(200):
        g1 = g2 = h12 = 0.0
        h11 = h22 = 1e-12
        for f, t, w in rows:
            p = 1 / (1 + math.exp(-(a * f + b)))
            d1, d2 = w * (p - t), w * p * (1 - p)
            g1, g2 = g1 + f * d1, g2 + d1
            h11, h22, h12 = h11 + f * f * d2, h22 + d2, h12 + f * d2
        det = h11 * h22 - h12 * h12
        da, db = -(h22 * g1 - h12 * g2) / det, -(h11 * g2 - h12 * g1) / det
        step = 1.0
        while step > 1e-12 and not loss(a + step * da, b + step * db) <= loss(a, b):
            step /= 2
        a, b = a + step * da, b + step * db
        if abs(step * da) + abs(step * db) < 1e-13:
            break
    return a, b


def isotonic(values, is_one, weights):
    """Return the different values, sorted, and their shares, by pooling adjacent violators."""
    knots = sorted(set(values))
    blocks = []  # share, weight, number of knots
    for knot in knots:
        here = [(w, item) for f, item, w in zip(values, is_one, weights, strict=True) if f == knot]
        weight = sum(w for w, _ in here)
        blocks.append((sum(w for w, item in here if item) / weight, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (p, v, k), (q, w, m) = blocks[-2:]
            blocks[-2:] = [((p * v + q * w) / (v + w), v + w, k + m)]
    return knots, [share for share, _, n in blocks for _ in range(n)]


def between(x, knots, shares):
    """Return the share at a value, on a straight line between knots."""
    if x <= knots[0]:
        return shares[0]
    for a, b, p, q in zip(knots, knots[1:], shares, shares[1:], strict=False):
        if x <= b:
            return p + (q - p) * (x - a) / (b - a)
    return shares[-1]
