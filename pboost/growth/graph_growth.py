"""Growth of decision graphs: records of steps, chains, and best-first growth.

A step gives each exit of a new node a vote, computed from the class weights that reach the exit.
The votes change the weights of the rows. The sum of the new weights over all open exits is the
certificate, an upper bound on the training error.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pboost._core.voting import (
    NO_VOTE,
    SplitStep,
    VoteRule,
    decrease,
    half_log_odds,
    rounded_key,
    step_of,
)
from pboost.data.node_inputs.inputs import Subsets
from pboost.data.training_data import TrainingData
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import ABOVE, BELOW, CERTAIN, OUT
from pboost.models.schema import TrainingRecord
from pboost.observation.answers import Observer, Tables, chain_reach
from pboost.threads import check_stop
from pboost.values import FloatArray, check_number
from pboost.weak.base import Cut, Masses, Weights, class_units
from pboost.weak.stump_search import CostSearch

#: The sum of the fixed-point weights at an exit is less than 2 to this power.
FIXED_BITS = 60
#: Maximum relative error of a certificate computed from fixed-point weights.
SURE = 1e-10

#: Orders in which the open exits of a tree can be split.
GrowthOrder: TypeAlias = Literal["largest_bound", "largest_error", "look_ahead", "breadth_first"]
GROWTHS: tuple[GrowthOrder, ...] = get_args(GrowthOrder)
#: Stop reasons: the callback returned True, or a chain has a node without errors.
STOPPED = "stopped by the callback"
PERFECT = "the certificate is 0, apart from clipping and smoothing of the votes"
#: Pairs (node, exit).
Edges: TypeAlias = tuple[tuple[int, int], ...]
#: A callback, called with the number of steps and the record of the latest step.
Callback: TypeAlias = Callable[[int, Any], Any]


#: A function (factors, source, target) that stores source weights times factors in the target.
Send: TypeAlias = Callable[[FloatArray, FloatArray, Weights], None]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Record of a new node, as passed to ``callback(step, record)``.

    Attributes
    ----------
    node : int
        Index of the node.
    feature : int
        Feature that the node compares; with affine weak learners, the index of the direction.
    threshold : float
        Threshold of the split.
    votes : tuple of float
        Votes of the two exits.
    bound : float
        Part of the certificate at the exit that was split.
    certificate : float
        Certificate after the step.
    parents : tuple of (int, int)
        Exits (node, exit) that lead to the node; empty for the root.
    missing : int or None
        Exit for missing values. None if the training data had no missing values; the exit is then
        chosen when growth ends.
    levels : int
        Bit mask of the categories that take exit 1; 0 if the feature is not categorical.
    """

    node: int
    feature: int
    threshold: float
    votes: tuple[float, float]
    bound: float
    certificate: float
    parents: Edges = ()
    missing: int | None = None
    levels: int = 0


@dataclass(frozen=True, slots=True)
class CartStep:
    """Record of a split, as passed to ``callback(step, record)`` of `fit_cart`.

    Attributes
    ----------
    feature : int
        Feature that the node compares.
    threshold : float
        Threshold of the split.
    depth : int
        Depth of the node.
    n_rows : int
        Number of training rows at the node.
    """

    feature: int
    threshold: float
    depth: int
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class MemberStep:
    """Record of a base learner, as passed to ``callback(step, record)`` of ensembles.

    Attributes
    ----------
    model : object
        The new base learner.
    oob_error : float
        Out-of-bag error of the ensemble so far, as in `OutOfBag`.
    """

    model: Any
    oob_error: float


@dataclass(frozen=True, slots=True)
class GradientBoostingStep:
    """Record of a boosting round, as passed to ``callback(step, record)``.

    Attributes
    ----------
    n_leaves : int
        Number of leaves of the new trees.
    training_loss : float
        Weighted mean loss on the training rows after the round.
    validation_loss : float or None
        Weighted mean loss on the validation rows, if there are any.
    """

    n_leaves: int
    training_loss: float
    validation_loss: float | None


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """The limits and the order of growth of a tree.

    Attributes
    ----------
    nodes : int
        Maximum number of nodes.
    depth : int
        Maximum number of nodes on a path.
    growth : str
        One of `GROWTHS`.
    target : float
        Certificate at which growth ends; negative for no target.
    """

    nodes: int
    depth: int
    growth: str
    target: float


def check_target(target: object) -> float:
    """Return a checked target certificate; -1 for None."""
    if target is None:
        return -1.0
    return check_number(
        "target_certificate", target, min_value=0.0, max_value=1.0, open_min=True, open_max=True
    )


