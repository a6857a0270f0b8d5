"""Trees whose rows go both ways where their value is missing, as those of C4.5 do.

A row that has no value for the column of a split is at both children, with the part q of its
weight at the second; q is the share of the known rows' weight there. Cuts are scored by what all
rows of the node come to, the missing ones divided so. Each node has a list of parts of rows.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns import ROW_MASK
from pboost.data.criteria import IMPURITIES
from pboost.data.special_columns import HOLES, LEVELS, has
from pboost.data.subsets import HALF, WORDS
from pboost.data.training import TrainingData
from pboost.growth.step import STOPPED, CartStep
from pboost.growth.tree import CartArrays, CartLimits
from pboost.models.sides import heavier_child, own_sets
from pboost.models.trees import LEAF, Tree
from pboost.threads import check_stop
from pboost.values import FloatArray, IntArray

#: Splits whose criterion differs by less, as a share of the node's, are equal.
SAME_SCORE = 1e-12
#: Sums of parts of rows that fall short of a number of rows by less are as many.
NO_PART = 1e-9
#: Differences of masses that are a smaller share of these are 0.
NO_ROUNDING = 1e-13


@dataclass(slots=True, eq=False)
class Split:
    """A column and the rows below and above; those in neither are missing.

    `share` is q; `low` and `high` are rows, or bins, on either side of a threshold, `above` the
    levels of a set, as bits, and `absent` those of which the node has no row.
    """

    feature: int
    after: float
    is_above: NDArray[np.bool_]
    known: NDArray[np.bool_]
    share: float
    low: int = -1
    high: int = -1
    above: int = 0
    absent: int = 0


@dataclass(slots=True, eq=False)
class Node:
    """Parts of rows: which rows, their weights there, sums of these, and the place of the node."""

    rows: IntArray
    weight: FloatArray
    depth: int
    sums: FloatArray
    risk: float
    serial: int
    mean: float = 0.0
    split: Split | None = None
    children: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Cuts:
    """The cuts of one column.

    `below` (k, m) are the sums of known rows below, weight first, then parts of rows, then what the
    criterion is of; the last are those of all. `label` (k, 2) says which ranks lie beside a cut, or
    `above` which levels are above.
    """

    below: FloatArray
    label: IntArray | None = None
    above: list[int] | None = None


class BothWaysTree:
    """Growth of one classification or regression tree.

    Parameters
    ----------
    data : TrainingData
        Rows of a tree, see `Problem.weighted`.
    limits : CartLimits
        When a node is split.
    key : int
        Of the random numbers by which columns are drawn.
    """

    def __init__(self, data: TrainingData, limits: CartLimits, key: int) -> None:
        self.data, self.limits, self.key, self.problem = data, limits, key, data.problem
        self.special, used = data.columns.special, slice(None) if data.exact else data.rows
        self.rank = _ranks(data)
        self.whole, self.serial = data.weight[used], 0
        labels = data.problem.labels
        if labels is None:
            self.target = data.y[used]
        else:
            self.target = np.eye(len(labels))[data.label[used]]
        self.is_number = labels is None
        n = len(self.whole)
        self.root = self.node(np.arange(n, dtype=np.int32), self.whole, 0)
        self.heap: list[tuple[float, int, Node]] = []
        self.leaves = 1

    def grow(self, callback: Callable[[int, Any], Any] | None) -> str:
        """Split nodes until done; returns why growing stopped."""
        self.push(self.root)
        while self.heap:
            if self.leaves >= self.limits.leaves:
                return CartArrays.reasons["all leaves"]
            check_stop()
            node = heapq.heappop(self.heap)[-1]
            split = node.split = node.split or self.find(node)
            if split is None:
                continue
            self.leaves += 1
            for above in (False, True):
                here = ~split.known | (split.is_above == above)
                part = split.share if above else 1 - split.share
                weight = np.where(split.known, node.weight, node.weight * part)[here]
                node.children.append(self.node(node.rows[here], weight, node.depth + 1))
            for child in node.children:
                self.push(child)
            if callback is not None and callback(self.leaves - 1, self.newest(node)):
                return STOPPED
        return CartArrays.reasons["done"]

    def newest(self, node: Node) -> CartStep:
        """Return the record of a node that was split."""
        assert node.split is not None
        return CartStep(
            node.split.feature, float(self.thresholds([node])[0]), node.depth, len(node.rows)
        )

    def node(self, rows: IntArray, weight: FloatArray, depth: int) -> Node:
        """Return a node of these rows."""
        columns, mean = self.target[rows], 0.0
        if self.is_number:
            mean = float(np.average(columns, weights=weight))
            columns = columns - mean
            columns = np.column_stack([columns, columns * columns])
        sums = np.column_stack([np.ones(len(rows)), 1 / self.whole[rows], columns])
        sums *= weight[:, None]
        total = sums.sum(axis=0)
        self.serial += 1
        risk = float(self.risks(total[None])[0])
        return Node(rows, weight, depth, sums, risk, self.serial - 1, mean)

    def risks(self, sums: FloatArray) -> FloatArray:
        """Return weight times impurity of rows that come to these sums (k, m)."""
        if self.is_number:
            found: FloatArray = np.maximum(sums[:, 3] - sums[:, 2] ** 2 / sums[:, 0], 0.0)
            return found
        total = sums[:, 2:].sum(axis=1)
        share = sums[:, 2:] / total[:, None]
        return np.maximum(total * IMPURITIES[self.limits.criterion](share), 0.0)

    def push(self, node: Node) -> None:
        """Put a node in its place, unless it cannot be split."""
        parts = node.sums[:, 1].sum()
        if self.is_number:
            is_pure = np.ptp(self.target[node.rows]) == 0
        else:
            is_pure = np.count_nonzero(node.sums[:, 2:].any(axis=0)) < 2
        if is_pure or node.depth >= self.limits.depth or parts + NO_PART < self.limits.min_split:
            return
        key = -float((node.serial + 1) // 2)  # the newest pair, of which the first child
        if self.limits.growth == "best-first":
            node.split = self.find(node)
            if node.split is None:
                return
            key = node.split.after - node.risk
        heapq.heappush(self.heap, (key, node.serial, node))

    def find(self, node: Node) -> Split | None:
        """Return the best split of a node, None where there is none."""
        every = []
        for feature in self.drawn(node):
            cuts = self.cuts(node, feature)
            if cuts is not None:
                every.append((feature, cuts, *self.scores(node, cuts)))
        least = min((scores.min() for _, _, scores, _ in every), default=math.inf)
        if least == math.inf:
            return None
        unit = node.risk if self.is_number else float(node.sums[:, 0].sum())
        limit = least + SAME_SCORE * unit
        every.sort(key=lambda found: found[0])
        feature, cuts, scores, share = next(one for one in every if one[2].min() <= limit)
        place = int(np.argmax(scores <= limit))
        rank = self.rank[feature, node.rows]
        known, after, q = rank >= 0, float(scores[place]), float(share[place])
        if cuts.above is not None:
            level, above = np.maximum(rank, 0), cuts.above[place]
            inside = np.array([above >> b & 1 for b in range(int(level.max()) + 1)], dtype=bool)
            there = set(rank[known].tolist())
            bits = range(int(self.data.columns.n_bins[feature]))
            absent = sum(1 << b for b in bits if b not in there)
            return Split(
                feature, after, inside[level] & known, known, q, above=above, absent=absent
            )
        assert cuts.label is not None
        below, over = cuts.label[place].tolist()
        low, high = below, over
        if self.data.exact:  # a row of either value
            low, high = (int(node.rows[np.argmax(rank == value)]) for value in (below, over))
        return Split(feature, after, (rank > below) & known, known, q, low, high)

    def drawn(self, node: Node) -> Iterator[int]:
        """Yield the columns in which a node is searched; constant ones do not help."""
        d, wanted = len(self.rank), self.limits.features
        if wanted >= d:
            yield from range(d)
            return
        order = np.random.default_rng([self.key, node.serial]).permutation(d).tolist()
        all_constant = True
        for count, feature in enumerate(order):
            if count >= wanted and not all_constant:
                return
            rank = self.rank[feature, node.rows]
            rank = rank[rank >= 0]
            all_constant = all_constant and (not len(rank) or bool(rank.min() == rank.max()))
            yield feature

    def scores(self, node: Node, cuts: Cuts) -> tuple[FloatArray, FloatArray]:
        """Return the risks after cuts, infinite where they are not legal, and the shares above."""
        known, below = cuts.below[-1], cuts.below[:-1]
        missing, above = node.sums.sum(axis=0) - known, known - below
        if not self.is_number:  # masses; what is less is a rounding error
            missing[missing < NO_ROUNDING * known] = 0.0
            above = np.maximum(above, 0.0)
        q = above[:, 0] / known[0]
        below = below + (1 - q)[:, None] * missing
        above = above + q[:, None] * missing
        least = self.limits.min_leaf - NO_PART
        legal = (below[:, 1] >= least) & (above[:, 1] >= least) & (q > 0) & (q < 1)
        scores = np.full(len(q), math.inf)
        scores[legal] = self.risks(below[legal]) + self.risks(above[legal])
        return scores, q

    def cuts(self, node: Node, feature: int) -> Cuts | None:
        """Return the cuts of a column at a node, None where there is none."""
        rank = self.rank[feature, node.rows]
        known = np.flatnonzero(rank >= 0)
        if not len(known):
            return None
        order = known[np.argsort(rank[known], kind="stable")]
        rank = rank[order]
        last = np.flatnonzero(np.append(rank[1:] != rank[:-1], True))
        if len(last) < 2:
            return None
        below = np.cumsum(node.sums[order], axis=0)[last]
        values = rank[last]
        if has(self.special, LEVELS, feature):
            return self.sets(node, below, values.tolist())
        return Cuts(below, np.column_stack([values[:-1], values[1:]]))

    def sets(self, node: Node, below: FloatArray, levels: list[int]) -> Cuts:
        """Return the cuts of a column of levels, whose sums up to each are `below`.

        Each level stands for its part of the missing rows, too.
        """
        own, known = np.diff(below, axis=0, prepend=0.0), below[-1]
        total = node.sums.sum(axis=0)
        every = own + (own[:, :1] / known[0]) * (total - known)
        order = np.argsort(self.places(every, total), kind="stable")
        bits = [1 << levels[k] for k in order.tolist()]
        above = [sum(bits[k + 1 :]) for k in range(len(bits) - 1)]
        parts = np.cumsum(own[order], axis=0)
        if self.limits.level_smoothing > 0 or not (self.is_number or len(total) == 4):
            parts = np.concatenate([parts[:-1], known - own[order], known[None]])
            above += bits
        else:
            parts[-1] = known
        return Cuts(parts, above=above)

    def places(self, sums: FloatArray, total: FloatArray) -> FloatArray:
        """Return numbers by which levels of these sums (k, m) are put in order."""
        added = self.limits.level_smoothing * total[0] / total[1]
        if self.is_number:
            return np.asarray(sums[:, 2] / (sums[:, 0] + added))
        node = total[2:] / total[2:].sum()
        mass = sums[:, 2:].sum(axis=1)
        share = (sums[:, 2:] + added * node) / (mass + added)[:, None]
        if len(node) == 2:
            return np.asarray(share[:, 1])
        apart = (share - node) * np.sqrt(mass)[:, None]
        first = np.linalg.eigh(apart.T @ apart)[1][:, -1]
        first *= np.sign(first[np.argmax(np.abs(first))])
        return np.asarray((share - node) @ first)

    def thresholds(self, nodes: list[Node]) -> FloatArray:
        """Return the thresholds of nodes that are split."""
        splits = [node.split for node in nodes if node.split is not None]
        columns = np.array([(s.feature, s.low, s.high) for s in splits], dtype=np.int32)
        columns = columns.reshape(-1, 3)
        found, cut = np.full(len(splits), HALF), np.flatnonzero(columns[:, 1] >= 0)
        if len(cut):
            found[cut] = self.data.thresholds(*np.ascontiguousarray(columns[cut].T))
        return found

    def model(self, settings: dict[str, Any], stop_reason: str) -> Tree:
        """Return the tree grown so far, its nodes in preorder."""
        problem, nodes, at = self.problem, list[Node](), [self.root]
        while at:
            nodes.append(at.pop())
            at += reversed(nodes[-1].children)
        place = {id(node): k for k, node in enumerate(nodes)}
        n = len(nodes)
        total = np.array([node.sums.sum(axis=0) for node in nodes])
        children = np.full((n, 2), LEAF, dtype=np.int32)
        inner = [k for k, node in enumerate(nodes) if node.children]
        children[inner] = [[place[id(c)] for c in nodes[k].children] for k in inner] or children[:0]
        risk = np.array([node.risk for node in nodes])
        if self.is_number:
            value = np.ldexp([node.mean for node in nodes], problem.exponent)
            impurity = np.ldexp(risk / total[:, 0], 2 * problem.exponent)
        else:
            value = total[:, 2:] / total[:, 2:].sum(axis=1, keepdims=True)
            impurity = IMPURITIES[self.limits.criterion](value)
        weight = np.ldexp(total[:, 0], self.data.weight_exponent)
        columns = self.tests(nodes, inner, weight, children)
        return Tree(
            **columns,
            children=children,
            value=value,
            impurity=impurity,
            weight=weight,
            n_rows=np.array([len(node.rows) for node in nodes], dtype=np.int32),
            labels=problem.labels,
            n_features=problem.n_features,
            feature_names=problem.names,
            settings=settings,
            stop_reason=stop_reason,
            table=problem.table,
            seen=problem.seen,
        )

    def tests(
        self, nodes: list[Node], inner: list[int], weight: FloatArray, children: IntArray
    ) -> dict[str, Any]:
        """Return what nodes test, and where missing values go."""
        n, d = len(nodes), self.problem.n_features
        feature, threshold = np.full(n, LEAF, dtype=np.int32), np.zeros(n)
        threshold[inner] = self.thresholds([nodes[k] for k in inner])
        missing = heavier_child(weight, children, np.array([0, n], dtype=np.int32))
        share, sets, member = missing.astype(np.float64), [], []
        for k in inner:
            split = nodes[k].split
            assert split is not None
            feature[k] = split.feature
            if has(self.special, HOLES, split.feature):
                share[k], missing[k] = split.share, split.share > HALF
            if split.above:
                sets.append(k)
                bits = split.above | (split.absent if missing[k] else 0)
                member.append(np.frombuffer(bits.to_bytes(8 * WORDS, "little"), dtype="<u8"))
        found: dict[str, Any] = {"feature": feature, "subset_column": None, "subset": None}
        if sets:
            column = feature[sets]
            feature[sets] = d + np.arange(len(sets))
            found = own_sets(feature, d, column, np.array(member, dtype=np.uint64))
        both = {} if np.isin(share, (0, 1)).all() else {"share": share}
        return {**found, **both, "threshold": threshold, "missing": missing}


def _ranks(data: TrainingData) -> IntArray:
    """Return the rank of the value of each row in each column, its bin or level; -1: missing."""
    columns, special = data.columns, data.columns.special
    if data.exact:
        rank = np.empty(data.order.shape, dtype=np.int32)
        for feature, order in enumerate(data.order):
            rank[feature, order & ROW_MASK] = np.cumsum(order >= 0) - 1
        codes = columns.codes
    else:
        codes = columns.codes[:, data.rows]
        rank = codes.astype(np.int32)
    for feature in range(len(rank)):
        if has(special, LEVELS, feature):
            rank[feature] = codes[feature]
        if has(special, HOLES, feature):
            rank[feature, codes[feature] == columns.n_bins[feature]] = -1
    return rank
