"""Growth of a chain: all exits of a node lead to the next."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from pboost.growth.graph_builder import NodeList
from pboost.growth.step import Callback
from pboost.models.graph import ABOVE, BELOW, CERTAIN, DecisionGraph
from pboost.observation.answers import Observer, Tables, side_masses
from pboost.values import FloatArray
from pboost.weak.search import Cut, Weights
from pboost.weak.votes import NO_VOTE, Masses, SplitStep, VoteRule, step_of

#: Why a chain stops that has a node without error.
PERFECT = "the certificate is 0 but for the clipping and smoothing of votes"
#: Writes reweighted rows: (coefficients by exit and class, source, target).
Send: TypeAlias = Callable[[FloatArray, FloatArray, Weights], None]


class Chain:
    """The nodes so far, and the weights of the rows where they end."""

    def __init__(self, observer: Observer, weights: Weights, rule: VoteRule) -> None:
        self.observer, self.search = observer, observer.search
        self.weights, self.rule = weights, rule
        # Every row reaches every node: its reach mass is its starting weight.
        self.start = weights.real.copy() if observer.needs_class else None
        self.nodes = NodeList(observer)
        self.perfect = False  # whether each exit of the last node holds one class only

    def grow(self, rounds: int, callback: Callback | None) -> str:
        """Add nodes until there are `rounds`; returns why it stopped."""
        for node in range(len(self.nodes), rounds):
            if self.perfect:
                return PERFECT
            cut = self.observer.find(self.weights)
            if cut is None:
                return "no split is left"
            step, table, reweight = self.split(cut)
            if max(map(abs, step.votes)) < NO_VOTE:
                return "no split is left that changes the weights"
            bound = self.nodes.certificate[-1]
            self.open(cut, step, table)
            if callback is not None and callback(node + 1, self.nodes.newest(bound)):
                return "stopped by the callback"
            if node + 1 < rounds and not self.perfect:
                reweight(step.factors(), self.weights.real, self.weights)
        return PERFECT if self.perfect else "all rounds are done"

    def open(self, cut: Cut, step: SplitStep, table: FloatArray | None) -> None:
        """Add a node."""
        last = len(self.nodes) - 1
        joined = [(last, BELOW), (last, ABOVE)] if last >= 0 else []
        certificate = self.nodes.certificate[-1] * step.shrink
        self.nodes.open(joined, cut, step.votes, table, 1.0, certificate)
        self.perfect = step.perfect or certificate == 0.0

    def replay(self, model: DecisionGraph, tables: Tables) -> None:
        """Add the nodes of a chain as they are."""
        for node, votes in enumerate(model.vote.tolist()):
            feature, threshold = int(model.feature[node]), float(model.threshold[node])
            cut = self.search.cut_at(feature, threshold, self.weights)
            masses: Masses = cut.masses
            send: Send = partial(self.search.reweight, cut)
            if not self.observer.is_exact:
                answers = self.observer.given(cut, self.weights, tables[node])
                masses, send = answers.masses.tolist(), answers.send
            step = step_of(masses, tuple(votes))
            self.open(cut, step, tables[node])
            send(step.factors(), self.weights.real, self.weights)

    def split(self, cut: Cut) -> tuple[SplitStep, FloatArray | None, Send]:
        """Return the split step at a cut, its table of answers, and what reweights the rows."""
        if self.observer.is_exact:
            return self.rule.step(cut.masses), CERTAIN, partial(self.search.reweight, cut)
        answers = self.observer.ask(cut, self.weights, partial(self.reach, cut))
        return self.rule.step(answers.masses.tolist()), answers.table, answers.send

    def reach(self, cut: Cut) -> FloatArray:
        """Return the reach masses (side, class) at the end of the chain."""
        if self.start is None:
            return side_masses(cut, self.weights)
        scratch = Weights(
            np.empty_like(self.start), np.empty_like(self.weights.fixed), self.weights.scale, (0, 0)
        )
        return self.search.side_masses(cut, self.start, scratch)