def constant_vote(
    data: TrainingData, rule: VoteRule, class_sums: tuple[float, float]
) -> tuple[float, float]:
    """Return the vote and the certificate of a model without nodes.

    `class_sums` are the sums of the unrounded weights of the classes.
    """
    negative, positive = data.class_masses()
    total = negative + positive
    vote = rule.learning_rate * half_log_odds(positive, negative, rule.smoothing * total)
    counted, exact = (
        (n * math.exp(vote) + p * math.exp(-vote)) / mass
        for n, p, mass in ((negative, positive, total), (*class_sums, math.fsum(class_sums)))
    )
    return vote, sure(counted, exact)


def cost_after(reach: NDArray[np.float64]) -> FloatArray:
    """Return the mean number of comparisons per row, before the first node and after each node."""
    return np.concatenate([[0.0], np.cumsum(reach)])


def fixed_scale(total: float) -> float:
    """Return the power of two that scales a sum of weights to just below 2**`FIXED_BITS`."""
    return math.ldexp(1.0, FIXED_BITS - math.frexp(total)[1])


def sure(counted: float, exact: float) -> float:
    """Return the sum of fixed-point weights if it is accurate, else the sum of unrounded weights.

    Large votes can make the rounding error of one row as large as the weight of all other rows.
    """
    return counted if abs(counted - exact) <= SURE * exact else exact


def asked_at(model: DecisionGraph, node: int) -> dict[str, Any]:
    """Return the split of a node of a model, as arguments of `WeakSearch.cut_at`."""
    feature, threshold = int(model.feature[node]), float(model.threshold[node])
    side = 0 if model.missing is None else int(model.missing[node])
    test: dict[str, Any] = {"feature": feature, "threshold": threshold, "side": side}
    subsets = model.inputs
    if not isinstance(subsets, Subsets) or feature < subsets.n_columns:
        return test
    k = feature - subsets.n_columns
    members = int.from_bytes(subsets.member[k].astype("<u8").tobytes(), "little")
    return {**test, "feature": int(subsets.column[k]), "members": members}


class Growth:
    """Base class for the growth of decision graphs.

    Parameters
    ----------
    data : TrainingData
        Rows, classes and initial weights.
    observer : Observer
        Finds weak classifiers and the uncertainty of their outcomes.
    rule : VoteRule
        Computes votes from class weights.

    Attributes
    ----------
    votes : list of list of float
        Votes of the two exits of each node.
    certificate : list of float
        Certificate before the first node and after each node.
    """

    def __init__(self, data: TrainingData, observer: Observer, rule: VoteRule) -> None:
        self.data, self.observer, self.search, self.rule = data, observer, observer.search, rule
        self._cuts: list[Cut] = []
        self._next: list[list[int]] = []
        self._tables: list[FloatArray | None] = []
        self._reach: list[float] = []
        self._heavier: list[int] = []
        self._stages: list[int] = []
        self._edges: Edges = ()  # edges that lead to the last node
        self.votes: list[list[float]] = []
        self.certificate = [1.0]
        self.no_vote: Any = 0.0
        #: The search if features have costs, else None.
        self.cost_search = self.search if isinstance(self.search, CostSearch) else None

    @property
    def n_nodes(self) -> int:
        """Number of nodes so far."""
        return len(self._cuts)

    def add_node(
        self,
        edges: Edges,
        cut: Cut,
        votes: Sequence[float],
        table: FloatArray | None,
        reach: float,
        certificate: float,
        heavier: int | None = None,
    ) -> int:
        """Add a node and return its index.

        `edges` are the exits (node, exit) that lead to the node. `reach` is the fraction of the
        training weight at the node. `certificate` is the certificate after the node is added.
        `heavier` is the exit with more training weight, or None if all rows reach the node.
        """
        node = len(self._cuts)
        self._edges = edges
        for before, exit_ in edges:
            self._next[before][exit_] = node
        self._cuts.append(cut)
        self._next.append([OUT, OUT])
        self._tables.append(table)
        self._reach.append(reach)
        if heavier is not None:
            self._heavier.append(heavier)
        self.votes.append(list(votes))
        self.certificate.append(certificate)
        self._stages.append(len(self._cuts))
        return node

    def constant_vote(self) -> tuple[Any, float]:
        """Return the vote and the certificate of a model without nodes."""
        return constant_vote(self.data, self.rule, self.search.class_sums())

    def placed(self, cut: Any) -> Any:
        """Set the exit for missing values of a split, at a node that all rows reach.

        If the exit was not determined in training, it is the exit with more weight. Categories
        without weight take the same exit.
        """
        if not self.search.is_open(cut):
            return cut
        return replace(cut, side=self.search.heavier_sides([cut])[0])

    def drop_votes(self, nodes: Iterable[int]) -> None:
        """Set the votes of some nodes to 0, and remove the stages that used their earlier votes."""
        nodes = list(nodes)
        for node in nodes:
            self.votes[node][:] = 0.0, 0.0
        while self._stages and self._stages[-1] > min(nodes):
            self._stages.pop()
        self._stages.append(len(self._cuts))

    def newest(self, bound: float) -> StepRecord:
        """Return the record of the last node; `bound` is the bound of the exit that was split."""
        cut, (below, above) = self._cuts[-1], self.votes[-1]
        threshold = float(self.search.thresholds([cut])[0])
        side = cut.side if cut.side >= 0 else self._heavier[-1] if self._heavier else None
        levels, absent = cut.levels or (0, 0)
        levels |= absent if side else 0
        if cut.levels is not None and not levels:  # only missing values take exit 1
            threshold = float(np.finfo(np.float64).max)
        return StepRecord(
            len(self._cuts) - 1,
            cut.feature,
            threshold,
            (below, above),
            bound,
            self.certificate[-1],
            self._edges,
            side,
            levels,
        )

    def model(self, settings: Mapping[str, object], stop_reason: str) -> DecisionGraph:
        """Return the graph grown so far."""
        n, bias = len(self._cuts), self.no_vote
        if not n:
            bias, self.certificate[0] = self.constant_vote()
        cost = cost_after(np.array(self._reach, dtype=np.float64))
        return DecisionGraph.grown(
            next=np.array(self._next, dtype=np.int32).reshape(n, 2),
            vote=np.array(self.votes).reshape(n, 2, *np.shape(bias)),
            bias=bias,
            settings=settings,
            record=TrainingRecord(
                np.array(self.certificate),
                cost,
                stop_reason,
                None if len(self._stages) == n else np.array(self._stages),
            ),
            **self.data.problem.model_fields(),
            **self.search.model_nodes(self._cuts, self._heavier),
            **self.observer.model_columns(self._tables),
        )


