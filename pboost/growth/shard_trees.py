"""Trees on rows in several places: what each place sends of a node, and growth by what they send.

A shard is a function of its rows and of the splits so far. Asked about a node, it answers with the
masses of its rows there by bin, which are integers, so that their sums do not depend on how rows
are divided. The compiled grower searches the sums as it searches those of rows of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import grow, node_sums, reweight
from pboost._core.votes import VoteRule
from pboost.data.columns import GROUP, MAX_BINS, BinnedColumns, to_fixed_point
from pboost.data.criteria import CODES
from pboost.data.engines import Engine, check_size, exact_parts, merge, shared_scale
from pboost.data.special_columns import most_bins
from pboost.data.training import Problem, TrainingData
from pboost.growth.tree import CartArrays, CartLimits, TreeArrays
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray

#: As in `_core/_grower.pxd`: below this mass the weights of a node are made anew.
LEAST_MASS = 2.0**40
#: Bytes of what nodes hold by bin that are kept, for the other child of a node, and for later.
MOST_KEPT = 1 << 28
_NO_NUMBERS = np.empty(0)
_NO_ROWS = np.empty(0, dtype=np.int32)
#: As in `_core/_node_squares.pxd`.
FINER = 2.0**30
#: Columns, classes or targets, and weights of a shard, and the number of classes.
Given: TypeAlias = tuple[BinnedColumns, Any, FloatArray | None, int]


class SentSplit(NamedTuple):
    """A split as shards are told of it: on which `side` the rows of each code of a column lie."""

    node: int
    child: int
    feature: int
    side: NDArray[np.uint8]


class Question(NamedTuple):
    """What shards are asked about a node: the name of a method of `_Rows`, and its numbers.

    Weights are in units of ``2**-shift`` times those of the root.
    """

    what: str
    node: int
    shift: int = 0
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What shards answer: whole numbers that are added up, others of which the greatest counts."""

    total: NDArray[Any]
    most: FloatArray


def send_rows(at: dict[int, IntArray], split: SentSplit, codes: NDArray[np.uint8]) -> None:
    """Send the rows at a node, which are listed by nodes, to its children."""
    rows = at.pop(split.node)
    above = split.side[codes[split.feature, rows]] > 0
    at[split.child], at[split.child + 1] = rows[~above], rows[above]


