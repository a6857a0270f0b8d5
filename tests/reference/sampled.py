"""Probabilities of answers estimated by asking again and again."""

from __future__ import annotations

import math

import numpy as np

from reference.adaboost import class_masses

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15
#: Share by which an estimate of Z must rise to have risen: more than rounding.
RISE = 1e-12


def mix(x):
    """Return the output function of splitmix64 of an integer."""
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % WORD
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def uniform(key, question, row, draw):
    """Return the number in [0, 1) of a counter."""
    x = key
    for part in (question, row, draw):
        x = mix((x + GOLDEN * (part + 1)) % WORD)
    return (x >> 11) / 2**53


def z(q, w, y):
    """Return the sum over exits of 2 sqrt(W+ W-), of all weight."""
    masses = [class_masses(w * part, y, True) for part in (1 - q, q)]
    return sum(2 * math.sqrt(a * b) for a, b in masses) / math.fsum(w)


class Sampling:
    """One fit: a stream of questions, in the order in which they are asked."""

    def __init__(self, seed, stop="first_increase", estimator="map", max_draws=1000):
        self.key = int(np.random.default_rng(seed).integers(WORD, dtype=np.uint64))
        self.stop, self.estimator, self.max_draws = stop, estimator, max_draws
        self.answered = {}
        self.draws = []  # of every question

    def invoke(self, question, q, rows, draw):
        """Return the answers of all rows, 0 or 1."""
        drawn = [uniform(self.key, question, int(row), draw) for row in rows]
        return (np.array(drawn) < q).astype(int)

    def from_counts(self, counts, draws):
        if self.estimator == "map":
            return (1 + counts) / (draws + 2)
        return counts / draws

    def estimate(self, q, w, y, rows):
        """Return the estimated probabilities of exit 0 and of exit 1 of each row."""
        asked = (w.tobytes(), q.tobytes())  # a split that is looked at twice is asked once
        if asked not in self.answered:
            self.answered[asked] = self.sample(len(self.answered), q, w, y, rows)
        actual = self.answered[asked]
        return 1 - actual, actual

    def sample(self, question, q, w, y, rows):
        counts, before, draws = np.zeros(len(q), dtype=int), None, 0
        maximum = self.stop if isinstance(self.stop, int) else self.max_draws
        while draws < maximum:
            counts += self.invoke(question, q, rows, draws)
            draws += 1
            now = z(self.from_counts(counts, draws), w, y)
            if self.stop == "first_increase" and before is not None and now > before * (1 + RISE):
                break
            before = now
        self.draws.append(draws)
        return self.from_counts(counts, draws)
