"""Rows sent through a graph node by node, each node seeing only the rows that arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.models.graph import OUT, DecisionGraph

#: Rows, as positions or as a slice.
Here: TypeAlias = Any
#: Returns whether rows take exit 1 of a node.
Take: TypeAlias = Callable[[int, Here], NDArray[np.bool_]]


def passages(model: DecisionGraph, n: int, take: Take) -> Iterator[tuple[Here, NDArray[np.bool_]]]:
    """Send n rows through a graph; yield, for each node, the rows that arrive and their answers."""
    # Rows that have arrived at nodes to come; a slice where it is all of them, which is faster.
    waiting: dict[int, list[Here]] = {0: [slice(None)]}
    for node in range(model.n_nodes):
        parts = waiting.pop(node)
        here = parts[0] if len(parts) == 1 else np.concatenate(parts)
        above = take(node, here)
        below_to, above_to = model.next[node].tolist()
        if below_to == above_to:
            waiting.setdefault(below_to, []).append(here)
        else:
            rows = np.arange(n)[here]
            waiting.setdefault(below_to, []).append(rows[~above])
            waiting.setdefault(above_to, []).append(rows[above])
        waiting.pop(OUT, None)
        yield here, above
