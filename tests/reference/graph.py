"""Decision graphs evaluated row by row, from their definition: missing values, sets of levels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from scipy.stats import norm

from pboost.data.node_inputs.inputs import Subsets


def number(model: Any, row: list[float], which: int) -> float:
    """Return what a node compares that counts it so."""
    if which < len(row):
        return row[which]
    assert isinstance(model.inputs, Subsets)
    column, words = (array[which - len(row)].tolist() for array in model.inputs.arrays())
    level = row[column]
    if not (level == level and level in range(255)):
        return math.nan
    return float(words[int(level) // 64] >> int(level) % 64 & 1)


def exit_of(model: Any, row: list[float], node: int) -> int:
    """Return the exit of the side on which a row lies, of two the heavier."""
    value = number(model, row, int(model.feature[node]))
    if math.isnan(value):
        return int(model.missing[node] > 0.5)
    return int(value > model.threshold[node])


def path(model: Any, row: list[float]) -> Iterator[tuple[int, int]]:
    """Yield the nodes that a row meets on the hard route, and the exits that it takes."""
    node = 0 if model.n_nodes else -1
    while node >= 0:
        exit_ = exit_of(model, row, node)
        yield node, exit_
        node = int(model.next[node, exit_])


def score(model: Any, row: list[float]) -> float:
    """Return the decision value on the hard route."""
    total = model.bias
    for node, exit_ in path(model, row):
        total += float(model.vote[node, exit_])
    return total


def columns_read(model: Any, row: list[float]) -> set[int]:
    """Return the columns that are read on the hard route."""
    read = [int(model.feature[node]) for node, _ in path(model, row)]
    d = len(row)
    return {j if j < d else int(model.inputs.column[j - d]) for j in read}


def above(model: Any, row: list[float], node: int, label: int, sigma: list[float] | None) -> float:
    """Return the probability of exit 1 under the answers assumed."""
    which = int(model.feature[node])
    value, cut = number(model, row, which), float(model.threshold[node])
    share = float(model.missing[node]) if math.isnan(value) else float(value > cut)
    if model.answer is not None:
        table = model.answer[node, :, label].tolist()
        return (1 - share) * table[0] + share * table[1]
    known = sigma is not None and not math.isnan(value) and which < len(row)
    if known and sigma[which] > 0:
        return float(norm.cdf((value - cut) / sigma[which]))
    return share


def walks(
    model: Any, row: list[float], label: int = 0, sigma: list[float] | None = None
) -> Iterator[tuple[float, float, list[int]]]:
    """Yield the probability, decision value and nodes of every walk through the graph."""
    waiting = [(1.0, model.bias, [0] if model.n_nodes else [])]
    while waiting:
        share, total, nodes = waiting.pop()
        if not nodes or nodes[-1] < 0:
            yield share, total, [node for node in nodes if node >= 0]
            continue
        node = nodes[-1]
        q = above(model, row, node, label, sigma)
        for exit_, p in ((0, 1 - q), (1, q)):
            if p:
                vote, to = float(model.vote[node, exit_]), int(model.next[node, exit_])
                waiting.append((share * p, total + vote, [*nodes, to]))
