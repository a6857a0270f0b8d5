"""Partitions on the workers of a Dask cluster, which are asked over connections of their own.

Dask has the partitions, and runs a task for each that answers for its rows until it is told to
end. Where a worker is lost Dask runs the task again elsewhere; it connects, and takes all cuts.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from pboost.data.engines import RELEASE
from pboost.growth.answer_tree import Adder, AnswerTree, Asker
from pboost.growth.channel import MessageError, pack, records_of, unpack
from pboost.growth.connections import Connection, Listener, as_answered, connect
from pboost.threads import Workers
from pboost.values import install_hint

#: Seconds for which an answer is waited for, also while Dask runs a task again.
PATIENCE = 600.0
#: How often it is looked whether the cluster has workers, in seconds.
LOOKING = 5.0
#: Seconds for which the end, and what the scheduler says, are waited for.
ENDING = 1.0
#: How often Dask runs a task again whose connection has broken.
RETRIES = 3


def dask_module(name: str) -> Any:
    """Return a module of Dask, ImportError with the extra's name if there is none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        hint = install_hint("dask", '"dask[array,dataframe]" distributed')
        raise ImportError(f"pboost.dask needs Dask: {hint}") from None


def gathered(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Return the results of tasks, RuntimeError where no worker is there to make them.

    Of tasks that fail the first of the list raises, whichever failed first.
    """
    return list(client.sync(_gathered, client, futures))


async def _gathered(client: Any, futures: Sequence[Any]) -> Any:
    found = asyncio.ensure_future(_in_order(client, futures))
    clock, left = asyncio.get_running_loop().time, 0.0
    try:
        while not (await asyncio.wait([found], timeout=min(LOOKING, PATIENCE)))[0]:
            if await _n_workers(client) != 0:
                left = 0.0
            elif not left:
                left = clock()
            elif clock() - left > PATIENCE:
                raise RuntimeError(
                    f"the cluster of Dask has had no worker for {PATIENCE:g} seconds, while "
                    "partitions are read"
                )
        return found.result()
    finally:
        found.cancel()


async def _in_order(client: Any, futures: Sequence[Any]) -> Any:
    for future in futures:
        if await future.exception() is not None:
            futures = [future]
            break
    return await client.gather(futures, asynchronous=True)


async def _n_workers(client: Any) -> int | None:
    """Return the number of workers, None where the scheduler does not say."""
    try:
        async with asyncio.timeout(ENDING):
            return len(await client.scheduler.ncores())
    except (OSError, TimeoutError):
        return None


class Place(NamedTuple):
    """What a task is told: whom to connect to, and for which partition it answers."""

    address: tuple[str, int]
    is_tls: bool
    key: bytes
    number: int
    kind: type[Any]
    has_inbox: bool
    version: str = RELEASE


class _Line:
    """A connection to what answers for a partition, and what it has been told."""

    def __init__(self, connection: Connection, inbox: tuple[str, int] | None) -> None:
        self.connection, self.inbox = connection, inbox
        self.n_cuts, self.n_unread, self.has_begun = 0, 0, False


class DaskPlaces(Asker):
    """An engine whose shards are on workers of Dask.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    given : sequence of distributed.Future
        Arguments of each shard, but for its threads, which are the last.
    kind : class
        What answers for rows; as in `pboost.growth.shard_processes.Processes`.
    """

    def __init__(self, client: Any, given: Sequence[Any], kind: type[Any]) -> None:
        self._client, self._given, self._kind = client, given, kind
        self._key, self._records = secrets.token_bytes(32), records_of(kind)
        self._begun: tuple[Any, ...] | None = None
        self._tasks: list[Any] = []
        #: Of each partition, of which there may be none; others are welcomed by other threads.
        self.lines: list[_Line | None] = [None] * len(given)
        self._has_come, self._is_over = threading.Condition(), False
        self.tree = AnswerTree(len(given), client.sync(_n_workers, client) or 0)

    def __enter__(self) -> DaskPlaces:
        comms, comm = dask_module("distributed.comm"), self._client.scheduler_comm.comm
        scheme = comms.parse_address(comm.peer_address)[0]
        # The interface over which the cluster is reached.
        is_here = scheme == "inproc"
        host = "127.0.0.1" if is_here else comms.get_address_host(comm.local_address)
        context = None
        if scheme == "tls":
            context = self._client.security.get_listen_args("client")["ssl_context"]
        self.listener = Listener(host, context, self._welcome)
        for k, given in enumerate(self._given):
            place = Place(
                self.listener.address,
                context is not None,
                self._key,
                k,
                self._kind,
                bool(self.tree.children[k]),
            )
            self._tasks.append(
                self._client.submit(serve, given, place, pure=False, retries=RETRIES)
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.listener.close()
        with self._has_come:  # who comes now is sent away
            self._is_over = True
        until = time.monotonic() + ENDING
        for line in self.lines:
            if line is not None:
                with contextlib.suppress(OSError):
                    line.connection.write(pack(("end", ()), self._key), until)
                line.connection.close()
        with contextlib.suppress(Exception):  # the client may have been closed
            self._client.cancel(self._tasks)
        self._given, self._tasks = [], []  # workers keep what futures are held of

    def _welcome(self, connection: Connection, message: bytearray) -> None:
        """Take a connection of who has the key, in place of the one before."""
        number, inbox = unpack(message, self._key, {})
        with self._has_come:
            if self._is_over:
                raise RuntimeError("the fit has ended")
            before, self.lines[number] = self.lines[number], _Line(connection, inbox)
            self._has_come.notify_all()
        if before is not None:
            before.connection.close()

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what a method of every shard returns."""
        found = self._all(what, arguments)
        if what == "begin":
            self._begun = arguments
        return [found[k] for k in range(len(self.lines))]

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Return what `masses` returns, of every shard; of many in sums of some of them."""
        if self.tree.levels:
            return self._added(cuts)
        return [*self._all("masses", (cuts,)).values()]

    def _all(
        self,
        what: str,
        arguments: tuple[Any, ...],
        more: Callable[[int], tuple[Any, ...]] | None = None,
        places: Sequence[int] | None = None,
    ) -> dict[int, Any]:
        """Return the answers of places, by default of all, over as many connections as it takes.

        What is asked has `more` arguments for each place.
        """
        if self._client.status != "running":
            raise RuntimeError(
                f"the client of Dask is {self._client.status} while {what!r} is asked of partitions"
            )
        until, found = time.monotonic() + PATIENCE, dict[int, Any]()
        places = range(len(self.lines)) if places is None else places
        while missing := [k for k in places if k not in found]:
            # All are told before one is listened to.
            told, packed = dict[int, _Line](), dict[Any, bytearray]()
            for k in missing:
                line = self._connected(k, what, until)
                with self._dropping(k, line, what, until):
                    added = () if more is None else more(k)
                    self._tell(line, what, arguments, packed, until, added)
                    told[k] = line
            found |= self._heard(told, what, until)
        return {k: found[k] for k in places}

    def _once(self, what: str, asked: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Return the answers of places that are there, each of which is asked something else."""
        until, told = time.monotonic() + PATIENCE, dict[int, _Line]()
        for k, arguments in asked.items():
            if (line := self.lines[k]) is not None:
                with self._dropping(k, line, what, until):
                    self._tell(line, what, arguments, {}, until)
                    told[k] = line
        return self._heard(told, what, until)

    def _heard(self, told: Mapping[int, _Line], what: str, until: float) -> dict[int, Any]:
        """Return the answers of those whose connections hold, which are read as they come."""
        found = dict[int, Any]()
        for k in as_answered({k: line.connection for k, line in told.items()}, until):
            with self._dropping(k, told[k], what, until):
                found[k] = self._hear(told[k], what, until)
        for k in sorted(found):  # the first of the places, whichever came first
            if isinstance(found[k], RuntimeError):
                raise found[k]
        return found

    def _reached(self) -> list[_Line]:
        """Return the connections to all, which are waited for."""
        until = time.monotonic() + PATIENCE
        return [self._connected(k, "masses", until) for k in range(len(self.lines))]

    def _connected(self, number: int, what: str, until: float) -> _Line:
        """Return the connection, waiting for Dask to run the task where there is none."""
        while (line := self.lines[number]) is None:
            task = self._tasks[number]
            if task.status not in ("pending", "finished"):
                error = task.exception(timeout=ENDING) if task.status == "error" else None
                raise RuntimeError(
                    f"partition {number}: its task is {task.status!r}, and no worker answers "
                    f"for it: {error}"
                ) from error
            if time.monotonic() > until:
                raise self._too_late(number, what)
            with self._has_come:
                if self.lines[number] is None:
                    self._has_come.wait(0.1)
        return line

    @contextlib.contextmanager
    def _dropping(self, number: int, line: _Line, what: str, until: float) -> Iterator[None]:
        """Close a connection that breaks in the block, which goes no further then."""
        try:
            yield
        except (OSError, ValueError, MessageError):  # ValueError: closed by another thread
            if time.monotonic() > until:
                raise self._too_late(number, what) from None
            line.connection.close()
            with self._has_come:
                if self.lines[number] is line:
                    self.lines[number] = None

    def _too_late(self, number: int, what: str) -> RuntimeError:
        n_workers = None
        with contextlib.suppress(Exception):  # the client may have been closed
            n_workers = self._client.sync(_n_workers, self._client)
        return RuntimeError(
            f"partition {number} has not answered {what!r} within {PATIENCE:g} seconds"
            + ("; the cluster of Dask has no worker" if n_workers == 0 else "")
        )

    def _tell(
        self,
        line: _Line,
        what: str,
        arguments: tuple[Any, ...],
        packed: dict[Any, bytearray],
        until: float,
        more: tuple[Any, ...] = (),
    ) -> None:
        """Send a question; `packed` has the messages that others have been sent."""
        if not line.has_begun and self._begun is not None and what != "begin":
            line.connection.write(pack(("begin", self._begun), self._key), until)
            line.n_unread += 1
        if what == "begin":  # whatever was told before is of no use any more
            line.n_cuts = 0
        line.has_begun, first = True, line.n_cuts
        if what in ("masses", "add"):
            (cuts,) = arguments
            arguments, line.n_cuts = (first, list(cuts[first:])), len(cuts)
        if (first, more) not in packed:
            packed[first, more] = pack((what, (*arguments, *more)), self._key)
        line.connection.write(packed[first, more], until)
        line.n_unread += 1

    def _hear(self, line: _Line, what: str, until: float) -> Any:
        """Return the last answer, or the error that a worker has had instead."""
        found: Any = None
        while line.n_unread:
            kind, found = unpack(line.connection.read(until), self._key, self._records)
            if kind == "error":
                return RuntimeError(f"a worker could not answer {what!r}: {found}")
            line.n_unread -= 1
        (one,) = found
        return one


def serve(given: tuple[Any, ...], place: Place) -> None:
    """Answer for the rows of a partition until told to end; what a task of Dask runs."""
    check_version(place.version)
    dask, contexts = dask_module("distributed"), (None, None)
    worker, host = dask.get_worker(), None
    if place.is_tls:
        security = worker.security
        listening = security.get_listen_args("worker")["ssl_context"]
        contexts = listening, security.get_connection_args("worker")["ssl_context"]
    if place.has_inbox:
        comms = dask_module("distributed.comm")
        is_here = comms.parse_address(worker.address)[0] == "inproc"
        host = "127.0.0.1" if is_here else comms.get_address_host(worker.address)
    dask.secede()  # others may run on this thread's place
    records = records_of(place.kind)
    with Workers(1) as workers, contextlib.ExitStack() as ends:
        shard = place.kind(*given, workers)
        adder = Adder(shard, workers, place.number, place.key, records, host, contexts)
        ends.callback(adder.close)
        connection = connect(place.address, contexts[1])
        ends.callback(connection.close)
        connection.write(pack((place.number, adder.address), place.key))
        while True:
            what, told = unpack(connection.read(), place.key, records)
            if what == "end":
                return
            kind, found = adder.answered(what, told)
            if kind == "error":
                found = f"{type(found).__name__}: {found}"
            connection.write(pack((kind, found), place.key))


def check_version(version: str) -> None:
    """Raise RuntimeError where a worker has another release than the one that asks it."""
    if version != RELEASE:
        raise RuntimeError(
            f"expected one release of pboost, but {version} asks a worker that has {RELEASE}"
        )
