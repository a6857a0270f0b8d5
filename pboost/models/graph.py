"""Decision graphs: rooted directed acyclic graphs of weak classifiers.

Each exit of a weak classifier has a vote, and leads to another node or out of the graph (theory
page, section 1). In a chain, both exits of each node lead to the next node, as in AdaBoost. In a
tree, no two exits lead to the same node, as in a boosted decision tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pboost._core import walk
from pboost.data.node_inputs.inputs import Subsets, indicators_of
from pboost.data.node_inputs.sums import Projections, Separators
from pboost.models.base import CostUnit, Route
from pboost.models.evaluate.exits import Exits, Left, NodeExits, proven_exits
from pboost.models.evaluate.graph_walk import (
    MOST_STEPS,
    asks_functions,
    exits,
    expected_score,
    hard_exits,
    passages,
    sampled_score,
    so_far,
)
from pboost.models.evaluate.kernel_walk import WIDE, at_nodes, leave_graph, of_nodes, walk_rows
from pboost.models.evaluate.match_input import (
    finite_columns,
    input_values,
    match_sigma,
    spread_of,
)
from pboost.models.evaluate.partial_evaluation import BlockEvaluator, graph_inquiry
from pboost.models.graph_arrays import (
    ABOVE,
    BELOW,
    OUT,
    Graph,
    joints_of,
    largest_score,
    rest_of_nodes,
)
from pboost.models.schema import once
from pboost.models.shares import as_shares, falls, many_probabilities, two_probabilities
from pboost.models.text import input_names, of_missing, question, signed, summary
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray, TableLike, check_integer

#: Notes for certificates that do not bound the error of `predict`.
OF_ASSUMED_ANSWERS = "bounds the error under the observation model, not the error of predict"
OF_BOTH_WAYS = "bounds the error if missing values take random exits, not the error of predict"
ESTIMATED = "is an estimate under random answers, not a bound on the error of predict"
#: Smallest number of rows for which `predict` uses early exits.
MANY_ROWS = 64
#: The temperature of a chain is 1 plus a factor times max(L - start, 0), where L is the negative
#: logarithm of the certificate: factor and start for two and for more classes. With more classes,
#: the softmax already halves the log odds.
COOLING = (0.5, 0.0), (0.3, 1.0)
#: Arrays of every graph, with one entry per node.
COLUMNS = ("feature", "threshold", "next", "vote")


class DecisionGraph(Graph):
    """A classifier that sends each row along a path of nodes and adds the votes on the path.

    Nodes are in the order in which they were added, parents before children; node 0 is the root.
    Rows with ``x[feature[i]] <= threshold[i]`` take exit 0 of node ``i``, the others exit 1. The
    decision value of a row is `bias` plus the votes of the exits on its path; a positive value
    predicts ``classes[1]``.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Index of the feature that the node compares, or of the input if `inputs` is not None.
    threshold : ndarray of float64, shape (n_nodes,)
        Threshold of the feature or input.
    next : ndarray of int32, shape (n_nodes, 2)
        Node to which each exit leads; -1 leads out of the graph.
    vote : ndarray of float64, shape (n_nodes, 2), or (n_nodes, 2, J) with J > 1
        Signed vote of each exit, in units of half log odds; for multiclass graphs, one vote for
        each of the J decision values.
    classes : ndarray, shape (2,) or (J,)
        The sorted class labels. In the binary case the first is class -1, the second class +1.
    n_features : int
        Number of training features.
    feature_names : tuple of str or None
        Names of the training features, or None.
    bias : float, or ndarray of float64, shape (J,)
        Initial decision value of every row; 0 unless no split was possible.
    settings : mapping
        The options of the fit.
    record : TrainingRecord
        Certificate and cost after each node, and why growth stopped.
    answer : ndarray of float64, shape (n_nodes, 2, 2), or (n_nodes, 2, J), or None
        Assumed probability that a row takes exit 1, for values up to the threshold (index 0) or
        above it (index 1), and for each class. None if the observation model is exact.
    inputs : Inputs or None
        Computes the values that nodes compare, for example sums of features. Its methods are
        ``values(X)`` and ``names(feature_names)``. None if nodes compare features.
    sigma : ndarray of float64, shape (n_features,), or None
        Assumed standard deviation of the measurement error of each feature. All are NaN if
        training used a separate value for each row and feature. None if the observation model is
        not gaussian.
    missing : ndarray of float64, shape (n_nodes,), or None
        The exit, 0.0 or 1.0, for rows with a missing value. None if missing values raise an
        error.
    table : Table or None
        Types and categories of the training features, and which of them had missing values; see
        `pboost.data.read.table`. None if all were numeric without missing values.
    temperature : float
        Number >= 1 by which `predict_proba` divides decision values, because the votes of a chain
        are overconfident; see `fit_adaboost`. 1 for a single tree. The temperature is computed from
        the certificate. It does not change decision values and predictions.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    __slots__ = ()
    _public: ClassVar = ("is_chain",)
    file_kind = "decision-graph"
    file_order = (
        *(*COLUMNS, "answer", "missing", "sigma", "stages"),
        *(*Projections.stored, *Separators.stored, *Subsets.stored, "classes"),
    )
    no_functions = Graph.no_functions + "; describe lists its nodes"

    @classmethod
    def grown(cls, **values: Any) -> Self:
        """Build a graph from the results of training, and set the temperature of a chain."""
        graph = super().grown(temperature=1.0, **values)
        object.__setattr__(graph, "temperature", graph.temperature_of_chain(graph.n_nodes))
        return graph

    @property
    def certificate_note(self) -> str:  # type: ignore[override]
        """Reason why the certificate does not bound the error of `predict`; empty if it does."""
        if self.is_estimated:
            return ESTIMATED
        if self.inputs is not None and self.inputs.note:
            return self.inputs.note
        if self.is_exact:
            return ""
        if self.answer is None and self.sigma is None:
            return OF_BOTH_WAYS
        return OF_ASSUMED_ANSWERS

    def predict(self, X: TableLike) -> Array:
        """Return the predicted class of each row.

        With many rows, evaluation of a row can stop as soon as its class can no longer change.
        Chains are always evaluated to the end, which is faster.
        """
        n = len(X) if type(X) is np.ndarray else 0
        if n < MANY_ROWS or n < self.n_nodes or self.is_chain or self.n_features >= WIDE:
            return Graph.predict(self, X)
        is_read = self.inputs is None or isinstance(self.inputs, Subsets)
        nodes = self.proven_nodes() if is_read and self.joins else None
        if nodes is None:
            return Graph.predict(self, X)
        return self.labels_of(leave_graph(self, X, nodes).score)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the sum of the votes on the path of each row, (n,) or (n, J)."""
        return walk_rows(self, X, False)[0]

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the class probabilities for decision values."""
        return self._shares(score, self.temperature)

    def without_temperature(self) -> Self:
        """Return the graph with the temperature 1."""
        return self if self.temperature == 1 else replace(self, temperature=1.0)

    def _shares(self, score: FloatArray, temperature: float) -> FloatArray:
        """Return the class probabilities for decision values and a temperature."""
        if score.ndim == 1:
            return two_probabilities(score / temperature)
        if self.n_nodes:
            return many_probabilities(score, temperature)
        # In a graph without nodes, decision values are half log odds of the class frequencies.
        share: FloatArray = two_probabilities(score.ravel())[:, 1].reshape(score.shape)
        return share / share.sum(axis=1, keepdims=True)

    def score_by_route(self, X: TableLike, route: Route) -> FloatArray:
        """Return the decision value of each row for route="expected" or route="sample"."""
        if self.n_votes > 1 and self.is_exact:
            match_sigma(self, X, route.sigma)  # this raises an error if sigma is passed
            return self.decision_function(X)  # all routes give the same values
        if route.name == "expected":
            return expected_score(self, X, route.sigma)
        return sampled_score(self, X, route)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values after each node, or only after the nodes in `record.stages`."""
        stages = self.record.stages
        ends = set(range(1, self.n_nodes + 1) if stages is None else stages.tolist())
        by_then = enumerate(so_far(self, *hard_exits(self, X)))
        return (score.copy() for n_nodes, (score, _) in by_then if n_nodes in ends)

    def staged_probabilities(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the probabilities of the graph truncated to each stage of its training."""
        stages = self.record.stages
        sizes = range(1, self.n_nodes + 1) if stages is None else stages.tolist()
        by_stage = zip(sizes, self.staged_decision_function(X), strict=True)
        return (self._shares(score, self._temperature_after(size)) for size, score in by_stage)

    def _temperature_after(self, n_nodes: int) -> float:
        """Return the temperature of the graph with its first nodes only."""
        if self.temperature == 1 or n_nodes == self.n_nodes:
            return self.temperature
        return self.temperature_of_chain(n_nodes)

    def temperature_of_chain(self, n_nodes: int) -> float:
        """Compute the temperature of the first nodes from their certificate."""
        if n_nodes <= self.end_of_first():
            return 1.0  # a single weak classifier or tree
        bound = float(self.record.certificate[n_nodes])
        # The certificate is the mean of exp(-yH). If it is rounded to 0, use the largest H.
        fall = -math.log(bound) if bound > 0 else largest_score(self)
        factor, start = COOLING[self.n_votes > 1]
        return 1.0 + factor * max(fall - start, 0.0)

    @once
    def end_of_first(self) -> int:
        """Return the number of nodes of the first stage."""
        joints = joints_of(self.next)
        return int(joints[0]) if len(joints) else self.n_nodes

    @property
    def n_stages(self) -> int:
        """Number of stages; a stage ends where all paths meet."""
        return 1 + len(joints_of(self.next))

    def longest_costs(self) -> FloatArray:
        """Return the largest number of nodes on a path to each stage."""
        longest = np.zeros(self.n_nodes + 1)  # the last entry is for the end of the graph
        for node, leads in enumerate(self.next.tolist()):
            for to in leads:
                longest[to] = max(longest[to], longest[node] + 1)
        return np.concatenate([[0.0], longest[joints_of(self.next)], longest[-1:]])

    def first(self, n_stages: int) -> DecisionGraph:
        """Return the graph that ends after `n_stages` stages."""
        ends = [*joints_of(self.next).tolist(), self.n_nodes]
        return self._cut(ends[n_stages - 1], None)

    def node_exits(self, exits: Exits) -> NodeExits | None:
        """Return early exits by node; None if nodes compare functions of a row."""
        return None if asks_functions(self) else of_nodes(self, exits)

    def proven(self) -> Exits | None:
        """Return the early exits at stages that never change a prediction; None without nodes."""
        if not self.n_nodes:
            return None
        at, rest = np.append(0, joints_of(self.next)), rest_of_nodes(self)
        return proven_exits(rest._replace(low=rest.low[at], high=rest.high[at]))

    @once
    def proven_nodes(self) -> NodeExits | None:
        """Return the early exits at nodes that never change a prediction."""
        if asks_functions(self) or not self.n_nodes:
            return None
        return at_nodes(self, proven_exits(rest_of_nodes(self)))

    def leave(self, X: TableLike, exits: NodeExits) -> Left:
        """Evaluate rows until they reach an early exit."""
        return leave_graph(self, X, exits)

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the decision values and the comparisons at each stage."""
        if not self.n_nodes:
            return Graph.trajectory(self, X)
        ends = {0, *joints_of(self.next).tolist(), self.n_nodes}
        by_then = enumerate(so_far(self, *hard_exits(self, X)))
        states = [
            (now.copy(), count.copy()) for n_nodes, (now, count) in by_then if n_nodes in ends
        ]
        score, cost = map(np.stack, zip(*states, strict=True))
        return score, cost

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the number of nodes, features or stumps that are evaluated for each row."""
        stumps = self.inputs.stumps if isinstance(self.inputs, Separators) else None
        if self.is_chain and not asks_functions(self):
            features = finite_columns(self, X)
            return np.full(len(features.values), self._cost_of_chain(unit, stumps))
        # Each function counts as one feature, and no two nodes have the same function.
        if unit == "nodes" or asks_functions(self) or (unit == "stumps" and stumps is None):
            return walk_rows(self, X, True)[1]
        if stumps is not None and unit == "stumps":
            n, take = hard_exits(self, X)
            count = np.zeros(n)
            for node, (arrived, _) in enumerate(passages(self, n, take)):
                count[arrived] += stumps[self.feature[node]]
            return count
        return self._columns_read(input_values(self, X))

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of the features read by each row up to stage 1, 2, ..."""
        if asks_functions(self):
            raise NotImplementedError(
                'unit: "feature_cost" is not available for nodes that compare functions of a row'
            )
        n, take = hard_exits(self, X)
        read = np.zeros((n, self.n_features), dtype=np.bool_)
        start, index = self._columns_of_inputs()
        done = {*(joints_of(self.next) - 1).tolist(), self.n_nodes - 1}
        for node, (arrived, _) in enumerate(passages(self, n, take)):
            of_node = slice(*start[self.feature[node] : self.feature[node] + 2].tolist())
            for column in index[of_node].tolist():
                read[arrived, column] = True
            if node in done:
                yield read
        if not self.n_nodes:
            yield read

    def _cost_of_chain(self, unit: CostUnit, stumps: IntArray | None) -> float:
        """Return the cost of a chain, in which every row visits all nodes."""
        if unit == "stumps" and stumps is not None:
            return float(stumps[self.feature].sum())
        if unit != "features":
            return float(self.n_nodes)
        start, index = self._columns_of_inputs()
        read: set[int] = set()
        for number in np.unique(self.feature).tolist():
            read.update(index[start[number] : start[number + 1]].tolist())
        return float(len(read))

    def _columns_of_inputs(self) -> tuple[IntArray, IntArray]:
        """Return the features from which each input is computed; see `Inputs`."""
        columns = np.arange(self.n_features + 1, dtype=np.int32)
        start, index = (columns, columns) if self.inputs is None else self.inputs.columns_read()
        levels = indicators_of(self.table) if self.sums_features else None
        return start, index if levels is None else levels.column[index]

    def inquiry(self, settles: bool) -> BlockEvaluator:
        """Return the evaluator for feature acquisition along the path of a row."""
        return graph_inquiry(self, self._columns_of_inputs())

    def _columns_read(self, values: FloatArray) -> FloatArray:
        start, index = self._columns_of_inputs()
        count = np.empty(len(values))

        def work(first: int, last: int) -> None:
            last_row = np.full(self.n_features, -1, dtype=np.int32)
            walk.count_features(
                values[first:last],
                *self.arrays,
                start,
                index,
                last_row,
                count[first:last],
                self.sides,
            )

        cells = values.shape[1] + min(self.n_nodes, MOST_STEPS)
        Workers(1).run(work, len(values), cells=cells)
        return count

    def truncate(self, n_nodes: int) -> DecisionGraph:
        """Return the model with its first nodes only."""
        n = check_integer(
            "n_nodes", n_nodes, min_value=min(1, self.n_nodes), max_value=self.n_nodes
        )
        if n == self.n_nodes:
            return self
        stages = self.record.stages
        if stages is not None:
            if n not in stages:
                raise ValueError(
                    f"n_nodes: expected one of the stages of the model, {_listed(stages)}, got "
                    f"{n}; votes at other numbers of nodes are not stored"
                )
            stages = stages[stages <= n]
        return self._cut(n, stages)

    def _cut(self, n: int, stages: IntArray | None) -> DecisionGraph:
        """Return the model with its first n nodes and the given stages."""
        feature, inputs = self.feature[:n], self.inputs
        if inputs is not None:
            feature, inputs = inputs.of_nodes(feature)
        return replace(
            self,
            feature=feature,
            threshold=self.threshold[:n],
            next=np.where(self.next[:n] < n, self.next[:n], OUT),
            vote=self.vote[:n],
            answer=None if self.answer is None else self.answer[:n],
            missing=None if self.missing is None else self.missing[:n],
            inputs=inputs,
            temperature=self._temperature_after(n),
            record=replace(
                self.record,
                certificate=self.record.certificate[: n + 1],
                cost=self.record.cost[: n + 1],
                stages=stages,
                stop_reason=f"truncated to the first {n} of {self.n_nodes} nodes",
            ),
        )

    def path(self, value: Callable[[int], float]) -> Iterator[tuple[int, float, int]]:
        """Yield node, value and exit along the path of a row; `value` maps an input to a number."""
        node = 0 if self.n_nodes else OUT
        while node != OUT:
            row_value = value(int(self.feature[node]))
            exit_ = ABOVE if exits(self, node, np.asarray(row_value)) else BELOW
            yield node, row_value, exit_
            node = int(self.next[node, exit_])

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the bias and the votes on the path of a row, summed by feature."""
        row = input_values(self, X)[0].tolist()
        path = [(node, exit_) for node, _, exit_ in self.path(row.__getitem__)]
        nodes, exits = np.array(path, dtype=np.intp).reshape(-1, 2).T
        parts = np.zeros((1 + self.n_features, *self.vote.shape[2:]))
        parts[0] = self.bias
        parts[1:] = self._by_column(nodes, self.vote[nodes, exits])
        return parts

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the share of each feature in the decrease of the certificate."""
        fall = falls(self.record.certificate)
        spread = None if X is None else spread_of(self, X, self.sums_features)
        return as_shares(self._by_column(np.arange(self.n_nodes), fall, spread))

    def _by_column(
        self, nodes: NDArray[np.intp], amount: FloatArray, spread: FloatArray | None = None
    ) -> FloatArray:
        """Return the sum (d, ...) of the amounts (m, ...) of nodes (m,) by feature."""
        column = self.feature[nodes]
        if self.inputs is not None:
            start, index = self.inputs.columns_read()
            count = np.diff(start)[column]
            before = np.cumsum(count) - count
            term = np.arange(count.sum()) + np.repeat(start[column] - before, count)
            share = self.inputs.column_shares(spread)[term]
            amount = (np.repeat(amount, count, axis=0).T * share).T
            column = index[term]
        total = np.zeros(
            (self.n_added if self.sums_features else self.n_features, *amount.shape[1:])
        )
        np.add.at(total, column, amount)
        return self.by_column(total) if self.sums_features else total

    def describe(self) -> str:
        """Return the model as text: a summary, then one line per node."""
        names, lines = input_names(self), summary(self)
        for node in range(self.n_nodes):
            below, above = (
                f"vote {signed(self.vote[node, exit_])}, {_where(int(self.next[node, exit_]))}"
                for exit_ in (BELOW, ABOVE)
            )
            yes, no = of_missing(self, node)
            test = question(self, names, node) + yes
            lines.append(f"node {node}: {test}: {below}; else{no} {above}")
        return "\n".join(lines)


def _where(node: int) -> str:
    return "out" if node == OUT else f"to node {node}"


def _listed(stages: IntArray) -> str:
    """Return the first stages and the last stage as text."""
    shown = [str(stage) for stage in stages.tolist()]
    return ", ".join(shown if len(shown) < 6 else [*shown[:4], "…", shown[-1]])
