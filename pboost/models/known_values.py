"""What a model says of a row of which only some values are known, and what it asks for next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.convert import Features
from pboost.models.base import Model, lead_of_second
from pboost.models.new_rows import input_values, match_columns
from pboost.models.node_walk import exits
from pboost.models.nodes import OUT, Graph, joints_of
from pboost.values import Array, FloatArray, IntArray

#: Relative rounding of one operation, twice.
UNIT = 2.0**-52
#: Relative difference beyond which rounding does not change which probability is largest.
CLOSE = 1e-14
#: `feature` of a leaf, and the exit that a row takes where that is not known.
LEAF = UNKNOWN = -1
#: Columns that are wanted, by what compares them together.
Wants: TypeAlias = tuple[tuple[int, ...], ...]
#: Gives of each of several values k the least (K,) by which it leads the others.
Leads: TypeAlias = Callable[[int], FloatArray]


class Known(NamedTuple):
    """What is sure of the values of a row, K of them: decision values, shares or a number.

    Attributes
    ----------
    low, high : ndarray of float64, shape (T + 1, K)
        Bounds of the values after 0, ..., T joints, whatever is not known; see `trajectory`.
    value : ndarray of float64, shape (K,)
        What is said of the row by what is known.
    complete : int
        Joints up to which everything that the row meets is known.
    wants : tuple of tuple of int
        Columns that its path reads next, which are compared together, in the order of the path: of
        each tree or member that is not done. Empty at the end.
    leads : callable
        Gives of each of K > 1 values k the least (K,) by which it leads the others.
    parts : object
        What the model made of it has to know besides.
    """

    low: FloatArray
    high: FloatArray
    value: FloatArray
    complete: int
    wants: Wants
    leads: Leads
    parts: Any = None

    def possible(self) -> NDArray[np.bool_]:
        """Return which of the labels may be predicted, by the sign or by the largest of values."""
        low, high = self.low[-1], self.high[-1]
        if len(low) == 1:
            return np.array([low[0] <= 0, high[0] > 0])
        best = int(self.value.argmax())
        found: NDArray[np.bool_] = ~(self.leads(best) > 0)
        found[best] = True
        return found

    def lead_of_second(self) -> tuple[float, float]:
        """Return bounds of the only value, or of the lead of the second of two."""
        if len(self.value) == 1:
            return float(self.low[-1, 0]), float(self.high[-1, 0])
        return float(self.leads(1)[0]), -float(self.leads(0)[1])


def apart(low: FloatArray, high: FloatArray) -> Leads:
    """Return the leads of values that are bounded one by one."""
    return lambda k: low[k] - high


class Inquiry:
    """How the values of a row follow from what is known of it, for one model."""

    model: Model
    #: The columns that may be asked for.
    columns: frozenset[int]
    #: Whether the values are the shares of the labels.
    of_shares = False

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> Known:
        """Return what is sure of the one row X; values that are not known are any."""
        raise NotImplementedError

    def possible(self, known: Known) -> NDArray[np.bool_]:
        """Return which labels the model may predict."""
        return known.possible()

    def label(self, known: Known) -> Any:
        """Return the label, or the number, by what is known."""
        return self.model.labels_of(self.scores(known.value[None]))[0]

    def scores(self, value: FloatArray) -> FloatArray:
        """Return the decision values of values (n, K), of more than two labels their shares."""
        if self.of_shares and value.shape[1] == 2:
            return lead_of_second(value)
        return value[:, 0] if value.shape[1] == 1 else value

    def shares(self, known: Known) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bounds (J,) of the probabilities of the labels, and what they are by now.

        That of a label rises with its own decision value and falls with those of others.
        """
        low, high = known.low[-1], known.high[-1]
        if self.of_shares:
            return low, high, known.value
        assert self.model.labels is not None
        j = len(self.model.labels)
        now = self.model.probabilities(self.scores(known.value[None]))[0]
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            return np.zeros(j), np.ones(j), now
        own = np.eye(j, dtype=bool)
        if len(low) == 1:
            own = own[:, 1:]  # the only value speaks for the second label
        ends = np.where(own, low, high), np.where(own, high, low)
        least, most = (self.model.probabilities(self.scores(end)).diagonal() for end in ends)
        return least * (1 - CLOSE), np.minimum(most * (1 + CLOSE), 1.0), now


