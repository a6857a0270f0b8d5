"""Probabilistic AdaBoost that weighs asking once more against the next classifier, by the clock."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reference.adaboost import class_masses
from reference.sampled import Sampling, z
from reference.soft import NO_VOTE, Nodes, Setting, answer_table, exit_probabilities


class Classifier(NamedTuple):
    stump: tuple[int, float]
    table: np.ndarray
    q: np.ndarray  # true probability of exit 1
    question: int  # number of its stream
    counts: np.ndarray
    draws: int


class Chain:
    def __init__(self, setting, sampling, clock):
        self.s, self.sampling, self.clock = setting, sampling, clock
        self.questions = 0

    def train(self, w):
        """Train a classifier and ask it once; None if there is none."""
        stump = self.s.search(w)
        if stump is None:
            return None
        above = self.s.X[:, stump[0]] > stump[1]
        table = answer_table(self.s.observation, self.s.rate, above, self.s.y, self.s.D)
        q = exit_probabilities(table, above, self.s.y)[1]
        none = np.zeros(len(w), dtype=int)
        self.questions += 1
        return self.once_more(Classifier(stump, table, q, self.questions - 1, none, 0))

    def once_more(self, h):
        actual = self.sampling.invoke(h.question, h.q, self.s.rows, h.draws)
        return h._replace(counts=h.counts + actual, draws=h.draws + 1)

    def estimate(self, h):
        return self.sampling.from_counts(h.counts, h.draws)

    def z(self, h, w):
        return z(self.estimate(h), w, self.s.y)

    def after(self, h, w):
        """Return the votes of a classifier and the weights after it, from the current estimate."""
        above = self.estimate(h)
        masses = [class_masses(w * q, self.s.y, True) for q in (1 - above, above)]
        votes = self.s.rule(masses, *self.s.rates)
        parts = zip((1 - above, above), votes, strict=True)
        return masses, votes, sum(w * q * np.exp(-v * self.s.y) for q, v in parts)

    def sample(self, h, w):
        """Ask for as long as it pays; returns the classifier and the next one, if that won."""
        while h.draws < self.sampling.max_draws:
            start = self.clock()
            more = self.once_more(h)
            between = self.clock()
            w_next = self.after(h, w)[2]
            following = self.train(w_next)
            if following is None:
                return h, None
            end = self.clock()
            ahead = power(self.z(following, w_next), end - between)
            again = power(ratio(self.z(more, w), self.z(h, w)), between - start)
            if ahead <= again:
                return h, following
            h = more
        return h, None


def ratio(after, before):
    if before > 0:
        return after / before
    return math.inf if after > 0 else 1.0


def power(factor, seconds):
    """Return factor ** (1 / seconds), with its limits for no time."""
    if seconds > 0:
        return factor ** (1 / seconds)
    return 1.0 if factor == 1 else 0.0 if factor < 1 else math.inf


def fit_stopwatch_chain(
    X, y, *, n_estimators, seed, clock, estimator="map", max_draws=30, **options
):
    s = Setting(X, y, **options)
    chain = Chain(s, Sampling(seed, "stopwatch", estimator, max_draws), clock)
    nodes, w, following, draws = Nodes(), s.D.copy(), None, []
    while len(nodes.feature) < n_estimators:
        h = following or chain.train(w)
        if h is None:
            break
        h, following = chain.sample(h, w)
        masses, votes, after = chain.after(h, w)
        if max(map(abs, votes)) < NO_VOTE:
            break
        w = after
        node = nodes.add(h.stump, h.table, votes, 1.0)
        draws.append(h.draws)
        if node:
            nodes.next[node - 1] = [node, node]
        nodes.certificate.append(math.fsum(w))
        if all(min(side) == 0 for side in masses):
            break
    return nodes.graph(s), draws