class TreeShard:
    """Rows of one place, and at which nodes they are.

    Parameters
    ----------
    columns : BinnedColumns
        Rows in bins that all shards share.
    y : ndarray, shape (n,)
        Class of each row, int32; of a regression its target, float64.
    weights : ndarray of float64, shape (n,), or None
        As given; rows of weight 0 take no part.
    n_classes : int
        Number of classes, 0 of a regression.
    workers : Workers
        Threads.
    """

    def __init__(
        self,
        columns: BinnedColumns,
        y: NDArray[Any],
        weights: FloatArray | None,
        n_classes: int,
        workers: Workers,
    ) -> None:
        self.workers, self._codes, self._y = workers, columns.codes, y
        self._bins, self._n_classes = most_bins(columns.n_bins, columns.special), n_classes
        self._given = weights
        is_in = np.ones(len(y), dtype=bool) if weights is None else weights > 0
        self._first = np.flatnonzero(is_in).astype(np.int32)
        self._rows: dict[int, IntArray] = {}
        self._seen = 0

    @staticmethod
    def merge(answers: Sequence[Answer]) -> Answer:
        """Return the answers of several shards as one."""
        most = np.max([answer.most for answer in answers], axis=0)
        return Answer(merge([answer.total for answer in answers]), most)

    def extent(self) -> tuple[int, int, float]:
        """Return how many rows there are, how many of positive weight, and the greatest weight."""
        greatest = 1.0 if self._given is None else float(self._given.max(initial=0.0))
        return len(self._y), len(self._first), greatest

    def class_sizes(self) -> NDArray[np.int64]:
        """Return the number of rows of positive weight of each class."""
        counts = np.bincount(self._y[self._first], minlength=self._n_classes)
        return counts.astype(np.int64)

    def weight_sums(self) -> NDArray[np.int64]:
        """Return the starting weights of either of two classes for `exact_sum`."""
        return self._parts(self._first)

    def _parts(self, rows: IntArray) -> NDArray[np.int64]:
        weight, label = self._weight[rows], self._y[rows]
        return np.stack([exact_parts(weight[label == k]) for k in (0, 1)])

    def scaled_sum(self, exponent: int, shift: int) -> tuple[int, bool]:
        """Return the sum of the weights times ``2**-exponent``, in units of ``2**-shift``.

        And whether those that take part are still positive.
        """
        assert self._given is not None
        weight = np.ldexp(self._given, -exponent)
        fixed = np.empty(len(weight), dtype=np.int64)
        total = int(reweight.to_fixed(weight, 2.0**shift, fixed))
        return total, bool((weight[self._first] > 0).all())

    def begin(self, exponent: int, scale: float) -> None:
        """Set the weights, times ``2**-exponent``, and put all rows that take part at the root."""
        n, given = len(self._y), self._given
        self._weight = np.ones(n) if given is None else np.ldexp(given, -exponent)
        self._scale, self._rows, self._seen = scale, {0: self._first}, 0

    def masses(self, told: Sequence[SentSplit | Question]) -> Answer:
        """Make the splits that have not been made, of all so far; answer the last question."""
        for split in told[self._seen :]:
            if isinstance(split, SentSplit):
                send_rows(self._rows, split, self._codes)
        self._seen = len(told)
        question = told[-1]
        assert isinstance(question, Question)
        if question.what == "weight_sums":
            rows = np.concatenate([self._rows[int(node)] for node in question.numbers])
            return Answer(self._parts(rows), _NO_NUMBERS)
        rows = self._rows[question.node]
        there = _Rows(rows, self._y[rows], self._weight[rows], self._scale, question.shift)
        if question.what == "cells":
            return Answer(self._cells(there, question.numbers), _NO_NUMBERS)
        if question.what == "masses":
            return Answer(there.masses(self._n_classes), _NO_NUMBERS)
        answer: Answer = getattr(there, question.what)(*question.numbers)
        return answer

    def _cells(self, there: _Rows, numbers: tuple[float, ...]) -> NDArray[np.int64]:
        mass, label = there.fixed()[:, None], self._y
        if not self._n_classes:
            mass, label = np.column_stack([mass, there.moments(*numbers)]), _NO_ROWS
        d = len(self._codes)
        cells = np.zeros((d, self._bins, (self._n_classes or 2) + 1), dtype=np.int64)

        def count(first: int, last: int) -> None:
            node_sums.count_cells(self._codes, there.rows, label, mass, first, last, cells)

        self.workers.run(count, d, GROUP, len(there.rows))
        return cells


class _Rows(NamedTuple):
    """Rows of a shard at a node: their classes or targets, and weights as they are scaled.

    What is made of them is what the kernels make of rows in one table, operation by operation.
    """

    rows: IntArray
    y: NDArray[Any]
    weight: FloatArray
    scale: float
    shift: int

    def fixed(self) -> NDArray[np.int64]:
        """Return the weights as integers, as `fixed_weight` in `_core/_grower.pxd` does."""
        found: FloatArray = np.ldexp(self.weight * self.scale, self.shift) + 0.5
        return found.astype(np.int64)

    def masses(self, n_classes: int) -> NDArray[np.int64]:
        """Return the mass of each class; of a regression that of all, and 0."""
        found = np.zeros(n_classes or 2, dtype=np.int64)
        np.add.at(found, self.y if n_classes else np.zeros(len(self.y), dtype=int), self.fixed())
        return found

    def heaviest(self) -> Answer:
        """Return the greatest weight, in units of the root."""
        greatest = (self.weight * self.scale).max(initial=0.0)
        return Answer(np.empty(0, dtype=np.int64), np.array([greatest]))

    def ends(self) -> Answer:
        """Return the greatest target, and the greatest of the negative targets."""
        most = [self.y.max(initial=-np.inf), (-self.y).max(initial=-np.inf)]
        return Answer(np.empty(0, dtype=np.int64), np.array(most))

    def above(self, least: float, scale: float) -> Answer:
        """Return the sum of weight times target less the least one."""
        parts = (self.weight * (self.y - least) * scale).astype(np.int64)
        return Answer(parts.sum(keepdims=True), _NO_NUMBERS)

    def moments(self, mean: float, scale: float) -> NDArray[np.int64]:
        """Return weight times deviation of each row."""
        found: FloatArray = np.rint(self.weight * (self.y - mean) * scale)
        return found.astype(np.int64)

    def squares(self, mean: float, scale: float, of_squares: float) -> Answer:
        """Return the sums of moments and of squares, each with what rounding leaves over."""
        found, deviation = [], self.y - mean
        squares = self.weight * deviation * deviation * of_squares
        for part, whole in (
            (self.weight * deviation * scale, self.moments(mean, scale)),
            (squares, squares.astype(np.int64)),
        ):
            found += [whole.sum(), ((part - whole) * FINER).astype(np.int64).sum()]
        return Answer(np.array(found, dtype=np.int64), _NO_NUMBERS)


