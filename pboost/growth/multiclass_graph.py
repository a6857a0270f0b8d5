"""AdaBoost.MH on decision graphs: trees and chains of trees whose exits vote for each of J classes.

Each row has one weight per class. The vote of an exit for a class lowers this weight if the row has
the class and the vote is positive, or if it has another class and the vote is negative. The
criterion and the certificate are sums over the classes [1]_.

With an observation model, every row reaches every node with some probability. A row takes each exit
with a probability that depends on its side of the split and on its class. The weights of the row
are multiplied by this probability. The probability of reaching an exit is the product along the
path from the root of the tree. The product is computed again when the exit is split.

.. [1] R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated
   predictions", Machine Learning 37 (1999), sections 7 and 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import multiclass as kernels
from pboost._core.voting import NO_VOTE, VOTE_LIMIT, VoteRule, half_log_odds
from pboost.data.columns.prebuilt import is_heavier
from pboost.data.training_data import TrainingData
from pboost.growth.graph_growth import (
    PERFECT,
    STOPPED,
    SURE,
    BestFirst,
    Callback,
    Edges,
    Growth,
    TreeLimits,
    asked_at,
    fixed_scale,
    sure,
)
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import CERTAIN
from pboost.observation.answers import TableObservation, Tables, stacked
from pboost.threads import MIN_CELLS
from pboost.values import Array, FloatArray, IntArray
from pboost.weak.multiclass_search import LabelSearch, SearchNode, Sums, aligned
from pboost.weak.stump_search import StumpCut

#: Memory limit (bytes) for the sums of open exits. Other sums are computed again when needed.
MOST_KEPT = 1 << 28
#: Chains without training errors end when the certificate is below this.
LEAST = 1e-9


class ExactLabels:
    """The fields of a model with exact observations."""

    def __init__(self, search: LabelSearch) -> None:
        self.search = search

    def model_columns(self, tables: object) -> dict[str, Any]:
        """Return no fields."""
        return {}


@dataclass(slots=True, eq=False)
class LabelSplit:
    """The best stump of an exit, and the votes (2, J) of the two new exits."""

    cut: StumpCut
    votes: FloatArray
    after: float
    parts: list[LabelExit]
    table: FloatArray | None = None  # with uncertain observations


@dataclass(slots=True, eq=False)
class Pair:
    """The two exits of a node, and the sums of the node."""

    classes: IntArray
    sums: Sums
    exits: list[LabelExit]


@dataclass(slots=True, eq=False)
class LabelExit:
    """An open exit of a tree.

    Attributes
    ----------
    serial : int
        Number of the exit, in the order of opening.
    edges : tuple of (node, exit)
        Position in the graph. For the root of a tree, all exits that lead to the root.
    depth : int
        Number of nodes on the path from the root of the tree.
    rows : ndarray of int32
        Rows that reach the exit.
    totals, own_mass, start : ndarray of int64, shape (J,)
        For each class, in fixed point: the weights of all rows at the root of the tree, the weights
        of the rows with the class, and the initial weights of the rows with the class.
    for_it, against : ndarray of float64, shape (J,)
        For each class, the product of the factors on the path from the root of the tree, for rows
        with the class and for rows with another class.
    mass : float
        Sum of the current weights, in fixed point.
    bound : float
        Sum of the current unrounded weights, relative to all initial weights.
    settled : ndarray of bool, shape (J,)
        Classes for which an exit above already has the maximum vote, because all or none of its
        rows have the class.
    reach, error : float
        Fraction of the initial weight at the exit, and this fraction without the largest class.
    """

    serial: int
    edges: Edges
    depth: int
    rows: IntArray
    totals: NDArray[np.int64]
    own_mass: NDArray[np.int64]
    start: NDArray[np.int64]
    for_it: FloatArray
    against: FloatArray
    mass: float
    reach: float
    error: float
    settled: NDArray[np.bool_]
    bound: float = 0.0
    pair: Pair | None = None
    sums: Sums | None = None
    classes: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    split: LabelSplit | None = None

    @property
    def mixed(self) -> IntArray:
        """The classes that some rows at the exit have, but not all rows."""
        return np.flatnonzero((self.own_mass > 0) & (self.own_mass < self.totals)).astype(np.int32)

    @property
    def masses(self) -> NDArray[np.int64]:
        """The sums `totals`, `own_mass` and `start`, (3, J)."""
        return np.stack([self.totals, self.own_mass, self.start])


class LabelTrees(Growth, BestFirst):
    """A chain of trees, in which the open exits of each tree lead to the root of the next.

    Parameters
    ----------
    data : TrainingData
        Rows and classes.
    search : LabelSearch
        Search for stumps.
    rule : VoteRule
        Computes votes from class weights.
    rounds : int
        Number of trees.
    limits : TreeLimits
        Limits of each tree.
    """

    def __init__(
        self,
        data: TrainingData,
        search: LabelSearch,
        rule: VoteRule,
        rounds: int,
        limits: TreeLimits,
    ) -> None:
        Growth.__init__(self, data, ExactLabels(search), rule)  # type: ignore[arg-type]
        self._labels, self._rounds, self._size, self.limits = search, rounds, limits.nodes, limits
        assert data.problem.classes is not None
        self.n_labels = len(data.problem.classes)
        self._scale, self._kept, self._serial, self._delta = 1.0, 0, 0, 0.0
        self._total = int(data.fixed.sum())
        self._begin()
        self.no_vote = np.zeros(self.n_labels)
        self.open: dict[int, LabelExit] = {}
        self._replays = False
        self.heap = []
        self._put_on_scale()
        self._enter((), self._add_up(self._rows))

    def _begin(self) -> None:
        """Create the weights of all rows, and compute their exact sum."""
        data, n, n_labels = self.data, self.data.n_rows, self.n_labels
        width = math.prod(kernels.lanes_of(n_labels))
        try:
            self._weight = aligned((n, width), np.float64)
        except MemoryError:
            raise MemoryError(
                f"y: the weights of {n} rows for {n_labels} classes need {8 * n * width} bytes, "
                "more than the available memory; use fit_one_vs_rest, which fits one class at a "
                "time"
            ) from None
        self._weight[:, :n_labels] = data.weight[:, None]
        self._weight[:, n_labels:] = 0.0
        self._whole = math.fsum(data.weight)
        self._rows: Any = np.arange(n, dtype=np.int32)

    def grow(self, callback: Callback | None) -> str:
        """Grow trees until growth ends; return the stop reason."""
        for k in range(self._rounds):
            if k:
                if self._is_done():
                    return PERFECT
                self._join()
            before = self.n_nodes
            self.limits = replace(self.limits, nodes=before + self._size)
            reason = BestFirst.grow(self, callback)
            if reason == STOPPED or self.certificate[-1] <= self.limits.target:
                return reason
            if self.n_nodes == before:
                changes = " that changes the weights" if k else ""
                return f"no split is left{changes}" if self._rounds > 1 else reason
        return reason if self._rounds == 1 else "all rounds are done"

    def _is_done(self) -> bool:
        """Return whether another tree would have no effect."""
        if self.certificate[-1] < LEAST:
            return True
        # With smoothing, the votes of pure exits depend on their weights, so the next tree differs.
        pure = not any(len(exit_.mixed) for exit_ in self.open.values())
        return pure and self.rule.smoothing == 0

    def _put_on_scale(self) -> None:
        """Choose the fixed-point scale of the weights for their current sum."""
        self._scale = fixed_scale(self.n_labels * self._whole * self.certificate[-1])

    def _add_up(self, rows: IntArray, *factor: FloatArray) -> NDArray[np.int64]:
        """Return sums over rows (3, J): all weights, weights of the own class, initial weights.

        If `factor` is passed, the weights are first multiplied by its two factors per class: for
        rows with the class, and for all other rows.
        """
        n, width = len(rows), self._weight.shape[1]
        by = np.ones((len(factor), width))
        if factor:
            by[:, : self.n_labels] = factor

        def work(start: int, stop: int) -> NDArray[np.int64]:
            sums = np.zeros((3, width), dtype=np.int64)
            kernels.take(
                rows[start:stop],
                self.data.label,
                by.copy(),
                self._scale,
                self._weight,
                self.data.fixed,
                sums,
            )
            return sums[:, : self.n_labels]

        if n * width < MIN_CELLS:
            return work(0, n)
        sums = self.search.workers.run(work, n, cells=width)
        return np.sum(sums, axis=0)

    def _enter(self, edges: Edges, masses: NDArray[np.int64]) -> None:
        """Open the root of a new tree after the given exits."""
        ones = np.ones(self.n_labels)
        settled = np.all([exit_.settled for exit_ in self.open.values()] or [ones < 1], axis=0)
        root = self._exit(edges, 0, self._rows, masses, ones, ones, settled)
        self._delta = self.rule.smoothing * root.mass / self.n_labels
        self.open = {root.serial: root}
        self.heap, self._kept = [], 0
        self.push(root)

    def _join(self) -> None:
        """Merge all open exits."""
        exits = [*self.open.values()]
        for exit_ in exits:
            exit_.pair = exit_.sums = None
        self._put_on_scale()
        parts = [self._add_up(exit_.rows, exit_.for_it, exit_.against) for exit_ in exits]
        edges = tuple(sorted(edge for exit_ in exits for edge in exit_.edges))
        self._enter(edges, np.sum(parts, axis=0))

    def _exit(
        self,
        edges: Edges,
        depth: int,
        rows: IntArray,
        masses: NDArray[np.int64],
        for_it: FloatArray,
        against: FloatArray,
        settled: NDArray[np.bool_],
    ) -> LabelExit:
        """Return an exit, given the sums of its rows and the settled classes of the node."""
        totals, own_mass, start = masses
        mass = _boosted(own_mass, totals - own_mass, for_it, against)
        arriving = int(start.sum())
        self._serial += 1
        exit_ = LabelExit(
            self._serial,
            edges,
            depth,
            rows,
            totals,
            own_mass,
            start,
            for_it,
            against,
            mass,
            arriving / self._total,
            (arriving - int(start.max())) / self._total,
            settled | (own_mass == 0) | (own_mass == totals) if depth else settled,
        )
        exit_.bound = self._bound(exit_, self._scale)
        return exit_

    def _bound(self, exit_: LabelExit, scale: float) -> float:
        """Return the part of the certificate at an exit."""
        n_own = self._counts(exit_.rows)
        for_it, against = exit_.for_it, exit_.against
        rounding = 0.5 * float(n_own @ for_it + (len(exit_.rows) - n_own) @ against)
        bound = exit_.mass / scale / (self.n_labels * self._whole)
        if rounding <= SURE * exit_.mass:
            return bound
        return sure(bound, self._real_sum(exit_) / (self.n_labels * self._whole))

    def _counts(self, rows: Any) -> NDArray[np.int64]:
        """Return the number of rows of each class, (J,)."""
        return np.bincount(self.data.label[rows], minlength=self.n_labels)

    def _real_sum(self, exit_: LabelExit) -> float:
        """Return the exact sum of the unrounded weights at an exit."""
        is_own = self.data.label[exit_.rows, None] == np.arange(self.n_labels)
        factor = np.where(is_own, exit_.for_it, exit_.against)
        return math.fsum((self._real_weights(exit_) * factor).ravel().tolist())

    def _real_weights(self, exit_: LabelExit) -> FloatArray:
        """Return the weights (n, J) of the rows of an exit, not yet multiplied by its factors."""
        weights: FloatArray = self._weight[exit_.rows, : self.n_labels]
        return weights

    def push(self, exit_: LabelExit) -> bool:
        """Add an exit to the heap if its depth allows a split."""
        return exit_.depth < self.limits.depth and BestFirst.push(self, exit_)

    def find(self, exit_: LabelExit) -> LabelSplit | None:
        """Return the best split of an exit, or None if there is none."""
        mixed = exit_.mixed
        if not len(mixed):
            return None
        self._fill(exit_)
        assert exit_.sums is not None
        used = exit_.classes
        totals = np.concatenate([exit_.totals[used], exit_.own_mass[used], [len(exit_.rows)]])
        node = SearchNode(
            exit_.sums,
            totals,
            exit_.for_it[used],
            exit_.against[used],
            exit_.mass,
            exit_.rows,
            used,
            *self._weights_at(exit_),
        )
        cut = self._labels.best_at(node)
        if cut is None:
            self._forget(exit_)
            return None
        split = self._split_at(exit_, cut)
        is_stump = self._size == 1 and self._rounds > 1
        return None if is_stump and np.abs(split.votes).max() < NO_VOTE else split

    def _split_at(
        self, exit_: LabelExit, cut: StumpCut, votes: FloatArray | None = None
    ) -> LabelSplit:
        """Return the split of an exit by a stump; compute the votes unless they are passed."""
        parts, made = [], np.empty((2, self.n_labels))
        rows = self._part(cut, exit_.rows)
        fewer = int(len(rows[1]) < len(rows[0]))
        masses = [self._add_up(rows[fewer])] * 2
        masses[1 - fewer] = exit_.masses - masses[fewer]
        for side in (0, 1):
            totals, own_mass, _ = masses[side]
            if votes is not None:
                made[side] = votes[side]
            else:
                now = exit_.for_it * own_mass, exit_.against * (totals - own_mass)
                made[side] = self._votes(*now, self._delta, exit_.settled)
            down, up = np.exp(-made[side]), np.exp(made[side])
            parts.append(
                self._exit(
                    (),
                    exit_.depth + 1,
                    rows[side],
                    masses[side],
                    exit_.for_it * down,
                    exit_.against * up,
                    exit_.settled,
                )
            )
        return LabelSplit(cut, made, parts[0].bound + parts[1].bound, parts)

    def _part(self, cut: StumpCut, rows: Any) -> Any:
        """Return the rows below a threshold and the rows above it."""
        return self._labels.part(cut, rows)

    def _votes(
        self, own_mass: Array, other: Array, delta: float, settled: NDArray[np.bool_]
    ) -> FloatArray:
        """Return the votes of an exit, given the weights of the rows with and without each class.

        A settled class already has the maximum vote from an exit above. It gets no further vote
        here, unless smoothing changes the vote.
        """
        odds = np.array([half_log_odds(p, n, delta) for p, n in zip(own_mass, other, strict=True)])
        odds[settled & ((own_mass == 0) | (other == 0)) & (np.abs(odds) == VOTE_LIMIT)] = 0.0
        votes: FloatArray = self.rule.learning_rate * odds
        return votes

    def _fill(self, exit_: LabelExit) -> None:
        """Compute the sums of an exit; use subtraction for the larger exit of a node."""
        if exit_.sums is not None:
            return
        pair, every = exit_.pair, self._labels.needs_all
        if pair is not None and not every and self._have_fewer(pair):
            self._kept -= pair.sums.nbytes
            for open_exit in pair.exits:
                open_exit.pair = pair = None
        if pair is None:
            exit_.classes = np.arange(self.n_labels, dtype=np.int32) if every else exit_.mixed
            exit_.sums = self._sums(exit_, exit_.classes)
            self._kept += exit_.sums.nbytes
            return
        small, large = sorted(pair.exits, key=lambda exit_: len(exit_.rows))
        small.sums = self._sums(small, pair.classes)
        large.sums = np.subtract(pair.sums, small.sums, out=pair.sums)
        self._kept += small.sums.nbytes
        for open_exit in (small, large):
            open_exit.classes, open_exit.pair = pair.classes, None

    def _sums(self, exit_: LabelExit, classes: IntArray) -> Sums:
        """Return the weight sums of some classes over the rows of an exit."""
        return self._labels.sums(exit_.rows, *self._weights_at(exit_), classes)

    def _weights_at(self, exit_: LabelExit) -> tuple[FloatArray, float]:
        """Return the weights of all rows, not yet multiplied by factors, and their scale."""
        return self._weight, self._scale

    def _have_fewer(self, pair: Pair) -> bool:
        """Return whether adding up the rows of both exits is cheaper than subtracting sums."""
        blocks = kernels.lanes_of(len(pair.classes))[0]
        return all(2 * kernels.lanes_of(len(exit_.mixed))[0] <= blocks for exit_ in pair.exits)

    def split(self, exit_: LabelExit) -> None:
        """Turn an exit with a split into a node, and open the two exits of the node."""
        assert exit_.split is not None
        cut, parts, votes = exit_.split.cut, exit_.split.parts, exit_.split.votes
        del self.open[exit_.serial]
        outside = [other.bound for other in self.open.values()]
        certificate = math.fsum([*outside, *(part.bound for part in parts)])
        heavier = int(is_heavier(parts[1].reach, parts[0].reach))
        node = self.add_node(
            exit_.edges,
            cut,
            [tuple(vote) for vote in votes.tolist()],  # type: ignore[misc]
            exit_.split.table,
            exit_.reach,
            certificate,
            heavier,
        )
        for side, part in enumerate(parts):
            part.edges = ((node, side),)
            self.open[part.serial] = part
        if exit_.sums is not None and self._kept < MOST_KEPT:
            parts[0].pair = parts[1].pair = Pair(exit_.classes, exit_.sums, parts)
        else:
            self._forget(exit_)
        exit_.sums = exit_.split = None
        if not self._replays:
            for part in parts:
                self.push(part)

    def _forget(self, exit_: LabelExit) -> None:
        """Free the sums of an exit."""
        if exit_.sums is not None:
            self._kept -= exit_.sums.nbytes
            exit_.sums = None

    def replay(self, model: DecisionGraph, *, joins: bool) -> None:
        """Add the nodes of an existing graph; then merge its open exits if `joins`."""
        leads, self._replays = model.next, True
        for node in range(model.n_nodes):
            edges = {(int(k), int(side)) for k, side in np.argwhere(leads == node)}
            before = {edge for exit_ in self.open.values() for edge in exit_.edges}
            if node and edges == before and len(self.open) > 1:
                self._join()
            matching = [exit_ for exit_ in self.open.values() if set(exit_.edges) == edges]
            if not matching:
                raise NotImplementedError(
                    "model: expected a tree, or a chain of trees in which all exits of a tree lead "
                    f"to the next, got a different graph with one vote per class (node {node})"
                )
            cut = self._labels.place(**asked_at(model, node))
            matching[0].split = self._stored(matching[0], cut, model, node)
            self.split(matching[0])
        self._replays, self.heap = False, []
        if joins:
            self._join()
        else:
            for exit_ in self.open.values():
                self.push(exit_)

    def _stored(
        self, exit_: LabelExit, cut: StumpCut, model: DecisionGraph, node: int
    ) -> LabelSplit:
        """Return the split at a node of a model, with the votes of the model."""
        return self._split_at(exit_, cut, model.vote[node])

    def constant_vote(self) -> tuple[Any, float]:
        """Return the votes and the certificate of a model without nodes."""
        (root,) = self.open.values()
        other = root.totals - root.own_mass
        votes = self._votes(root.own_mass, other, self._delta, root.settled)
        root.for_it, root.against = np.exp(-votes), np.exp(votes)
        root.mass = _boosted(root.own_mass, other, root.for_it, root.against)
        return votes, self._bound(root, self._scale)


def _boosted(own_mass: Array, other: Array, for_it: FloatArray, against: FloatArray) -> float:
    """Return the sum of all weights, given the sums per class and the factors."""
    return math.fsum([*(for_it * own_mass).tolist(), *(against * other).tolist()])


#: Lower limit of weights and of their sums.
TINY = 1e-290
#: Number of rows whose weights are computed at a time.
BLOCK = 4096


class LabelTables:
    """The fields of a model with a table of probabilities (side, class) for each node."""

    def __init__(self, search: LabelSearch) -> None:
        self.search = search

    def model_columns(self, tables: Tables) -> dict[str, Any]:
        """Return the tables."""
        return {"answer": stacked(tables)} if tables else {}


@dataclass(slots=True, eq=False)
class SoftLabelExit(LabelExit):
    """An exit that every row reaches with some probability.

    Attributes
    ----------
    scale : float
        Scale of `totals`, `own_mass` and `mass`.
    turns : tuple of (StumpCut, ndarray of float64, shape (2, J))
        The splits on the path from the root of the tree. The array contains the probability that a
        row takes the path at the split, by side and class.
    """

    scale: float = 1.0
    turns: tuple[tuple[StumpCut, FloatArray], ...] = ()


class SoftLabelTrees(LabelTrees):
    """A chain of trees with uncertain observations; see also the parameters of `LabelTrees`.

    Parameters
    ----------
    observation : TableObservation
        Observation model.
    """

    def __init__(
        self,
        data: TrainingData,
        search: LabelSearch,
        rule: VoteRule,
        rounds: int,
        limits: TreeLimits,
        observation: TableObservation,
    ) -> None:
        self._observation = observation
        # Arrays of the current exit: weights (n, width), serial number, initial weights in fixed
        # point.
        self._at_exit: Any = None
        self._here = -1
        self._arriving = np.empty(0, dtype=np.int64)
        super().__init__(data, search, rule, rounds, limits)
        self.observer = LabelTables(search)  # type: ignore[assignment]

    def _begin(self) -> None:
        """Create the weights of all rows, and list the rows of each class."""
        LabelTrees._begin(self)
        label = self.data.label
        self._rows_of = [np.flatnonzero(label == k).astype(np.int32) for k in range(self.n_labels)]

    def _exit(
        self,
        edges: Any,
        depth: int,
        rows: IntArray,
        masses: NDArray[np.int64],
        for_it: FloatArray,
        against: FloatArray,
        settled: NDArray[np.bool_],
    ) -> SoftLabelExit:
        """Return the entrance of a tree, which all rows reach."""
        root = LabelTrees._exit(self, edges, depth, rows, masses, for_it, against, settled)
        values = {each.name: getattr(root, each.name) for each in fields(LabelExit)}
        return SoftLabelExit(**values, scale=self._scale)

    def _real_weights(self, exit_: LabelExit) -> FloatArray:
        """Return the weights (n, J) of the rows of an exit, not yet multiplied by its factors."""
        return LabelTrees._real_weights(self, exit_) * self._probability(exit_)[:, None]

    def _probability(self, exit_: LabelExit) -> FloatArray:
        """Return the probability that each row reaches an exit."""
        turns = exit_.turns if isinstance(exit_, SoftLabelExit) else ()
        sides = ((self._labels.sides_of_rows(cut), taken) for cut, taken in turns)
        return arrival(self.data.label, sides)

    def _arrive(self, exit_: SoftLabelExit) -> None:
        """Compute the weights at an exit, their fixed-point scale and their sums."""
        if self._here == exit_.serial:
            return
        total = float(exit_.totals.sum()) / exit_.scale
        exit_.scale = fixed_scale(max(total, TINY))
        scale = fixed_scale(max(exit_.reach * self._total, TINY))
        exit_.totals, exit_.own_mass, _ = self._weigh(exit_, scale)
        other = exit_.totals - exit_.own_mass
        exit_.mass = math.fsum([*(exit_.for_it * exit_.own_mass), *(exit_.against * other)])
        self._here = exit_.serial

    def _weigh(self, exit_: SoftLabelExit, scale: float) -> NDArray[np.int64]:
        """Compute the weights and the scaled initial weights at an exit; return sums (3, J)."""
        probability = self._probability(exit_)
        self._at_exit = np.multiply(self._weight, probability[:, None], out=self._room())
        self._arriving = (self.data.fixed * (probability * scale) + 0.5).astype(np.int64)
        return self._sum(exit_.rows, exit_.scale)

    def _sum(self, rows: IntArray, scale: float) -> NDArray[np.int64]:
        """Return sums over rows (3, J) at the current exit, as `_add_up` does for all rows."""
        width = self._weight.shape[1]
        sums = np.zeros((3, width), dtype=np.int64)
        kernels.take(
            rows, self.data.label, np.empty((0, width)), scale, self._at_exit, self._arriving, sums
        )
        return sums[:, : self.n_labels]

    def _weights_at(self, exit_: Any) -> tuple[FloatArray, float]:
        """Return the weights at the current exit, without factors, and their scale."""
        return self._at_exit, exit_.scale

    def find(self, exit_: Any) -> LabelSplit | None:
        """Return the best split of an exit, or None if there is none."""
        if not len(exit_.mixed):
            return None
        self._arrive(exit_)
        split = LabelTrees.find(self, exit_)
        self._forget(exit_)
        return split

    def _split_at(
        self,
        exit_: Any,
        cut: StumpCut,
        votes: FloatArray | None = None,
        table: FloatArray | None = None,
    ) -> LabelSplit:
        """Return the split of an exit by a stump; compute votes and table unless passed."""
        self._arrive(exit_)
        sums, arriving = self._by_side(cut, exit_.scale)
        reach = arriving * (exit_.reach / max(arriving.sum(), TINY))
        if table is None:
            table = self._observation.table(reach)
        delta = self._delta * (exit_.scale / self._scale)
        parts, made = [], np.empty((2, self.n_labels))
        for side, taken in enumerate((1 - table, table)):
            own_sums, other = self._masses(sums, taken)
            if votes is not None:
                made[side] = votes[side]
            else:
                now = own_sums * exit_.for_it, other * exit_.against
                made[side] = self._votes(*now, delta, exit_.settled)
            for_it, against = exit_.for_it * np.exp(-made[side]), exit_.against * np.exp(made[side])
            mass = math.fsum([*(for_it * own_sums), *(against * other)])
            by_class = (reach * taken).sum(axis=0)
            own_mass, other_mass = (
                np.rint(own_sums).astype(np.int64),
                np.rint(other).astype(np.int64),
            )
            part = SoftLabelExit(
                self._serial + 1 + side,
                (),
                exit_.depth + 1,
                exit_.rows,
                own_mass + other_mass,
                own_mass,
                np.zeros(0, dtype=np.int64),
                for_it,
                against,
                mass,
                float(by_class.sum()),
                float(by_class.sum() - by_class.max()),
                exit_.settled | (own_mass == 0) | (other_mass == 0),
                scale=exit_.scale,
                turns=(*exit_.turns, (cut, taken)),
            )
            part.bound = self._bound(part, exit_.scale)
            parts.append(part)
        self._serial += 2
        return LabelSplit(cut, made, parts[0].bound + parts[1].bound, [*parts], table)

    def _by_side(self, cut: StumpCut, scale: float) -> tuple[NDArray[np.int64], FloatArray]:
        """Return weights (side, class of the row, class) and the reach (side, class of the row)."""
        sums = self._sums_by_side(cut, scale).swapaxes(0, 1)
        arriving = np.diagonal(sums[:, :, 2], axis1=1, axis2=2)
        return sums[:, :, 0], arriving.astype(np.float64)

    def _sums_by_side(self, cut: StumpCut, scale: float) -> NDArray[np.int64]:
        """Return sums of weights, indexed by class of the row, side, kind of sum and class."""
        sums = [
            [self._sum(rows, scale) for rows in self._labels.part(cut, of_label)]
            for of_label in self._rows_of
        ]
        return np.array(sums)

    def _masses(self, sums: NDArray[np.int64], taken: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, per class, the weight at an exit of rows with the class and of all other rows."""
        J = self.n_labels
        parts = (taken[:, :, None] * sums).reshape(2 * J, J)
        is_own = np.tile(np.eye(J, dtype=bool), (2, 1))
        own_sums, other = (
            [math.fsum(parts[mask[:, k], k].tolist()) for k in range(J)]
            for mask in (is_own, ~is_own)
        )
        return np.array(own_sums), np.array(other)

    def _stored(self, exit_: LabelExit, cut: StumpCut, model: DecisionGraph, node: int) -> Any:
        """Return the split at a node of a model, with the votes and the table of the model."""
        if model.answer is None:
            table = np.repeat(CERTAIN[:, :1], self.n_labels, axis=1)
        else:
            table = model.answer[node]
        return self._split_at(exit_, cut, model.vote[node], table)

    def _join(self) -> None:
        """Merge all open exits; new weights are sums of the weights at the exits."""
        exits = [*self.open.values()]
        self._multiply(exits)
        self._put_on_scale()
        edges = tuple(sorted(edge for exit_ in exits for edge in exit_.edges))
        self._enter(edges, self._add_up(self._rows))

    def _multiply(self, exits: Sequence[LabelExit]) -> None:
        """Replace the weights of each row by their sum over the exits."""
        parts = ((self._probability(exit_), exit_.for_it, exit_.against) for exit_ in exits)
        join_weights(self._weight, self.data.label, parts, self._room())

    def _room(self) -> FloatArray:
        """Return a reusable scratch array with the shape of the weights."""
        if self._at_exit is None:
            self._at_exit = aligned(self._weight.shape, np.float64)
        self._here = -1
        return self._at_exit


