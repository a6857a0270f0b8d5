"""The nodes of a graph that is being grown, and the model they become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pboost.data.training import TrainingData
from pboost.growth.step import StepRecord, constant_vote, cost_after
from pboost.models.graph import OUT, DecisionGraph, TrainingRecord
from pboost.observation.answers import Observer
from pboost.values import FloatArray
from pboost.weak.search import Cut
from pboost.weak.votes import VoteRule


class NodeList:
    """Nodes in the order in which they were opened.

    Attributes
    ----------
    votes : list of list of float
        Votes of either exit of each node.
    certificate : list of float
        Certificate before the first and after each node.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._cuts: list[Cut] = []
        self._next: list[list[int]] = []
        self._tables: list[FloatArray | None] = []
        self._reach: list[float] = []
        self._stages: list[int] = []
        self._edges: tuple[tuple[int, int], ...] = ()  # to the node opened last
        self.votes: list[list[float]] = []
        self.certificate = [1.0]

    def __len__(self) -> int:
        return len(self._cuts)

    def open(
        self,
        edges: Iterable[tuple[int, int]],
        cut: Cut,
        votes: Sequence[float],
        table: FloatArray | None,
        reach: float,
        certificate: float,
    ) -> int:
        """Add a node to which the exits `edges`, pairs (node, exit), lead; returns its index.

        `reach` is the share of the training weight that arrives, `certificate` that of the graph
        with the node.
        """
        node = len(self._cuts)
        self._edges = tuple(edges)
        for before, exit_ in self._edges:
            self._next[before][exit_] = node
        self._cuts.append(cut)
        self._next.append([OUT, OUT])
        self._tables.append(table)
        self._reach.append(reach)
        self.votes.append(list(votes))
        self.certificate.append(certificate)
        self._stages.append(len(self._cuts))
        return node

    def drop_votes(self, nodes: Iterable[int]) -> None:
        """Set the votes of some nodes to 0; what they were with fewer nodes is then lost."""
        nodes = list(nodes)
        for node in nodes:
            self.votes[node][:] = 0.0, 0.0
        while self._stages and self._stages[-1] > min(nodes):
            self._stages.pop()
        self._stages.append(len(self._cuts))

    def newest(self, bound: float) -> StepRecord:
        """Return the record of the node opened last, at an exit of this bound."""
        cut, (below, above) = self._cuts[-1], self.votes[-1]
        threshold = float(self._observer.search.thresholds([cut])[0])
        return StepRecord(
            len(self._cuts) - 1, cut.feature, threshold, (below, above), bound,
            self.certificate[-1], self._edges,
        )  # fmt: skip

    def model(
        self,
        data: TrainingData,
        rule: VoteRule,
        settings: Mapping[str, Any],
        stop_reason: str,
    ) -> DecisionGraph:
        """Return the graph grown so far."""
        n = len(self._cuts)
        bias = 0.0
        if not n:
            bias, self.certificate[0] = constant_vote(data, rule)
        cost = cost_after(np.array(self._reach, dtype=np.float64))
        return DecisionGraph(
            next=np.array(self._next, dtype=np.int32).reshape(n, 2),
            vote=np.array(self.votes).reshape(n, 2),
            labels=data.labels,
            n_features=data.n_features,
            feature_names=data.names,
            bias=bias,
            settings=settings,
            record=TrainingRecord(
                np.array(self.certificate),
                cost,
                stop_reason,
                None if len(self._stages) == n else np.array(self._stages),
            ),
            **self._observer.search.model_columns(self._cuts),
            **self._observer.model_columns(self._tables),
        )