def begin(engine: Engine, problem: Problem, is_weighed: bool, *of: Any) -> tuple[TrainingData, int]:
    """Give all shards their weights; returns the data of the fit, without rows, and their number.

    `of` says which weights, where shards have several.

    Raises
    ------
    ValueError
        If there are more rows than int32 counts.
    """
    n_all, n, greatest = (list(part) for part in zip(*engine.ask("extent", *of), strict=True))
    check_size(sum(n_all))
    if is_weighed:
        exponent, scale, _ = shared_scale(engine, sum(n_all), max(greatest), *of)
    else:
        exponent, (scale, _) = 0, to_fixed_point(np.ones(1), sum(n_all))
    engine.ask("begin", exponent, scale, *of)
    assert isinstance(problem.columns, BinnedColumns)
    order = np.empty((problem.n_features, 0), dtype=np.int32)
    data = TrainingData(
        problem=problem,
        rows=_NO_ROWS,
        weight=_NO_NUMBERS,
        fixed=np.empty(0, dtype=np.int64),
        weight_exponent=exponent,
        scale=scale,
        exact=False,
        order=order,
        columns=problem.columns,
    )
    return data, sum(n)


class ShardedArrays(TreeArrays):
    """The arrays of a tree whose rows shards have; `n` are those of positive weight.

    Of a boosted tree the `rule` makes votes. Of the root, shards may have been `told` questions.
    """

    asks: ClassVar[Mapping[str, str]] = {
        "cells to be searched": "search_elsewhere",
        "cells to be split": "split_elsewhere",
    }

    def __init__(
        self,
        data: TrainingData,
        n: int,
        limits: CartLimits,
        key: int,
        engine: Engine,
        rule: VoteRule | None = None,
        told: Sequence[Question] = (),
    ) -> None:
        columns, labels = data.columns, data.problem.labels
        self.data, self.limits, self.rule, self.key = data, limits, rule, key
        self.exact, self.n_classes = False, 0 if labels is None else len(labels)
        self.criterion, self.n_negative = CODES[limits.criterion], 0
        self.order, self.codes, self.n_bins = data.order, columns.codes, columns.n_bins
        self.special, self.ranks, self.ranked_row = columns.special, None, _NO_ROWS
        self.rows, self.label, self.y = _NO_ROWS, _NO_ROWS, _NO_NUMBERS
        self.weight, self.fixed, self.scale = data.weight, data.fixed, data.scale
        self.whole = data.scale if rule is None else float(sum(data.class_masses()))
        self.moment = np.zeros((0, 2), dtype=np.int64)
        self.side = np.empty(MAX_BINS, dtype=np.uint8)
        self.spare = np.empty(0, dtype=np.int32)
        self.packed = np.empty(0, dtype=np.int64)
        self.work = np.zeros(grow.work_size(self.n_classes), dtype=np.int64)
        self._make_nodes(min(limits.leaves, n, 1 << min(limits.depth, 40)))
        bins = most_bins(columns.n_bins, columns.special)
        shape = columns.n_features, bins, (self.n_classes or 2) + 1
        self.cells = np.zeros(shape, dtype=np.int64)
        self._engine, self._told = engine, list[SentSplit | Question](told)
        #: What nodes hold, the newest last; of a pair of children the parent.
        self._kept: dict[int, NDArray[np.int64]] = {}
        self._parent: dict[int, int] = {}
        self._searched = 0
        #: Of regressions, the numbers that moments of the nodes are about.
        self._centre: dict[int, float] = {}
        self._begin(n)

    def _begin(self, n: int) -> None:
        """Make the root."""
        self.counter[...] = 0
        self.counter["nodes"] = self.counter["leaves"] = 1
        self.node[:1] = 0
        self.node["stop"][0] = n
        for name in ("feature", "child", "missing", "parent"):
            self.node[name][0] = -1
        self.vote[:1] = 0
        self.certificate[:] = 1.0, 0.0
        self.mass[0] = self._ask("masses", 0).total
        self._measure(0)

    @property
    def splits(self) -> list[SentSplit]:
        """The splits that have been made, in their order."""
        return [one for one in self._told if isinstance(one, SentSplit)]

    def search_elsewhere(self) -> None:
        """Search the pending node in what shards hold there."""
        if self.limits.growth == "depth-first" and self.node["child"][self._searched] < 0:
            self._kept.pop(self._searched, None)  # it is a leaf
        self._searched = self.at
        self.cells = self._cells_of(self.at)
        grow.search_cells(self)

    def split_elsewhere(self) -> None:
        """Split the pending node, and tell shards."""
        node = self.at
        self.cells = self._cells_of(node)
        grow.split_cells(self)
        child, feature = int(self.node["child"][node]), int(self.node["feature"][node])
        self._told.append(SentSplit(node, child, feature, self.side.copy()))
        self._parent[child] = node
        for one in (child, child + 1):
            self._measure(one)
        if not (self.n_classes and (self._may_split(child) or self._may_split(child + 1))):
            self._kept.pop(node, None)

    def _ask(self, what: str, node: int, *numbers: float) -> Answer:
        self._told.append(Question(what, node, int(self.node["shift"][node]), numbers))
        return TreeShard.merge(self._engine.masses(self._told))

    def _ask_cells(self, node: int) -> NDArray[np.int64]:
        """Return what a node holds, as shards say."""
        if self.n_classes:
            return self._ask("cells", node).total
        mean, scale = self._centre[node], float(self.node["scale"][node])
        return self._ask("cells", node, mean, scale).total

    def _measure(self, node: int) -> None:
        """Note what a node is like; refine its weights if they have become small."""
        whole = self.mass[node].sum() if self.n_classes else self.mass[node, 0]
        if float(whole) < LEAST_MASS:
            self._refine(node)
        if self.n_classes:
            self.node["pure"][node] = np.count_nonzero(self.mass[node] > 0) < 2
        else:
            self._measure_squares(node)

    def _refine(self, node: int) -> None:
        """Make the weights of a node anew, so that their sum is large."""
        shift, heaviest = self.node["shift"], float(self._ask("heaviest", node).most[0])
        shift[node] = node_sums.coarse_shift_of(heaviest, self.n_rows_at(node))
        coarse = int(self._ask("masses", node).total.sum())
        shift[node] = node_sums.full_shift_of(coarse, int(shift[node]))
        self.mass[node] = self._ask("masses", node).total

    def _measure_squares(self, node: int) -> None:
        """Find the mean and the squared error of a node, as `measure_binned` does of rows here."""
        most, least = self._ask("ends", node).most.tolist()
        ends = -least, most
        of_squares = node_sums.begin_moments(self, node, *ends)
        scale = float(self.node["scale"][node])
        above = int(self._ask("above", node, ends[0], scale).total[0])
        node_sums.centre_moments(self, node, *ends, above)
        self._centre[node] = float(self.node["mean"][node])
        found = self._ask("squares", node, self._centre[node], scale, of_squares).total
        node_sums.end_moments(self, node, *ends, of_squares, found)

    def _may_split(self, node: int) -> bool:
        """Whether a node is going to be searched, as the grower decides."""
        limits, of_node = self.limits, self.node
        least = max(limits.min_split, 2 * limits.min_leaf)
        is_open = not of_node["pure"][node] and int(of_node["depth"][node]) < limits.depth
        return bool(is_open) and self.n_rows_at(node) >= least

    def _cells_of(self, node: int) -> NDArray[np.int64]:
        """Return what a node holds; of two children the smaller is asked for.

        The other holds what is left of their parent's.
        """
        if node in self._kept:
            return self._kept[node]
        pair = (node - 1 + node % 2, node + node % 2)
        parent = self._parent.pop(pair[0], 0)
        # Moments are about the mean of each node.
        whole = self._kept.pop(parent, None) if node and self.n_classes else None
        shift = self.node["shift"]
        if whole is None or any(shift[one] != shift[parent] for one in pair):
            return self._keep(node, self._ask_cells(node))
        small, large = sorted(pair, key=self.n_rows_at)
        part = self._ask_cells(small)
        for one, cells in ((large, whole - part), (small, part)):
            if self._may_split(one):
                self._keep(one, cells)
        return self._kept[node]

    def _keep(self, node: int, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep what a node holds, and no more of all others than memory allows; returns it."""
        self._kept[node] = cells
        most = max(3, MOST_KEPT // max(cells.nbytes, 1))
        while len(self._kept) > most:
            del self._kept[next(iter(self._kept))]
        return cells


class ShardArrays(ShardedArrays, CartArrays):
    """The arrays of a classification or regression tree whose rows shards have."""

    def __init__(
        self, data: TrainingData, n: int, limits: CartLimits, key: int, engine: Engine
    ) -> None:
        super().__init__(data, n, limits, key, engine)
        self.exponent = data.weight_exponent
