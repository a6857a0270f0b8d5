"""Rows of a sum of trees that lie in one of several places, and what they are told and asked.

A place is a function of its rows and of what it has been told so far: the trees that are there, and
the splits of the tree that grows. It answers with sums of whole numbers that float64 holds, and
with greatest numbers; neither depends on how rows are divided. One that begins anew is told all
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import round_shard as kernel
from pboost.data.columns import MAX_BINS, BinnedColumns
from pboost.data.training import Problem
from pboost.growth.shard_trees import Answer, TreeShard
from pboost.growth.tree import CartLimits
from pboost.losses import Loss
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees.forest import nodes_of_rows
from pboost.trees.rounds import Rounds
from pboost.trees.steps import Steps
from pboost.trees.weights import Weights
from pboost.values import FloatArray, IntArray

#: Columns, targets, weights, and whether these are copies, of which a row has so many at most; the
#: loss, and the decision value before the first tree.
Given: TypeAlias = tuple[BinnedColumns, FloatArray, FloatArray | None, bool, int, Loss, float]
_NO_ROWS, _NO_NUMBERS = np.empty(0, dtype=np.int32), np.empty(0)
_NOTHING = np.empty(0)


class Farthest(NamedTuple):
    """Asks what the greatest loss is bounded by."""


class Slopes(NamedTuple):
    """Has derivatives made; asks for the largest ones, and for the losses in units of 1 / scale."""

    scale: float


class Sizes(NamedTuple):
    """Asks how many gradients are near the largest one, and how many are not 0."""

    steepest: float


class Packed(NamedTuple):
    """Begins a tree: derivatives are counted in these units."""

    gradient: float
    curvature: float
    is_wide: bool


class At(NamedTuple):
    """A node, by its parent (-1: the root) and on which side of it it lies."""

    node: int
    parent: int
    is_above: bool


class Parted(NamedTuple):
    """Parts the rows of a node by the sides of the codes of a column; asks how many are below."""

    at: At
    feature: int
    side: NDArray[np.uint8]
    with_words: bool


class Asked(NamedTuple):
    """Asks about a node: the name of a method of `RoundShard`, and its numbers."""

    at: At
    what: str
    numbers: tuple[float, ...] = ()


class Gathered(NamedTuple):
    """Ends a tree, of these leaves; asks for what bounds their losses, and weights and copies."""

    leaves: list[At]


class Looked(NamedTuple):
    """Asks for slopes and curvatures of some leaves that add `step`, in units of 1 / scale."""

    leaf: IntArray
    step: FloatArray
    is_raised: NDArray[np.bool_]
    scale: FloatArray


class Fitted(NamedTuple):
    """Adds a tree of an earlier fit: its nodes, as `Tree` has them, of which sets are words."""

    feature: IntArray
    threshold: FloatArray
    children: IntArray
    value: FloatArray
    missing: NDArray[np.uint8] | None
    subset_column: IntArray | None
    subset: NDArray[np.int64] | None

    @classmethod
    def of(cls, tree: Tree) -> Fitted:
        """Return what is told of a tree."""
        subset = None if tree.subset is None else tree.subset.view(np.int64)
        given = tree.feature, tree.threshold, tree.children, tree.value
        return cls(*given, tree.missing, tree.subset_column, subset)

    def tree(self, n_features: int) -> Tree:
        """Return the tree, of which nothing is known but where rows go, and what they get."""
        subset = None if self.subset is None else self.subset.view(np.uint64)
        n = len(self.feature)
        return Tree(
            feature=self.feature,
            threshold=self.threshold,
            children=self.children,
            value=self.value,
            impurity=np.zeros(n),
            weight=np.zeros(n),
            n_rows=np.zeros(n, dtype=np.int32),
            labels=None,
            n_features=n_features,
            feature_names=None,
            settings={},
            stop_reason="",
            missing=self.missing,
            subset_column=self.subset_column,
            subset=subset,
        )


class Added(NamedTuple):
    """Adds a number to the decision values of each leaf."""

    value: FloatArray


class _Here(Rounds):
    """The arrays of rounds whose trees are grown elsewhere."""

    shares_lanes = False

    def look(self) -> None:
        """Wait to be asked."""


class RoundShard:
    """Rows of one place; parameters are those of `Given`."""

    #: What is sent, beside the records of this module.
    RECORDS: ClassVar = (Answer,)

    def __init__(
        self,
        columns: BinnedColumns,
        y: FloatArray,
        weight: FloatArray | None,
        are_copies: bool,
        most_copies: int,
        loss: Loss,
        bias: float,
        workers: Workers,
    ) -> None:
        n = len(y)
        listed = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
        self._listed: IntArray = listed.astype(np.int32)
        copies = int(weight.sum()) if are_copies and weight is not None else len(listed)
        of_rows = Weights(weight, are_copies, len(listed), copies, most_copies, float(copies))
        problem = Problem(
            columns=columns,
            labels=None,
            label=_NO_ROWS,
            weights=None,
            names=None,
            y=np.broadcast_to(0.0, n),
        )
        limits = CartLimits("squared", 1, 2, 1, 2, columns.n_features, "depth-first")
        steps = Steps(1.0, np.inf, True, 0.0)
        self._rounds = _Here(
            problem, y, loss, of_rows, np.full(n, bias), limits, steps, None, workers
        )
        #: Of margins the least counts, of residuals the largest.
        self._sign = -1.0 if loss.name in kernel.OF_MARGIN else 1.0
        self._seen = 0
        self._has_slopes = self._has_words = False
        self._span: dict[int, tuple[int, int]] = {}
        self._middle: dict[int, int] = {}
        self._leaves: list[tuple[int, int]] = []

    merge = staticmethod(TreeShard.merge)

    def masses(self, told: Sequence[Any]) -> Answer:
        """Do all that has not been done of what was told; answer the last question."""
        new = told[self._seen :]
        # Words, and what leaves gather, are of use in the tree that grows only.
        last = max((k for k, one in enumerate(new) if isinstance(one, Packed)), default=0)
        answer = None
        for k, one in enumerate(new):
            self._is_past = k < last
            answer = self._DO[type(one)](self, one, k == len(new) - 1)
        self._seen = len(told)
        assert answer is not None
        return answer

    def _farthest(self, _: Farthest, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        u, y, size = kernel.farthest(self._rounds)
        return Answer(_NOTHING, np.array([self._sign * u, y, size]))

    def _slopes(self, told: Slopes, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        steepest, most, total = kernel.slopes(self._rounds, told.scale)
        self._has_slopes = True
        return Answer(np.array([total]), np.array([steepest, most]))

    def _sizes(self, told: Sizes, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        return Answer(np.array(kernel.sizes(self._rounds, told.steepest), dtype=float), _NO_NUMBERS)

    def _packed(self, told: Packed, _: bool) -> Answer:
        arrays, n = self._rounds, len(self._listed)
        self._span, self._middle = {0: (0, n)}, {}
        arrays.n_listed, arrays.rows[:n] = n, self._listed
        self._has_words = not self._is_past
        if self._has_words:
            if not self._has_slopes:
                kernel.slopes(arrays, 1.0)
            arrays.is_wide = told.is_wide
            if told.is_wide and not len(arrays.low):
                arrays.low = np.empty(len(arrays.packed), dtype=np.int64)
            kernel.pack(arrays, told.gradient, told.curvature)
        self._has_slopes = False
        return Answer(_NOTHING, _NO_NUMBERS)

    def _rows_at(self, at: At) -> tuple[int, int]:
        """Return from where to where the rows of a node stand."""
        if at.node not in self._span:
            (start, stop), middle = self._span[at.parent], self._middle[at.parent]
            self._span[at.node] = (middle, stop) if at.is_above else (start, middle)
        return self._span[at.node]

    def _parted(self, told: Parted, _: bool) -> Answer:
        start, stop = self._rows_at(told.at)
        with_words = told.with_words and self._has_words
        n = kernel.part(self._rounds, start, stop, told.feature, told.side, with_words)
        self._middle[told.at.node] = start + n
        return Answer(np.array([float(n)]), _NO_NUMBERS)

    def _asked(self, told: Asked, is_asked: bool) -> Answer | None:
        rows = self._rows_at(told.at)
        if not is_asked:
            return None
        found: Answer = getattr(self, told.what)(*rows, *told.numbers)
        return found

    def count(self, start: int, stop: int) -> Answer:
        """Return the masses of rows by bin, (d, 256, 2)."""
        found = np.zeros((len(self._rounds.codes), MAX_BINS, 2))
        kernel.count(self._rounds, start, stop, found)
        return Answer(found, _NO_NUMBERS)

    def are_mixed(self, start: int, stop: int, gradient: float, curvature: float) -> Answer:
        """Return 1 unless rows have the Newton step of their node."""
        are_pure = kernel.are_pure(self._rounds, start, stop, gradient, curvature)
        return Answer(_NOTHING, np.array([float(not are_pure)]))

    def squares(self, start: int, stop: int) -> Answer:
        """Return the sum of the squares of the Newton steps of rows."""
        return Answer(np.array([kernel.squares(self._rounds, start, stop)]), _NO_NUMBERS)

    def rows_by_bin(self, start: int, stop: int, feature: int) -> Answer:
        """Return the number of rows of each code of a column, (256,)."""
        codes = self._rounds.codes[feature, self._rounds.rows[start:stop]]
        return Answer(np.bincount(codes, minlength=MAX_BINS).astype(float), _NO_NUMBERS)

    def _gathered(self, told: Gathered, is_asked: bool) -> Answer | None:
        self._leaves = [self._rows_at(at) for at in told.leaves]
        if self._is_past:
            return None
        found = [kernel.gather(self._rounds, *rows) for rows in self._leaves]
        if not is_asked:
            return None
        most = [(self._sign * u, y, size, heaviest) for u, y, size, heaviest, _ in found]
        return Answer(np.array([float(copies) for *_, copies in found]), np.array(most))

    def _looked(self, told: Looked, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        sums = []
        for k, leaf in enumerate(told.leaf.tolist()):
            (start, stop), (of_slope, of_bend) = self._leaves[leaf], told.scale[k]
            look = told.step[k], told.is_raised[k], of_slope, of_bend
            sums.append(kernel.sums(self._rounds, start, stop, *look))
        return Answer(np.array(sums), _NO_NUMBERS)

    def _fitted(self, told: Fitted, _: bool) -> None:
        rounds, rows = self._rounds, self._listed.astype(np.intp)
        tree = told.tree(len(rounds.codes))
        rounds.f[rows] += tree.value[nodes_of_rows(tree, rounds.problem, rows)]

    def _added(self, told: Added, _: bool) -> None:
        f, rows = self._rounds.f, self._rounds.rows
        for (start, stop), value in zip(self._leaves, told.value, strict=True):
            f[rows[start:stop]] += value

    _DO: Mapping[type, Any] = {
        Farthest: _farthest,
        Slopes: _slopes,
        Sizes: _sizes,
        Packed: _packed,
        Parted: _parted,
        Asked: _asked,
        Gathered: _gathered,
        Looked: _looked,
        Added: _added,
        Fitted: _fitted,
    }
