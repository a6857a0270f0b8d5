"""Predictions for rows with unknown features, and the features that a model needs next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.convert import Features
from pboost.models.base import Model
from pboost.models.evaluate.exits import joints_left
from pboost.models.evaluate.graph_walk import exits
from pboost.models.evaluate.match_input import input_values, match_columns
from pboost.models.graph_arrays import OUT, Graph, joints_of
from pboost.models.shares import lead_of_second
from pboost.values import Array, FloatArray, IntArray

#: Twice the relative rounding error of one operation.
UNIT = 2.0**-52
#: Relative difference above which rounding cannot change the most probable class.
CLOSE = 1e-14
#: Value of `feature` for leaves, and value of the exit if features of a node are unknown.
LEAF = UNKNOWN = -1
#: Features to acquire next; features that are compared together form one tuple.
NextFeatures: TypeAlias = tuple[tuple[int, ...], ...]
#: Maps the index of a value to the smallest amounts (K,) by which it exceeds each value.
Margins: TypeAlias = Callable[[int], FloatArray]
#: Largest absolute bound.
MOST = np.finfo(np.float64).max


class PartialValue(NamedTuple):
    """Bounds of the K values of a row: decision values, probabilities or a number.

    Attributes
    ----------
    low, high : ndarray of float64, shape (T + 1, K)
        Bounds of the values after 0, ..., T stages for all unknown features; see `trajectory`.
    value : ndarray of float64, shape (K,)
        Prediction from the known features.
    complete : int
        Number of stages for which all features on the path are known.
    wants : tuple of tuple of int
        Features that each unfinished tree or base learner reads next, in the order of the path;
        features that are compared together form one tuple. Empty at the end.
    leads : callable
        For the index of a value, returns the smallest amounts (K,) by which it exceeds each value.
    parts : object
        Additional state of the evaluator.
    """

    low: FloatArray
    high: FloatArray
    value: FloatArray
    complete: int
    wants: NextFeatures
    leads: Margins
    parts: Any = None

    def possible(self) -> NDArray[np.bool_]:
        """Return a mask of the classes that may be predicted."""
        low, high = self.low[-1], self.high[-1]
        if len(low) == 1:
            return np.array([low[0] <= 0, high[0] > 0])
        best = int(self.value.argmax())
        is_possible: NDArray[np.bool_] = ~(self.leads(best) > 0)
        is_possible[best] = True
        return is_possible

    def lead_of_second(self) -> tuple[float, float]:
        """Return bounds of the single value, or of the second value minus the first value."""
        if len(self.value) == 1:
            return float(self.low[-1, 0]), float(self.high[-1, 0])
        return float(self.leads(1)[0]), -float(self.leads(0)[1])


def interval_margins(low: FloatArray, high: FloatArray) -> Margins:
    """Return the margins of values that have independent bounds."""
    return lambda k: low[k] - high


class PartialEvaluator:
    """Computes the values of a row from its known features, for one model."""

    model: Model
    #: The features that may be requested.
    columns: frozenset[int]
    #: Whether the values are class probabilities.
    of_shares = False

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> PartialValue:
        """Return bounds for the row X; unknown features may have any value."""
        raise NotImplementedError

    def possible(self, known: PartialValue) -> NDArray[np.bool_]:
        """Return a mask of the classes that the model may predict."""
        return known.possible()

    def label(self, known: PartialValue) -> Any:
        """Return the class or number that is predicted from the known features."""
        return self.model.labels_of(self.scores(known.value[None]))[0]

    def scores(self, value: FloatArray) -> FloatArray:
        """Convert values (n, K) to decision values; K > 2 values are returned unchanged."""
        if self.of_shares and value.shape[1] == 2:
            return lead_of_second(value)
        return value[:, 0] if value.shape[1] == 1 else value

    def shares(self, known: PartialValue) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bounds (J,) of the class probabilities, and their current values.

        The probability of a class increases with its own decision value and decreases with others.
        """
        low, high = known.low[-1], known.high[-1]
        if self.of_shares:
            return low, high, known.value
        assert self.model.classes is not None
        j = len(self.model.classes)
        now = self.model.probabilities(self.scores(known.value[None]))[0]
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            return np.zeros(j), np.ones(j), now
        is_own = np.eye(j, dtype=bool)
        if len(low) == 1:
            is_own = is_own[:, 1:]  # the only value is for the second class
        ends = np.where(is_own, low, high), np.where(is_own, high, low)
        lower, upper = (self.model.probabilities(self.scores(end)).diagonal() for end in ends)
        return lower * (1 - CLOSE), np.minimum(upper * (1 + CLOSE), 1.0), now