class Chain(Growth):
    """A chain of nodes, in which both exits of a node lead to the next node."""

    def __init__(self, data: TrainingData, observer: Observer, rule: VoteRule, rounds: int) -> None:
        super().__init__(data, observer, rule)
        self.rounds = rounds
        self.weights = Weights(data.weight, data.fixed, data.scale, data.class_masses())
        # Every row reaches every node, so the reach of a row is its initial weight.
        self.start = data.weight.copy() if observer.needs_class else None
        # Add integers, because a sum of floats depends on the order of the rows.
        self.unit = class_units(self.weights.masses, data.scale)
        self.exits: Edges = ()
        self.perfect = False
        #: Computes the weights after the last node, when the next node needs them.
        self._reweight: Callable[[], None] | None = None
        #: Product of the factors of all steps, and whether rounding errors may matter.
        self._product, self._unsure = 1.0, False

    def grow(self, callback: Callback | None) -> str:
        """Add nodes until growth ends; return the stop reason."""
        for size in range(len(self._cuts) + 1, self.rounds + 1):
            if self.perfect:
                return PERFECT
            if self._reweight is not None:
                self._reweight()
                self._reweight = None
            cut = self.observer.find(self.weights)
            if cut is None:
                return "no split is left"
            cut = self.placed(cut)
            masses, table, send = self.ask(cut)
            step = self.rule.step(masses)
            if max(map(abs, step.votes)) < NO_VOTE:
                return "no split is left that changes the weights"
            bound = self.certificate[-1]
            reweight = partial(send, step.factors, self.weights.real, self.weights)
            if self.is_unsure(masses, step):
                reweight()
            else:
                self._reweight = reweight
            self.open(cut, step, table)
            if callback is not None and callback(size, self.newest(bound)):
                return STOPPED
        return PERFECT if self.perfect else "all rounds are done"

    def is_unsure(self, masses: Masses, step: SplitStep) -> bool:
        """Return whether rounding errors may matter after a step, and store the result.

        After the first such step, the result is True for all later steps.
        """
        unit = 1.0 if self.observer.is_exact else 1.0 / self.weights.scale
        after = step.shrink * math.fsum([*masses[0], *masses[1]])
        largest = math.exp(max(map(abs, step.votes)))
        self._unsure = self.certificate[-1] != self._product or (
            0.5 * unit * self.search.n_rows * largest > SURE * after
        )
        return self._unsure

    def open(self, cut: Cut, step: SplitStep, table: FloatArray | None) -> None:
        """Add a node. If rounding errors may matter, the caller has already updated the weights."""
        self._product *= step.shrink
        certificate = self._product
        if self._unsure:
            # Correct the product of the shrink factors by the sum of the unrounded weights.
            share = self.search.real_sum(self.weights) / self.search.real_sum()
            certificate = sure(certificate, certificate * share)
        node = self.add_node(self.exits, cut, step.votes, table, 1.0, certificate)
        self.exits = (node, BELOW), (node, ABOVE)
        if self.cost_search is not None:  # all rows have now paid for the feature
            self.cost_search.unpaid[self.cost_search.items(cut.feature)] = 0.0
        self.perfect = step.perfect or certificate == 0.0

    def replay(self, model: DecisionGraph, tables: Tables) -> None:
        """Add the nodes of an existing chain."""
        for node, votes in enumerate(model.vote.tolist()):
            cut = self.search.cut_at(weights=self.weights, **asked_at(model, node))
            masses, table, send = self.ask(cut, tables[node])
            step = step_of(masses, tuple(votes))
            self.is_unsure(masses, step)
            send(step.factors, self.weights.real, self.weights)
            self.open(cut, step, table)

    def ask(
        self, cut: Cut, table: FloatArray | None = None
    ) -> tuple[Masses, FloatArray | None, Send]:
        """Return the class weights at the exits, the outcome probabilities, and a `Send` function.

        If the node is from a stored model, `table` contains its outcome probabilities.
        """
        if self.observer.is_exact:
            return cut.masses, CERTAIN, partial(self.search.reweight, cut)
        if table is not None:
            answers = self.observer.stored_answers(cut, self.weights, table)
        else:
            reach = partial(chain_reach, self.search, cut, self.weights, self.start, self.unit)
            answers = self.observer.ask(cut, self.weights, reach)
        return answers.masses.tolist(), answers.table, answers.send


