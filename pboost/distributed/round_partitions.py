"""Run gradient boosting commands and requests on the rows of one partition.

The state of a partition depends only on its rows and the earlier commands. The results are sums of
integers that float64 represents exactly, and maxima, so they do not depend on the partitions. A
partition that is created again executes all commands again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import boost, draws, softmax
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.prebuilt import MAX_BINS
from pboost.data.read.check_xy import times_power
from pboost.data.row_draws import RowDraws, row_hashes
from pboost.data.targets import least_rest
from pboost.distributed.engine import PartialSums, sum_parts
from pboost.distributed.tree_partitions import Answer, TreeShard, problem_of_rows
from pboost.growth.tree import CartLimits
from pboost.losses import LOSSES, Loss
from pboost.losses.base import fine_parts, values_of
from pboost.models.single_tree import Tree
from pboost.threads import Workers
from pboost.trees import pooled_growth as pooling
from pboost.trees.gradients import RoundWeights, Steps, copies_of
from pboost.trees.random_forest import nodes_of_rows
from pboost.trees.tree_rounds import NODE, Rounds
from pboost.values import Array, FloatArray, IntArray

_NO_ROWS, _NO_NUMBERS = np.empty(0, dtype=np.int32), np.empty(0)
_NOTHING = np.empty(0)
#: Numbers to be summed over the partitions, and numbers whose maximum is taken.
_Found: TypeAlias = tuple[list[Any], list[Any]]


class SumQuery(NamedTuple):
    """Request for sums over rows. It contains the name of a method of `RoundShard`."""

    what: str
    arguments: tuple[Any, ...] = ()


class Weighed(NamedTuple):
    """Command that sets the sample weights.

    Attributes
    ----------
    greatest : float
        Largest weight of all rows.
    unit : float
        Weights divided by `greatest` are multiples of this unit; 0 if there is no unit, -1 if all
        weights are equal.
    of_numbers : bool
        Whether the targets of classes are their codes instead of -1 and +1.
    """

    greatest: float
    unit: float
    of_numbers: bool


class BeginFit(NamedTuple):
    """Command to begin a fit with a loss and initial decision values of shape (J,).

    If weights are copies of rows, `most_copies` is the largest number of copies.
    """

    loss: Loss
    bias: FloatArray
    most_copies: int


class MaxMargin(NamedTuple):
    """Request for the bounds of the largest loss."""


class Shares(NamedTuple):
    """Command to compute the gradients of all classes and return the largest values and losses."""


class Losses(NamedTuple):
    """Request for the sum of the losses of all classes in units of 1 / scale."""

    scale: float


class Gradients(NamedTuple):
    """Command to compute derivatives and return their maxima and the sum of the losses."""

    scale: float


class GradientRange(NamedTuple):
    """Request for the number of gradients near the largest one and of nonzero gradients."""

    steepest: float


class DrawnRows(NamedTuple):
    """Rows on which the trees of a round are grown, see `RowDraws`."""

    number: int
    share: float
    seed: int


class Quantise(NamedTuple):
    """Command to quantize derivatives, begin a tree and return the sums at its root.

    With `leaf_shrinkage`, `square_scale` is the factor of the squared gradients, otherwise 0. The
    tree is grown on the `drawn` rows, or on all rows if it is None.
    """

    gradient: float
    curvature: float
    is_wide: bool
    wants_squares: bool
    of_class: int
    square_scale: float
    drawn: DrawnRows | None


class Guessed(NamedTuple):
    """Command to begin a tree with the scales of the previous tree, in a single request.

    This request replaces `MaxMargin`, `Gradients`, `GradientRange` and `Quantise`. The tree only
    begins when the same `Quantise` follows.

    Attributes
    ----------
    scale : float
        The unit of the losses is 1 / scale.
    steepest : float
        Reference for counting large gradients.
    packed : Quantise
        Expected command.
    """

    scale: float
    steepest: float
    packed: Quantise


class SplitNodes(NamedTuple):
    """Command to split the nodes of a level and return row counts and sums of the children.

    The root has number 0. The children of the i-th node that was split in this tree have numbers
    2 i + 1 and 2 i + 2.

    Attributes
    ----------
    node, feature : ndarray of int32, shape (k,)
        The nodes and the features of their splits.
    above : ndarray of uint8, shape (k, 256)
        Whether each bin code goes to the right child.
    counted : ndarray of int32, shape (k,)
        Child whose histogram is requested, or -1 if both children are leaves.
    sums : ndarray of float64, shape (k, 3, 2)
        Sums of the derivatives of each node and of its children.
    wants_squares : bool
        Whether sums of squared Newton steps are requested.
    leaves : ndarray of int32, shape (L,)
        Leaves of the tree if these are its last splits, as in `GatherLeaves`; otherwise empty.
    """

    node: IntArray
    feature: IntArray
    above: NDArray[np.uint8]
    counted: IntArray
    sums: FloatArray
    wants_squares: bool
    leaves: IntArray


class Counted(NamedTuple):
    """Request for the histograms of nodes."""

    node: IntArray


class Tallied(NamedTuple):
    """Request for the number of rows of nodes by feature and bin."""

    node: IntArray


class GatherLeaves(NamedTuple):
    """Command to end a tree and return bounds of losses, weights and copies for its leaves."""

    leaves: IntArray


class LineSearch(NamedTuple):
    """Request for the derivatives of the loss at some leaves after adding `step`."""

    leaf: IntArray
    step: FloatArray
    is_raised: NDArray[np.uint8]
    scale: FloatArray


class AddTree(NamedTuple):
    """Command to add a tree of an earlier fit, with the arrays of `Tree`."""

    feature: IntArray
    threshold: FloatArray
    children: IntArray
    value: FloatArray
    missing: NDArray[np.uint8] | None
    subset_column: IntArray | None
    subset: NDArray[np.int64] | None
    of_class: int

    @classmethod
    def of(cls, tree: Tree, of_class: int) -> AddTree:
        """Return the command that adds a tree of a class."""
        subset = None if tree.subset is None else tree.subset.view(np.int64)
        arrays = tree.feature, tree.threshold, tree.children, tree.value
        return cls(*arrays, tree.missing, tree.subset_column, subset, of_class)

    def tree(self, n_features: int) -> Tree:
        """Return a tree with only the arrays that prediction needs."""
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
            classes=None,
            n_features=n_features,
            feature_names=None,
            settings={},
            stop_reason="",
            missing=self.missing,
            subset_column=self.subset_column,
            subset=subset,
        )


class HeldOutLoss(NamedTuple):
    """Request for the losses of the validation set after adding trees.

    The result is `sum_parts` of losses times weights, with weights times ``2**-exponent``.
    """

    trees: tuple[AddTree, ...]
    exponent: int


class AddUpdate(NamedTuple):
    """Command to add a number to the decision values of each leaf."""

    value: FloatArray


class LocalRounds(Rounds):
    """The arrays of the rounds of a partition, which do not grow trees."""

    shares_lanes = False

    def look(self) -> None:
        """Do nothing, because derivatives are computed on request."""


class PartRange(NamedTuple):
    """The position of the rows of a partition among all rows.

    Attributes
    ----------
    start : int
        Number of rows in earlier partitions.
    held : ndarray of int32 or None
        Rows of this partition in the validation set.
    start_of_held, n_held : int
        Number of validation rows in earlier partitions, and in total.
    """

    start: int
    held: IntArray | None
    start_of_held: int
    n_held: int


class RoundShard:
    """Rows of one partition.

    Parameters
    ----------
    columns, y, weights :
        The columns, the class codes or scaled targets, and the sample weights.
    exponent : int or None
        Exponent of the power of two that scales the targets, or None for classes.
    place : PartRange
        Position of the rows among all rows.
    workers : Workers
        Threads.
    """

    _rounds: Any
    _held_f: FloatArray

    def __init__(
        self,
        columns: BinnedColumns,
        y: Any,
        weights: FloatArray | None,
        exponent: int | None,
        place: PartRange,
        workers: Workers,
    ) -> None:
        self._columns, self._truth, self._exponent = columns, y, exponent
        self._start, self._workers, held = place.start, workers, place.held
        self._held, self._of_held = _NO_ROWS if held is None else held, place[2:]
        if held is not None:
            weights = np.ones(columns.n_rows) if weights is None else weights
            self._held_weight, weights = weights[held], weights.copy()
            weights[held] = 0.0
        self._weights = weights
        self._seen = 0
        self._has_slopes = self._has_words = False
        self._begun_as: Quantise | None = None
        self._spans: list[tuple[int, int]] = []
        self._leaves = np.empty((0, 2), dtype=np.int64)

    merge = staticmethod(TreeShard.merge)

    def masses(self, commands: Sequence[Any]) -> Answer:
        """Execute the new commands and return the result of the last one."""
        answer = self._do(commands)
        assert answer is not None
        return answer

    def _do(self, commands: Sequence[Any]) -> Answer | None:
        new = commands[self._seen :]
        # Quantized values and leaves are only needed for the current tree.
        self._last = dict.fromkeys((Quantise, Shares), -1)
        self._last |= {type(command): k for k, command in enumerate(new)}
        answer = None
        for k, command in enumerate(new):
            self._is_past = k < self._last[Quantise]
            self._is_old = k < self._last[Shares]
            answer = self._DO[type(command)](self, command, k == len(new) - 1)
        self._seen = len(commands)
        return answer

    # ------------------------------------------------------------------ rows

    def truth(self, rows: IntArray) -> Array:
        """Return the targets of the listed rows that belong to this partition."""
        return self._numbers()[self._here(rows)]

    def _here(self, rows: IntArray) -> IntArray:
        first, last = np.searchsorted(rows, [self._start, self._start + self._columns.n_rows])
        return rows[first:last] - self._start

    def _numbers(self) -> FloatArray:
        """Return the unscaled targets of a regression."""
        assert self._exponent is not None
        return np.asarray(np.ldexp(self._truth, self._exponent))

    def scanned(self, commands: Sequence[Any], n_copies: int) -> tuple[Any, ...]:
        """Return codes, targets and weights of a sample that determines how trees grow."""
        self._do(commands)
        used = None if self._weight is None else self._weight > 0
        rows, codes = pooling.scanned_part(self._columns, used, n_copies)
        return codes, self._y[rows], np.empty(0) if self._weight is None else self._weight[rows]

    def _used(self) -> NDArray[np.bool_]:
        """Return which rows have positive weight."""
        return np.ones(self._columns.n_rows, bool) if self._weights is None else self._weights > 0

    # ------------------------------------------------------------------ validation set

    def heaviest_held(self) -> float:
        """Return the largest weight of the validation rows."""
        return float(self._held_weight.max(initial=0.0))

    def lowest_held(self, minimum: float) -> tuple[int, float] | None:
        """Return the first validation row with a target below `minimum` and its target."""
        y = self._numbers()[self._held]
        low = np.flatnonzero(y < minimum)
        return (int(self._held[low[0]]) + self._start, float(y[low[0]])) if len(low) else None

    def held_weights(self, exponent: int) -> PartialSums:
        """Return `sum_parts` of the validation weights times ``2**-exponent``."""
        return sum_parts(times_power(self._held_weight, -exponent), *self._of_held)

    def _watched(self, command: HeldOutLoss, is_asked: bool) -> Answer | None:
        rows, problem = self._held.astype(np.intp), self._rounds.problem
        for fitted_tree in command.trees:
            tree = fitted_tree.tree(self._columns.n_features)
            # Same memory order as one table, because it determines the rounding of class sums.
            self._held_f = np.asfortranarray(self._held_f)
            self._held_f[fitted_tree.of_class] += tree.value[nodes_of_rows(tree, problem, rows)]
        if not is_asked:
            return None
        f = self._held_f if self._loss.is_multiclass else self._held_f[0]
        loss = self._loss.value(self._y[self._held], f.T)
        weighed = loss * times_power(self._held_weight, -command.exponent)
        return Answer(_NOTHING, _NO_NUMBERS, [sum_parts(weighed, *self._of_held)])

    # ------------------------------------------------------------------ sums

    def _asked(self, command: SumQuery, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        total, maxima = getattr(self, command.what)(*command.arguments)
        return Answer(np.array(total, dtype=float), np.array(maxima, dtype=float))

    def extent(self) -> _Found:
        """Return the number of positive weights, their maximum, and minus their minimum."""
        if self._weights is None:
            return [float(self._columns.n_rows)], [1.0, -1.0]
        some = self._weights[self._weights > 0]
        return [float(len(some))], [some.max(initial=0.0), -some.min(initial=np.inf)]

    def weight_sum(self, unit: float, scale: float) -> _Found:
        """Return the sum of weights divided by `unit`, in units of 1 / scale."""
        assert self._weights is not None
        return [boost.scaled_sum(self._weights / unit, scale)], []

    def weight_rest(self, greatest: float, unit: float) -> _Found:
        """Return minus the `least_rest` of the weights divided by the largest weight."""
        assert self._weights is not None
        rest = least_rest(self._weights[self._weights > 0] / greatest, unit)
        return [], [-np.inf if rest is None else -rest]

    def copies(self, greatest: float, unit: float) -> _Found:
        """Return the sum and maximum of the copies, and whether the weights are not copies."""
        assert self._weights is not None
        copies, are_copies = copies_of(self._weights / greatest, unit)
        return [copies.sum()], [copies.max(), not are_copies]

    def targets(self, minimum: float) -> _Found:
        """Return the number of nonzero targets, and the negated indices of the first rows."""
        used, y = np.flatnonzero(self._used()), self._numbers()
        low = used[y[used] < minimum]
        return [np.count_nonzero(y[used])], [
            -float(rows[0] + self._start) if len(rows) else -np.inf for rows in (used, low)
        ]

    def _values(self, name: str) -> FloatArray:
        used = np.flatnonzero(self._used())
        weight = np.ones(len(used)) if self._weight is None else self._weight[used]
        return values_of(name, self._y[used], weight)

    def exact_bound(self, name: str) -> _Found:
        """Return `boost.sum_bound` of the values to sum, see `row_sums`."""
        largest, terms = boost.sum_bound(self._values(name))
        return [terms], [largest]

    def exact(self, name: str, scale: float) -> _Found:
        """Return the sum of the values in units of 1 / scale."""
        return [boost.scaled_sum(self._values(name), scale)], []

    def fine_bound(self, name: str) -> _Found:
        """Return the number, sum and largest absolute value of the values to sum."""
        values = self._values(name)
        return [float(len(values)), float(values.sum())], [np.abs(values).max(initial=0.0)]

    def fine(self, name: str, largest: float, n: int) -> _Found:
        """Return the sums of `fine_parts`."""
        return list(fine_parts(self._values(name), largest, n)), []

    def _row_losses(self) -> tuple[FloatArray, FloatArray | None]:
        """Return `Loss.omitted` of each row, and the number of copies of each row."""
        value = self._loss.omitted(self._y)
        if self._weight is None:
            return value, None
        if self._are_copies:
            return np.where(self._weight > 0, value, 0.0), self._weight
        return np.where(self._weight > 0, self._weight * value, 0.0), None

    def loss_bound(self) -> _Found:
        """Return `boost.sum_bound` of `Loss.omitted`."""
        largest, terms = boost.sum_bound(*self._row_losses())
        return [terms], [largest]

    def loss_sum(self, scale: float) -> _Found:
        """Return the sum of `Loss.omitted`, in units of 1 / scale."""
        value, copies = self._row_losses()
        return [boost.scaled_sum(value, scale, copies)], []

    # ------------------------------------------------------------------ rounds

    def _weighed(self, command: Weighed, _: bool) -> None:
        self._are_copies, self._weight = command.unit > 0, self._weights
        if command.unit < 0:
            self._weight = None
        elif self._weights is not None:
            self._weight = self._weights / command.greatest
            if self._are_copies:
                self._weight = np.rint(self._weight / command.unit)
        y = self._truth.astype(np.float64) if self._exponent is None else self._numbers()
        self._y: FloatArray = (
            y if command.of_numbers or self._exponent is not None else 2.0 * y - 1.0
        )

    def _begun(self, command: BeginFit, _: bool) -> None:
        weight, n = self._weight, len(self._y)
        self._is_shrunk = False
        listed = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
        self._listed: IntArray = listed.astype(np.int32)
        self._drawn: IntArray | None = None
        self._hashes: NDArray[np.uint64] | None = None
        copies = int(weight.sum()) if self._are_copies and weight is not None else len(listed)
        counts = len(listed), copies, command.most_copies, float(copies)
        self._loss, self._f = command.loss, np.repeat(command.bias[:, None], n, axis=1)
        self._held_f = self._f[:, : len(self._held)].copy()
        of_classes = command.loss.is_multiclass
        loss = LOSSES["log_loss"] if of_classes else command.loss
        limits = CartLimits("squared_error", 1, 2, 1, 2, self._columns.n_features, "depth_first")
        self._rounds = LocalRounds(
            problem_of_rows(self._columns),
            self._y,
            loss,
            RoundWeights(weight, self._are_copies, *counts),
            self._f[0],
            limits,
            Steps(1.0, np.inf, True, 0.0),
            None,
            self._workers,
        )
        self._residual: FloatArray | None = np.empty(self._f.shape) if of_classes else None
        self._losses = np.empty(n if of_classes else 0)
        #: Margins are bounded by their minimum, and residuals are bounded by their maximum.
        self._sign = -1.0 if loss.name in boost.OF_MARGIN and not of_classes else 1.0
        # Free the original weights; the arrays above replace them.
        self._weights = None

    def _shares(self, _: Shares, is_asked: bool) -> Answer | None:
        if self._is_old:
            return None
        assert self._residual is not None
        rounds, of_each = self._rounds, np.zeros((2, self._workers.n_threads, len(self._f)))
        is_shared = len(self._y) >= 2 * rounds.share
        softmax.shares(
            self._f,
            self._y,
            self._weight,
            self._are_copies,
            rounds.per_limit,
            self._residual,
            self._losses,
            of_each[0],
            of_each[1],
            self._workers.team if is_shared else 0,
            rounds.share,
        )
        if not is_asked:
            return None
        largest_loss, terms = boost.sum_bound(
            self._losses, self._weight if self._are_copies else None
        )
        return Answer(np.array([terms]), np.append(of_each.max(axis=1).ravel(), largest_loss))

    def _lost(self, command: Losses, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        copies = self._weight if self._are_copies else None
        total = boost.scaled_sum(self._losses, command.scale, copies)
        return Answer(np.array([total]), _NO_NUMBERS)

    def _farthest(self, _: MaxMargin, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        u, y, size = boost.farthest(self._rounds)
        return Answer(_NOTHING, np.array([self._sign * u, y, size]))

    def _place_slopes(self, scale: float) -> tuple[float, float, float]:
        """Compute derivatives and overwrite the quantized values with them."""
        self._has_slopes, self._begun_as = True, None
        return boost.place_slopes(self._rounds, scale)

    def _slopes(self, command: Gradients, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        steepest, most_curved, total = self._place_slopes(command.scale)
        return Answer(np.array([total]), np.array([steepest, most_curved]))

    def _guessed(self, command: Guessed, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        arrays = self._rounds
        u, y, size = boost.farthest(arrays)
        steepest, most_curved, total = self._place_slopes(command.scale)
        numbers = total, *boost.sizes(arrays, command.steepest)
        root = self._packed(command.packed, True)
        assert root is not None
        self._begun_as = command.packed
        totals = np.concatenate([np.array(numbers, dtype=float), root.total])
        return Answer(totals, np.array([self._sign * u, y, size, steepest, most_curved]))

    def _sizes(self, command: GradientRange, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        if not self._has_slopes and self._residual is None:
            self._place_slopes(1.0)
        return Answer(
            np.array(boost.sizes(self._rounds, command.steepest), dtype=float), _NO_NUMBERS
        )

    def _packed(self, command: Quantise, is_asked: bool) -> Answer | None:
        if command == self._begun_as:  # the guess was right
            self._begun_as = None
            return None
        arrays = self._rounds
        self._spans, self._class = [(0, len(self._listed))], command.of_class
        self._is_shrunk = command.square_scale > 0
        arrays.list_rows(self._listed)
        self._has_words = not self._is_past
        if self._has_words:
            if self._residual is not None:
                residual = arrays.residual = self._residual[command.of_class]
                arrays.y, arrays.f, arrays.loss_code = residual, residual, boost.OF_SHARES
            elif not self._has_slopes:
                self._place_slopes(1.0)
            arrays.is_wide = command.is_wide
            if command.is_wide and not len(arrays.low):
                arrays.low = np.empty(len(arrays.packed), dtype=np.int64)
            if command.square_scale:
                arrays.note_squares(command.gradient, command.square_scale)
            boost.pack(arrays, command.gradient, command.curvature)
        self._draw(command.drawn)
        if self._drawn is not None and self._has_words:
            arrays.leave_out(self._drawn)
        self._has_slopes = False
        if not is_asked:
            return None
        totals, (squares, masses) = self._room(3, 1)
        rows = self._listed if self._drawn is None else self._drawn
        squares[2] = len(rows)
        spans = self._spans_of([0])
        boost.count(arrays, spans, masses)
        if command.square_scale:
            squares[1] = arrays.squares[rows].sum()
        if command.wants_squares:
            boost.look_at(arrays, spans, np.ones((1, 2)), np.empty(1), squares[:1])
        return Answer(totals, _NO_NUMBERS)

    def _room(self, n_numbers: int, n_nodes: int) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """Allocate a result, and return it with its parts: numbers and histograms."""
        cells = self._rounds.masses.shape[1]
        totals = np.empty(n_numbers + n_nodes * cells)
        totals[:n_numbers] = 0.0
        return totals, (totals[:n_numbers], totals[n_numbers:].reshape(n_nodes, cells))

    def _spans_of(self, nodes: Any) -> NDArray[np.int64]:
        """Return the first and last position of the rows of nodes, shape (k, 2)."""
        return np.array([self._spans[node] for node in nodes], dtype=np.int64).reshape(-1, 2)

    def _draw(self, drawn: DrawnRows | None) -> None:
        """Set the rows on which the next tree is grown; None stands for all rows."""
        self._drawn = None
        if drawn is not None:
            if self._hashes is None:
                self._hashes = row_hashes(self._columns, self._y)
            draws_of_fit = RowDraws(self._hashes, self._listed, drawn.share, drawn.seed)
            self._drawn = draws_of_fit.drawn(drawn.number, self._rounds.team)

    def _split(self, command: SplitNodes, is_asked: bool) -> Answer | None:
        arrays, k = self._rounds, len(command.node)
        spans, is_counted = self._spans_of(command.node), command.counted >= 0
        mixed = np.ones((k, 3))
        if is_asked and command.node[0] == 0:
            boost.look_at(arrays, spans[:1], command.sums[:1, 0].copy(), mixed[0, :1], _NO_NUMBERS)
        n_counted = int(is_counted.sum())
        totals, (numbers, masses) = self._room(3 * k, n_counted if is_asked else 0)
        what = command.feature, command.above, command.counted, self._has_words
        boost.split(arrays, spans, *what, numbers[:k])
        first = len(self._spans)
        for (start, stop), n_below in zip(spans.tolist(), numbers[:k].tolist(), strict=True):
            middle = start + int(n_below)
            self._spans += [(start, middle), (middle, stop)]
        ends = self._at_leaves(command.leaves) if len(command.leaves) else None
        if not is_asked:
            return None
        children = np.array(self._spans[first:], dtype=np.int64).reshape(k, 2, 2)[is_counted]
        each = children.reshape(-1, 2), command.sums[is_counted, 1:].reshape(-1, 2)
        are_mixed, squares = np.empty((2, 2 * n_counted))
        boost.look_at(arrays, *each, are_mixed, squares if command.wants_squares else _NO_NUMBERS)
        mixed[is_counted, 1:] = are_mixed.reshape(-1, 2)
        if command.wants_squares:
            numbers[k:].reshape(k, 2)[is_counted] = squares.reshape(-1, 2)
        of_side = children[np.arange(n_counted), command.counted[is_counted]]
        boost.count(arrays, np.ascontiguousarray(of_side), masses)
        if ends is None:
            return Answer(totals, mixed.ravel())
        maxima = np.concatenate([mixed.ravel(), ends.maxima.ravel()])
        return Answer(np.concatenate([totals, ends.total]), maxima)

    def _counted(self, command: Counted, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        totals, (_, masses) = self._room(0, len(command.node))
        boost.count(self._rounds, self._spans_of(command.node), masses)
        return Answer(totals, _NO_NUMBERS)

    def _tallied(self, command: Tallied, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        counts = np.zeros((len(command.node), len(self._rounds.codes), MAX_BINS))
        boost.count_rows(self._rounds, self._spans_of(command.node), counts)
        return Answer(counts, _NO_NUMBERS)

    def _gathered(self, command: GatherLeaves, is_asked: bool) -> Answer | None:
        answer = self._at_leaves(command.leaves)
        return answer if is_asked else None

    def _at_leaves(self, leaves: IntArray) -> Answer | None:
        """Gather the rows of leaves, and return bounds of their losses, weights and copies.

        With `leaf_shrinkage`, the sums of squared gradients and of weights follow the copies. If
        the tree was grown on drawn rows, the sums of the derivatives of all rows are last.
        """
        self._leaves = self._spans_of(leaves)
        if self._is_past:
            return None
        sums = np.empty((len(leaves), 5))
        boost.gather(self._rounds, self._leaves, sums)
        sums[:, 0] *= self._sign
        totals = sums[:, 4:]
        if self._is_shrunk:
            nodes = np.zeros(len(leaves), dtype=NODE)
            nodes["start"], nodes["stop"] = self._leaves.T
            nodes["feature"] = -1
            totals = np.column_stack([totals, self._rounds.leaf_sums(nodes)])
        if self._drawn is not None:
            of_words = np.empty((len(leaves), 2))
            draws.word_sums(self._rounds, self._leaves, of_words)
            totals = np.column_stack([totals, of_words])
        return Answer(totals.T.ravel(), sums[:, :4])

    def _looked(self, command: LineSearch, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        sums = np.empty((len(command.leaf), 2))
        look = command.step, command.is_raised, command.scale
        boost.sums(self._rounds, self._leaves[command.leaf], *look, sums)
        return Answer(sums, _NO_NUMBERS)

    def _fitted(self, command: AddTree, _: bool) -> None:
        rounds, rows = self._rounds, self._listed.astype(np.intp)
        tree = command.tree(len(rounds.codes))
        self._f[command.of_class][rows] += tree.value[nodes_of_rows(tree, rounds.problem, rows)]

    def _added(self, command: AddUpdate, _: bool) -> None:
        boost.add(self._rounds, self._f[self._class], self._leaves, command.value)

    _DO: Mapping[type, Any] = {
        SumQuery: _asked,
        Weighed: _weighed,
        BeginFit: _begun,
        Shares: _shares,
        Losses: _lost,
        MaxMargin: _farthest,
        Gradients: _slopes,
        GradientRange: _sizes,
        Guessed: _guessed,
        Quantise: _packed,
        SplitNodes: _split,
        Counted: _counted,
        Tallied: _tallied,
        GatherLeaves: _gathered,
        LineSearch: _looked,
        AddUpdate: _added,
        AddTree: _fitted,
        HeldOutLoss: _watched,
    }
