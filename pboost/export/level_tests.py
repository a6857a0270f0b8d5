"""Trees whose tests of sets of levels are comparisons with thresholds between level numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.inputs import LEVELS, WORDS
from pboost.models.tree_record import LEAF, NO_SET, TreeSum


class Runs(NamedTuple):
    """The level numbers in order: `cut` between runs of them, and to which child each run goes."""

    cut: list[float]
    side: list[int]

    @property
    def copies(self) -> tuple[int, int]:
        """The number of runs that go to either child."""
        return self.side.count(0), self.side.count(1)


class Copied(NamedTuple):
    """A node of trees without sets: a node of the trees with them, and one of its runs."""

    node: int
    run: int
    #: By what weights of the node are multiplied.
    factor: float
    parent: int
    exit: int


def runs_of(trees: TreeSum, number: int) -> Runs:
    """Return the runs of the levels of a set; at least two, the last of which may have no level."""
    is_in = np.zeros(LEVELS + 1, dtype=np.int8)
    is_in[trees.levels(number)] = 1
    is_in[LEVELS] = 1 - is_in[LEVELS - 1] if (is_in[:LEVELS] == is_in[0]).all() else is_in[-2]
    last = np.flatnonzero(np.diff(is_in))
    return Runs((last + 0.5).tolist(), is_in[np.append(last, LEVELS)].tolist())


def count_by_thresholds(trees: TreeSum, runs: list[Runs]) -> int:
    """Return the number of nodes of the trees when sets are comparisons of level numbers."""
    size, start = [1] * trees.n_nodes, trees.start.tolist()
    for node in np.flatnonzero(trees.feature != LEAF)[::-1].tolist():
        number = int(trees.level_set[node])
        copies = (1, 1) if number == NO_SET else runs[number].copies
        below = trees.children[node].tolist()
        size[node] = sum(copies) - 1
        size[node] += sum(n * size[start[node] + k] for n, k in zip(copies, below, strict=True))
    return sum(size[root] for root in trees.root[:-1].tolist())


def by_thresholds(trees: TreeSum, max_nodes: int) -> TreeSum:
    """Return the same trees without sets; ValueError where they have more than so many nodes.

    A set is a chain of comparisons, in which what follows is repeated for each run of levels. The
    weight of a child is divided among its runs; TreeSHAP finds the same however it is divided,
    as all of them compare one column.
    """
    if not trees.n_sets:
        return trees
    runs = [runs_of(trees, number) for number in range(trees.n_sets)]
    size = count_by_thresholds(trees, runs)
    if size > max_nodes:
        raise ValueError(
            f"max_nodes: expected at least {size}, the nodes of the trees where tests of sets of "
            f"levels are comparisons of level numbers, got {max_nodes}; to_json, to_onnx and "
            "to_treelite hold the sets themselves"
        )
    copies, root = [], [0]
    for tree in range(trees.n_trees):
        copies += _copied(trees, tree, runs)
        root.append(len(copies))
    node, _, factor, _, _ = map(np.array, zip(*copies, strict=True))
    children = np.full((len(copies), 2), LEAF)
    first = np.repeat(root[:-1], np.diff(root))
    for here, one in enumerate(copies):
        if one.parent >= 0:
            children[first[here] + one.parent, one.exit] = here - first[here]
    of_set = trees.level_set[node] != NO_SET
    threshold, missing = trees.threshold[node], np.array(trees.missing)[node]
    for here in np.flatnonzero(of_set).tolist():
        own, run = runs[trees.level_set[node[here]]], copies[here].run
        threshold[here] = own.cut[run]
        missing[here] = missing[here] != own.side[run]
    return replace(
        trees,
        root=np.array(root, np.int32),
        feature=trees.feature[node],
        threshold=threshold,
        children=children,
        missing=missing,
        level_set=np.full(len(node), NO_SET),
        value=trees.value[node],
        sets=np.empty((0, WORDS), np.uint64),
        weight=_weights(trees, copies, factor, runs),
    )


def _copied(trees: TreeSum, tree: int, runs: list[Runs]) -> list[Copied]:
    """Return the nodes of one tree without sets, in preorder."""
    root = int(trees.root[tree])
    found: list[Copied] = []
    waiting = [Copied(root, 0, 1.0, -1, 0)]
    while waiting:
        one = waiting.pop()
        here, below = len(found), (trees.children[one.node] + root).tolist()
        found.append(one)
        if trees.feature[one.node] == LEAF:
            continue
        number = int(trees.level_set[one.node])
        if number == NO_SET:
            waiting += [Copied(below[k], 0, one.factor, here, k) for k in (1, 0)]
            continue
        cut, side = runs[number]
        factor = [one.factor / n for n in runs[number].copies]
        k, after = side[one.run], side[one.run + 1]
        if one.run + 1 < len(cut):
            waiting.append(one._replace(run=one.run + 1, parent=here, exit=1))
        else:
            waiting.append(Copied(below[after], 0, factor[after], here, 1))
        waiting.append(Copied(below[k], 0, factor[k], here, 0))
    return found


def _weights(
    trees: TreeSum, copies: list[Copied], factor: NDArray[np.float64], runs: list[Runs]
) -> NDArray[np.float64] | None:
    """Return the weights of copied nodes: at a run, what is left of the node's."""
    if trees.weight is None:
        return None
    weight = trees.weight[[one.node for one in copies]] * factor
    for here, one in enumerate(copies):
        number = int(trees.level_set[one.node])
        if number != NO_SET and one.run:
            own, start = runs[number], trees.start[one.node]
            below = trees.weight[trees.children[one.node] + start]
            left = [own.side[one.run :].count(k) / own.copies[k] for k in (0, 1)]
            weight[here] = one.factor * float(below @ left)
    return weight
