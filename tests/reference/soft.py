"""Soft trees and chains: every node is trained on all rows, each of which arrives in part."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reference import gaussian
from reference.adaboost import class_masses, domain_votes, only_bias, symmetric_votes
from reference.keys import decrease, first_largest, rounded
from reference.sort import bin_edges
from reference.split import best_stump

#: Votes below this change no weight.
NO_VOTE = 1e-12


class Graph(NamedTuple):
    feature: np.ndarray
    threshold: np.ndarray
    next: np.ndarray
    vote: np.ndarray
    answer: np.ndarray  # (n_nodes, side, class): probability of exit 1
    certificate: np.ndarray
    cost: np.ndarray  # mean number of nodes met
    bias: float
    sigma: np.ndarray | None = None  # of the rows at hand, (n, d), where answers are gaussian


class Exit(NamedTuple):
    parent: tuple[int, int] | None  # node and exit, None at the entrance
    depth: int
    w: np.ndarray  # weight of each row
    p: np.ndarray  # reach of each row
    H: float  # votes gathered
    stump: tuple[int, float] | None  # its best split, None where it cannot be split


def answer_table(observation, rate, above, y, reach):
    """Return P(exit 1 | side, class); side 1: `above`, class 1: +1; `reach`: D p at the node."""
    if observation in ("exact", "gaussian"):
        return np.array([[0.0, 0.0], [1.0, 1.0]])
    if observation == "flip":
        return np.array([[rate, rate], [1 - rate, 1 - rate]])
    if observation == "half":
        return np.full((2, 2), 0.5)
    share = np.full((2, 2), 0.5)
    for b, label in enumerate((-1, 1)):
        below, above_ = (math.fsum(reach[side & (y == label)]) for side in (~above, above))
        if below + above_ > 0:
            share[:, b] = below / (below + above_), above_ / (below + above_)
    if observation == "uniform":
        return np.array([share[1], share[1]])
    if observation == "adatree2":
        sure = (1 + np.sqrt(share)) / 2
        return np.array([1 - sure[0], sure[1]])
    raise ValueError(observation)


def exit_probabilities(table, above, y):
    """Return the probability of exit 0 and of exit 1 for each row."""
    taken = table[above.astype(int), (y > 0).astype(int)]
    return 1 - taken, taken


class Setting:
    def __init__(
        self,
        X,
        y,
        *,
        observation="exact",
        rate=0.0,
        criterion="kearns_mansour",
        votes="domain",
        smoothing=1e-4,
        learning_rate=1.0,
        sample_weight=None,
        max_bins=None,
        min_weight_fraction=0.0,
        min_samples_leaf=1,
        sampling=None,
        sigma=None,
        learner=None,
    ):
        self.sampling, self.learner = sampling, learner
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        keep = weight > 0
        self.X, self.y = np.asarray(X, dtype=np.float64)[keep], np.asarray(y)[keep]
        self.rows = np.flatnonzero(keep)
        self.D = weight[keep] / math.fsum(weight[keep])
        self.observation, self.rate = observation, rate
        self.rule = {"domain": domain_votes, "symmetric": symmetric_votes}[votes]
        self.rates = smoothing, learning_rate
        self.options = {
            "criterion": criterion,
            "min_weight_fraction": min_weight_fraction,
            "min_samples_leaf": min_samples_leaf,
        }
        self.noisy = None
        if observation == "gaussian":
            self.sigma = np.broadcast_to(np.asarray(sigma, float), np.shape(X))[keep]
            self.noisy = gaussian.NoisyColumns(
                self.X, self.sigma, weight[keep], 256 if max_bins is None else max_bins
            )
        elif max_bins is not None:
            self.options["edges"] = bin_edges(self.X, weight[keep], max_bins)

    def search(self, w, rows=None, mass=None):
        """Return the best stump or None; the exact tree looks at some rows, judged by mass."""
        rows = np.ones(len(w), dtype=bool) if rows is None else rows
        mass = w if mass is None else mass
        if 0 in class_masses(mass, self.y, rows):
            return None
        if self.learner is not None:
            return self.learner.search(self, rows, mass)
        if self.noisy is not None:
            return self.noisy.best_stump(self.y, w, **self.options)
        return best_stump(self.X[rows], self.y[rows], mass[rows], **self.options)

    def split(self, stump, w, p):
        """Return table, votes, exit masses, and (w, p) of either exit: the one split step."""
        above = self.X[:, stump[0]] > stump[1]
        table = answer_table(self.observation, self.rate, above, self.y, self.D * p)
        both = exit_probabilities(table, above, self.y)
        if self.noisy is not None:
            j, threshold = stump
            both = gaussian.exit_probabilities(self.X[:, j], threshold, self.sigma[:, j])
        if self.sampling is not None:
            both = self.sampling.estimate(both[1], w, self.y, self.rows)
        masses = [class_masses(w * q, self.y, True) for q in both]
        votes = self.rule(masses, *self.rates)
        after = [(w * q * np.exp(-v * self.y), p * q) for q, v in zip(both, votes, strict=True)]
        return table, votes, masses, after


class Nodes:
    def __init__(self):
        self.feature, self.threshold, self.next, self.vote, self.answer = [], [], [], [], []
        self.certificate, self.cost = [1.0], [0.0]

    def add(self, stump, table, votes, reach):
        columns = (self.feature, self.threshold, self.next, self.vote, self.answer)
        row = (*stump, [-1, -1], list(votes), table)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
        self.cost.append(self.cost[-1] + reach)
        return len(self.feature) - 1

    def graph(self, setting):
        """Return the arrays; without nodes, the bias that is then the model."""
        bias = 0.0
        if not self.feature:
            bias, self.certificate[0] = only_bias(setting.D, setting.y, *setting.rates)
        return Graph(
            np.array(self.feature, dtype=int),
            np.array(self.threshold),
            np.array(self.next, dtype=int).reshape(-1, 2),
            np.array(self.vote).reshape(-1, 2),
            np.array(self.answer).reshape(-1, 2, 2),
            np.array(self.certificate),
            np.array(self.cost),
            bias,
        )


def exit_key(setting, growth, exit_):
    if growth == "largest_bound":
        return rounded(math.fsum(exit_.w))
    if growth == "largest_error":
        answer = 1 if exit_.H > 0 else -1
        return rounded(math.fsum((setting.D * exit_.p)[setting.y != answer]))
    if growth == "look_ahead":
        *_, after = setting.split(exit_.stump, exit_.w, exit_.p)
        bound = math.fsum(exit_.w)
        return decrease(bound, bound - sum(math.fsum(w) for w, _ in after))
    assert growth == "breadth_first"
    return 0.0  # all equal: the one created first


def fit_soft_tree(
    X,
    y,
    *,
    max_nodes=None,
    growth="largest_bound",
    target_certificate=0.0,
    max_depth=None,
    **options,
):
    """Grow a tree whose nodes answer as the observation model says."""
    s = Setting(X, y, **options)
    exact = s.observation == "exact" and s.sampling is None
    max_depth = math.inf if max_depth is None else max_depth
    max_nodes = math.inf if max_nodes is None else max_nodes

    def make_exit(parent, depth, w, p, H):
        rows, mass = (p > 0, s.D * p) if exact else (None, None)
        stump = s.search(w, rows, mass) if depth < max_depth else None
        return Exit(parent, depth, w, p, H, stump)

    tree = Nodes()
    open_exits = [make_exit(None, 0, s.D.copy(), np.ones(len(s.y)), 0.0)]
    while len(tree.feature) < max_nodes and tree.certificate[-1] > target_certificate:
        able = [i for i, exit_ in enumerate(open_exits) if exit_.stump is not None]
        if not able:
            break
        keys = [exit_key(s, growth, open_exits[i]) for i in able]
        chosen = open_exits.pop(able[first_largest(keys)])
        table, votes, _, after = s.split(chosen.stump, chosen.w, chosen.p)
        node = tree.add(chosen.stump, table, votes, math.fsum(s.D * chosen.p))
        if chosen.parent is not None:
            tree.next[chosen.parent[0]][chosen.parent[1]] = node
        for a, (w, p) in enumerate(after):
            open_exits.append(make_exit((node, a), chosen.depth + 1, w, p, chosen.H + votes[a]))
        tree.certificate.append(sum(math.fsum(exit_.w) for exit_ in open_exits))
    return tree.graph(s)


def fit_soft_chain(X, y, *, n_estimators, **options):
    """Probabilistic AdaBoost: both exits of every node lead to the next."""
    s = Setting(X, y, **options)
    w, everywhere = s.D.copy(), np.ones(len(s.y))
    chain = Nodes()
    while len(chain.feature) < n_estimators:
        stump = s.search(w)
        if stump is None:
            break
        table, votes, masses, after = s.split(stump, w, everywhere)
        if max(map(abs, votes)) < NO_VOTE:
            break
        w = after[0][0] + after[1][0]
        node = chain.add(stump, table, votes, 1.0)
        if node:
            chain.next[node - 1] = [node, node]
        chain.certificate.append(math.fsum(w))
        if all(min(side) == 0 for side in masses) or chain.certificate[-1] == 0:
            break
    return chain.graph(s)
