"""Answers of many places added up by some of them, in a tree, so that few reach the one that asks.

Who asks tells everybody, and hears from everybody that it has an answer; only sums go up the tree.
What of it is lost is asked for once more, place by place, so that each answer counts once.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pboost.growth.channel import pack, unpack
from pboost.growth.connections import Connection, Listener, connect
from pboost.growth.shard_processes import answered
from pboost.threads import Workers

#: How many answers reach one place, and of how many places, or workers, all go straight up.
FAN_IN, MOST_DIRECT = 10, 16
#: Seconds for which what has been sent is waited for, and for which it is being sent.
ARRIVING, SENDING = 10.0, 60.0


class AnswerTree:
    """Which place adds up the answers of which others.

    Parameters
    ----------
    n, n_workers : int
        Number of places, and of the workers that have them.

    Attributes
    ----------
    parent : list of int or None
        Of each place the one that adds its answer, None where it goes to who asks.
    children : list of list of int
        The places whose answers each one adds to its own.
    levels : list of list of int
        Places that have children, those farthest from the top first.
    """

    def __init__(self, n: int, n_workers: int) -> None:
        self.parent: list[int | None] = [None] * n
        self.children: list[list[int]] = [[] for _ in range(n)]
        self.levels: list[list[int]] = []
        if min(n, n_workers) <= MOST_DIRECT:
            return
        level: list[tuple[int | None, Sequence[int]]] = [(None, range(n))]
        while level:
            below: list[tuple[int | None, Sequence[int]]] = []
            for top, numbers in level:
                size = -(-len(numbers) // FAN_IN)
                for start in range(0, len(numbers), size):
                    head, *rest = numbers[start : start + size]
                    self.parent[head] = top
                    if top is not None:
                        self.children[top].append(head)
                    if rest:
                        below.append((head, rest))
            self.levels.insert(0, [head for head, _ in below if head is not None])
            level = below
        self.levels = [some for some in self.levels if some]

    def under(self, number: int) -> set[int]:
        """Return a place and all whose answers it adds up."""
        found = {number}
        for child in self.children[number]:
            found |= self.under(child)
        return found


class Adder:
    """One place: its shard, its newest answer, and those of others that have come.

    Parameters
    ----------
    shard : object
        What answers; its `merge` makes one answer of several.
    number : int
        Of the place.
    key, records :
        Of messages, see `pboost.growth.channel`.
    host : str, or None
        Interface at which others are listened to, None where none are.
    contexts : tuple of SSLContext or None
        For listening and for connecting.
    """

    def __init__(
        self,
        shard: Any,
        workers: Workers,
        number: int,
        key: bytes,
        records: Mapping[str, type[Any]],
        host: str | None,
        contexts: tuple[ssl.SSLContext | None, ssl.SSLContext | None],
    ) -> None:
        self._shards, self._cuts, self._workers = [shard], list[Any](), workers
        self._number, self._key, self._records, self._context = number, key, records, contexts[1]
        self._own: Any = None
        self._question = 0
        self._up: tuple[tuple[str, int], Connection] | None = None
        #: By place: of which question, and the answer.
        self._come: dict[int, tuple[int, Any]] = {}
        self._has_come = threading.Condition()
        self._listener = None if host is None else Listener(host, contexts[0], self._welcome)

    @property
    def address(self) -> tuple[str, int] | None:
        """Where others send their answers."""
        return None if self._listener is None else self._listener.address

    def close(self) -> None:
        """Listen to nobody any more."""
        if self._listener is not None:
            self._listener.close()
        if self._up is not None:
            self._up[1].close()

    def _welcome(self, connection: Connection, message: bytearray) -> None:
        """Take answers of one place, until its connection breaks."""
        number = unpack(message, self._key, {})
        while True:
            found = unpack(connection.read(), self._key, self._records)
            with self._has_come:
                if found[0] >= self._come.get(number, (0,))[0]:
                    self._come[number] = found
                self._has_come.notify_all()

    def answered(self, what: str, told: Any) -> tuple[str, Any]:
        """Return "found" and what is answered, or "error" and the exception."""
        if what == "sum":
            return "found", [self._sum(*told)]
        if what == "add":
            *told, question, parent = told
            kind, found = self._answer("masses", told)
            self._question = question
            if kind == "found":
                found = [parent is None or self._send(parent, question, self._own)]
            return kind, found
        return self._answer(what, told)

    def _answer(self, what: str, told: Any) -> tuple[str, Any]:
        is_masses = what == "masses"
        if is_masses and self._own is not None and not told[1] and told[0] == len(self._cuts):
            return "found", [self._own]  # asked once more
        kind, found = answered(self._shards, self._cuts, self._workers, what, told)
        self._own = found[0] if is_masses and kind == "found" else None
        return kind, found

    def _sum(self, question: int, places: Sequence[int], parent: Any) -> Any:
        """Add answers that have been sent here to the own one, and send the sum or return it.

        None where one has not come, or this place has begun anew; or whether the sum has been sent.
        """
        if self._own is None or self._question != question:
            return None
        until = time.monotonic() + ARRIVING
        with self._has_come:
            while not all(self._come.get(k, (-1,))[0] == question for k in places):
                if (left := until - time.monotonic()) <= 0:
                    return None
                self._has_come.wait(left)
            found = [self._come.pop(k)[1] for k in places]
        total = self._shards[0].merge([self._own, *found])
        return total if parent is None else self._send(parent, question, total)

    def _send(self, parent: Any, question: int, answer: Any) -> bool:
        """Send an answer to the place that adds it; returns whether it has been sent."""
        address = parent[0], parent[1]
        try:
            if self._up is None or self._up[0] != address:
                if self._up is not None:
                    self._up[1].close()
                self._up = address, connect(address, self._context)
                self._up[1].write(pack(self._number, self._key))
            message = pack((question, answer), self._key)
            self._up[1].write(message, time.monotonic() + SENDING)
        except (OSError, ValueError):
            if self._up is not None:
                self._up[1].close()
            self._up = None
            return False
        return True


class Asker:
    """Base of engines whose places add up answers: asks all, and has sums go up the tree.

    Subclasses have `lines`, of each place what it is reached by or None, with the address of its
    `inbox`; `_reached`, which waits until all are there; `_all`, which asks places until all have
    answered, and `_once`, which does not try again.
    """

    lines: list[Any]
    tree: AnswerTree
    _reached: Callable[[], list[Any]]
    _all: Callable[..., dict[int, Any]]
    _once: Callable[..., dict[int, Any]]
    _question = 0

    def _added(self, cuts: Sequence[Any]) -> list[Any]:
        """Return answers to `masses` that have been added up, of each place in one of them."""
        self._question += 1
        tree, there = self.tree, self._reached()
        inbox = [None if parent is None else there[parent].inbox for parent in tree.parent]

        def more(number: int) -> tuple[Any, ...]:
            return self._question, None if tree.children[number] else inbox[number]

        sent = self._all("add", (cuts,), more)
        # Places whose answer has to be fetched from each: here those that add nothing.
        leaves = [k for k, below in enumerate(tree.children) if not below]
        lost = {k for k in leaves if inbox[k] is None or not sent[k]}
        found = []
        for level in tree.levels:
            asked = {}
            for k in level:
                if self.lines[k] is there[k]:
                    places = [child for child in tree.children[k] if child not in lost]
                    asked[k] = self._question, places, inbox[k]
                else:  # it has begun anew, and what was sent to it is gone
                    lost |= tree.under(k)
            sums = self._once("sum", asked)
            for k in asked:
                if sums.get(k) is None or sums[k] is False:
                    lost |= tree.under(k)
                elif tree.parent[k] is None:
                    found.append(sums[k])
        return found + list(self._all("masses", (cuts,), None, sorted(lost)).values())
