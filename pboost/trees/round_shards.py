"""Rows of a sum of trees that lie in one of several places, and what they are told and asked.

A place is a function of its rows and of what it has been told so far: the trees that are there, and
the splits of the tree that grows. It answers with sums of whole numbers that float64 holds, and
with greatest numbers; neither depends on how rows are divided. One that begins anew is told all
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

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
    """Begins a tree, whose derivatives are counted in these units; asks for what the root holds."""

    gradient: float
    curvature: float
    is_wide: bool
    wants_squares: bool


class Split(NamedTuple):
    """Splits nodes of a level; asks for their numbers of rows below, and for what children hold.

    The root has the number 0, the children of the i-th node that has been split since the tree
    began 2 i + 1 and 2 i + 2.

    Attributes
    ----------
    node, feature : ndarray of int32, shape (k,)
        The nodes, and the columns that they compare.
    above : ndarray of uint8, shape (k, 256)
        On which side the rows of each code lie.
    counted : ndarray of int8, shape (k,)
        Which child the masses by bin are wanted of; -1: none, the children are leaves.
    sums : ndarray of float64, shape (k, 3, 2)
        Sums of the derivatives of each node and of its children.
    wants_squares : bool
        Whether the sums of the squares of Newton steps are wanted.
    """

    node: IntArray
    feature: IntArray
    above: NDArray[np.uint8]
    counted: NDArray[np.int8]
    sums: FloatArray
    wants_squares: bool


class Counted(NamedTuple):
    """Asks for the masses by bin of nodes."""

    node: IntArray


class Tallied(NamedTuple):
    """Asks for the numbers of rows of nodes by column and bin."""

    node: IntArray


class Gathered(NamedTuple):
    """Ends a tree with these leaves; asks for bounds of their losses, weights and copies."""

    leaves: IntArray


class Looked(NamedTuple):
    """Asks for slopes and curvatures of some leaves that add `step`, in units of 1 / scale."""

    leaf: IntArray
    step: FloatArray
    is_raised: NDArray[np.uint8]
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
        self._spans: list[tuple[int, int]] = []
        self._leaves = np.empty((0, 2), dtype=np.int64)

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

    def _packed(self, told: Packed, is_asked: bool) -> Answer | None:
        arrays, n = self._rounds, len(self._listed)
        self._spans = [(0, n)]
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
        if not is_asked:
            return None
        found, (squares, masses) = self._room(1, 1)
        spans = self._spans_of([0])
        kernel.count(arrays, spans, masses)
        if told.wants_squares:
            kernel.look_at(arrays, spans, np.ones((1, 2)), np.empty(1), squares)
        return Answer(found, _NO_NUMBERS)

    def _room(self, n_numbers: int, n_nodes: int) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """Return an array for an answer, and its parts: numbers, and masses of nodes by bin."""
        cells = self._rounds.masses.shape[1]
        found = np.empty(n_numbers + n_nodes * cells)
        found[:n_numbers] = 0.0
        return found, (found[:n_numbers], found[n_numbers:].reshape(n_nodes, cells))

    def _spans_of(self, nodes: Any) -> NDArray[np.int64]:
        """Return from where to where the rows of nodes stand, (k, 2)."""
        return np.array([self._spans[node] for node in nodes], dtype=np.int64).reshape(-1, 2)

    def _split(self, told: Split, is_asked: bool) -> Answer | None:
        arrays, k = self._rounds, len(told.node)
        spans, is_counted = self._spans_of(told.node), told.counted >= 0
        mixed = np.ones((k, 3))
        if is_asked and told.node[0] == 0:
            kernel.look_at(arrays, spans[:1], told.sums[:1, 0].copy(), mixed[0, :1], _NO_NUMBERS)
        n_counted = int(is_counted.sum())
        found, (numbers, masses) = self._room(3 * k, n_counted if is_asked else 0)
        what = told.feature, told.above, told.counted, self._has_words
        kernel.split(arrays, spans, *what, numbers[:k])
        first = len(self._spans)
        for (start, stop), n_below in zip(spans.tolist(), numbers[:k].tolist(), strict=True):
            middle = start + int(n_below)
            self._spans += [(start, middle), (middle, stop)]
        if not is_asked:
            return None
        children = np.array(self._spans[first:], dtype=np.int64).reshape(k, 2, 2)[is_counted]
        each = children.reshape(-1, 2), told.sums[is_counted, 1:].reshape(-1, 2)
        are_mixed, squares = np.empty((2, 2 * n_counted))
        kernel.look_at(arrays, *each, are_mixed, squares if told.wants_squares else _NO_NUMBERS)
        mixed[is_counted, 1:] = are_mixed.reshape(-1, 2)
        if told.wants_squares:
            numbers[k:].reshape(k, 2)[is_counted] = squares.reshape(-1, 2)
        of_side = children[np.arange(n_counted), told.counted[is_counted]]
        kernel.count(arrays, np.ascontiguousarray(of_side), masses)
        return Answer(found, mixed)

    def _counted(self, told: Counted, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        found, (_, masses) = self._room(0, len(told.node))
        kernel.count(self._rounds, self._spans_of(told.node), masses)
        return Answer(found, _NO_NUMBERS)

    def _tallied(self, told: Tallied, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        found = np.zeros((len(told.node), len(self._rounds.codes), MAX_BINS))
        kernel.count_rows(self._rounds, self._spans_of(told.node), found)
        return Answer(found, _NO_NUMBERS)

    def _gathered(self, told: Gathered, is_asked: bool) -> Answer | None:
        self._leaves = self._spans_of(told.leaves)
        if self._is_past:
            return None
        found = np.empty((len(told.leaves), 5))
        kernel.gather(self._rounds, self._leaves, found)
        if not is_asked:
            return None
        found[:, 0] *= self._sign
        return Answer(found[:, 4], found[:, :4])

    def _looked(self, told: Looked, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        sums = np.empty((len(told.leaf), 2))
        look = told.step, told.is_raised, told.scale
        kernel.sums(self._rounds, self._leaves[told.leaf], *look, sums)
        return Answer(sums, _NO_NUMBERS)

    def _fitted(self, told: Fitted, _: bool) -> None:
        rounds, rows = self._rounds, self._listed.astype(np.intp)
        tree = told.tree(len(rounds.codes))
        rounds.f[rows] += tree.value[nodes_of_rows(tree, rounds.problem, rows)]

    def _added(self, told: Added, _: bool) -> None:
        kernel.add(self._rounds, self._leaves, told.value)

    _DO: Mapping[type, Any] = {
        Farthest: _farthest,
        Slopes: _slopes,
        Sizes: _sizes,
        Packed: _packed,
        Split: _split,
        Counted: _counted,
        Tallied: _tallied,
        Gathered: _gathered,
        Looked: _looked,
        Added: _added,
        Fitted: _fitted,
    }