def arrival(label: IntArray, turns: Iterable[tuple[NDArray[np.uint8], FloatArray]]) -> FloatArray:
    """Return the probability that each row takes a path.

    `turns` lists the splits on the path: the side of each row, and the probabilities by side and
    class.
    """
    probability = np.ones(len(label))
    for side, taken in turns:
        probability *= taken.ravel().take(side.astype(np.int32) * np.int32(taken.shape[1]) + label)
    return probability


def join_weights(
    weight: FloatArray,
    label: IntArray,
    exits: Iterable[tuple[FloatArray, FloatArray, FloatArray]],
    room: FloatArray,
) -> None:
    """Multiply the weight of each row by the sum of its factors at several exits.

    `exits` contains the probability of each row, and the factors for the class of the row and for
    other classes. `room` is a scratch array with the shape of the weights.
    """
    n, own_weight = len(label), np.zeros(len(label))
    room[:] = 0.0
    for probability, for_it, against in exits:
        own_weight += probability * for_it[label]
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            room[rows, : len(against)] += probability[rows, None] * against
    room[np.arange(n), label] = own_weight
    weight *= room
    n_labels = len(against)
    np.maximum(weight[:, :n_labels], TINY, out=weight[:, :n_labels])


def label_trees(
    data: TrainingData,
    search: LabelSearch,
    rule: VoteRule,
    rounds: int,
    limits: TreeLimits,
    observation: TableObservation,
    of_rows: Callable[[type[Any]], Any] = lambda kind: kind,
) -> LabelTrees:
    """Return the object that grows a chain of trees whose exits vote for each class.

    `of_rows` returns the variant of a growth class for rows in partitions.
    """
    arguments = data, search, rule, rounds, limits
    if observation.is_exact:
        trees: LabelTrees = of_rows(LabelTrees)(*arguments)
    else:
        trees = of_rows(SoftLabelTrees)(*arguments, observation)
    return trees