class Blocks:
    """The parts of a model between its joints: acyclic graphs, one entry each, whose votes add up.

    Nodes (n,) lead to ``next`` (n, 2), OUT at the end of a block, with votes (n, 2, K); rows enter
    at `entry` (B,), which is OUT where a block is the `constant` (B, K). `here` (n, K): what is
    expected of a row that is at a node, of the values after it.
    """

    def __init__(
        self,
        entry: IntArray,
        next_: IntArray,
        vote: FloatArray,
        here: FloatArray,
        constant: FloatArray,
    ) -> None:
        self.entry, self.next, self.vote = entry, next_, vote
        self.here, self.constant = here, constant
        depth, step = np.zeros(len(next_), dtype=np.intp), 0
        level = entry[entry != OUT]
        while len(level):  # of several ways to a node the longest counts
            depth[level] = step
            level, step = np.unique(next_[level]), step + 1
            level = level[level != OUT]
        #: Nodes, after those that lead to them.
        self.levels = [np.flatnonzero(depth == k) for k in range(step)]

    def limits(self, taken: NDArray[np.int8], vote: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest sums (B, K) of votes (n, 2, K) on the ways left open.

        `taken` (n,): the exit of each node, or UNKNOWN.
        """
        low, high = np.zeros((2, len(vote) + 1, vote.shape[2]))  # the last is OUT's
        first, second = np.where(taken == 1, 1, 0), np.where(taken == 0, 0, 1)
        for nodes in reversed(self.levels):
            a, b = first[nodes], second[nodes]
            to_a, to_b = self.next[nodes, a], self.next[nodes, b]
            vote_a, vote_b = vote[nodes, a], vote[nodes, b]
            low[nodes] = np.minimum(vote_a + low[to_a], vote_b + low[to_b])
            high[nodes] = np.maximum(vote_a + high[to_a], vote_b + high[to_b])
        return low[self.entry], high[self.entry]

    def walk(self, taken: NDArray[np.int8]) -> tuple[IntArray, FloatArray]:
        """Return where a row is in each block (B,), OUT if past it, and the votes (B, K)."""
        at, total = self.entry.copy(), self.constant.copy()
        blocks = np.flatnonzero(at != OUT)
        while len(blocks):
            blocks = blocks[taken[at[blocks]] != UNKNOWN]
            exit_ = taken[at[blocks]]
            total[blocks] += self.vote[at[blocks], exit_]
            at[blocks] = self.next[at[blocks], exit_]
            blocks = blocks[at[blocks] != OUT]
        stuck = np.flatnonzero(at != OUT)
        total[stuck] += self.here[at[stuck]]
        return at, total


class BlockInquiry(Inquiry):
    """Of models that are a start and a sum over blocks, or their mean.

    A joint comes after each `each` blocks. `reads` (start, index) are the columns that nodes read,
    node by node, and `exits` gives the exits of all nodes for a row (1, d).
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
        self.of_shares = is_mean and model.labels is not None
        self._first, self._index = reads
        self.exits, self.is_mean = exits, is_mean
        self.columns = frozenset(self._index.tolist())
        size = np.abs(blocks.vote).max(axis=1, initial=0.0).sum(axis=0)
        size += np.abs(start) + np.abs(blocks.constant).sum(axis=0)
        #: What rounding can change of a value.
        self.slack = (len(blocks.vote) + len(blocks.entry) + 2) * UNIT * size

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> Known:
        """Return what is sure of the one row X."""
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
            least = blocks.limits(taken, others)[0] + blocks.constant[:, k : k + 1]
            least -= blocks.constant
            total = self.start[k] - self.start + least.sum(axis=0)
            total -= self.slack + self.slack[k]
            return total / (len(at) // self.each) if self.is_mean else total

        complete = (stuck[0] if len(stuck) else len(at)) // self.each
        value, margin = np.clip(self._by_joint(now)[-1], low[-1], high[-1]), self._margin(low)
        return Known(low - margin, high + margin, value, complete, wants, leads)

    def _wanted(self, node: int, is_known: NDArray[np.bool_]) -> tuple[int, ...]:
        """Return the columns that a node lacks."""
        read = self._index[self._first[node] : self._first[node + 1]]
        return tuple(dict.fromkeys(read[~is_known[read]].tolist()))

    def _by_joint(self, terms: FloatArray) -> FloatArray:
        """Return the values (T + 1, K) at the joints, given those that blocks add (B, K)."""
        total = terms.reshape(-1, self.each, terms.shape[1]).sum(axis=1)
        found = np.concatenate([self.start[None], self.start + np.add.accumulate(total)])
        return found / self._counts(found) if self.is_mean else found

    def _margin(self, found: FloatArray) -> FloatArray:
        """Return what rounding can change at each joint."""
        return self.slack / self._counts(found) if self.is_mean else self.slack

    @staticmethod
    def _counts(found: FloatArray) -> FloatArray:
        return np.maximum(np.arange(len(found)), 1.0)[:, None]


def graph_inquiry(model: Graph, reads: tuple[IntArray, IntArray]) -> BlockInquiry:
    """Return what a graph asks; `reads` are the columns of the numbers that it compares."""
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
    return BlockInquiry(model, blocks, np.atleast_1d(np.float64(model.bias)), 1, of_nodes, taken)


def trees_inquiry(
    model: Model, trees: Any, value: FloatArray, start: FloatArray | None = None, each: int = 1
) -> BlockInquiry:
    """Return what a model asks of trees whose leaves add `value` (n_nodes, K) to a start.

    `each` of them are between joints; without a start the mean of the trees is taken.
    """
    inner = np.flatnonzero(trees.feature != LEAF)
    root = np.asarray(trees.root[:-1])
    first = root.repeat(np.diff(trees.root))[inner]
    place = np.full(trees.n_nodes, OUT, dtype=np.int32)
    place[inner] = np.arange(len(inner))
    child = trees.children[inner] + first[:, None]
    is_leaf = place[child] == OUT
    vote = np.where(is_leaf[..., None], value[child], 0.0)
    lone = np.where((place[root] == OUT)[:, None], value[root], 0.0)
    here = trees.expected_values(value)[inner]
    blocks = Blocks(place[root], place[child], vote, here, lone)
    columns = trees.column[inner]

    def taken(X: Features) -> NDArray[np.bool_]:
        row = match_columns(trees, X).values[0]
        found: NDArray[np.bool_] = trees.goes_to_second(row[columns], inner)
        return found

    reads = np.arange(len(inner) + 1), columns
    zero = np.zeros(value.shape[1])
    return BlockInquiry(
        model, blocks, zero if start is None else start, each, reads, taken, start is None
    )


def of_each(start: IntArray, index: IntArray, number: IntArray) -> tuple[Array, Array]:
    """Return parts of a list, ``index[start[k]:start[k + 1]]`` for each number k, as one list."""
    size = np.diff(start)[number]
    first = np.append(0, np.cumsum(size))
    place = np.arange(first[-1]) - np.repeat(first[:-1] - start[number], size)
    return first, index[place]


class SumInquiry(Inquiry):
    """Of models that add up columns: they ask for all at once, and say nothing before.

    With `path`, the trees in whose leaves there are sums, `columns_of` a row are those of its leaf.
    """

    def __init__(
        self,
        model: Model,
        columns: NDArray[np.intp],
        n_values: int,
        path: BlockInquiry | None = None,
        columns_of: Callable[[Features], Any] | None = None,
    ) -> None:
        self.model, self._n_values = model, n_values
        self._columns, self._path, self._columns_of = columns, path, columns_of
        self.columns = frozenset(columns.tolist()) | (path.columns if path else frozenset())

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> Known:
        """Return what is sure of the one row X: nothing, or everything."""
        wants: Wants = ()
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
        return Known(*ends, value, int(not wants), wants, apart(low, high))
