"""Partitions in processes of this machine; one that dies is started again and replays the cuts.

Whatever a process is told, and whatever it answers, has a limit of time: one that neither reads nor
ends, as one that is stopped, is killed by a thread that watches, so that no wait is without an end.
"""

from __future__ import annotations

import math
import multiprocessing
import pickle
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pboost.data.columns import BinnedColumns
from pboost.data.engines import RELEASE, Engine, Serial
from pboost.threads import Workers
from pboost.values import check_integer

if TYPE_CHECKING:  # not at import: it is slow
    from multiprocessing.connection import Connection

#: Seconds for which a process is waited for, to take what it is told, and for its answer.
PATIENCE = 600.0
#: How often one process is started again.
RESTARTS = 3
#: Seconds for which a process is waited for that has been told to end.
_ENDING = 2.0
#: What a process is told first: what answers for rows, and the arguments of all.
_LOAD = "load"
#: Bytes from which an array is sent by itself, without a copy of it among pickles.
_LARGE = 2**16


@contextmanager
def places(
    columns: Sequence[BinnedColumns],
    given: Sequence[tuple[Any, ...]],
    kind: type[Any],
    n_processes: int | None,
    n_threads: int | None,
) -> Iterator[tuple[Engine, Workers]]:
    """Yield the engine that two options of a fit on partitions ask for, and this process's threads.

    `given` are the arguments of each shard, but for its threads, and `kind` is what a shard is.
    """
    if n_processes is not None:
        n_processes = check_integer("n_processes", n_processes, least=1)
        if n_threads is not None:
            raise NotImplementedError("n_threads: processes have one thread each, expected None")
        n_threads = 1
    with Workers(n_threads, sum(part.codes.size for part in columns)) as workers:
        if n_processes is None:
            yield Serial([kind(*one, workers) for one in given]), workers
        else:
            with Processes(given, n_processes, kind) as engine:
                yield engine, workers


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
        self._workers: list[_Process] = []
        self._is_over = threading.Event()
        try:
            for k in range(n):
                self._workers.append(_Process(k, kind, given[k::n]))
            threading.Thread(target=self._watch, name="pboost-watch", daemon=True).start()
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._is_over.set()
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.end()

    def _watch(self) -> None:
        """Kill processes for which has been waited too long; what a thread runs."""
        while not self._is_over.wait(min(PATIENCE / 10, 1.0)):
            for worker in self._workers:
                worker.kill_late()

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
        self._number, self._restarts = number, 0
        self._told: list[tuple[str, Any]] = [(_LOAD, (kind, list(given)))]
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._n_sent = 0  # cuts
        self._is_lost = self._is_late = False
        self._due = math.inf
        self._unread: list[str] = []  # what it has been told and has not answered
        self._untold = list(self._told)
        self._process = context.Process(target=run, args=(there, RELEASE), daemon=True)
        with _without_interrupts():
            self._process.start()
        there.close()

    def send(self, what: str, arguments: tuple[Any, ...]) -> None:
        """Ask; where the process is gone, `answer` sees it."""
        try:
            for message in self._untold:
                self._write(*message)
            self._untold = []
            if what == "begin":  # whatever was told before is of no use any more
                self._n_sent = 0
            if what == "masses":
                (cuts,) = arguments
                arguments, self._n_sent = (self._n_sent, cuts[self._n_sent :]), len(cuts)
            self._write(what, arguments)
        except (OSError, EOFError):
            self._is_lost = True

    def answer(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the answer, of a new process where the one that was asked has ended."""
        found: list[Any] = []
        while True:
            try:
                # A new process answers to what it has been told before, too; one that is lost may
                # have said why.
                while self._unread or self._is_lost:
                    found = self._read()
                    del self._unread[:1]
                break
            except (OSError, EOFError, LostError):
                self._start_again(self._unread[0] if self._unread else what)
                self.send(what, arguments)
        if what == "begin":
            self._told[1:] = [(what, arguments)]
        return found

    def _start_again(self, what: str) -> None:
        self.end()
        if self._is_late:
            raise RuntimeError(
                f"process {self._number} of the partitions has not answered {what!r} within "
                f"{PATIENCE:g} seconds"
            )
        if self._restarts == RESTARTS:
            raise RuntimeError(
                f"process {self._number} of the partitions ended {RESTARTS + 1} times, the last "
                f"time with exit code {self._process.exitcode}, while it was asked for {what!r}. A "
                'script that starts processes needs `if __name__ == "__main__":`'
            )
        self._restarts += 1
        self._start()

    def _write(self, what: str, arguments: Any) -> None:
        self._unread.append(what)
        with self._limit():
            write(self._here, (what, arguments))

    def _read(self) -> list[Any]:
        from multiprocessing.connection import wait

        with self._limit():
            # A process that ends before it has opened its end of the pipe does not close it.
            ready = wait([self._here, self._process.sentinel])
            if self._here not in ready and not self._here.poll():
                raise LostError
            kind, found = self._here.recv()
        if kind == "error":
            raise found
        return list(found)

    @contextmanager
    def _limit(self) -> Iterator[None]:
        self._due = time.monotonic() + PATIENCE
        try:
            yield
        finally:
            self._due = math.inf

    def kill_late(self) -> None:
        """Kill the process where it has been waited for too long: the wait ends with an error."""
        if time.monotonic() > self._due:
            self._is_late = True
            self._process.kill()

    def kill(self) -> None:
        """Kill the process, whatever it does."""
        self._here.close()
        self._process.kill()

    def end(self) -> None:
        """Kill the process, and wait for its end."""
        self.kill()
        self._process.join(_ENDING)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Have what is started in it not be interrupted by Ctrl-C: the one that asks ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def write(connection: Connection, message: Any) -> None:
    """Send a message, large arrays by themselves."""
    large: list[pickle.PickleBuffer] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        if memoryview(buffer).nbytes < _LARGE:
            return True
        large.append(buffer)
        return False

    pickled = pickle.dumps(message, protocol=5, buffer_callback=is_small)
    connection.send((len(large), pickled))
    for buffer in large:
        connection.send_bytes(buffer.raw())


def read(connection: Connection) -> Any:
    """Return a message that `write` has sent."""
    n_large, pickled = connection.recv()
    return pickle.loads(pickled, buffers=[connection.recv_bytes() for _ in range(n_large)])


def run(connection: Connection, version: str) -> None:
    """Answer for some shards until the other end is closed; what a process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asks ends it
    serve(connection, version)


def serve(connection: Connection, version: str) -> None:
    """Answer for some shards, if the same release asks, until the other end is closed."""
    try:
        if version != RELEASE:
            error = RuntimeError(
                f"expected one release of pboost, but {version} asks a process that has imported "
                f"{RELEASE}"
            )
            connection.send(("error", error))
            return
        with Workers(1) as workers:
            shards: list[Any] = []
            cuts: list[Any] = []
            while True:
                what, arguments = read(connection)
                connection.send(answered(shards, cuts, workers, what, arguments))
                del arguments
    except (EOFError, OSError):
        return


def answered(
    shards: list[Any], cuts: list[Any], workers: Workers, what: str, arguments: Any
) -> tuple[str, Any]:
    """Return "found" and what shards answer, or "error" and the exception.

    `cuts` are all that have been told, and are changed.
    """
    try:
        if what == _LOAD:
            kind, received = arguments
            while received:
                shards.append(kind(*received.pop(0), workers))
            return "found", []
        if what == "masses":
            first, new = arguments
            cuts[first:] = new
            return "found", [shards[0].merge([shard.masses(cuts) for shard in shards])]
        return "found", [getattr(shard, what)(*arguments) for shard in shards]
    except Exception as error:  # raised where it was asked for
        return "error", error