ALL_OPENED = "all nodes are opened"
NO_EXIT = "no exit can be split"


class BestFirst:
    """A tree that is grown best-first: the next split is made at the best open exit.

    Each exit has a `serial` number, a `bound`, an `error` (the weight of the classes that are not
    predicted) and its best `split`, which contains the bound `after` the split.

    Attributes
    ----------
    limits : TreeLimits
        Limits of growth, and the order of splits.
    certificate : list of float
        Certificate before the first node and after each node.
    heap : list of (negative key, serial number, exit)
        Open exits; if keys are equal, the oldest comes first.
    """

    limits: TreeLimits
    certificate: list[float]
    heap: list[tuple[float, int, Any]]

    def find(self, exit_: Any) -> Any:
        """Return the best split of an exit, or None if there is none."""
        raise NotImplementedError

    def split(self, exit_: Any) -> None:
        """Turn an exit with a split into a node, and open the two exits of the node."""
        raise NotImplementedError

    def newest(self, bound: float) -> StepRecord:
        """Return the record of the last node; `bound` is the bound of the exit that was split."""
        raise NotImplementedError

    def push(self, exit_: Any) -> bool:
        """Add an exit to the heap; return False if look-ahead shows that it cannot be split."""
        growth, key = self.limits.growth, 0.0
        if growth == "largest_bound":
            key = rounded_key(exit_.bound)
        elif growth == "largest_error":
            key = rounded_key(exit_.error)
        elif growth == "look_ahead":
            exit_.split = self.find(exit_)
            if exit_.split is None:
                return False
            key = decrease(exit_.bound, exit_.bound - exit_.split.after)
        heapq.heappush(self.heap, (-key, exit_.serial, exit_))
        return True

    def keep(self, serials: Container[int]) -> None:
        """Remove all exits from the heap except those with the given serial numbers."""
        self.heap = [entry for entry in self.heap if entry[1] in serials]
        heapq.heapify(self.heap)

    def grow(self, callback: Callback | None) -> str:
        """Split exits until growth ends; return the stop reason."""
        while len(self.certificate) <= self.limits.nodes:
            check_stop()
            if not self.heap:
                return NO_EXIT
            exit_ = heapq.heappop(self.heap)[-1]
            exit_.split = exit_.split or self.find(exit_)
            if exit_.split is None:
                continue
            self.split(exit_)
            if callback is not None and callback(
                len(self.certificate) - 1, self.newest(exit_.bound)
            ):
                return STOPPED
            if self.certificate[-1] <= self.limits.target:
                return "the target certificate is reached"
        return ALL_OPENED