class Blocks:
    """The blocks of a model: graphs between two stages. The votes of all blocks are added.

    Nodes (n,) lead to ``next`` (n, 2), or to OUT at the end of a block, with votes (n, 2, K). Rows
    enter at `entry` (B,), which is OUT if a block is the `constant` (B, K). `expected` (n, K) is
    the expected sum of the votes from a node to the end of its block.
    """

    def __init__(
        self,
        entry: IntArray,
        next_: IntArray,
        vote: FloatArray,
        expected: FloatArray,
        constant: FloatArray,
    ) -> None:
        self.entry, self.next, self.vote = entry, next_, vote
        self.expected, self.constant = expected, constant
        depth, step = np.zeros(len(next_), dtype=np.intp), 0
        level = entry[entry != OUT]
        while len(level):  # the longest path to a node determines its depth
            depth[level] = step
            level, step = np.unique(next_[level]), step + 1
            level = level[level != OUT]
        #: Nodes by depth.
        self.levels = [np.flatnonzero(depth == k) for k in range(step)]

    def limits(self, taken: NDArray[np.int8], vote: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest sums (B, K) of votes (n, 2, K) on the possible paths.

        `taken` (n,) contains the exit of each node, or UNKNOWN.
        """
        low, high = np.zeros((2, len(vote) + 1, vote.shape[2]))  # the last entry is for OUT
        first, second = np.where(taken == 1, 1, 0), np.where(taken == 0, 0, 1)
        for nodes in reversed(self.levels):
            a, b = first[nodes], second[nodes]
            to_a, to_b = self.next[nodes, a], self.next[nodes, b]
            vote_a, vote_b = vote[nodes, a], vote[nodes, b]
            low[nodes] = np.minimum(vote_a + low[to_a], vote_b + low[to_b])
            high[nodes] = np.maximum(vote_a + high[to_a], vote_b + high[to_b])
        return low[self.entry], high[self.entry]

    def walk(self, taken: NDArray[np.int8]) -> tuple[IntArray, FloatArray]:
        """Return the node of a row in each block (B,), or OUT at the end, and the votes (B, K)."""
        at, total = self.entry.copy(), self.constant.copy()
        blocks = np.flatnonzero(at != OUT)
        while len(blocks):
            blocks = blocks[taken[at[blocks]] != UNKNOWN]
            exit_ = taken[at[blocks]]
            total[blocks] += self.vote[at[blocks], exit_]
            at[blocks] = self.next[at[blocks], exit_]
            blocks = blocks[at[blocks] != OUT]
        stuck = np.flatnonzero(at != OUT)
        total[stuck] += self.expected[at[stuck]]
        return at, total


class BlockEvaluator(PartialEvaluator):
    """Evaluator for models that are a sum, or a mean, over blocks.

    A stage consists of `each` blocks. `reads` (start, index) lists the features that each node
    reads, and `exits` returns the exits of all nodes for a row (1, d).
    """

    def __init__(
        self,
        model: Model,
        blocks: Blocks,
        start: FloatArray,
        each: int,
        reads: tuple[Array, Array],
        exits: Callable[[Features], NDArray[np.bool_]],
        is_mean: bool = False,
    ) -> None:
        self.model, self.blocks, self.start, self.each = model, blocks, start, each
        self.of_shares = is_mean and model.classes is not None
        self._first, self._index = reads
        self.exits, self.is_mean = exits, is_mean
        self.columns = frozenset(self._index.tolist())
        size = np.abs(blocks.vote).max(axis=1, initial=0.0).sum(axis=0)
        size += np.abs(start) + np.abs(blocks.constant).sum(axis=0)
        #: Bound of the rounding error of a value.
        self.slack = (len(blocks.vote) + len(blocks.entry) + 2) * UNIT * size

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> PartialValue:
        """Return bounds for the row X."""
        blocks, n = self.blocks, len(self.blocks.next)
        taken = np.full(n, UNKNOWN, dtype=np.int8)
        if n:
            sure = np.logical_and.reduceat(is_known[self._index], self._first[:-1])
            taken[sure] = self.exits(X)[sure]
        at, now = blocks.walk(taken)
        low, high = blocks.limits(taken, blocks.vote)
        low, high = self._by_joint(low + blocks.constant), self._by_joint(high + blocks.constant)
        stuck = np.flatnonzero(at != OUT)
        wants = tuple(dict.fromkeys(self._wanted(node, is_known) for node in at[stuck].tolist()))

        def leads(k: int) -> FloatArray:
            others = blocks.vote[..., k : k + 1] - blocks.vote
            lower = blocks.limits(taken, others)[0] + blocks.constant[:, k : k + 1]
            lower -= blocks.constant
            total = self.start[k] - self.start + lower.sum(axis=0)
            total -= self.slack + self.slack[k]
            return total / (len(at) // self.each) if self.is_mean else total

        complete = (stuck[0] if len(stuck) else len(at)) // self.each
        value, margin = np.clip(self._by_joint(now)[-1], low[-1], high[-1]), self._margin(low)
        return PartialValue(low - margin, high + margin, value, complete, wants, leads)

    def _wanted(self, node: int, is_known: NDArray[np.bool_]) -> tuple[int, ...]:
        """Return the unknown features of a node."""
        read = self._index[self._first[node] : self._first[node + 1]]
        return tuple(dict.fromkeys(read[~is_known[read]].tolist()))

    def _by_joint(self, terms: FloatArray) -> FloatArray:
        """Return the values (T + 1, K) at the stages from the sums of the blocks (B, K)."""
        total = terms.reshape(-1, self.each, terms.shape[1]).sum(axis=1)
        values = np.concatenate([self.start[None], self.start + np.add.accumulate(total)])
        return values / self._counts(values) if self.is_mean else values

    def _margin(self, values: FloatArray) -> FloatArray:
        """Return the bound of the rounding error at each stage."""
        return self.slack / self._counts(values) if self.is_mean else self.slack

    @staticmethod
    def _counts(values: FloatArray) -> FloatArray:
        return np.maximum(np.arange(len(values)), 1.0)[:, None]


def graph_inquiry(model: Graph, reads: tuple[IntArray, IntArray]) -> BlockEvaluator:
    """Return the evaluator of a graph; `reads` are the features of its inputs."""
    n, k = model.n_nodes, model.n_votes
    entry = np.append(0, joints_of(model.next)) if n else np.empty(0, dtype=np.intp)
    next_ = np.where(np.isin(model.next, entry), OUT, model.next)
    blocks = Blocks(
        entry.astype(np.int32),
        next_,
        model.vote.reshape(n, 2, k),
        np.zeros((n, k)),
        np.zeros((len(entry), k)),
    )
    every = np.arange(n)

    def taken(X: Features) -> NDArray[np.bool_]:
        return exits(model, every, input_values(model, X)[0, model.feature])

    of_nodes = of_each(*reads, model.feature)
    return BlockEvaluator(model, blocks, np.atleast_1d(np.float64(model.bias)), 1, of_nodes, taken)


def trees_inquiry(
    model: Model, trees: Any, value: FloatArray, start: FloatArray | None = None, each: int = 1
) -> BlockEvaluator:
    """Return the evaluator of trees whose leaves add `value` (n_nodes, K) to `start`.

    A stage consists of `each` trees. Without `start`, the mean of the trees is used.
    """
    (inner, child), root = trees.inner(), trees.root[:-1]
    place = np.full(trees.n_nodes, OUT, dtype=np.int32)
    place[inner] = np.arange(len(inner))
    is_leaf = place[child] == OUT
    vote = np.where(is_leaf[..., None], value[child], 0.0)
    lone = np.where((place[root] == OUT)[:, None], value[root], 0.0)
    expected = trees.expected_values(value)[inner]
    blocks = Blocks(place[root], place[child], vote, expected, lone)
    columns = trees.column[inner]

    def taken(X: Features) -> NDArray[np.bool_]:
        row = match_columns(trees, X).values[0]
        return trees.goes_to_second(row[columns], inner)

    reads = np.arange(len(inner) + 1), columns
    zero = np.zeros(value.shape[1])
    return BlockEvaluator(
        model, blocks, zero if start is None else start, each, reads, taken, start is None
    )


def of_each(start: IntArray, index: IntArray, number: IntArray) -> tuple[Array, Array]:
    """Return offsets, and the parts ``index[start[k]:start[k + 1]]`` for each k in `number`."""
    size = np.diff(start)[number]
    first = np.append(0, np.cumsum(size))
    place = np.arange(first[-1]) - np.repeat(first[:-1] - start[number], size)
    return first, index[place]


class SumInquiry(PartialEvaluator):
    """Evaluator for linear models, which requests all features at once.

    With `path`, a tree with sums in its leaves, `columns_of` returns the features of the leaf of a
    row.
    """

    def __init__(
        self,
        model: Model,
        columns: NDArray[np.intp],
        n_values: int,
        path: BlockEvaluator | None = None,
        columns_of: Callable[[Features], Any] | None = None,
    ) -> None:
        self.model, self._n_values = model, n_values
        self._columns, self._path, self._columns_of = columns, path, columns_of
        self.columns = frozenset(columns.tolist()) | (path.columns if path else frozenset())

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> PartialValue:
        """Return bounds for the row X, which are infinite until all features are known."""
        wants: NextFeatures = ()
        columns, value = self._columns, np.zeros(self._n_values)
        if self._path is not None and self._columns_of is not None:
            on_path = self._path.known(X, is_known)
            wants, value = on_path.wants, on_path.value
            columns = columns[:0] if wants else self._columns_of(X)
        lacking = tuple(columns[~is_known[columns]].tolist())
        wants = wants or ((lacking,) if lacking else ())
        high = np.full(self._n_values, np.inf)
        low = -high
        if not wants:
            low = high = value = self.model.decision_function(X).reshape(-1)
        ends = np.stack([low, low]), np.stack([high, high])
        return PartialValue(*ends, value, int(not wants), wants, interval_margins(low, high))


class MemberBounds(NamedTuple):
    """Bounds (K,) of the vote of a base learner, its current vote, and its `Margins`.

    `is_label`: whether the vote only depends on the predicted class.
    """

    low: FloatArray
    high: FloatArray
    value: FloatArray
    leads: Margins
    is_label: bool = False


#: Computes bounds of the vote of a base learner from bounds of its values.
Says: TypeAlias = Callable[[PartialEvaluator, PartialValue], MemberBounds]


def by_label(answers: FloatArray, classes: Array) -> Says:
    """Return a function for hard votes; `answers` has the vote (K,) for each predicted class."""

    def says(member: PartialEvaluator, known: PartialValue) -> MemberBounds:
        positions = label_positions(classes, member)
        options = answers[positions[member.possible(known)]]
        now = answers[np.searchsorted(classes, member.label(known))]
        value = np.clip(now, options.min(axis=0), options.max(axis=0))
        return MemberBounds(
            options.min(axis=0),
            options.max(axis=0),
            value,
            lambda k: (options[:, k : k + 1] - options).min(axis=0),
            True,
        )

    return says


def by_share(classes: Array) -> Says:
    """Return a function for soft votes, the probabilities (J,) of the given classes."""

    def says(member: PartialEvaluator, known: PartialValue) -> MemberBounds:
        low, high, value = np.zeros((3, len(classes)))
        positions = label_positions(classes, member)
        low[positions], high[positions], value[positions] = member.shares(known)
        if len(positions) == len(classes) and member.of_shares:
            return MemberBounds(low, high, value, known.leads)
        return MemberBounds(low, high, value, interval_margins(low, high))

    return says


def by_number(member: PartialEvaluator, known: PartialValue) -> MemberBounds:
    """Return bounds of the predicted number, which increases with the decision value."""
    classes = member.model.classes
    if classes is not None:
        return by_label(classes.astype(np.float64)[:, None], classes)(member, known)
    ends = np.stack([known.low[-1], known.high[-1], known.value])
    low, high, value = member.model.labels_of(member.scores(ends)).astype(np.float64)[:, None]
    return MemberBounds(low, high, value, interval_margins(low, high))


def label_positions(classes: Array, member: PartialEvaluator) -> NDArray[np.intp]:
    """Return the positions of the classes of a base learner among all classes."""
    assert member.model.classes is not None
    return np.searchsorted(classes, member.model.classes)


class MemberEvaluator(PartialEvaluator):
    """Evaluator of an initial value (K,) plus the weighted votes of base learners, or their mean.

    With `settles`, features are not requested for a base learner whose predicted class is
    certain, if its vote depends only on this class.
    """

    def __init__(
        self,
        model: Model,
        members: Sequence[PartialEvaluator],
        says: Says,
        weight: FloatArray,
        start: FloatArray,
        is_mean: bool,
        settles: bool,
    ) -> None:
        self.model, self.members, self._says = model, members, says
        self.weight, self._start = weight, start
        self._is_mean, self._settles = is_mean, settles
        self.of_shares = is_mean and model.classes is not None
        self.columns = frozenset().union(*(member.columns for member in members))

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> PartialValue:
        """Return bounds for the row X."""
        bounds, done = [], 0
        wants: dict[tuple[int, ...], None] = {}
        for member in self.members:
            known = member.known(X, is_known)
            member_bounds = self._says(member, known)
            is_settled = (
                self._settles and member_bounds.is_label and bool(member.possible(known).sum() == 1)
            )
            if not is_settled:
                wants.update(dict.fromkeys(known.wants))
            done += not wants
            bounds.append(member_bounds)
        low, high, value = (
            np.array([getattr(member_bounds, name) for member_bounds in bounds]).reshape(
                len(bounds), -1
            )
            * self.weight[:, None]
            for name in ("low", "high", "value")
        )
        low, high = np.minimum(low, high), np.maximum(low, high)
        now = self._by_joint(value)[-1]
        slack = (len(bounds) + 2) * UNIT * self._by_joint(np.maximum(np.abs(low), np.abs(high)))
        low, high = self._by_joint(low) - slack, self._by_joint(high) + slack

        def leads(k: int) -> FloatArray:
            if (self.weight < 0).any():
                return low[-1, k] - high[-1]
            each = [
                w * member_bounds.leads(k)
                for w, member_bounds in zip(self.weight, bounds, strict=True)
            ]
            start = (self._start[k] - self._start)[None]
            total = self._by_joint(np.array(each), start)[-1]
            return total - slack[-1] - slack[-1, k]

        return PartialValue(low, high, now, done, tuple(wants), leads)

    def _by_joint(self, terms: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Return the values (T + 1, K) at the stages from the terms (M, K) of base learners."""
        start = self._start[None] if start is None else start
        values = np.concatenate([start, start + np.add.accumulate(terms)])
        if self._is_mean:
            values[1:] /= np.add.accumulate(self.weight)[:, None]
        return values


def sum_of_votes(model: Any, members: Sequence[PartialEvaluator], settles: bool) -> MemberEvaluator:
    """Return the evaluator of base learners with hard, weighted votes."""
    says = by_label(np.eye(len(model.classes)), model.classes)
    return MemberEvaluator(model, members, says, model.alpha, model.bias, False, settles)


def mean_of(
    model: Model,
    members: Sequence[PartialEvaluator],
    voting: str,
    settles: bool,
    weight: FloatArray | None = None,
) -> MemberEvaluator:
    """Return the evaluator for the mean of predicted classes, probabilities or numbers.

    `voting` has the same meaning as in `Bagging`.
    """
    says: Says = by_number
    n_values, classes = 1, model.classes
    if classes is not None:
        n_values = len(classes)
        says = by_share(classes) if voting == "soft" else by_label(np.eye(n_values), classes)
    weight = np.ones(len(members)) if weight is None else weight
    return MemberEvaluator(model, members, says, weight, np.zeros(n_values), True, settles)


class RestEvaluator(PartialEvaluator):
    """Evaluator for a one-versus-rest model, which predicts the most probable class."""

    def __init__(self, model: Model, members: Sequence[PartialEvaluator], classes: Array) -> None:
        self.model, self.members, self.classes = model, members, classes
        self.columns = frozenset().union(*(member.columns for member in members))

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> PartialValue:
        """Return bounds for the row X; `parts` are bounds of the probabilities."""
        states = [member.known(X, is_known) for member in self.members]
        pairs = list(zip(self.members, states, strict=True))
        low, high = np.array([known.lead_of_second() for known in states]).T
        value = np.array([known.value[-1] - known.value[:-1].sum() for known in states])
        wants = tuple(dict.fromkeys(columns for known in states for columns in known.wants))
        shares = np.array([[part[1] for part in member.shares(known)] for member, known in pairs])
        ends = np.stack([low, low]), np.stack([high, high])
        return PartialValue(
            *ends, value, int(not wants), wants, interval_margins(low, high), shares.T
        )

    def possible(self, known: PartialValue) -> NDArray[np.bool_]:
        """Return a mask of the classes that may have the largest probability."""
        low, high, _ = known.parts
        best = int(low.argmax())
        is_possible: NDArray[np.bool_] = high >= low[best] * (1 - CLOSE)
        is_possible[best] = True
        return is_possible

    def label(self, known: PartialValue) -> Any:
        """Return the most probable class given the known features."""
        return self.classes[known.parts[2].argmax()]

    def shares(self, known: PartialValue) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bounds (J,) of the normalized probabilities."""
        low, high, now = known.parts
        low_total, high_total = low + high.sum() - high, high + low.sum() - low
        low = np.divide(low, low_total, out=np.zeros(len(low)), where=low_total > 0)
        high = np.divide(high, high_total, out=np.ones(len(high)), where=high_total > 0)
        return low * (1 - CLOSE), np.minimum(high * (1 + CLOSE), 1.0), now / (now.sum() or 1.0)


class LeavingEvaluator(PartialEvaluator):
    """Evaluator for a model with early exits, based on the evaluator of the full model."""

    _exits: Any

    def __init__(self, model: Any, inquiry: PartialEvaluator) -> None:
        self.model, self._exits, self._whole, self.columns = model, model, inquiry, inquiry.columns
        self.of_shares = inquiry.of_shares and model.n_votes > 1

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> PartialValue:
        """Return bounds for the row X over all stages at which it may stop."""
        model, known = self._exits, self._whole.known(X, is_known)
        score, at = model.model.trajectory(X)[0], known.complete
        may = model.may_leave(X)
        if may is not None and known.wants:  # features of later stages are unknown
            (columns, *_), can_all = known.wants, model.threshold[at] == 0
            may[at] = can_all or bool(model.unpaid(X, at, columns))
        (joint,) = joints_left(score, model.exits, may)
        wants = known.wants[:1] if joint > at else ()
        at = min(int(joint), at)
        now = score[at].reshape(1, -1)
        if self.of_shares and not at:  # probabilities are equal before the first stage
            now = np.full(now.shape, 1 / now.size)
        value = low = high = self._scaled(now, np.array([at]))[0]
        if wants:
            low, high = self._ends(known, at + (may is None))
            value = np.clip(value, low, high)  # rounding may move it outside the bounds
        ends = np.stack([low, low]), np.stack([high, high])
        return PartialValue(*ends, value, int(not wants), wants, interval_margins(low, high))

    def _ends(self, known: PartialValue, first: int) -> tuple[FloatArray, FloatArray]:
        """Return bounds (K,) of the values of a row that stops at stage `first` or later."""
        low, high = known.low, known.high
        if self._whole.of_shares and not self.of_shares:  # second probability minus first
            low, high = low[:, 1:] - high[:, :1], high[:, 1:] - low[:, :1]
        size = high.max(axis=1) - low.min(axis=1)
        if low.shape[1] == 1:
            size = np.maximum(np.abs(low), np.abs(high))[:, 0]
        needed = np.append(self._exits.threshold, 0.0)
        last = first + int(np.argmax(needed[first:] == 0))
        at = np.arange(first, last + 1)
        at = at[size[at] >= needed[at]]
        low, high = low[at], high[at]
        lower, upper = np.empty((2, low.shape[1]))
        for k in range(low.shape[1]):  # each probability decreases if another increases
            is_own = np.arange(low.shape[1]) == k
            with np.errstate(invalid="ignore"):  # bounds of probabilities need not add up to 1
                below = self._scaled(np.where(is_own, low, high), at)[:, k]
                above = self._scaled(np.where(is_own, high, low), at)[:, k]
            lower[k] = np.where(np.isnan(below), 0.0, below).min()
            upper[k] = np.where(np.isnan(above), 1.0, above).max()
        return lower - UNIT * np.abs(lower), upper + UNIT * np.abs(upper)

    def _scaled(self, value: FloatArray, joint: NDArray[np.intp]) -> FloatArray:
        """Return values (n, K) multiplied by the slopes of the stages (n,) at which rows stop."""
        score = value[:, 0] if value.shape[1] == 1 else value
        scaled: FloatArray = self._exits.scaled_at(score, joint)
        return scaled.reshape(value.shape)


class CalibratedEvaluator(PartialEvaluator):
    """Evaluator for a calibrated model, based on the uncalibrated model's evaluator."""

    _maps: Any

    def __init__(self, model: Any, inquiry: PartialEvaluator) -> None:
        self.model, self._maps, self._whole, self.columns = model, model, inquiry, inquiry.columns

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> PartialValue:
        """Return bounds for the row X; the maps are monotonic and preserve bounds."""
        model, known = self._maps, self._whole.known(X, is_known)
        value = model.calibrated(self._whole.scores(known.value[None])).reshape(-1)
        ends = np.stack([known.low[-1], known.high[-1]])
        if len(value) == 1:
            ends = np.array(known.lead_of_second())[:, None]
        ends = np.clip(ends, -MOST, MOST)
        if len(value) == 1:
            low, high = np.sort(model.calibrated(ends[:, 0]))[:, None]
            leads = interval_margins(low, high)
        else:
            lower, upper = np.sort(model.chances(ends), axis=0)
            low, high = np.log(self._shares_of(lower, upper))
            leads = interval_margins(lower * (1 - CLOSE), upper)
        slack = 8 * UNIT * np.maximum(np.maximum(np.abs(low), np.abs(high)), 1.0)
        low, high = np.stack([low, low]) - slack, np.stack([high, high]) + slack
        return PartialValue(low, high, value, int(not known.wants), known.wants, leads)

    def _shares_of(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Return positive bounds (2, J) of probabilities divided by their sum."""
        totals = lower + upper.sum() - upper, upper + lower.sum() - lower
        low = np.divide(lower, totals[0], out=np.zeros(len(lower)), where=totals[0] > 0)
        high = np.divide(upper, totals[1], out=np.ones(len(upper)), where=totals[1] > 0)
        return np.maximum(np.stack([low, high]), np.exp(-2 * self._maps.most_half))
