"""Trees whose exits vote for each of J labels, of uncertain answers: nodes see all rows.

A row takes either exit with a probability, which depends on the side on which it lies and on its
own label, and multiplies its weights for all labels. That of arriving at an exit is the product of
those on the way from the root of the tree, and is computed anew where the exit is split.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import labels as kernels
from pboost._core.voting import VoteRule
from pboost.data.training import TrainingData
from pboost.growth.label_trees import LabelExit, LabelSplit, LabelTrees
from pboost.growth.step import TreeLimits, fixed_scale
from pboost.models.graph import DecisionGraph
from pboost.models.nodes import CERTAIN
from pboost.observation.answers import TableObservation, Tables, stacked
from pboost.values import FloatArray, IntArray
from pboost.weak.label_search import LabelSearch, aligned
from pboost.weak.stump_search import StumpCut

#: Weights and sums below this count as this.
TINY = 1e-290
#: Rows of which weights are computed at a time.
BLOCK = 4096


class LabelTables:
    """What `Growth` asks of answers: they are tables (side, label) of all nodes."""

    def __init__(self, search: LabelSearch) -> None:
        self.search = search

    def model_columns(self, tables: Tables) -> dict[str, Any]:
        """Return the tables."""
        return {"answer": stacked(tables)} if tables else {}


@dataclass(slots=True, eq=False)
class SoftLabelExit(LabelExit):
    """An exit at which every row arrives with some probability.

    Attributes
    ----------
    scale : float
        What weights are multiplied by in `whole`, `own` and `mass`.
    turns : tuple of (StumpCut, ndarray of float64, shape (2, J))
        The nodes on the way from the root of the tree: the probability that a row takes the exit
        that leads here, by side and label.
    """

    scale: float = 1.0
    turns: tuple[tuple[StumpCut, FloatArray], ...] = ()


class SoftLabelTrees(LabelTrees):
    """A chain of trees that grow on uncertain answers; parameters besides those of `LabelTrees`.

    Parameters
    ----------
    observation : TableObservation
        How sure answers are.
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
        self._at_exit: Any = None  # weights (n, width) at an exit
        self._here = -1  # serial number of the exit at which weights are
        self._arriving = np.empty(0, dtype=np.int64)  # and starting weights, in fixed point
        super().__init__(data, search, rule, rounds, limits)
        self.observer = LabelTables(search)  # type: ignore[assignment]

    def _begin(self) -> None:
        """Make the weights of all rows, and list the rows of each label."""
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
        """Return the entrance of a tree, where all rows arrive."""
        root = LabelTrees._exit(self, edges, depth, rows, masses, for_it, against, settled)
        values = {each.name: getattr(root, each.name) for each in fields(LabelExit)}
        return SoftLabelExit(**values, scale=self._scale)

    def _real_weights(self, exit_: LabelExit) -> FloatArray:
        """Return the weights (n, J) of the rows of an exit, but for its factors."""
        return LabelTrees._real_weights(self, exit_) * self._probability(exit_)[:, None]

    def _probability(self, exit_: LabelExit) -> FloatArray:
        """Return the probability that each row arrives at an exit."""
        turns = exit_.turns if isinstance(exit_, SoftLabelExit) else ()
        sides = ((self._labels.sides_of_rows(cut), taken) for cut, taken in turns)
        return arrival(self.data.label, sides)

    def _arrive(self, exit_: SoftLabelExit) -> None:
        """Make the weights at an exit, and add them up on a scale that suits them."""
        if self._here == exit_.serial:
            return
        total = float(exit_.whole.sum()) / exit_.scale
        exit_.scale = fixed_scale(max(total, TINY))
        scale = fixed_scale(max(exit_.reach * self._total, TINY))
        exit_.whole, exit_.own, _ = self._weigh(exit_, scale)
        other = exit_.whole - exit_.own
        exit_.mass = math.fsum([*(exit_.for_it * exit_.own), *(exit_.against * other)])
        self._here = exit_.serial

    def _weigh(self, exit_: SoftLabelExit, scale: float) -> NDArray[np.int64]:
        """Make the weights at an exit, and the starting weights by a scale; returns sums (3, J)."""
        probability = self._probability(exit_)
        self._at_exit = np.multiply(self._weight, probability[:, None], out=self._room())
        self._arriving = (self.data.fixed * (probability * scale) + 0.5).astype(np.int64)
        return self._sum(exit_.rows, exit_.scale)

    def _sum(self, rows: IntArray, scale: float) -> NDArray[np.int64]:
        """Return sums of rows (3, J), as `LabelTrees` does, at the exit at hand."""
        width = self._weight.shape[1]
        found = np.zeros((3, width), dtype=np.int64)
        kernels.take(
            rows, self.data.label, np.empty((0, width)), scale, self._at_exit, self._arriving, found
        )
        return found[:, : self.n_labels]

    def _weights_at(self, exit_: Any) -> tuple[FloatArray, float]:
        """Return the weights of rows at the exit at hand, but for its factors, and their scale."""
        return self._at_exit, exit_.scale

    def find(self, exit_: Any) -> LabelSplit | None:
        """Return the best split of an exit, None where there is none."""
        if not len(exit_.mixed):
            return None
        self._arrive(exit_)
        found = LabelTrees.find(self, exit_)
        self._forget(exit_)
        return found

    def _split_at(
        self,
        exit_: Any,
        cut: StumpCut,
        votes: FloatArray | None = None,
        table: FloatArray | None = None,
    ) -> LabelSplit:
        """Return what a stump and its answers make of an exit; both are found unless given."""
        self._arrive(exit_)
        sums, arriving = self._by_side(cut, exit_.scale)
        reach = arriving * (exit_.reach / max(arriving.sum(), TINY))
        if table is None:
            table = self._observation.table(reach)
        delta = self._delta * (exit_.scale / self._scale)
        parts, made = [], np.empty((2, self.n_labels))
        for side, taken in enumerate((1 - table, table)):
            own, other = self._masses(sums, taken)
            if votes is not None:
                made[side] = votes[side]
            else:
                now = own * exit_.for_it, other * exit_.against
                made[side] = self._votes(*now, delta, exit_.settled)
            for_it, against = exit_.for_it * np.exp(-made[side]), exit_.against * np.exp(made[side])
            mass = math.fsum([*(for_it * own), *(against * other)])
            by_class = (reach * taken).sum(axis=0)
            own_mass, other_mass = np.rint(own).astype(np.int64), np.rint(other).astype(np.int64)
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
        """Return sums of weights by side, label of the row and label, and what arrives by both."""
        sums = self._sums_by_side(cut, scale).swapaxes(0, 1)
        arriving = np.diagonal(sums[:, :, 2], axis1=1, axis2=2)
        return sums[:, :, 0], arriving.astype(np.float64)

    def _sums_by_side(self, cut: StumpCut, scale: float) -> NDArray[np.int64]:
        """Return sums of weights by label of the row, side, and label: (J, 2, 3, J)."""
        found = [
            [self._sum(rows, scale) for rows in self._labels.part(cut, of_label)]
            for of_label in self._rows_of
        ]
        return np.array(found)

    def _masses(self, sums: NDArray[np.int64], taken: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return for each label the sums of its rows, and those of others, that take an exit."""
        J = self.n_labels
        parts = (taken[:, :, None] * sums).reshape(2 * J, J)
        is_own = np.tile(np.eye(J, dtype=bool), (2, 1))
        own, other = (
            [math.fsum(parts[here[:, k], k].tolist()) for k in range(J)]
            for here in (is_own, ~is_own)
        )
        return np.array(own), np.array(other)

    def _stored(self, exit_: LabelExit, cut: StumpCut, model: DecisionGraph, node: int) -> Any:
        """Return the split of a node of a model, with its votes and answers."""
        if model.answer is None:
            table = np.repeat(CERTAIN[:, :1], self.n_labels, axis=1)
        else:
            table = model.answer[node]
        return self._split_at(exit_, cut, model.vote[node], table)

    def _join(self) -> None:
        """Let all open exits join: weights are those of the exits, added up."""
        exits = [*self.open.values()]
        self._multiply(exits)
        self._put_on_scale()
        edges = tuple(sorted(edge for exit_ in exits for edge in exit_.edges))
        self._enter(edges, self._add_up(self._rows))

    def _multiply(self, exits: Sequence[LabelExit]) -> None:
        """Have weights multiplied by what they are at the exits together."""
        parts = ((self._probability(one), one.for_it, one.against) for one in exits)
        join_weights(self._weight, self.data.label, parts, self._room())

    def _room(self) -> FloatArray:
        """Return an array like that of the weights, which is used again and again."""
        if self._at_exit is None:
            self._at_exit = aligned(self._weight.shape, np.float64)
        self._here = -1
        return self._at_exit


def arrival(label: IntArray, turns: Iterable[tuple[NDArray[np.uint8], FloatArray]]) -> FloatArray:
    """Return the probability that each row arrives somewhere.

    `turns` are the nodes on the way: on which side each row lies, and the probabilities by side and
    label.
    """
    found = np.ones(len(label))
    for side, taken in turns:
        found *= taken.ravel().take(side.astype(np.int32) * np.int32(taken.shape[1]) + label)
    return found


def join_weights(
    weight: FloatArray,
    label: IntArray,
    exits: Iterable[tuple[FloatArray, FloatArray, FloatArray]],
    room: FloatArray,
) -> None:
    """Multiply weights by what they are at exits together.

    `exits` have the probability of each row, and the factors of its label and of others; `room` is
    an array like the weights.
    """
    n, own = len(label), np.zeros(len(label))
    room[:] = 0.0
    for probability, for_it, against in exits:
        own += probability * for_it[label]
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            room[rows, : len(against)] += probability[rows, None] * against
    room[np.arange(n), label] = own
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
    """Return the growth of a chain of trees whose exits vote for each label.

    `of_rows` returns the growth of a kind of the rows of a source.
    """
    own = data, search, rule, rounds, limits
    if observation.is_exact:
        found: LabelTrees = of_rows(LabelTrees)(*own)
    else:
        found = of_rows(SoftLabelTrees)(*own, observation)
    return found
