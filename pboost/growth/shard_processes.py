"""Partitions in processes of this machine; one that dies is started again and replays the cuts."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

from pboost.threads import Workers

#: Seconds for which the answer of a process is waited for.
PATIENCE = 600.0
#: How often one process is started again.
RESTARTS = 3
#: Seconds for which a process is waited for that has been told to end.
_ENDING = 2.0


class LostError(Exception):
    """A process has ended before it has answered."""


class Processes:
    """An engine whose shards are divided among processes.

    Parameters
    ----------
    given : sequence of tuple
        Arguments of each shard, but for its threads, which are the last.
    n_processes : int
        Number of processes; no more than shards are started.
    kind : class
        What answers for rows, such as `pboost.weak.shards.Shard`: its `masses` takes all cuts so
        far, and its `merge` makes one answer of several.
    """

    def __init__(self, given: Sequence[tuple[Any, ...]], n_processes: int, kind: type[Any]) -> None:
        n = min(n_processes, len(given))
        self._workers = [_Process(k, kind, given[k::n]) for k in range(n)]

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.end()

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what a method of every shard returns."""
        return [one for found in self._all(what, arguments) for one in found]

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Return what `masses` of the shards returns, merged in every process."""
        return [one for found in self._all("masses", (cuts,)) for one in found]

    def _all(self, what: str, arguments: tuple[Any, ...]) -> list[list[Any]]:
        for worker in self._workers:
            worker.send(what, arguments)
        return [worker.answer(what, arguments) for worker in self._workers]


class _Process:
    """One process and what it needs to be told should it have to be started again."""

    def __init__(self, number: int, kind: type[Any], given: Sequence[tuple[Any, ...]]) -> None:
        self._number, self._given, self._restarts = number, (kind, list(given)), 0
        self._begun: tuple[Any, ...] | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._n_sent = 0  # cuts
        self._process = context.Process(target=serve, args=(there,), daemon=True)
        self._process.start()
        there.close()
        self._sends: list[Any] = [self._given]
        if self._begun is not None:
            self._sends.append(("begin", self._begun))

    def send(self, what: str, arguments: tuple[Any, ...]) -> None:
        """Ask; where the process is gone, `answer` sees it."""
        try:
            # What a new process is told has an answer each, but for the partitions.
            for message in self._sends:
                self._here.send(message)
                if message is not self._given:
                    self._receive(str(message[0]))
            self._sends = []
            if what == "masses":
                (cuts,) = arguments
                arguments, self._n_sent = (self._n_sent, cuts[self._n_sent :]), len(cuts)
            self._here.send((what, arguments))
        except (OSError, EOFError, LostError):
            self._sends = [self._given]  # not to be used again

    def answer(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the answer, of a new process where the one that was asked has ended."""
        while True:
            try:
                found = self._receive(what)
                break
            except (OSError, EOFError, LostError):
                self.end()
                if self._restarts == RESTARTS:
                    code = self._process.exitcode
                    raise RuntimeError(
                        f"process {self._number} of the partitions ended {RESTARTS + 1} times, "
                        f"the last time with exit code {code}, while it was asked for {what!r}. A "
                        'script that starts processes needs `if __name__ == "__main__":`'
                    ) from None
                self._restarts += 1
                self._start()
                self.send(what, arguments)
        if what == "begin":
            self._begun = arguments
        return found

    def _receive(self, what: str) -> list[Any]:
        ready = wait([self._here, self._process.sentinel], PATIENCE)
        if not ready:
            raise RuntimeError(
                f"process {self._number} of the partitions has not answered {what!r} within "
                f"{PATIENCE:.0f} seconds"
            )
        if self._here not in ready and not self._here.poll():
            raise LostError
        kind, found = self._here.recv()
        if kind == "error":
            raise found
        return list(found)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._here.close()
        self._process.join(0.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(_ENDING)


def serve(connection: Connection) -> None:
    """Answer for some shards until the other end is closed; what a process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asks ends it
    try:
        with Workers(1) as workers:
            kind, received = connection.recv()
            shards = [kind(*given, workers) for given in received]
            del received
            cuts: list[Any] = []
            while True:
                what, arguments = connection.recv()
                connection.send(_answered(shards, cuts, what, arguments))
    except (EOFError, OSError):
        return


def _answered(
    shards: list[Any], cuts: list[Any], what: str, arguments: tuple[Any, ...]
) -> tuple[str, Any]:
    try:
        if what == "masses":
            first, new = arguments
            cuts[first:] = new
            return "found", [shards[0].merge([shard.masses(cuts) for shard in shards])]
        return "found", [getattr(shard, what)(*arguments) for shard in shards]
    except Exception as error:  # raised where it was asked for
        return "error", error
