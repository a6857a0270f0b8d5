"""Growth of trees exit by exit: which open exit is split next, and when growth ends."""

from __future__ import annotations

import heapq
from collections.abc import Container
from typing import Any

from pboost._core.voting import decrease, rounded_key
from pboost.growth.step import STOPPED, Callback, StepRecord, TreeLimits
from pboost.threads import check_stop

ALL_OPENED = "all nodes are opened"
NO_EXIT = "no exit can be split"


class BestFirst:
    """A tree that grows at its best open exit.

    Exits have a `serial` number, a `bound`, an `error`, the reach mass of the class that is not
    predicted, and the `split` found for them, which knows what the bound is `after` it.

    Attributes
    ----------
    limits : TreeLimits
        When growth ends, and what is best.
    certificate : list of float
        Certificate before the first and after each node.
    heap : list of (negative key, serial number, exit)
        Exits to be split: of equal keys the one opened first.
    """

    limits: TreeLimits
    certificate: list[float]
    heap: list[tuple[float, int, Any]]

    def find(self, exit_: Any) -> Any:
        """Return the best split of an exit, None where there is none."""
        raise NotImplementedError

    def split(self, exit_: Any) -> None:
        """Make a node of an exit for which a split was found, and open the node's exits."""
        raise NotImplementedError

    def newest(self, bound: float) -> StepRecord:
        """Return the record of the node made just now of an exit of this bound."""
        raise NotImplementedError

    def push(self, exit_: Any) -> bool:
        """Put an exit in its place; False if it was looked ahead at, and cannot be split."""
        growth, key = self.limits.growth, 0.0
        if growth == "largest-bound":
            key = rounded_key(exit_.bound)
        elif growth == "largest-error":
            key = rounded_key(exit_.error)
        elif growth == "look-ahead":
            exit_.split = self.find(exit_)
            if exit_.split is None:
                return False
            key = decrease(exit_.bound, exit_.bound - exit_.split.after)
        heapq.heappush(self.heap, (-key, exit_.serial, exit_))
        return True

    def keep(self, serials: Container[int]) -> None:
        """Leave only the exits of these serial numbers on the heap."""
        self.heap = [entry for entry in self.heap if entry[1] in serials]
        heapq.heapify(self.heap)

    def grow(self, callback: Callback | None) -> str:
        """Open exits until done; returns why growing stopped."""
        while len(self.certificate) <= self.limits.nodes:
            check_stop()
            if not self.heap:
                return NO_EXIT
            exit_ = heapq.heappop(self.heap)[-1]
            exit_.split = exit_.split or self.find(exit_)
            if exit_.split is None:
                continue
            self.split(exit_)
            if callback is not None and callback(
                len(self.certificate) - 1, self.newest(exit_.bound)
            ):
                return STOPPED
            if self.certificate[-1] <= self.limits.target:
                return "the target certificate is reached"
        return ALL_OPENED
